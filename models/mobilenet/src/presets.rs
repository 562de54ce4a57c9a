use crate::config::MobileNetConfig;
use burn_zoo_core::{Interpolation, Preprocessing, Preset, Task, Weights};
use std::sync::LazyLock;

const V2: &str =
    "MobileNetV2: Inverted Residuals and Linear Bottlenecks, Sandler et al. 2018, arXiv:1801.04381";
const V3: &str = "Searching for MobileNetV3, Howard et al. 2019, arXiv:1905.02244";

/// A row of torchvision's table: paper, parameters, side the image is resized to, file, top-1
/// accuracy.
type Row = (
    &'static str,
    &'static str,
    usize,
    usize,
    &'static str,
    Option<f32>,
);

#[rustfmt::skip]
const TORCHVISION: [Row; 3] = [
    ("mobilenet_v2", V2, 3_504_872, 256, "https://download.pytorch.org/models/mobilenet_v2-b0353104.pth", Some(71.878)),
    ("mobilenet_v3_large", V3, 5_483_032, 232, "https://download.pytorch.org/models/mobilenet_v3_large-5c1a4163.pth", Some(75.274)),
    ("mobilenet_v3_small", V3, 2_542_856, 256, "https://download.pytorch.org/models/mobilenet_v3_small-047dcff4.pth", Some(67.668)),
];

/// timm's own training, with PyTorch's batch norm throughout.
#[rustfmt::skip]
const TIMM: [Row; 3] = [
    ("mobilenetv2_100", V2, 3_504_872, 256, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/mobilenetv2_100_ra-b33bc2c4.pth", None),
    ("mobilenetv3_large_100", V3, 5_483_032, 256, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/mobilenetv3_large_100_ra-f55367f5.pth", None),
    ("mobilenetv3_small_100", V3, 2_542_856, 256, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/mobilenetv3_small_100_lamb-266a294c.pth", None),
];

/// Every preset of the family with its configuration.
pub(crate) static PRESETS: LazyLock<Vec<(Preset, MobileNetConfig)>> = LazyLock::new(|| {
    let torchvision = TORCHVISION.iter().map(|row| listed(row, "torchvision"));
    let timm = TIMM.iter().map(|row| listed(row, "timm"));
    torchvision.chain(timm).chain([small()]).collect()
});

fn listed(row: &Row, upstream: &'static str) -> (Preset, MobileNetConfig) {
    let &(name, paper, num_parameters, resize, url, top1) = row;
    let config = if name.contains("large") {
        MobileNetConfig::v3_large()
    } else if name.contains("small") {
        MobileNetConfig::v3_small()
    } else {
        MobileNetConfig::v2()
    };
    let imagenet = Preprocessing::imagenet(resize);
    let (license, config, preprocessing) = match upstream {
        "timm" => {
            let config = MobileNetConfig {
                batch_norm_eps: 1e-5,
                batch_norm_momentum: 0.1,
                ..config
            };
            let preprocessing = imagenet.cropped(224, Interpolation::Bicubic);
            ("Apache-2.0", config, preprocessing)
        }
        _ => ("BSD-3-Clause", config, imagenet),
    };
    let preset = Preset {
        name,
        family: "mobilenet",
        task: Task::ImageClassification,
        paper,
        upstream,
        license,
        num_parameters,
        preprocessing: Some(preprocessing),
        weights: Some(Weights::imagenet(url, license, top1)),
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
        preprocessing: Some(Preprocessing::cifar()),
        weights: None,
    };
    (preset, MobileNetConfig::v2_cifar())
}
