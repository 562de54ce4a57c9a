use burn_zoo_core::{Error, Result};
use burn_zoo_ops::Activation;
use serde::{Deserialize, Serialize};

/// Which of the two papers a network follows, in its names and its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// ReLU6 everywhere, one linear layer as head.
    V2,
    /// Squeeze and excitation, hard-swish, a head of two linear layers.
    V3,
}

/// One inverted residual block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockConfig {
    /// Side of the depthwise kernel.
    pub kernel_size: usize,
    /// Channels that are filtered; as many as the block's input has, they are not expanded.
    pub expanded_channels: usize,
    /// Channels that leave.
    pub out_channels: usize,
    /// Squeeze and excitation of the filtered channels.
    pub use_se: bool,
    /// The block's activation.
    pub activation: Activation,
    /// Stride of the depthwise convolution.
    pub stride: usize,
}

/// The shape of a MobileNet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MobileNetConfig {
    /// The paper it follows.
    pub version: Version,
    /// Channels after the stem, a 3×3 convolution.
    pub stem_channels: usize,
    /// Its stride: 2, or 1 for images of about 32 pixels.
    #[serde(default = "two")]
    pub stem_stride: usize,
    /// The blocks.
    pub blocks: Vec<BlockConfig>,
    /// Channels after the last convolution.
    pub last_conv_channels: usize,
    /// Features between the head's two linear layers; only in V3.
    #[serde(default)]
    pub last_channel: Option<usize>,
    /// Batch norm's eps.
    pub batch_norm_eps: f64,
    /// Batch norm's momentum.
    pub batch_norm_momentum: f64,
    /// Probability with which numbers before the last layer are dropped in training.
    #[serde(default)]
    pub dropout: f64,
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

/// Expansion factor, output channels, repeats, stride of the first (Sandler et al. 2018, table 2).
const V2: [(usize, usize, usize, usize); 7] = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
];

/// The same form for small images.
const V2_CIFAR: [(usize, usize, usize, usize); 4] =
    [(1, 16, 1, 1), (4, 24, 2, 1), (4, 32, 2, 2), (4, 64, 2, 2)];

const RE: Activation = Activation::Relu;
const HS: Activation = Activation::HardSwish;

/// Kernel, expanded and output channels, squeeze and excitation, activation, stride.
type Row = (usize, usize, usize, bool, Activation, usize);

/// Howard et al. 2019, table 1.
const V3_LARGE: [Row; 15] = [
    (3, 16, 16, false, RE, 1),
    (3, 64, 24, false, RE, 2),
    (3, 72, 24, false, RE, 1),
    (5, 72, 40, true, RE, 2),
    (5, 120, 40, true, RE, 1),
    (5, 120, 40, true, RE, 1),
    (3, 240, 80, false, HS, 2),
    (3, 200, 80, false, HS, 1),
    (3, 184, 80, false, HS, 1),
    (3, 184, 80, false, HS, 1),
    (3, 480, 112, true, HS, 1),
    (3, 672, 112, true, HS, 1),
    (5, 672, 160, true, HS, 2),
    (5, 960, 160, true, HS, 1),
    (5, 960, 160, true, HS, 1),
];

/// Howard et al. 2019, table 2.
const V3_SMALL: [Row; 11] = [
    (3, 16, 16, true, RE, 2),
    (3, 72, 24, false, RE, 2),
    (3, 88, 24, false, RE, 1),
    (5, 96, 40, true, HS, 2),
    (5, 240, 40, true, HS, 1),
    (5, 240, 40, true, HS, 1),
    (5, 120, 48, true, HS, 1),
    (5, 144, 48, true, HS, 1),
    (5, 288, 96, true, HS, 2),
    (5, 576, 96, true, HS, 1),
    (5, 576, 96, true, HS, 1),
];

impl MobileNetConfig {
    /// MobileNetV2 with 1,000 classes.
    pub fn v2() -> Self {
        Self::v2_of(&V2, 32, 1280)
    }

    /// A small MobileNetV2 with ten classes for images of about 32 pixels.
    pub fn v2_cifar() -> Self {
        Self {
            stem_stride: 1,
            num_classes: 10,
            ..Self::v2_of(&V2_CIFAR, 16, 256)
        }
    }

    fn v2_of(rows: &[(usize, usize, usize, usize)], stem: usize, last: usize) -> Self {
        let mut input = stem;
        let mut blocks = Vec::new();
        for (factor, output, repeats, stride) in rows {
            for i in 0..*repeats {
                blocks.push(BlockConfig {
                    kernel_size: 3,
                    expanded_channels: input * factor,
                    out_channels: *output,
                    use_se: false,
                    activation: Activation::Relu6,
                    stride: if i == 0 { *stride } else { 1 },
                });
                input = *output;
            }
        }
        Self {
            version: Version::V2,
            stem_channels: stem,
            stem_stride: 2,
            blocks,
            last_conv_channels: last,
            last_channel: None,
            batch_norm_eps: 1e-5,
            batch_norm_momentum: 0.1,
            dropout: 0.2,
            num_channels: 3,
            num_classes: 1000,
        }
    }

    /// MobileNetV3-Large with 1,000 classes.
    pub fn v3_large() -> Self {
        Self::v3(&V3_LARGE, 1280)
    }

    /// MobileNetV3-Small with 1,000 classes.
    pub fn v3_small() -> Self {
        Self::v3(&V3_SMALL, 1024)
    }

    fn v3(rows: &[Row], last_channel: usize) -> Self {
        let block = |row: &Row| BlockConfig {
            kernel_size: row.0,
            expanded_channels: row.1,
            out_channels: row.2,
            use_se: row.3,
            activation: row.4,
            stride: row.5,
        };
        let blocks: Vec<BlockConfig> = rows.iter().map(block).collect();
        Self {
            version: Version::V3,
            stem_channels: 16,
            last_conv_channels: 6 * rows[rows.len() - 1].2,
            blocks,
            last_channel: Some(last_channel),
            batch_norm_eps: 1e-3,
            batch_norm_momentum: 0.01,
            ..Self::v2()
        }
    }

    /// Activation of the stem, of the last convolution and between the head's layers.
    pub(crate) fn outer_activation(&self) -> Activation {
        match self.version {
            Version::V2 => Activation::Relu6,
            Version::V3 => Activation::HardSwish,
        }
    }

    /// Input channels of each block, and of the last convolution.
    pub(crate) fn inputs(&self) -> Vec<usize> {
        let outputs = self.blocks.iter().map(|block| block.out_channels);
        std::iter::once(self.stem_channels).chain(outputs).collect()
    }

    /// Checks that the sizes make a network.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn validate(&self) -> Result<()> {
        let mut sizes = vec![
            ("stem_channels", self.stem_channels, 1 << 14),
            ("stem_stride", self.stem_stride, 8),
            ("blocks", self.blocks.len(), 1000),
            ("last_conv_channels", self.last_conv_channels, 1 << 14),
            ("num_channels", self.num_channels, 4096),
            ("num_classes", self.num_classes, 1 << 20),
        ];
        for block in &self.blocks {
            sizes.extend([
                ("kernel_size", block.kernel_size, 63),
                ("expanded_channels", block.expanded_channels, 1 << 14),
                ("out_channels", block.out_channels, 1 << 14),
                ("stride", block.stride, 8),
            ]);
        }
        if let Some(features) = self.last_channel {
            sizes.push(("last_channel", features, 1 << 14));
        }
        let fail = |field: &str, message: String| Err(Error::usage(field, message));
        for (field, value, most) in sizes {
            if value == 0 || value > most {
                return fail(field, format!("wants 1 to {most}, got {value}"));
            }
        }
        if self.blocks.iter().any(|block| block.kernel_size % 2 == 0) {
            return fail("kernel_size", "wants an odd number".into());
        }
        if self.last_channel.is_some() != (self.version == Version::V3) {
            let message = "is there in version v3 and only there";
            return fail("last_channel", message.into());
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return fail("dropout", "wants a probability below 1".into());
        }
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !positive(self.batch_norm_eps) || !positive(self.batch_norm_momentum) {
            let message = "and batch_norm_momentum want numbers above 0";
            return fail("batch_norm_eps", message.into());
        }
        Ok(())
    }
}
