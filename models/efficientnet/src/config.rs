use burn_zoo_core::{Error, Result};
use burn_zoo_nn::{Padding, divisible_by_8};
use burn_zoo_ops::Activation;
use serde::{Deserialize, Serialize};

/// Blocks of one kind that follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// One full convolution in place of expansion and depthwise convolution, and no squeeze and
    /// excitation (EfficientNetV2).
    #[serde(default)]
    pub fused: bool,
    /// Channels in the middle of a block, as a multiple of its input's.
    pub expand_ratio: usize,
    /// Side of the depthwise (or fused) kernel.
    pub kernel_size: usize,
    /// Stride of the first block; the others have 1.
    pub stride: usize,
    /// Channels that leave each block.
    pub out_channels: usize,
    /// Blocks.
    pub num_layers: usize,
}

impl StageConfig {
    /// Channels in the middle of a block with these input channels.
    pub(crate) fn expanded(&self, input: usize) -> usize {
        divisible_by_8((input * self.expand_ratio) as f64)
    }
}

/// The shape of an EfficientNet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EfficientNetConfig {
    /// Channels after the stem, a 3×3 convolution.
    pub stem_channels: usize,
    /// Its stride: 2, or 1 for images of about 32 pixels.
    #[serde(default = "two")]
    pub stem_stride: usize,
    /// The blocks.
    pub stages: Vec<StageConfig>,
    /// Channels after the last convolution.
    pub last_channel: usize,
    /// SiLU; ReLU6 in the Lite networks.
    pub hidden_act: Activation,
    /// Squeeze and excitation in the blocks that are not fused; the Lite networks have none.
    pub use_se: bool,
    /// How convolutions are padded: `half` in torchvision, `same` in the original and its ports.
    pub padding: Padding,
    /// Batch norm's eps.
    pub batch_norm_eps: f64,
    /// Batch norm's momentum.
    pub batch_norm_momentum: f64,
    /// Probability with which numbers before the last layer are dropped in training.
    #[serde(default)]
    pub dropout: f64,
    /// Probability with which an image goes past the last block in training; earlier blocks are dropped
    /// less often, the first never.
    #[serde(default)]
    pub stochastic_depth_prob: f64,
    /// Channels of the image.
    #[serde(default = "three")]
    pub num_channels: usize,
    /// Classes of the head.
    pub num_classes: usize,
}

fn two() -> usize {
    2
}

fn three() -> usize {
    3
}

/// Fused, expansion ratio, kernel, stride, output channels, blocks.
type Row = (bool, usize, usize, usize, usize, usize);

/// EfficientNet-B0 (Tan and Le 2019, table 1).
const B0: [Row; 7] = [
    (false, 1, 3, 1, 16, 1),
    (false, 6, 3, 2, 24, 2),
    (false, 6, 5, 2, 40, 2),
    (false, 6, 3, 2, 80, 3),
    (false, 6, 5, 1, 112, 3),
    (false, 6, 5, 2, 192, 4),
    (false, 6, 3, 1, 320, 1),
];

/// EfficientNetV2-S (Tan and Le 2021, table 4); M and L as in the authors' code.
const V2_S: [Row; 6] = [
    (true, 1, 3, 1, 24, 2),
    (true, 4, 3, 2, 48, 4),
    (true, 4, 3, 2, 64, 4),
    (false, 4, 3, 2, 128, 6),
    (false, 6, 3, 1, 160, 9),
    (false, 6, 3, 2, 256, 15),
];

const V2_M: [Row; 7] = [
    (true, 1, 3, 1, 24, 3),
    (true, 4, 3, 2, 48, 5),
    (true, 4, 3, 2, 80, 5),
    (false, 4, 3, 2, 160, 7),
    (false, 6, 3, 1, 176, 14),
    (false, 6, 3, 2, 304, 18),
    (false, 6, 3, 1, 512, 5),
];

const V2_L: [Row; 7] = [
    (true, 1, 3, 1, 32, 4),
    (true, 4, 3, 2, 64, 7),
    (true, 4, 3, 2, 96, 7),
    (false, 4, 3, 2, 192, 10),
    (false, 6, 3, 1, 224, 19),
    (false, 6, 3, 2, 384, 25),
    (false, 6, 3, 1, 640, 7),
];

/// For small images.
const CIFAR: [Row; 4] = [
    (false, 1, 3, 1, 16, 1),
    (false, 4, 3, 1, 24, 2),
    (false, 4, 5, 2, 32, 2),
    (false, 4, 3, 2, 64, 2),
];

impl EfficientNetConfig {
    /// B0 scaled in width and depth (Tan and Le 2019, section 3.3), with torchvision's padding and
    /// PyTorch's batch norm.
    pub fn scaled(width: f64, depth: f64) -> Self {
        let channels = |base: usize| divisible_by_8(base as f64 * width);
        let mut config = Self::of(&B0, channels(32), 4 * channels(320));
        for stage in &mut config.stages {
            stage.out_channels = channels(stage.out_channels);
            stage.num_layers = repeats(stage.num_layers, depth);
        }
        config
    }

    /// EfficientNet-Lite of this width and depth: ReLU6, no squeeze and excitation, and neither the
    /// stem, the last convolution nor the depth of the first and last stage is scaled; padded and
    /// normalised as the original.
    pub fn lite(width: f64, depth: f64) -> Self {
        let mut config = Self {
            stem_channels: 32,
            last_channel: 1280,
            hidden_act: Activation::Relu6,
            use_se: false,
            ..Self::scaled(width, depth).as_original()
        };
        let last = config.stages.len() - 1;
        config.stages[0].num_layers = B0[0].5;
        config.stages[last].num_layers = B0[last].5;
        config
    }

    /// EfficientNetV2 of size `s`, `m` or `l`, as torchvision has it; anything else gives `l`.
    pub fn v2(size: &str) -> Self {
        let (config, dropout) = match size {
            "s" => (Self::of(&V2_S, 24, 1280), 0.2),
            "m" => (Self::of(&V2_M, 24, 1280), 0.3),
            _ => (Self::of(&V2_L, 32, 1280), 0.4),
        };
        Self {
            batch_norm_eps: 1e-3,
            dropout,
            ..config
        }
    }

    /// A small network with ten classes for images of about 32 pixels.
    pub fn cifar() -> Self {
        Self {
            stem_stride: 1,
            num_classes: 10,
            ..Self::of(&CIFAR, 16, 256)
        }
    }

    /// Padding and batch norm of the original in TensorFlow, which timm's `tf_` models and
    /// efficientnet_pytorch keep.
    pub fn as_original(self) -> Self {
        Self {
            padding: Padding::Same,
            batch_norm_eps: 1e-3,
            batch_norm_momentum: 0.01,
            ..self
        }
    }

    fn of(rows: &[Row], stem_channels: usize, last_channel: usize) -> Self {
        let stage = |row: &Row| StageConfig {
            fused: row.0,
            expand_ratio: row.1,
            kernel_size: row.2,
            stride: row.3,
            out_channels: row.4,
            num_layers: row.5,
        };
        Self {
            stem_channels,
            stem_stride: 2,
            stages: rows.iter().map(stage).collect(),
            last_channel,
            hidden_act: Activation::Silu,
            use_se: true,
            padding: Padding::Half,
            batch_norm_eps: 1e-5,
            batch_norm_momentum: 0.1,
            dropout: 0.2,
            stochastic_depth_prob: 0.2,
            num_channels: 3,
            num_classes: 1000,
        }
    }

    /// Probability with which an image goes past each block in training: deeper blocks are dropped more
    /// often.
    pub fn stochastic_depth_probs(&self) -> Vec<f64> {
        let blocks: usize = self.stages.iter().map(|stage| stage.num_layers).sum();
        let prob = |block| self.stochastic_depth_prob * block as f64 / blocks as f64;
        (0..blocks).map(prob).collect()
    }

    /// Whether a stage's blocks squeeze and excite.
    pub(crate) fn has_se(&self, stage: &StageConfig) -> bool {
        self.use_se && !stage.fused
    }

    /// Checks that the sizes make a network.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn validate(&self) -> Result<()> {
        let mut sizes = vec![
            ("stem_channels", self.stem_channels, 1 << 14),
            ("stem_stride", self.stem_stride, 8),
            ("stages", self.stages.len(), 100),
            ("last_channel", self.last_channel, 1 << 14),
            ("num_channels", self.num_channels, 4096),
            ("num_classes", self.num_classes, 1 << 20),
        ];
        for stage in &self.stages {
            sizes.extend([
                ("expand_ratio", stage.expand_ratio, 64),
                ("kernel_size", stage.kernel_size, 63),
                ("stride", stage.stride, 8),
                ("out_channels", stage.out_channels, 1 << 12),
                ("num_layers", stage.num_layers, 1000),
            ]);
        }
        let fail = |field: &str, message: String| Err(Error::usage(field, message));
        for (field, value, most) in sizes {
            if value == 0 || value > most {
                return fail(field, format!("wants 1 to {most}, got {value}"));
            }
        }
        if self.stages.iter().any(|stage| stage.kernel_size % 2 == 0) {
            return fail("kernel_size", "wants an odd number".into());
        }
        let share = |value: f64| (0.0..1.0).contains(&value);
        if !share(self.dropout) || !share(self.stochastic_depth_prob) {
            let message = "and stochastic_depth_prob want probabilities below 1";
            return fail("dropout", message.into());
        }
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !positive(self.batch_norm_eps) || !positive(self.batch_norm_momentum) {
            let message = "and batch_norm_momentum want numbers above 0";
            return fail("batch_norm_eps", message.into());
        }
        Ok(())
    }
}

/// Blocks of a stage at this depth.
fn repeats(base: usize, depth: f64) -> usize {
    (base as f64 * depth).ceil() as usize
}
