use crate::Init;
use burn::module::{Module, Param};
use burn::tensor::{Tensor, backend::Backend};

/// `y = x Wᵀ + b` with PyTorch's layout and initial values.
#[derive(Module, Debug)]
pub struct Linear<B: Backend> {
    /// `[out_features, in_features]`
    pub weight: Param<Tensor<B, 2>>,
    /// `[out_features]`
    pub bias: Option<Param<Tensor<B, 1>>>,
}

impl<B: Backend> Linear<B> {
    /// Uniform in ±1/sqrt(in_features), PyTorch's default.
    pub fn new(init: &mut Init<B>, in_features: usize, out_features: usize) -> Self {
        let bound = 1.0 / (in_features as f64).sqrt();
        Self {
            weight: init.uniform([out_features, in_features], bound),
            bias: Some(init.uniform([out_features], bound)),
        }
    }

    /// Uniform in ±bound, and a bias of zeros.
    pub fn uniform(
        init: &mut Init<B>,
        in_features: usize,
        out_features: usize,
        bound: f64,
    ) -> Self {
        Self {
            weight: init.uniform([out_features, in_features], bound),
            bias: Some(init.constant([out_features], 0.0)),
        }
    }

    /// Normal with this standard deviation, and a bias of zeros.
    pub fn normal(init: &mut Init<B>, in_features: usize, out_features: usize, std: f64) -> Self {
        Self {
            weight: init.normal([out_features, in_features], std),
            bias: Some(init.constant([out_features], 0.0)),
        }
    }

    /// The same with a bias only if `has_bias`.
    pub fn with_bias(mut self, has_bias: bool) -> Self {
        self.bias = self.bias.filter(|_| has_bias);
        self
    }

    /// `[.., in_features]` to `[.., out_features]`.
    pub fn forward<const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        let bias = self.bias.as_ref().map(Param::val);
        burn_zoo_ops::linear(x, self.weight.val(), bias)
    }
}
