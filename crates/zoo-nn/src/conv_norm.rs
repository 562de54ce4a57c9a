use crate::{BatchNorm2d, Conv2d, Init};
use burn::module::Module;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{Mode, seeded};
use burn_zoo_ops::{Activation, Conv2dOptions, pad2d};
use serde::{Deserialize, Serialize};

/// How a convolution's input is padded so that windows reach its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Padding {
    /// Half the kernel on every side, PyTorch's usual.
    Half,
    /// As much as makes `out = ceil(in / stride)`, the odd zero to the right and below:
    /// TensorFlow's `SAME`.
    Same,
}

/// Sizes of a [`ConvNorm`].
#[derive(Clone, Copy, Debug)]
pub struct ConvNormOptions {
    /// Input and output channels.
    pub channels: [usize; 2],
    /// Side of the square kernel.
    pub kernel_size: usize,
    /// Distance between windows.
    pub stride: usize,
    /// Groups of channels that do not see each other.
    pub groups: usize,
    /// How the input is padded.
    pub padding: Padding,
    /// The norm's eps.
    pub eps: f64,
    /// The norm's momentum.
    pub momentum: f64,
    /// What follows the norm.
    pub activation: Option<Activation>,
}

impl ConvNormOptions {
    /// A 1×1 convolution and a norm with PyTorch's defaults, nothing after it.
    pub fn new(channels: [usize; 2]) -> Self {
        Self {
            channels,
            kernel_size: 1,
            stride: 1,
            groups: 1,
            padding: Padding::Half,
            eps: 1e-5,
            momentum: 0.1,
            activation: None,
        }
    }
}

/// Convolution, batch norm, activation: torchvision's `Conv2dNormActivation`.
#[derive(Module, Debug)]
pub struct ConvNorm<B: Backend> {
    conv: Conv2d<B>,
    norm: BatchNorm2d<B>,
    #[module(skip)]
    options: ConvNormOptions,
}

impl<B: Backend> ConvNorm<B> {
    /// With kaiming-normal weights.
    pub fn new(init: &mut Init<B>, options: ConvNormOptions) -> Self {
        let padding = match options.padding {
            Padding::Half => options.kernel_size / 2,
            Padding::Same => 0,
        };
        let conv = Conv2dOptions {
            stride: [options.stride; 2],
            padding: [padding; 2],
            groups: options.groups,
            ..Default::default()
        };
        Self {
            conv: Conv2d::new(init, options.channels, options.kernel_size, conv),
            norm: BatchNorm2d::new(init, options.channels[1], 1.0)
                .with(options.eps, options.momentum),
            options,
        }
    }

    /// `[batch, in, height, width]` to `[batch, out, height', width']`.
    pub fn forward(&self, x: Tensor<B, 4>, mode: Mode) -> Tensor<B, 4> {
        let x = match self.options.padding {
            Padding::Half => x,
            Padding::Same => {
                let [_, _, height, width] = x.dims();
                let (top, bottom) = self.same(height);
                let (left, right) = self.same(width);
                pad2d(x, [left, right, top, bottom])
            }
        };
        let x = self.norm.forward(self.conv.forward(x), mode);
        match self.options.activation {
            Some(activation) => activation.forward(x),
            None => x,
        }
    }

    /// Zeros before and after a side of this length.
    fn same(&self, length: usize) -> (usize, usize) {
        let ConvNormOptions {
            kernel_size,
            stride,
            ..
        } = self.options;
        let reach = (length.div_ceil(stride) - 1) * stride + kernel_size;
        let zeros = reach.saturating_sub(length);
        let before = seeded("odd zero on the left", zeros / 2, |half| zeros - half);
        (before, zeros - before)
    }
}
