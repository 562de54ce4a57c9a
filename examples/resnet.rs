//! Trains a residual network on real images and shows what it learnt.
//!
//! ```text
//! cargo run --release --example resnet
//! cargo run --release --example resnet -- --help
//! ```

fn main() {
    let about = "Trains a ResNet on images (by default 1,797 scans of handwritten digits), evaluates it, and leaves a run folder with a report";
    std::process::exit(burn_zoo_cli::example(
        "resnet",
        ["resnet20", "resnet18"],
        about,
    ));
}
