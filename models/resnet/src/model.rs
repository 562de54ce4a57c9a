use crate::config::{BlockType, ResNetConfig, Stem};
use burn::module::Module;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{
    Argument, Arguments, Flat, ImageClassifier, Mode, Network, Result, Stages, UpstreamOutput,
    record, seeded,
};
use burn_zoo_nn::{BatchNorm2d, Conv2d, Init, Linear};
use burn_zoo_ops::{Activation, Conv2dOptions, global_avg_pool2d, max_pool2d};

fn conv<B: Backend>(
    init: &mut Init<B>,
    channels: [usize; 2],
    kernel_size: usize,
    stride: usize,
    groups: usize,
) -> Conv2d<B> {
    let options = Conv2dOptions {
        stride: [stride; 2],
        padding: [kernel_size / 2; 2],
        groups,
        ..Default::default()
    };
    Conv2d::new(init, channels, kernel_size, options)
}

/// The projection on the shortcut, where size or width changes.
#[derive(Module, Debug)]
pub struct Downsample<B: Backend> {
    conv: Conv2d<B>,
    norm: BatchNorm2d<B>,
}

/// `act(f(x) + shortcut(x))`; torchvision's `BasicBlock` or, with a third convolution, its
/// `Bottleneck`.
#[derive(Module, Debug)]
pub struct Block<B: Backend> {
    conv1: Conv2d<B>,
    bn1: BatchNorm2d<B>,
    conv2: Conv2d<B>,
    bn2: BatchNorm2d<B>,
    conv3: Option<Conv2d<B>>,
    bn3: Option<BatchNorm2d<B>>,
    downsample: Option<Downsample<B>>,
    #[module(skip)]
    hidden_act: Activation,
}

impl<B: Backend> Block<B> {
    fn new(
        config: &ResNetConfig,
        input: usize,
        output: usize,
        stride: usize,
        init: &mut Init<B>,
    ) -> Self {
        let inner = config.inner(output);
        let last = if config.zero_init_residual { 0.0 } else { 1.0 };
        let downsample = (stride != 1 || input != output).then(|| Downsample {
            conv: conv(init, [input, output], 1, stride, 1),
            norm: BatchNorm2d::new(init, output, 1.0),
        });
        let hidden_act = config.hidden_act;
        match config.layer_type {
            BlockType::Basic => Self {
                conv1: conv(init, [input, inner], 3, stride, 1),
                bn1: BatchNorm2d::new(init, inner, 1.0),
                conv2: conv(init, [inner, output], 3, 1, 1),
                bn2: BatchNorm2d::new(init, output, last),
                conv3: None,
                bn3: None,
                downsample,
                hidden_act,
            },
            BlockType::Bottleneck => {
                let strides = match config.downsample_in_bottleneck {
                    true => [stride, 1],
                    false => [1, stride],
                };
                let strides = seeded(
                    "bottleneck strides where the other does",
                    strides,
                    |[a, b]| [b, a],
                );
                Self {
                    conv1: conv(init, [input, inner], 1, strides[0], 1),
                    bn1: BatchNorm2d::new(init, inner, 1.0),
                    conv2: conv(init, [inner, inner], 3, strides[1], config.groups),
                    bn2: BatchNorm2d::new(init, inner, 1.0),
                    conv3: Some(conv(init, [inner, output], 1, 1, 1)),
                    bn3: Some(BatchNorm2d::new(init, output, last)),
                    downsample,
                    hidden_act,
                }
            }
        }
    }

    fn forward(&self, x: Tensor<B, 4>, mode: Mode) -> Tensor<B, 4> {
        let relu = Activation::Relu;
        let shortcut = match &self.downsample {
            Some(d) => d.norm.forward(d.conv.forward(x.clone()), mode),
            None => x.clone(),
        };
        let x = relu.forward(self.bn1.forward(self.conv1.forward(x), mode));
        let mut x = self.bn2.forward(self.conv2.forward(x), mode);
        if let (Some(conv3), Some(bn3)) = (&self.conv3, &self.bn3) {
            x = bn3.forward(conv3.forward(relu.forward(x)), mode);
        }
        let shortcut = seeded("shortcut left out", shortcut, |x| x * 0.0);
        self.hidden_act.forward(x + shortcut)
    }
}

/// A residual network for image classification.
///
/// Stages for verification: `stem`, each block as `layer{i}.{j}`, `pool`.
#[derive(Module, Debug)]
pub struct ResNet<B: Backend> {
    conv1: Conv2d<B>,
    bn1: BatchNorm2d<B>,
    layers: Vec<Vec<Block<B>>>,
    fc: Option<Linear<B>>,
    #[module(skip)]
    pub(crate) config: ResNetConfig,
}

impl<B: Backend> ResNet<B> {
    /// A network with random weights: kaiming-normal convolutions, as torchvision starts them.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub fn new(config: &ResNetConfig, seed: u64, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    /// A network with weights from `init`.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub(crate) fn init(config: &ResNetConfig, init: &mut Init<B>) -> Result<Self> {
        config.validate()?;
        let kernel_size = match config.stem {
            Stem::ImageNet => 7,
            Stem::Cifar => 3,
        };
        let stem = [config.num_channels, config.embedding_size];
        let conv1 = conv(init, stem, kernel_size, kernel_size / 3, 1);
        let bn1 = BatchNorm2d::new(init, config.embedding_size, 1.0);
        let mut input = config.embedding_size;
        let mut layers = Vec::new();
        for (i, (depth, output)) in config.depths.iter().zip(&config.hidden_sizes).enumerate() {
            let halves = i > 0 || config.downsample_in_first_stage;
            let mut block = |j: usize| {
                let stride = if halves && j == 0 { 2 } else { 1 };
                let block = Block::new(config, input, *output, stride, init);
                input = *output;
                block
            };
            layers.push((0..*depth).map(&mut block).collect());
        }
        let mut head = |classes| Linear::new(init, config.num_features(), classes);
        Ok(Self {
            fc: (config.num_classes > 0).then(|| head(config.num_classes)),
            conv1,
            bn1,
            layers,
            config: config.clone(),
        })
    }

    /// The same network with a new, random head for `num_classes` classes.
    pub fn with_num_classes(mut self, num_classes: usize) -> Self {
        let device = self.conv1.weight.device();
        let init = &mut Init::new(0, &device);
        self.fc = Some(Linear::new(init, self.config.num_features(), num_classes));
        self.config.num_classes = num_classes;
        self
    }

    /// Logits in evaluation mode: `[batch, channels, height, width]` to `[batch, num_classes]`.
    pub fn forward(&self, pixel_values: Tensor<B, 4>) -> Tensor<B, 2> {
        self.logits(pixel_values, Mode::Eval, None)
    }

    /// The last stage in evaluation mode: `[batch, num_features, height', width']`.
    pub fn forward_features(&self, pixel_values: Tensor<B, 4>) -> Tensor<B, 4> {
        self.features(pixel_values, Mode::Eval, &mut None)
    }

    fn features(
        &self,
        pixel_values: Tensor<B, 4>,
        mode: Mode,
        stages: &mut Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 4> {
        let x = self.bn1.forward(self.conv1.forward(pixel_values), mode);
        let mut x = self.config.hidden_act.forward(x);
        if self.config.stem == Stem::ImageNet {
            x = max_pool2d(x, 3, 2, 1);
        }
        record(stages, || "stem".into(), &x);
        for (i, layer) in self.layers.iter().enumerate() {
            for (j, block) in layer.iter().enumerate() {
                x = block.forward(x, mode);
                record(stages, || format!("layer{}.{j}", i + 1), &x);
            }
        }
        x
    }
}

impl<B: Backend> ImageClassifier<B> for ResNet<B> {
    fn logits(
        &self,
        pixel_values: Tensor<B, 4>,
        mode: Mode,
        mut stages: Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 2> {
        let features = self.features(pixel_values, mode, &mut stages);
        let pooled = global_avg_pool2d(features);
        record(&mut stages, || "pool".into(), &pooled);
        match &self.fc {
            Some(fc) => fc.forward(pooled),
            None => pooled,
        }
    }
}

impl<B: Backend> Network<B> for ResNet<B> {
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

    fn upstream_outputs(&self) -> Vec<UpstreamOutput> {
        let last_blocks = self.config.depths.iter().enumerate();
        let last_blocks = last_blocks.map(|(i, depth)| format!("layer{}.{}", i + 1, depth - 1));
        let stages: Vec<String> = std::iter::once("stem".into()).chain(last_blocks).collect();
        let hidden_state = |(i, stage): (usize, &String)| UpstreamOutput {
            name: format!("hidden_states.{i}"),
            stage: stage.clone(),
            rank: 4,
            primary: false,
        };
        let mut outputs: Vec<_> = stages.iter().enumerate().map(hidden_state).collect();
        if self.fc.is_none() {
            outputs.push(UpstreamOutput {
                name: "last_hidden_state".into(),
                stage: stages[stages.len() - 1].clone(),
                rank: 4,
                primary: true,
            });
            outputs.push(UpstreamOutput {
                name: "pooler_output".into(),
                stage: "pool".into(),
                rank: 4,
                primary: false,
            });
        }
        outputs
    }
}
