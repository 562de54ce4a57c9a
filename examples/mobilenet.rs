//! Classifies a photo with MobileNetV2's published weights where they are on this machine, and otherwise
//! trains a small one on real images and shows what it learnt.
//!
//! ```text
//! cargo run --release --example mobilenet
//! cargo run --release -p burn-zoo-cli -- fetch mobilenet_v2
//! cargo run --release --example mobilenet -- --help
//! ```

use burn_zoo_cli::{Demo, Example};

fn main() {
    let example = Example {
        name: "mobilenet",
        about: "Trains a small MobileNetV2 on images (by default 1,797 scans of handwritten digits), evaluates it, and leaves a run folder with a report; without options and with published weights on this machine, classifies a photo",
        dataset: "digits",
        models: ["mobilenet_v2_cifar", "mobilenet_v2"],
        demo: Demo::Photo(
            concat!(env!("CARGO_MANIFEST_DIR"), "/photos/cat.jpg"),
            &[("mobilenet_v2", "mobilenet_v2-b0353104.pth")],
        ),
    };
    std::process::exit(example.run());
}
