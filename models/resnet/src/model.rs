use crate::config::{BlockType, ResNetConfig, Stem};
use burn::module::Module;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{ImageClassifier, Mode, Result, Stages, record};
use burn_zoo_nn::{BatchNorm2d, Conv2d, Init, Linear};
use burn_zoo_ops::{Conv2dOptions, global_avg_pool2d, max_pool2d, relu};

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

/// `relu(f(x) + shortcut(x))`; torchvision's `BasicBlock` or, with a third convolution, its
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
}

impl<B: Backend> Block<B> {
    fn new(
        config: &ResNetConfig,
        input: usize,
        width: usize,
        stride: usize,
        init: &mut Init<B>,
    ) -> Self {
        let output = width * config.block.expansion();
        let last = if config.zero_init_residual { 0.0 } else { 1.0 };
        let downsample = (stride != 1 || input != output).then(|| Downsample {
            conv: conv(init, [input, output], 1, stride, 1),
            norm: BatchNorm2d::new(init, output, 1.0),
        });
        match config.block {
            BlockType::Basic => Self {
                conv1: conv(init, [input, width], 3, stride, 1),
                bn1: BatchNorm2d::new(init, width, 1.0),
                conv2: conv(init, [width, output], 3, 1, 1),
                bn2: BatchNorm2d::new(init, output, last),
                conv3: None,
                bn3: None,
                downsample,
            },
            BlockType::Bottleneck => {
                let inner = width * config.width_per_group / 64 * config.groups;
                Self {
                    conv1: conv(init, [input, inner], 1, 1, 1),
                    bn1: BatchNorm2d::new(init, inner, 1.0),
                    conv2: conv(init, [inner, inner], 3, stride, config.groups),
                    bn2: BatchNorm2d::new(init, inner, 1.0),
                    conv3: Some(conv(init, [inner, output], 1, 1, 1)),
                    bn3: Some(BatchNorm2d::new(init, output, last)),
                    downsample,
                }
            }
        }
    }

    fn forward(&self, x: Tensor<B, 4>, mode: Mode) -> Tensor<B, 4> {
        let shortcut = match &self.downsample {
            Some(d) => d.norm.forward(d.conv.forward(x.clone()), mode),
            None => x.clone(),
        };
        let x = relu(self.bn1.forward(self.conv1.forward(x), mode));
        let mut x = self.bn2.forward(self.conv2.forward(x), mode);
        if let (Some(conv3), Some(bn3)) = (&self.conv3, &self.bn3) {
            x = bn3.forward(conv3.forward(relu(x)), mode);
        }
        relu(x + shortcut)
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
    fc: Linear<B>,
    #[module(skip)]
    config: ResNetConfig,
}

impl<B: Backend> ResNet<B> {
    /// A network with random weights: kaiming-normal convolutions, as torchvision starts them.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub fn new(config: &ResNetConfig, seed: u64, device: &B::Device) -> Result<Self> {
        config.validate()?;
        let init = &mut Init::new(seed, device);
        let kernel_size = match config.stem {
            Stem::ImageNet => 7,
            Stem::Cifar => 3,
        };
        let stride = kernel_size / 3;
        let conv1 = conv(
            init,
            [config.num_channels, config.width],
            kernel_size,
            stride,
            1,
        );
        let bn1 = BatchNorm2d::new(init, config.width, 1.0);
        let mut input = config.width;
        let layers = (0..config.layers.len())
            .map(|i| {
                let width = config.stage_width(i);
                (0..config.layers[i])
                    .map(|j| {
                        let stride = if i > 0 && j == 0 { 2 } else { 1 };
                        let block = Block::new(config, input, width, stride, init);
                        input = width * config.block.expansion();
                        block
                    })
                    .collect()
            })
            .collect();
        let fc = Linear::new(init, config.num_features(), config.num_classes);
        Ok(Self {
            conv1,
            bn1,
            layers,
            fc,
            config: config.clone(),
        })
    }

    /// The same network with a new, random head for `num_classes` classes.
    pub fn with_num_classes(mut self, num_classes: usize) -> Self {
        let device = self.fc.weight.device();
        self.fc = Linear::new(
            &mut Init::new(0, &device),
            self.config.num_features(),
            num_classes,
        );
        self.config.num_classes = num_classes;
        self
    }

    /// The configuration it was made from.
    pub fn config(&self) -> &ResNetConfig {
        &self.config
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
        let mut x = relu(self.bn1.forward(self.conv1.forward(pixel_values), mode));
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
        self.fc.forward(pooled)
    }
}
