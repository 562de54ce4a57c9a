//! Trains a small EfficientNet on real images and shows what it learnt.
//!
//! ```text
//! cargo run --release --example efficientnet
//! cargo run --release --example efficientnet -- --help
//! ```

fn main() {
    let about = "Trains a small EfficientNet on images (by default 1,797 scans of handwritten digits), evaluates it, and leaves a run folder with a report";
    std::process::exit(burn_zoo_cli::example(
        "efficientnet",
        ["efficientnet_cifar", "efficientnet_b0"],
        about,
    ));
}
