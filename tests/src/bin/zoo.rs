//! The `zoo` command, as the tests call it.

fn main() {
    std::process::exit(burn_zoo_cli::main());
}
