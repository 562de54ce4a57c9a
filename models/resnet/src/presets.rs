use crate::config::{BlockType, ResNetConfig, Stem};
use burn_zoo_core::{Preprocessing, Preset, Task, Weights};
use std::sync::LazyLock;

const RESNET: &str =
    "Deep Residual Learning for Image Recognition, He et al. 2015, arXiv:1512.03385";
const RESNEXT: &str = "Aggregated Residual Transformations for Deep Neural Networks, Xie et al. 2016, arXiv:1611.05431";
const WIDE: &str = "Wide Residual Networks, Zagoruyko and Komodakis 2016, arXiv:1605.07146";

/// A row of torchvision's table: paper, block counts, groups, width per group, parameters, side the
/// image is resized to, file, top-1 accuracy.
type Row = (
    &'static str,
    &'static str,
    [usize; 4],
    usize,
    usize,
    usize,
    usize,
    &'static str,
    f32,
);

#[rustfmt::skip]
const TORCHVISION: [Row; 10] = [
    ("resnet18", RESNET, [2, 2, 2, 2], 1, 64, 11_689_512, 256, "https://download.pytorch.org/models/resnet18-f37072fd.pth", 69.758),
    ("resnet34", RESNET, [3, 4, 6, 3], 1, 64, 21_797_672, 256, "https://download.pytorch.org/models/resnet34-b627a593.pth", 73.314),
    ("resnet50", RESNET, [3, 4, 6, 3], 1, 64, 25_557_032, 232, "https://download.pytorch.org/models/resnet50-11ad3fa6.pth", 80.858),
    ("resnet101", RESNET, [3, 4, 23, 3], 1, 64, 44_549_160, 232, "https://download.pytorch.org/models/resnet101-cd907fc2.pth", 81.886),
    ("resnet152", RESNET, [3, 8, 36, 3], 1, 64, 60_192_808, 232, "https://download.pytorch.org/models/resnet152-f82ba261.pth", 82.284),
    ("resnext50_32x4d", RESNEXT, [3, 4, 6, 3], 32, 4, 25_028_904, 232, "https://download.pytorch.org/models/resnext50_32x4d-1a0047aa.pth", 81.198),
    ("resnext101_32x8d", RESNEXT, [3, 4, 23, 3], 32, 8, 88_791_336, 232, "https://download.pytorch.org/models/resnext101_32x8d-110c445d.pth", 82.834),
    ("resnext101_64x4d", RESNEXT, [3, 4, 23, 3], 64, 4, 83_455_272, 232, "https://download.pytorch.org/models/resnext101_64x4d-173b62eb.pth", 83.246),
    ("wide_resnet50_2", WIDE, [3, 4, 6, 3], 1, 128, 68_883_240, 232, "https://download.pytorch.org/models/wide_resnet50_2-9ba9bcbe.pth", 81.602),
    ("wide_resnet101_2", WIDE, [3, 4, 23, 3], 1, 128, 126_886_696, 232, "https://download.pytorch.org/models/wide_resnet101_2-d733dc28.pth", 82.51),
];

/// Name, block count n, parameters (with projection shortcuts and ten classes).
const CIFAR: [(&str, usize, usize); 5] = [
    ("resnet20", 3, 272_474),
    ("resnet32", 5, 466_906),
    ("resnet44", 7, 661_338),
    ("resnet56", 9, 855_770),
    ("resnet110", 18, 1_730_714),
];

/// Every preset of the family with its configuration.
pub(crate) static PRESETS: LazyLock<Vec<(Preset, ResNetConfig)>> = LazyLock::new(|| {
    let mut presets: Vec<_> = TORCHVISION.iter().map(torchvision).collect();
    presets
        .extend(CIFAR.map(|(name, n, parameters)| small(name, ResNetConfig::cifar(n), parameters)));
    let resnet18 = ResNetConfig {
        stem: Stem::Cifar,
        num_classes: 10,
        ..ResNetConfig::new(BlockType::Basic, [2, 2, 2, 2])
    };
    presets.push(small("resnet18_cifar", resnet18, 11_173_962));
    presets
});

fn torchvision(row: &Row) -> (Preset, ResNetConfig) {
    let &(name, paper, layers, groups, width_per_group, num_parameters, resize, url, top1) = row;
    let block = match name {
        "resnet18" | "resnet34" => BlockType::Basic,
        _ => BlockType::Bottleneck,
    };
    let preset = Preset {
        name,
        family: "resnet",
        task: Task::ImageClassification,
        paper,
        upstream: "torchvision",
        license: "BSD-3-Clause",
        num_parameters,
        preprocessing: Some(Preprocessing::imagenet(resize)),
        weights: Some(Weights::imagenet(url, "BSD-3-Clause", Some(top1))),
    };
    let config = ResNetConfig {
        groups,
        width_per_group,
        ..ResNetConfig::new(block, layers)
    };
    (preset, config)
}

/// Networks for small images, without published weights.
fn small(
    name: &'static str,
    config: ResNetConfig,
    num_parameters: usize,
) -> (Preset, ResNetConfig) {
    let preset = Preset {
        name,
        family: "resnet",
        task: Task::ImageClassification,
        paper: RESNET,
        upstream: "torchvision's blocks, section 4.2 of the paper",
        license: "BSD-3-Clause",
        num_parameters,
        preprocessing: Some(Preprocessing::cifar()),
        weights: None,
    };
    (preset, config)
}
