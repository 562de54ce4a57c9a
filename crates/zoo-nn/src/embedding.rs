use crate::{Init, Matrix};
use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, backend::Backend};
use burn_zoo_core::{PackedMatrix, seeded};
use burn_zoo_ops::{linear, packed_linear, packed_rows};
use std::sync::Arc;

/// A row of a table for each number, PyTorch's `Embedding`.
#[derive(Module, Debug)]
pub struct Embedding<B: Backend> {
    /// `[num_embeddings, embedding_dim]`
    pub weight: Param<Tensor<B, 2>>,
    /// The row that receives no gradient from being looked up.
    #[module(skip)]
    padding_idx: Option<usize>,
    /// What takes the place of `weight`, where that stays in its file's blocks.
    #[module(skip)]
    packed: Option<Arc<dyn PackedMatrix>>,
}

impl<B: Backend> Embedding<B> {
    /// Normal with this standard deviation.
    pub fn new(init: &mut Init<B>, num_embeddings: usize, dim: usize, std: f64) -> Self {
        Self {
            weight: init.normal([num_embeddings, dim], std),
            padding_idx: None,
            packed: None,
        }
    }

    /// The same with a row that receives no gradient from being looked up.
    pub fn with_padding_idx(mut self, padding_idx: Option<usize>) -> Self {
        self.padding_idx = padding_idx;
        self
    }

    /// Numbers `[batch, sequence]`, each below `num_embeddings`, to `[batch, sequence, embedding_dim]`.
    pub fn forward(&self, ids: Tensor<B, 2, Int>) -> Tensor<B, 3> {
        let [batch, sequence] = ids.dims();
        let flat = ids.reshape([batch * sequence]);
        if let Some(packed) = &self.packed {
            let rows = packed_rows(flat, packed.as_ref(), self.weight.val().dtype());
            return rows.reshape([batch, sequence, packed.shape()[1]]);
        }
        let [_, dim] = self.weight.dims();
        let mut rows = self.weight.val().select(0, flat.clone());
        let padding_idx = seeded("a padding row that is trained", self.padding_idx, |_| None);
        if let Some(padding_idx) = padding_idx.filter(|_| B::ad_enabled(&rows.device())) {
            let padding = flat
                .equal_elem(padding_idx as i64)
                .reshape([batch * sequence, 1]);
            let padding = padding.expand([batch * sequence, dim]);
            rows = rows.clone().mask_where(padding, rows.detach());
        }
        rows.reshape([batch, sequence, dim])
    }

    /// The table as a head: `[.., embedding_dim]` to `[.., num_embeddings]`.
    pub fn project<const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        match &self.packed {
            Some(packed) => packed_linear(x, packed.as_ref(), None),
            None => linear(x, self.weight.val(), None),
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
