use burn_zoo_core::{Error, Result};
use burn_zoo_ops::Activation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// The shape of a ResNet, in the names of transformers' `ResNetConfig`; `groups`,
/// `width_per_group` and `zero_init_residual` are torchvision's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResNetConfig {
    /// The residual block.
    pub layer_type: BlockType,
    /// Blocks in each stage. The image halves from stage to stage.
    pub depths: Vec<usize>,
    /// Channels after the stem.
    pub embedding_size: usize,
    /// Channels after each stage.
    pub hidden_sizes: Vec<usize>,
    /// Groups of the bottleneck's 3×3 convolution (ResNeXt's cardinality).
    #[serde(default = "one")]
    pub groups: usize,
    /// Channels per group of that convolution, where the stage ends in 256 channels.
    #[serde(default = "sixty_four")]
    pub width_per_group: usize,
    /// What stands before the first stage.
    pub stem: Stem,
    /// After the stem and after each block; between a block's convolutions it is always ReLU.
    #[serde(default = "relu")]
    pub hidden_act: Activation,
    /// The first stage halves the image too.
    #[serde(default)]
    pub downsample_in_first_stage: bool,
    /// A bottleneck strides in its first convolution, as the paper has it ("v1"), not in its 3×3.
    #[serde(default)]
    pub downsample_in_bottleneck: bool,
    /// Channels of the image.
    #[serde(default = "three")]
    pub num_channels: usize,
    /// Classes of the head; 0: there is no head.
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

fn sixty_four() -> usize {
    64
}

fn relu() -> Activation {
    Activation::Relu
}

impl ResNetConfig {
    /// An ImageNet network with 1,000 classes, whose width starts at 64 and doubles with each stage.
    pub fn new(layer_type: BlockType, depths: impl Into<Vec<usize>>) -> Self {
        let depths = depths.into();
        let hidden = |i: usize| (64 * layer_type.expansion()) << i.min(32);
        Self {
            layer_type,
            embedding_size: 64,
            hidden_sizes: (0..depths.len()).map(hidden).collect(),
            depths,
            groups: 1,
            width_per_group: 64,
            stem: Stem::ImageNet,
            hidden_act: Activation::Relu,
            downsample_in_first_stage: false,
            downsample_in_bottleneck: false,
            num_channels: 3,
            num_classes: 1000,
            zero_init_residual: false,
        }
    }

    /// The same with another width of the stem and the first stage.
    pub fn with_width(mut self, width: usize) -> Self {
        for size in &mut self.hidden_sizes {
            *size = size.saturating_mul(width) / self.embedding_size;
        }
        self.embedding_size = width;
        self
    }

    /// A CIFAR network of `6 n + 2` layers (He et al. 2015, section 4.2), with projections where
    /// the width changes.
    pub fn cifar(n: usize) -> Self {
        Self {
            stem: Stem::Cifar,
            num_classes: 10,
            ..Self::new(BlockType::Basic, [n; 3]).with_width(16)
        }
    }

    /// From the `config.json` of transformers' `ResNetForImageClassification` or `ResNetModel`; what
    /// it leaves out has that class's defaults.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn from_transformers(json: &Value) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(default)]
        struct Upstream {
            num_channels: usize,
            embedding_size: usize,
            hidden_sizes: Vec<usize>,
            depths: Vec<usize>,
            layer_type: BlockType,
            hidden_act: Activation,
            downsample_in_first_stage: bool,
            downsample_in_bottleneck: bool,
        }
        impl Default for Upstream {
            fn default() -> Self {
                Self {
                    num_channels: 3,
                    embedding_size: 64,
                    hidden_sizes: vec![256, 512, 1024, 2048],
                    depths: vec![3, 4, 6, 3],
                    layer_type: BlockType::Bottleneck,
                    hidden_act: Activation::Relu,
                    downsample_in_first_stage: false,
                    downsample_in_bottleneck: false,
                }
            }
        }
        let upstream =
            Upstream::deserialize(json).map_err(|e| Error::usage("config.json", e.to_string()))?;
        let config = Self {
            layer_type: upstream.layer_type,
            depths: upstream.depths,
            embedding_size: upstream.embedding_size,
            hidden_sizes: upstream.hidden_sizes,
            groups: 1,
            width_per_group: 64,
            stem: Stem::ImageNet,
            hidden_act: upstream.hidden_act,
            downsample_in_first_stage: upstream.downsample_in_first_stage,
            downsample_in_bottleneck: upstream.downsample_in_bottleneck,
            num_channels: upstream.num_channels,
            num_classes: num_classes(json)?,
            zero_init_residual: false,
        };
        config.validate()?;
        Ok(config)
    }

    /// The `config.json` from which transformers makes the same network, without names of classes.
    ///
    /// # Errors
    /// If that class cannot say it: groups, wide blocks, and stems for small images.
    pub fn to_transformers(&self) -> Result<Value> {
        if self.groups != 1 || self.width_per_group != 64 || self.stem != Stem::ImageNet {
            let message =
                "transformers' ResNet has no groups, no wide blocks and one stem, for photos";
            return Err(Error::usage("--to", message));
        }
        let class = match self.num_classes {
            0 => "ResNetModel",
            _ => "ResNetForImageClassification",
        };
        Ok(serde_json::json!({
            "architectures": [class],
            "model_type": "resnet",
            "num_channels": self.num_channels,
            "embedding_size": self.embedding_size,
            "hidden_sizes": self.hidden_sizes,
            "depths": self.depths,
            "layer_type": self.layer_type,
            "hidden_act": self.hidden_act,
            "downsample_in_first_stage": self.downsample_in_first_stage,
            "downsample_in_bottleneck": self.downsample_in_bottleneck,
        }))
    }

    /// Channels of the last stage's output, the input of the head.
    pub fn num_features(&self) -> usize {
        self.hidden_sizes.last().copied().unwrap_or_default()
    }

    /// Channels between the convolutions of a block that ends in `output`.
    pub(crate) fn inner(&self, output: usize) -> usize {
        match self.layer_type {
            BlockType::Basic => output,
            BlockType::Bottleneck => output / 4 * self.width_per_group / 64 * self.groups,
        }
    }

    /// Weights of the convolutions and the head; the norms add little.
    fn parameters(&self) -> u128 {
        let wide = |n: usize| n as u128;
        let kernel = match self.stem {
            Stem::ImageNet => 49,
            Stem::Cifar => 9,
        };
        let mut input = wide(self.embedding_size);
        let mut total = kernel * wide(self.num_channels) * input;
        for (blocks, hidden) in self.depths.iter().zip(&self.hidden_sizes) {
            let (output, inner) = (wide(*hidden), wide(self.inner(*hidden)));
            let block = |input: u128| match self.layer_type {
                BlockType::Basic => 9 * input * output + 9 * output * output,
                BlockType::Bottleneck => {
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
        if self.depths.is_empty() || self.depths.len() > 8 {
            let message = format!("wants 1 to 8 stages, got {:?}", self.depths);
            return fail("depths", message);
        }
        if self.depths.len() != self.hidden_sizes.len() {
            let message = format!(
                "wants a size for each of {} stages, got {:?}",
                self.depths.len(),
                self.hidden_sizes
            );
            return fail("hidden_sizes", message);
        }
        let mut sizes = vec![
            ("embedding_size", self.embedding_size, 4096),
            ("groups", self.groups, 4096),
            ("width_per_group", self.width_per_group, 4096),
            ("num_channels", self.num_channels, 4096),
        ];
        sizes.extend(self.depths.iter().map(|n| ("depths", *n, 1000)));
        sizes.extend(
            self.hidden_sizes
                .iter()
                .map(|n| ("hidden_sizes", *n, 1 << 20)),
        );
        for (field, value, most) in sizes {
            if value == 0 || value > most {
                return fail(field, format!("wants 1 to {most}, got {value}"));
            }
        }
        if self.num_classes > 1 << 20 {
            let message = format!("wants at most {}, got {}", 1 << 20, self.num_classes);
            return fail("num_classes", message);
        }
        match self.layer_type {
            BlockType::Basic if self.groups != 1 || self.width_per_group != 64 => {
                let message = "a basic block has groups 1 and width_per_group 64";
                return fail("groups", message.into());
            }
            BlockType::Bottleneck if self.hidden_sizes.iter().any(|n| self.inner(*n) == 0) => {
                let message = "the 3×3 convolution of a bottleneck would have no channels";
                return fail("hidden_sizes", message.into());
            }
            _ => {}
        }
        let most = 1u128 << 31;
        if self.parameters() > most {
            let message = format!(
                "the network would have {} parameters, at most {most} are made",
                self.parameters()
            );
            return fail("depths", message);
        }
        Ok(())
    }
}

/// Classes of the head by transformers' rules: none in a bare model, else as many as have names, or
/// two.
fn num_classes(json: &Value) -> Result<usize> {
    let architecture = json["architectures"][0].as_str().unwrap_or_default();
    if architecture == "ResNetModel" {
        return Ok(0);
    }
    if !matches!(architecture, "" | "ResNetForImageClassification") {
        let known = ["ResNetModel", "ResNetForImageClassification"];
        return Err(Error::unknown("architecture", architecture, known));
    }
    let named = json["id2label"].as_object().map(|names| names.len());
    let counted = json["num_labels"]
        .as_u64()
        .and_then(|n| usize::try_from(n).ok());
    Ok(named.or(counted).unwrap_or(2))
}
