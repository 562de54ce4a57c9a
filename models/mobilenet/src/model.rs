use crate::config::{BlockConfig, MobileNetConfig};
use burn::module::Module;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{
    Argument, Arguments, Flat, ImageClassifier, Mode, Network, Result, Stages, record,
};
use burn_zoo_nn::{
    ConvNorm, ConvNormOptions, Init, InvertedResidual, InvertedResidualOptions, Linear, Padding,
    SqueezeExciteOptions, divisible_by_8, dropout,
};
use burn_zoo_ops::{Activation, global_avg_pool2d};

/// A MobileNet for image classification: torchvision's `MobileNetV2` and `MobileNetV3`.
///
/// `logits = W₂ dropout(act(W₁ pool(last(blocks(stem(x))))))`; V2 has no `W₁` and no activation there.
///
/// Stages for verification: `features.0` (the stem), each block and the last convolution as
/// `features.{i}`, `pool`.
#[derive(Module, Debug)]
pub struct MobileNet<B: Backend> {
    stem: ConvNorm<B>,
    blocks: Vec<InvertedResidual<B>>,
    last: ConvNorm<B>,
    hidden: Option<Linear<B>>,
    classifier: Linear<B>,
    #[module(skip)]
    pub(crate) config: MobileNetConfig,
}

impl<B: Backend> MobileNet<B> {
    /// A network with random weights, as torchvision starts them: kaiming-normal convolutions, and
    /// linear layers of standard deviation 0.01.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub fn new(config: &MobileNetConfig, seed: u64, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    /// A network with weights from `init`.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub(crate) fn init(config: &MobileNetConfig, init: &mut Init<B>) -> Result<Self> {
        config.validate()?;
        let inputs = config.inputs();
        let outer = |channels, kernel_size, stride| ConvNormOptions {
            kernel_size,
            stride,
            eps: config.batch_norm_eps,
            momentum: config.batch_norm_momentum,
            activation: Some(config.outer_activation()),
            ..ConvNormOptions::new(channels)
        };
        let stem = [config.num_channels, config.stem_channels];
        let last = [inputs[config.blocks.len()], config.last_conv_channels];
        let blocks = config.blocks.iter().zip(&inputs);
        let features = config.last_channel.unwrap_or(config.last_conv_channels);
        Ok(Self {
            stem: ConvNorm::new(init, outer(stem, 3, config.stem_stride)),
            blocks: blocks
                .map(|(block, input)| {
                    InvertedResidual::new(init, block_options(config, block, *input))
                })
                .collect(),
            last: ConvNorm::new(init, outer(last, 1, 1)),
            hidden: config
                .last_channel
                .map(|features| Linear::normal(init, config.last_conv_channels, features, 0.01)),
            classifier: Linear::normal(init, features, config.num_classes, 0.01),
            config: config.clone(),
        })
    }

    /// The same network with a new, random last layer for `num_classes` classes.
    pub fn with_num_classes(mut self, num_classes: usize) -> Self {
        let device = self.classifier.weight.device();
        let [_, features] = self.classifier.weight.dims();
        let init = &mut Init::new(0, &device);
        self.classifier = Linear::normal(init, features, num_classes, 0.01);
        self.config.num_classes = num_classes;
        self
    }

    /// Logits in evaluation mode: `[batch, channels, height, width]` to `[batch, num_classes]`.
    pub fn forward(&self, pixel_values: Tensor<B, 4>) -> Tensor<B, 2> {
        self.logits(pixel_values, Mode::Eval, None)
    }

    /// The last convolution's output in evaluation mode:
    /// `[batch, last_conv_channels, height', width']`.
    pub fn forward_features(&self, pixel_values: Tensor<B, 4>) -> Tensor<B, 4> {
        self.features(pixel_values, Mode::Eval, &mut None)
    }

    fn features(
        &self,
        pixel_values: Tensor<B, 4>,
        mode: Mode,
        stages: &mut Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 4> {
        let mut x = self.stem.forward(pixel_values, mode);
        record(stages, || "features.0".into(), &x);
        for (i, block) in self.blocks.iter().enumerate() {
            x = block.forward(x, mode);
            record(stages, || format!("features.{}", i + 1), &x);
        }
        x = self.last.forward(x, mode);
        record(stages, || format!("features.{}", self.blocks.len() + 1), &x);
        x
    }
}

fn block_options(
    config: &MobileNetConfig,
    block: &BlockConfig,
    input: usize,
) -> InvertedResidualOptions {
    InvertedResidualOptions {
        channels: [input, block.out_channels],
        expanded: block.expanded_channels,
        kernel_size: block.kernel_size,
        stride: block.stride,
        fused: false,
        squeeze_excite: block.use_se.then(|| SqueezeExciteOptions {
            squeeze: divisible_by_8((block.expanded_channels / 4) as f64),
            activation: Activation::Relu,
            gate: Activation::HardSigmoid,
        }),
        activation: block.activation,
        padding: Padding::Half,
        eps: config.batch_norm_eps,
        momentum: config.batch_norm_momentum,
        stochastic_depth_prob: 0.0,
    }
}

impl<B: Backend> ImageClassifier<B> for MobileNet<B> {
    fn logits(
        &self,
        pixel_values: Tensor<B, 4>,
        mode: Mode,
        mut stages: Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 2> {
        let features = self.features(pixel_values, mode, &mut stages);
        let mut x = global_avg_pool2d(features);
        record(&mut stages, || "pool".into(), &x);
        if let Some(hidden) = &self.hidden {
            x = self.config.outer_activation().forward(hidden.forward(x));
        }
        self.classifier
            .forward(dropout(x, self.config.dropout, mode))
    }
}

impl<B: Backend> Network<B> for MobileNet<B> {
    fn arguments(&self) -> Vec<Argument> {
        vec![Argument::pixel_values(self.config.num_channels)]
    }

    fn run(
        &self,
        arguments: &Arguments<B>,
        mode: Mode,
        stages: Option<&mut dyn Stages<B>>,
    ) -> Result<Flat<B>> {
        self.classify(arguments, mode, stages)
    }
}
