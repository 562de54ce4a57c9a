//! The `zoo` command, as the tests call it: in a lane's process it can be made wrong, or hang.

use burn_zoo_core::with_seeded_bug;

fn main() {
    let lane = std::env::args()
        .skip_while(|arg| arg != "--run-lane")
        .nth(1);
    let meant = |name: &str| lane.is_some() && std::env::var(name).ok() == lane;
    if meant("BURN_ZOO_TEST_HANGING_LANE") {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
    std::process::exit(match meant("BURN_ZOO_TEST_WRONG_LANE") {
        true => with_seeded_bug("norm without its bias", burn_zoo_cli::main).0,
        false => burn_zoo_cli::main(),
    });
}
