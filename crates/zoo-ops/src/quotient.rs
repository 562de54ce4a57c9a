use burn::tensor::{Tensor, backend::Backend};

/// `a / b`, by a reciprocal that is a true division. Burn's derivative of a quotient multiplies with its own
/// reciprocal, which burn-ndarray 0.21 has to four digits only in f32.
pub(crate) fn quotient<B: Backend, const D: usize>(
    a: Tensor<B, D>,
    b: Tensor<B, D>,
) -> Tensor<B, D> {
    a * (b.ones_like() / b)
}

/// `exp(x) / Σ exp(x)` over a dimension.
pub(crate) fn softmax<B: Backend, const D: usize>(x: Tensor<B, D>, dim: usize) -> Tensor<B, D> {
    let exp = (x.clone() - x.detach().max_dim(dim)).exp();
    let sum = exp.clone().sum_dim(dim);
    quotient(exp, sum)
}
