use crate::config::MobileNetConfig;
use burn_zoo_core::{Preprocessing, Preset, Task, Weights};
use std::sync::LazyLock;

const V2: &str =
    "MobileNetV2: Inverted Residuals and Linear Bottlenecks, Sandler et al. 2018, arXiv:1801.04381";
const V3: &str = "Searching for MobileNetV3, Howard et al. 2019, arXiv:1905.02244";

/// A row of torchvision's table: paper, parameters, side the image is resized to, file, top-1
/// accuracy.
type Row = (&'static str, &'static str, usize, usize, &'static str, f32);

#[rustfmt::skip]
const TORCHVISION: [Row; 3] = [
    ("mobilenet_v2", V2, 3_504_872, 256, "https://download.pytorch.org/models/mobilenet_v2-b0353104.pth", 71.878),
    ("mobilenet_v3_large", V3, 5_483_032, 232, "https://download.pytorch.org/models/mobilenet_v3_large-5c1a4163.pth", 75.274),
    ("mobilenet_v3_small", V3, 2_542_856, 256, "https://download.pytorch.org/models/mobilenet_v3_small-047dcff4.pth", 67.668),
];

/// Every preset of the family with its configuration.
pub(crate) static PRESETS: LazyLock<Vec<(Preset, MobileNetConfig)>> = LazyLock::new(|| {
    let mut presets: Vec<_> = TORCHVISION.iter().map(torchvision).collect();
    presets.push(small());
    presets
});

fn torchvision(row: &Row) -> (Preset, MobileNetConfig) {
    let &(name, paper, num_parameters, resize, url, top1) = row;
    let config = match name {
        "mobilenet_v3_large" => MobileNetConfig::v3_large(),
        "mobilenet_v3_small" => MobileNetConfig::v3_small(),
        _ => MobileNetConfig::v2(),
    };
    let preset = Preset {
        name,
        family: "mobilenet",
        task: Task::ImageClassification,
        paper,
        upstream: "torchvision",
        license: "BSD-3-Clause",
        num_parameters,
        preprocessing: Preprocessing::imagenet(resize),
        weights: Some(Weights::imagenet(url, "BSD-3-Clause", Some(top1))),
    };
    (preset, config)
}

/// A network for small images, without published weights.
fn small() -> (Preset, MobileNetConfig) {
    let preset = Preset {
        name: "mobilenet_v2_cifar",
        family: "mobilenet",
        task: Task::ImageClassification,
        paper: V2,
        upstream: "torchvision's blocks",
        license: "BSD-3-Clause",
        num_parameters: 96_650,
        preprocessing: Preprocessing::cifar(),
        weights: None,
    };
    (preset, MobileNetConfig::v2_cifar())
}
