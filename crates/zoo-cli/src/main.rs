//! The `zoo` command.

fn main() {
    std::process::exit(burn_zoo_cli::main());
}
