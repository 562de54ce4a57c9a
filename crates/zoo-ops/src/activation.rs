use burn::tensor::{Tensor, backend::Backend};

/// Rectified linear unit, `max(x, 0)`; its gradient at 0 is 0, as PyTorch's.
pub fn relu<B: Backend, const D: usize>(x: Tensor<B, D>) -> Tensor<B, D> {
    crate::counter::add_activations(x.shape().num_elements());
    #[cfg(feature = "flex")]
    let x = match crate::flex::relu(x) {
        Ok(y) => return y,
        Err(x) => x,
    };
    crate::counter::took_generic_path();
    burn::tensor::activation::relu(x)
}
