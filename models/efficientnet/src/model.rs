use crate::config::{EfficientNetConfig, StageConfig};
use burn::module::Module;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{
    Argument, Arguments, Flat, ImageClassifier, Mode, Network, Result, Stages, record,
};
use burn_zoo_nn::{
    ConvNorm, ConvNormOptions, Init, InvertedResidual, InvertedResidualOptions, Linear,
    SqueezeExciteOptions, dropout,
};
use burn_zoo_ops::{Activation, global_avg_pool2d};

/// An EfficientNet for image classification: torchvision's `EfficientNet`.
///
/// `logits = W dropout(pool(last(stages(stem(x))))) + b`
///
/// Stages for verification: `features.0` (the stem), block `j` of stage `i`, counted from 1, as
/// `features.{i}.{j}`, the last convolution as `features.{stages + 1}`, `pool`.
#[derive(Module, Debug)]
pub struct EfficientNet<B: Backend> {
    stem: ConvNorm<B>,
    stages: Vec<Vec<InvertedResidual<B>>>,
    last: ConvNorm<B>,
    classifier: Linear<B>,
    #[module(skip)]
    pub(crate) config: EfficientNetConfig,
}

impl<B: Backend> EfficientNet<B> {
    /// A network with random weights, as torchvision starts them: kaiming-normal convolutions, and a
    /// uniform last layer.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub fn new(config: &EfficientNetConfig, seed: u64, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    /// A network with weights from `init`.
    pub(crate) fn init(config: &EfficientNetConfig, init: &mut Init<B>) -> Result<Self> {
        config.validate()?;
        let outer = |channels, kernel_size, stride| ConvNormOptions {
            kernel_size,
            stride,
            padding: config.padding,
            eps: config.batch_norm_eps,
            momentum: config.batch_norm_momentum,
            activation: Some(config.hidden_act),
            ..ConvNormOptions::new(channels)
        };
        let stem = [config.num_channels, config.stem_channels];
        let stem = ConvNorm::new(init, outer(stem, 3, config.stem_stride));
        let mut input = config.stem_channels;
        let mut stages = Vec::new();
        let mut drop_probs = config.stochastic_depth_probs().into_iter();
        for stage in &config.stages {
            let mut blocks = Vec::new();
            for i in 0..stage.num_layers {
                let stride = if i == 0 { stage.stride } else { 1 };
                let options = InvertedResidualOptions {
                    stochastic_depth_prob: drop_probs.next().unwrap_or_default(),
                    ..block_options(config, stage, input, stride)
                };
                blocks.push(InvertedResidual::new(init, options));
                input = stage.out_channels;
            }
            stages.push(blocks);
        }
        let features = config.last_channel;
        Ok(Self {
            stem,
            stages,
            last: ConvNorm::new(init, outer([input, features], 1, 1)),
            classifier: classifier(init, features, config.num_classes),
            config: config.clone(),
        })
    }

    /// The same network with a new, random last layer for `num_classes` classes.
    pub fn with_num_classes(mut self, num_classes: usize) -> Self {
        let device = self.classifier.weight.device();
        let init = &mut Init::new(0, &device);
        self.classifier = classifier(init, self.config.last_channel, num_classes);
        self.config.num_classes = num_classes;
        self
    }

    /// Logits in evaluation mode: `[batch, channels, height, width]` to `[batch, num_classes]`.
    pub fn forward(&self, pixel_values: Tensor<B, 4>) -> Tensor<B, 2> {
        self.logits(pixel_values, Mode::Eval, None)
    }

    /// The last convolution's output in evaluation mode:
    /// `[batch, last_channel, height', width']`.
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
        for (i, blocks) in self.stages.iter().enumerate() {
            for (j, block) in blocks.iter().enumerate() {
                x = block.forward(x, mode);
                record(stages, || format!("features.{}.{j}", i + 1), &x);
            }
        }
        x = self.last.forward(x, mode);
        record(stages, || format!("features.{}", self.stages.len() + 1), &x);
        x
    }
}

/// Squeeze and excitation squeezes to a quarter of the block's input.
fn block_options(
    config: &EfficientNetConfig,
    stage: &StageConfig,
    input: usize,
    stride: usize,
) -> InvertedResidualOptions {
    InvertedResidualOptions {
        channels: [input, stage.out_channels],
        expanded: stage.expanded(input),
        kernel_size: stage.kernel_size,
        stride,
        fused: stage.fused,
        squeeze_excite: config.has_se(stage).then(|| SqueezeExciteOptions {
            squeeze: (input / 4).max(1),
            activation: config.hidden_act,
            gate: Activation::Sigmoid,
        }),
        activation: config.hidden_act,
        padding: config.padding,
        eps: config.batch_norm_eps,
        momentum: config.batch_norm_momentum,
        stochastic_depth_prob: 0.0,
    }
}

fn classifier<B: Backend>(init: &mut Init<B>, features: usize, num_classes: usize) -> Linear<B> {
    let bound = 1.0 / (num_classes as f64).sqrt();
    Linear::uniform(init, features, num_classes, bound)
}

impl<B: Backend> ImageClassifier<B> for EfficientNet<B> {
    fn logits(
        &self,
        pixel_values: Tensor<B, 4>,
        mode: Mode,
        mut stages: Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 2> {
        let features = self.features(pixel_values, mode, &mut stages);
        let x = global_avg_pool2d(features);
        record(&mut stages, || "pool".into(), &x);
        self.classifier
            .forward(dropout(x, self.config.dropout, mode))
    }
}

impl<B: Backend> Network<B> for EfficientNet<B> {
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
