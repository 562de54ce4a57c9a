//! Trains a small MobileNetV2 on real images and shows what it learnt.
//!
//! ```text
//! cargo run --release --example mobilenet
//! cargo run --release --example mobilenet -- --help
//! ```
//!
//! With torchvision's weights, `zoo predict mobilenet_v2 photo.jpg` classifies a photo.

fn main() {
    let about = "Trains a small MobileNetV2 on images (by default 1,797 scans of handwritten digits), evaluates it, and leaves a run folder with a report";
    std::process::exit(burn_zoo_cli::example(
        "mobilenet",
        ["mobilenet_v2_cifar", "mobilenet_v2"],
        about,
    ));
}
