use crate::config::EfficientNetConfig;
use burn_zoo_core::Interpolation::{self, Bicubic, Bilinear};
use burn_zoo_core::{Preprocessing, Preset, Task, Weights};
use std::sync::LazyLock;

const V1: &str = "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks, Tan and Le 2019, arXiv:1905.11946";
const V2: &str =
    "EfficientNetV2: Smaller Models and Faster Training, Tan and Le 2021, arXiv:2104.00298";

/// Width, depth and dropout of B0 to B7, and their parameters.
const SCALES: [(f64, f64, f64, usize); 8] = [
    (1.0, 1.0, 0.2, 5_288_548),
    (1.0, 1.1, 0.2, 7_794_184),
    (1.1, 1.2, 0.3, 9_109_994),
    (1.2, 1.4, 0.3, 12_233_232),
    (1.4, 1.8, 0.4, 19_341_616),
    (1.6, 2.2, 0.4, 30_389_784),
    (1.8, 2.6, 0.5, 43_040_704),
    (2.0, 3.1, 0.5, 66_347_960),
];

/// Parameters of Lite0 to Lite4, whose scales are those of B0 to B4.
const LITE: [usize; 5] = [4_652_008, 5_416_680, 6_092_072, 8_197_096, 13_006_568];

/// Sizes of V2 and their parameters.
const V2_SIZES: [(&str, usize); 3] = [("s", 21_458_488), ("m", 54_139_356), ("l", 118_515_272)];

/// Name, side the image is resized to, side that is cut out, filter, file, top-1 accuracy. Within a
/// table the networks come in the order of their sizes.
type Row = (
    &'static str,
    usize,
    usize,
    Interpolation,
    &'static str,
    Option<f32>,
);

#[rustfmt::skip]
const TORCHVISION: [Row; 8] = [
    ("efficientnet_b0", 256, 224, Bicubic, "https://download.pytorch.org/models/efficientnet_b0_rwightman-7f5810bc.pth", Some(77.692)),
    ("efficientnet_b1", 255, 240, Bilinear, "https://download.pytorch.org/models/efficientnet_b1-c27df63c.pth", Some(79.838)),
    ("efficientnet_b2", 288, 288, Bicubic, "https://download.pytorch.org/models/efficientnet_b2_rwightman-c35c1473.pth", Some(80.608)),
    ("efficientnet_b3", 320, 300, Bicubic, "https://download.pytorch.org/models/efficientnet_b3_rwightman-b3899882.pth", Some(82.008)),
    ("efficientnet_b4", 384, 380, Bicubic, "https://download.pytorch.org/models/efficientnet_b4_rwightman-23ab8bcd.pth", Some(83.384)),
    ("efficientnet_b5", 456, 456, Bicubic, "https://download.pytorch.org/models/efficientnet_b5_lukemelas-1a07897c.pth", Some(83.444)),
    ("efficientnet_b6", 528, 528, Bicubic, "https://download.pytorch.org/models/efficientnet_b6_lukemelas-24a108a5.pth", Some(84.008)),
    ("efficientnet_b7", 600, 600, Bicubic, "https://download.pytorch.org/models/efficientnet_b7_lukemelas-c5b4e57e.pth", Some(84.122)),
];

#[rustfmt::skip]
const TORCHVISION_V2: [Row; 3] = [
    ("efficientnet_v2_s", 384, 384, Bilinear, "https://download.pytorch.org/models/efficientnet_v2_s-dd5fe13b.pth", Some(84.228)),
    ("efficientnet_v2_m", 480, 480, Bilinear, "https://download.pytorch.org/models/efficientnet_v2_m-dc08266a.pth", Some(85.112)),
    ("efficientnet_v2_l", 480, 480, Bicubic, "https://download.pytorch.org/models/efficientnet_v2_l-59c71312.pth", Some(85.808)),
];

/// timm's sides are `floor(crop / crop_pct)`.
#[rustfmt::skip]
const TIMM: [Row; 8] = [
    ("tf_efficientnet_b0", 256, 224, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_b0_ns-c0e6a31c.pth", None),
    ("tf_efficientnet_b1", 272, 240, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_b1_ns-99dd0c41.pth", None),
    ("tf_efficientnet_b2", 292, 260, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_b2_ns-00306e48.pth", None),
    ("tf_efficientnet_b3", 331, 300, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_b3_ns-9d44bf68.pth", None),
    ("tf_efficientnet_b4", 412, 380, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_b4_ns-d6313a46.pth", None),
    ("tf_efficientnet_b5", 488, 456, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_b5_ns-6f26d0cf.pth", None),
    ("tf_efficientnet_b6", 560, 528, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_b6_ns-51548356.pth", None),
    ("tf_efficientnet_b7", 632, 600, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_b7_ns-1dbc32de.pth", None),
];

#[rustfmt::skip]
const TIMM_LITE: [Row; 5] = [
    ("tf_efficientnet_lite0", 256, 224, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_lite0-0aa007d2.pth", None),
    ("tf_efficientnet_lite1", 272, 240, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_lite1-bde8b488.pth", None),
    ("tf_efficientnet_lite2", 292, 260, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_lite2-dcccb7df.pth", None),
    ("tf_efficientnet_lite3", 331, 300, Bilinear, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_lite3-b733e338.pth", None),
    ("tf_efficientnet_lite4", 413, 380, Bilinear, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-weights/tf_efficientnet_lite4-741542c3.pth", None),
];

#[rustfmt::skip]
const TIMM_V2: [Row; 3] = [
    ("tf_efficientnetv2_s", 300, 300, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-effv2-weights/tf_efficientnetv2_s_21ft1k-d7dafa41.pth", None),
    ("tf_efficientnetv2_m", 384, 384, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-effv2-weights/tf_efficientnetv2_m_21ft1k-bf41664a.pth", None),
    ("tf_efficientnetv2_l", 384, 384, Bicubic, "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-effv2-weights/tf_efficientnetv2_l_21ft1k-60127a9d.pth", None),
];

/// Pixels from -1 to 1.
fn halves(preprocessing: Preprocessing) -> Preprocessing {
    preprocessing.scaled(0.5, 0.5)
}

/// Every preset of the family with its configuration.
pub(crate) static PRESETS: LazyLock<Vec<(Preset, EfficientNetConfig)>> = LazyLock::new(|| {
    let mut presets = Vec::new();
    for (i, (width, depth, dropout, parameters)) in SCALES.into_iter().enumerate() {
        let config = EfficientNetConfig {
            dropout,
            ..EfficientNetConfig::scaled(width, depth)
        };
        // torchvision took the weights of B5 to B7 from a port of the original.
        let torchvision = if i < 5 {
            config.clone()
        } else {
            EfficientNetConfig {
                batch_norm_eps: 1e-3,
                batch_norm_momentum: 0.01,
                ..config.clone()
            }
        };
        presets.push((
            preset(&TORCHVISION[i], V1, "torchvision", parameters),
            torchvision,
        ));
        let timm = preset(&TIMM[i], V1, "timm", parameters);
        presets.push((timm, config.as_original()));
    }
    for (i, parameters) in LITE.into_iter().enumerate() {
        let (width, depth, dropout, _) = SCALES[i];
        let config = EfficientNetConfig {
            dropout: dropout.min(0.3),
            ..EfficientNetConfig::lite(width, depth)
        };
        let mut timm = preset(&TIMM_LITE[i], V1, "timm", parameters);
        timm.preprocessing = timm.preprocessing.map(halves);
        presets.push((timm, config.clone()));
        if i == 0 {
            presets.push((port_of_lite0(), config));
        }
    }
    for (i, (size, parameters)) in V2_SIZES.into_iter().enumerate() {
        let config = EfficientNetConfig::v2(size);
        let mut torchvision = preset(&TORCHVISION_V2[i], V2, "torchvision", parameters);
        if size == "l" {
            torchvision.preprocessing = torchvision.preprocessing.map(halves);
        }
        presets.push((torchvision, config.clone()));
        let mut timm = preset(&TIMM_V2[i], V2, "timm", parameters);
        timm.preprocessing = timm.preprocessing.map(halves);
        presets.push((timm, config.as_original()));
    }
    presets.push((small(), EfficientNetConfig::cifar()));
    presets
});

fn preset(row: &Row, paper: &'static str, upstream: &'static str, parameters: usize) -> Preset {
    let &(name, resize, crop, filter, url, top1) = row;
    let license = match upstream {
        "timm" => "Apache-2.0",
        _ => "BSD-3-Clause",
    };
    Preset {
        name,
        family: "efficientnet",
        task: Task::ImageClassification,
        paper,
        upstream,
        license,
        num_parameters: parameters,
        preprocessing: Some(Preprocessing::imagenet(resize).cropped(crop, filter)),
        weights: Some(Weights::imagenet(url, license, top1)),
    }
}

/// The port to PyTorch whose weights come as a Python package; images are scaled as in the original.
fn port_of_lite0() -> Preset {
    Preset {
        name: "efficientnet-lite0",
        family: "efficientnet",
        task: Task::ImageClassification,
        paper: V1,
        upstream: "efficientnet_lite_pytorch",
        license: "Apache-2.0",
        num_parameters: LITE[0],
        preprocessing: Some(
            Preprocessing::imagenet(256)
                .cropped(224, Bilinear)
                .scaled(127.0 / 255.0, 128.0 / 255.0),
        ),
        weights: None,
    }
}

/// A network for small images, without published weights.
fn small() -> Preset {
    Preset {
        name: "efficientnet_cifar",
        family: "efficientnet",
        task: Task::ImageClassification,
        paper: V1,
        upstream: "torchvision's blocks",
        license: "BSD-3-Clause",
        num_parameters: 116_302,
        preprocessing: Some(Preprocessing::cifar()),
        weights: None,
    }
}
