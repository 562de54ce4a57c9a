use crate::counter;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::seeded;

/// `x Wᵀ + b` with PyTorch's layout.
///
/// # Shapes
/// - x: `[batch, in_features]`
/// - weight: `[out_features, in_features]`
/// - bias: `[out_features]`
/// - result: `[batch, out_features]`
pub fn linear<B: Backend>(
    x: Tensor<B, 2>,
    weight: Tensor<B, 2>,
    bias: Option<Tensor<B, 1>>,
) -> Tensor<B, 2> {
    let [batch, in_features] = x.dims();
    let [out_features, _] = weight.dims();
    counter::add_flops(2 * (batch * in_features * out_features) as u64);
    let bias = seeded("linear layer without its bias", bias, |_| None);
    let y = x.matmul(weight.transpose());
    match bias {
        Some(bias) => y + bias.unsqueeze(),
        None => y,
    }
}
