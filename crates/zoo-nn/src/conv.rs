use crate::Init;
use burn::module::{Module, Param};
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_ops::{Conv2dOptions, conv2d};

/// 2-d convolution, PyTorch's `Conv2d`.
#[derive(Module, Debug)]
pub struct Conv2d<B: Backend> {
    /// `[out_channels, in_channels / groups, kernel_height, kernel_width]`
    pub weight: Param<Tensor<B, 4>>,
    /// `[out_channels]`, where there is one
    pub bias: Option<Param<Tensor<B, 1>>>,
    #[module(skip)]
    options: Conv2dOptions,
}

impl<B: Backend> Conv2d<B> {
    /// A convolution without bias, with kaiming-normal weights (`fan_out`, ReLU).
    pub fn new(
        init: &mut Init<B>,
        channels: [usize; 2],
        kernel_size: usize,
        options: Conv2dOptions,
    ) -> Self {
        let [input, output] = channels;
        let shape = [output, input / options.groups, kernel_size, kernel_size];
        Self {
            weight: init.kaiming_fan_out(shape),
            bias: None,
            options,
        }
    }

    /// The same with a bias of zeros.
    pub fn with_bias(mut self, init: &Init<B>) -> Self {
        self.bias = Some(init.constant([self.weight.shape()[0]], 0.0));
        self
    }

    /// `[batch, in_channels, height, width]` to `[batch, out_channels, out_height, out_width]`.
    pub fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        let bias = self.bias.as_ref().map(|bias| bias.val());
        conv2d(x, self.weight.val(), bias, self.options)
    }
}
