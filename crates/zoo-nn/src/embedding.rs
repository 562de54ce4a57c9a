use crate::Init;
use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, backend::Backend};
use burn_zoo_core::seeded;

/// A row of a table for each number, PyTorch's `Embedding`.
#[derive(Module, Debug)]
pub struct Embedding<B: Backend> {
    /// `[num_embeddings, embedding_dim]`
    pub weight: Param<Tensor<B, 2>>,
    /// The row that receives no gradient from being looked up.
    #[module(skip)]
    padding_idx: Option<usize>,
}

impl<B: Backend> Embedding<B> {
    /// Normal with this standard deviation.
    pub fn new(init: &mut Init<B>, num_embeddings: usize, dim: usize, std: f64) -> Self {
        Self {
            weight: init.normal([num_embeddings, dim], std),
            padding_idx: None,
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
        let [_, dim] = self.weight.dims();
        let flat = ids.reshape([batch * sequence]);
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
}
