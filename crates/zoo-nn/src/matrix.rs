use burn::module::{Param, ParamId};
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::PackedMatrix;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A matrix of a model, which is a parameter or stays packed.
#[derive(Debug)]
pub struct Matrix<'a, B: Backend> {
    pub(crate) weight: &'a Param<Tensor<B, 2>>,
    pub(crate) packed: &'a mut Option<Arc<dyn PackedMatrix>>,
}

impl<B: Backend> Matrix<'_, B> {
    /// The parameter that it is, or that it takes the place of.
    pub fn id(&self) -> ParamId {
        self.weight.id
    }

    /// Takes the matrix that stays packed, if there is one for this parameter.
    pub fn pack(self, matrices: &BTreeMap<ParamId, Arc<dyn PackedMatrix>>) {
        *self.packed = matrices.get(&self.weight.id).cloned();
    }
}
