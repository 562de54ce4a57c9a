use crate::Init;
use burn::module::{Module, Param};
use burn::tensor::{Tensor, backend::Backend};

/// Layer normalisation over the last dimension, PyTorch's `LayerNorm`.
#[derive(Module, Debug)]
pub struct LayerNorm<B: Backend> {
    /// `[features]`
    pub weight: Param<Tensor<B, 1>>,
    /// `[features]`
    pub bias: Param<Tensor<B, 1>>,
    eps: f64,
}

impl<B: Backend> LayerNorm<B> {
    /// Weights of 1 and biases of 0.
    pub fn new(init: &Init<B>, features: usize, eps: f64) -> Self {
        Self {
            weight: init.constant([features], 1.0),
            bias: init.constant([features], 0.0),
            eps,
        }
    }

    /// `[.., features]` to the same shape.
    pub fn forward<const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        burn_zoo_ops::layer_norm(x, self.weight.val(), self.bias.val(), self.eps)
    }
}

/// Root-mean-square normalisation over the last dimension, transformers' `LlamaRMSNorm`.
#[derive(Module, Debug)]
pub struct RmsNorm<B: Backend> {
    /// `[features]`
    pub weight: Param<Tensor<B, 1>>,
    eps: f64,
}

impl<B: Backend> RmsNorm<B> {
    /// Weights of 1.
    pub fn new(init: &Init<B>, features: usize, eps: f64) -> Self {
        Self {
            weight: init.constant([features], 1.0),
            eps,
        }
    }

    /// `[.., features]` to the same shape.
    pub fn forward<const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        burn_zoo_ops::rms_norm(x, self.weight.val(), self.eps)
    }
}
