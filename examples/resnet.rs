//! Trains a residual network on real images and shows what it learnt.
//!
//! ```text
//! cargo run --release --example resnet
//! cargo run --release --example resnet -- --help
//! ```

use burn_zoo_cli::Example;

fn main() {
    let example = Example {
        name: "resnet",
        about: "Trains a ResNet on images (by default 1,797 scans of handwritten digits), evaluates it, and leaves a run folder with a report",
        models: ["resnet20", "resnet18"],
        photo: None,
    };
    std::process::exit(example.run());
}
