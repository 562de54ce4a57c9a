//! Classifies a photo with published weights where they are on this machine, and otherwise trains a small
//! EfficientNet on real images and shows what it learnt.
//!
//! ```text
//! cargo run --release --example efficientnet
//! cargo run --release -p burn-zoo-cli -- fetch efficientnet_b0
//! cargo run --release --example efficientnet -- --help
//! ```

use burn_zoo_cli::{Demo, Example};

fn main() {
    let example = Example {
        name: "efficientnet",
        about: "Trains a small EfficientNet on images (by default 1,797 scans of handwritten digits), evaluates it, and leaves a run folder with a report; without options and with published weights on this machine, classifies a photo",
        dataset: "digits",
        models: ["efficientnet_cifar", "efficientnet_b0"],
        demo: Demo::Photo(
            concat!(env!("CARGO_MANIFEST_DIR"), "/photos/cat.jpg"),
            &[
                ("efficientnet_b0", "efficientnet_b0_rwightman-7f5810bc.pth"),
                ("efficientnet-lite0", "efficientnet-lite0-57934424.pth"),
            ],
        ),
    };
    std::process::exit(example.run());
}
