use crate::counter;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::seeded;

/// `x Wᵀ + b` with PyTorch's layout.
///
/// # Shapes
/// - x: `[.., in_features]`
/// - weight: `[out_features, in_features]`
/// - bias: `[out_features]`
/// - result: `[.., out_features]`
pub fn linear<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    weight: Tensor<B, 2>,
    bias: Option<Tensor<B, 1>>,
) -> Tensor<B, D> {
    let mut shape = x.dims();
    let [out_features, in_features] = weight.dims();
    let rows = shape[..D - 1].iter().product::<usize>();
    counter::add_flops(2 * (rows * in_features * out_features) as u64);
    let bias = seeded("linear layer without its bias", bias, |_| None);
    let turned = seeded(
        "weight of a square layer transposed",
        weight.transpose(),
        |w| {
            if in_features == out_features {
                w.transpose()
            } else {
                w
            }
        },
    );
    let y = x.reshape([rows, in_features]).matmul(turned);
    let y = match bias {
        Some(bias) => y + bias.unsqueeze(),
        None => y,
    };
    shape[D - 1] = out_features;
    y.reshape(shape)
}
