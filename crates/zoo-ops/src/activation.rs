use burn::tensor::{Tensor, backend::Backend};

/// Rectified linear unit, `max(x, 0)`; its gradient at 0 is 0, as PyTorch's.
pub fn relu<B: Backend, const D: usize>(x: Tensor<B, D>) -> Tensor<B, D> {
    crate::counter::add_activations(x.shape().num_elements());
    burn::tensor::activation::relu(x)
}
