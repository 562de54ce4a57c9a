use burn::tensor::{Tensor, backend::Backend};

/// A receiver of named intermediate values.
///
/// A model calls [`record`] after each of its stages. Values arrive flattened with their shape, so
/// that one trait object serves tensors of every rank. Implementations must only keep the tensor;
/// reading it inside the forward pass would force lazy backends to run.
pub trait Stages<B: Backend> {
    /// Receives the value of the stage called `name`, flattened, and its shape.
    fn stage(&mut self, name: &str, flat: Tensor<B, 1>, shape: Vec<usize>);
}

/// Hands `value` to `stages` under `name`, if anyone listens.
pub fn record<B: Backend, const D: usize>(
    stages: &mut Option<&mut dyn Stages<B>>,
    name: impl FnOnce() -> String,
    value: &Tensor<B, D>,
) {
    if let Some(stages) = stages {
        let shape = value.dims().to_vec();
        let len: usize = shape.iter().product();
        stages.stage(&name(), value.clone().reshape([len]), shape);
    }
}

/// Keeps every stage in the order of the forward pass: (name, flat value, shape).
pub struct CollectStages<B: Backend>(pub Vec<(String, Tensor<B, 1>, Vec<usize>)>);

impl<B: Backend> CollectStages<B> {
    /// An empty collection.
    pub fn new() -> Self {
        Self(Vec::new())
    }
}

impl<B: Backend> Default for CollectStages<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend> Stages<B> for CollectStages<B> {
    fn stage(&mut self, name: &str, flat: Tensor<B, 1>, shape: Vec<usize>) {
        self.0.push((name.to_string(), flat, shape));
    }
}
