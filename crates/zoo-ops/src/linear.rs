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
    let weight = seeded("weight of a square layer transposed", weight, |weight| {
        if in_features == out_features {
            weight.transpose()
        } else {
            weight
        }
    });
    shape[D - 1] = out_features;
    let x = x.reshape([rows, in_features]);
    #[cfg(feature = "flex")]
    if let Some(y) = crate::flex::linear(&x, &weight, bias.as_ref()) {
        return y.reshape(shape);
    }
    counter::took_generic_path();
    let y = x.matmul(weight.transpose());
    let y = match bias {
        Some(bias) => y + bias.unsqueeze(),
        None => y,
    };
    y.reshape(shape)
}
