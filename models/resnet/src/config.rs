use burn_zoo_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// The residual block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockType {
    /// Two 3×3 convolutions.
    Basic,
    /// 1×1, 3×3 and 1×1 convolutions; the last has four times the channels.
    Bottleneck,
}

impl BlockType {
    /// Channels that leave a block, in units of the stage's width.
    pub fn expansion(self) -> usize {
        match self {
            BlockType::Basic => 1,
            BlockType::Bottleneck => 4,
        }
    }
}

/// What stands before the first stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stem {
    /// 7×7 convolution of stride 2 and 3×3 max-pooling of stride 2, for images of about 224 pixels.
    ImageNet,
    /// 3×3 convolution of stride 1 without pooling, for images of about 32 pixels.
    Cifar,
}

/// The shape of a ResNet; `layers`, `groups`, `width_per_group` and `zero_init_residual` are
/// torchvision's names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNetConfig {
    /// The residual block.
    pub block: BlockType,
    /// Blocks in each stage. The width doubles and the image halves from stage to stage.
    pub layers: Vec<usize>,
    /// Channels after the stem and in the first stage.
    #[serde(default = "default_width")]
    pub width: usize,
    /// Groups of the bottleneck's 3×3 convolution (ResNeXt's cardinality).
    #[serde(default = "one")]
    pub groups: usize,
    /// Channels per group of that convolution, at a stage width of 64.
    #[serde(default = "default_width")]
    pub width_per_group: usize,
    /// What stands before the first stage.
    pub stem: Stem,
    /// Channels of the image.
    #[serde(default = "three")]
    pub num_channels: usize,
    /// Classes of the head.
    pub num_classes: usize,
    /// Start every block as the identity: the last norm of each has weight 0 (Goyal et al. 2017).
    #[serde(default)]
    pub zero_init_residual: bool,
}

fn one() -> usize {
    1
}

fn three() -> usize {
    3
}

fn default_width() -> usize {
    64
}

impl ResNetConfig {
    /// An ImageNet network with 1,000 classes.
    pub fn new(block: BlockType, layers: impl Into<Vec<usize>>) -> Self {
        Self {
            block,
            layers: layers.into(),
            width: 64,
            groups: 1,
            width_per_group: 64,
            stem: Stem::ImageNet,
            num_channels: 3,
            num_classes: 1000,
            zero_init_residual: false,
        }
    }

    /// A CIFAR network of `6 n + 2` layers (He et al. 2015, section 4.2), with projections where
    /// the width changes.
    pub fn cifar(n: usize) -> Self {
        Self {
            width: 16,
            stem: Stem::Cifar,
            num_classes: 10,
            ..Self::new(BlockType::Basic, [n; 3])
        }
    }

    /// Channels of the last stage's output, the input of the head.
    pub fn num_features(&self) -> usize {
        self.stage_width(self.layers.len() - 1) * self.block.expansion()
    }

    /// Width of stage `i`.
    pub(crate) fn stage_width(&self, i: usize) -> usize {
        self.width << i
    }

    /// Weights of the convolutions and the head; the norms add little.
    fn parameters(&self) -> u128 {
        let wide = |n: usize| n as u128;
        let kernel = match self.stem {
            Stem::ImageNet => 49,
            Stem::Cifar => 9,
        };
        let mut total = kernel * wide(self.num_channels) * wide(self.width);
        let mut input = wide(self.width);
        for (i, blocks) in self.layers.iter().enumerate() {
            let width = wide(self.stage_width(i));
            let output = width * wide(self.block.expansion());
            let block = |input: u128| match self.block {
                BlockType::Basic => 9 * input * width + 9 * width * width,
                BlockType::Bottleneck => {
                    let inner = width * wide(self.width_per_group) / 64 * wide(self.groups);
                    input * inner + 9 * inner * inner / wide(self.groups) + inner * output
                }
            };
            total += block(input) + input * output + (wide(*blocks) - 1) * block(output);
            input = output;
        }
        total + input * wide(self.num_classes)
    }

    /// Checks that the sizes make a network.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn validate(&self) -> Result<()> {
        let fail = |field: &str, message: String| Err(Error::usage(field, message));
        if self.layers.is_empty() || self.layers.len() > 8 || self.layers.contains(&0) {
            return fail(
                "layers",
                format!(
                    "wants 1 to 8 stages of at least one block, got {:?}",
                    self.layers
                ),
            );
        }
        if self.layers.iter().any(|n| *n > 1000) {
            return fail(
                "layers",
                format!("wants at most 1000 blocks a stage, got {:?}", self.layers),
            );
        }
        let sizes = [
            ("width", self.width, 4096),
            ("groups", self.groups, 4096),
            ("width_per_group", self.width_per_group, 4096),
            ("num_channels", self.num_channels, 4096),
            ("num_classes", self.num_classes, 1 << 20),
        ];
        for (field, value, most) in sizes {
            if value == 0 || value > most {
                return fail(field, format!("wants 1 to {most}, got {value}"));
            }
        }
        let most = 1u128 << 31;
        if self.parameters() > most {
            let message = format!(
                "the network would have {} parameters, at most {most} are made",
                self.parameters()
            );
            return fail("layers", message);
        }
        match self.block {
            BlockType::Basic if self.groups != 1 || self.width_per_group != 64 => fail(
                "groups",
                "a basic block has groups 1 and width_per_group 64".into(),
            ),
            BlockType::Bottleneck if self.width * self.width_per_group < 64 => fail(
                "width_per_group",
                "the 3×3 convolution would have no channels".into(),
            ),
            _ => Ok(()),
        }
    }
}
