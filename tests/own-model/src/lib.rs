//! A small network of Burn's own layers.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Tensor, backend::Backend};

/// Two convolutions and a linear layer for `[batch, 3, 12, 12]`.
#[derive(Module, Debug)]
pub struct Net<B: Backend> {
    conv1: Conv2d<B>,
    conv2: Conv2d<B>,
    head: Linear<B>,
}

impl<B: Backend> Net<B> {
    /// With random weights.
    pub fn new(device: &B::Device) -> Self {
        Self {
            conv1: Conv2dConfig::new([3, 8], [3, 3]).init(device),
            conv2: Conv2dConfig::new([8, 16], [3, 3])
                .with_stride([2, 2])
                .init(device),
            head: LinearConfig::new(16, 5).init(device),
        }
    }

    /// The features, `[batch, 16]`.
    pub fn features(&self, x: Tensor<B, 4>) -> Tensor<B, 2> {
        let x = relu(self.conv2.forward(relu(self.conv1.forward(x))));
        let [batch, channels, height, width] = x.dims();
        x.reshape([batch, channels, height * width])
            .mean_dim(2)
            .reshape([batch, channels])
    }

    /// Logits, `[batch, 5]`.
    pub fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 2> {
        self.head.forward(self.features(x))
    }
}
