use crate::{Init, Matrix};
use burn::module::{Module, Param};
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::PackedMatrix;
use std::sync::Arc;

/// `y = x Wᵀ + b` with PyTorch's layout and initial values.
#[derive(Module, Debug)]
pub struct Linear<B: Backend> {
    /// `[out_features, in_features]`
    pub weight: Param<Tensor<B, 2>>,
    /// `[out_features]`
    pub bias: Option<Param<Tensor<B, 1>>>,
    /// What takes the place of `weight`, where that stays in its file's blocks.
    #[module(skip)]
    packed: Option<Arc<dyn PackedMatrix>>,
}

impl<B: Backend> Linear<B> {
    /// Uniform in ±1/sqrt(in_features), PyTorch's default.
    pub fn new(init: &mut Init<B>, in_features: usize, out_features: usize) -> Self {
        let bound = 1.0 / (in_features as f64).sqrt();
        Self {
            weight: init.uniform([out_features, in_features], bound),
            bias: Some(init.uniform([out_features], bound)),
            packed: None,
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
            packed: None,
        }
    }

    /// Normal with this standard deviation, and a bias of zeros.
    pub fn normal(init: &mut Init<B>, in_features: usize, out_features: usize, std: f64) -> Self {
        Self {
            weight: init.normal([out_features, in_features], std),
            bias: Some(init.constant([out_features], 0.0)),
            packed: None,
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
        match &self.packed {
            Some(packed) => burn_zoo_ops::packed_linear(x, packed.as_ref(), bias),
            None => burn_zoo_ops::linear(x, self.weight.val(), bias),
        }
    }

    /// Its matrix, which may stay packed.
    pub fn matrix(&mut self) -> Matrix<'_, B> {
        Matrix {
            weight: &self.weight,
            packed: &mut self.packed,
        }
    }
}
