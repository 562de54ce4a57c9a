//! The same numbers on both backends, and how far results may be apart.

use burn::backend::Autodiff;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Tensor, TensorData};
use burn_flex::Flex;
use burn_ndarray::NdArray;
use proptest::prelude::*;

pub type Fast = Autodiff<Flex>;
pub type Truth = Autodiff<NdArray<f64>>;

const LIMIT: f64 = 2e-5;

/// Numbers from a small generator, the same for both backends.
fn numbers(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    };
    // Rounded to f32, so that both sides start from the same numbers.
    (0..len).map(|_| f64::from(next() as f32)).collect()
}

pub fn leaf<B: AutodiffBackend, const D: usize>(
    shape: [usize; D],
    seed: u64,
    dtype: DType,
) -> Tensor<B, D> {
    leaf_around(0.0, shape, seed, dtype)
}

/// A leaf with numbers around `middle`.
pub fn leaf_around<B: AutodiffBackend, const D: usize>(
    middle: f64,
    shape: [usize; D],
    seed: u64,
    dtype: DType,
) -> Tensor<B, D> {
    let numbers = numbers(shape.iter().product(), seed).into_iter();
    let values: Vec<f64> = numbers.map(|v| f64::from((v + middle) as f32)).collect();
    let data = TensorData::new(values, shape).convert_dtype(dtype);
    Tensor::from_data(data, (&Default::default(), dtype)).require_grad()
}

pub fn close(what: &str, got: &[f64], want: &[f64]) -> Result<(), TestCaseError> {
    close_sums(what, got, want, 0)
}

/// As [`close`] for values that are sums of `terms` products of numbers in -1..1. Such a sum is
/// about a third of the root of `terms`; one that cancels to nearly nothing is no measure of the
/// error in it, which comes from the rounding of the terms and of the inputs.
pub fn close_sums(
    what: &str,
    got: &[f64],
    want: &[f64],
    terms: usize,
) -> Result<(), TestCaseError> {
    close_beside(what, got, want, (terms as f64).sqrt() / 3.0)
}

/// As [`close`] for values that are usually about as large as `usual`.
pub fn close_beside(
    what: &str,
    got: &[f64],
    want: &[f64],
    usual: f64,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(got.len(), want.len(), "{}: number of values", what);
    let scale = want
        .iter()
        .fold(usual.max(1e-3), |m: f64, v| m.max(v.abs()));
    let differences = got.iter().zip(want).map(|(g, w)| (g - w).abs() / scale);
    let worst = differences.fold(0.0, f64::max);
    prop_assert!(
        worst <= LIMIT,
        "{}: error {:.2e} of the largest value",
        what,
        worst
    );
    Ok(())
}

pub fn values<B: AutodiffBackend, const D: usize>(x: &Tensor<B, D>) -> Vec<f64> {
    x.to_data().iter::<f64>().collect()
}

pub fn gradient<B: AutodiffBackend, const D: usize>(
    x: &Tensor<B, D>,
    grads: &B::Gradients,
) -> Vec<f64> {
    let grad = x.grad(grads).expect("every leaf takes part");
    grad.into_data().iter::<f64>().collect()
}
