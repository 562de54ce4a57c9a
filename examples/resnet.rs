//! Trains a residual network on real images and shows what it learnt.
//!
//! ```text
//! cargo run --release --example resnet
//! cargo run --release --example resnet -- --help
//! ```

use burn_zoo_cli::{Demo, Example};

fn main() {
    let example = Example {
        name: "resnet",
        about: "Trains a ResNet on images (by default 1,797 scans of handwritten digits), evaluates it, and leaves a run folder with a report",
        dataset: "digits",
        models: ["resnet20", "resnet18"],
        demo: Demo::None,
    };
    std::process::exit(example.run());
}
