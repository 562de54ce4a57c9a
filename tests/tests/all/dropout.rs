//! Dropout and stochastic depth: what is dropped, what is kept and how the gradient follows. Random
//! numbers are not torch's, so these are compared with what their definitions say.
//!
//! The backend's random numbers are one sequence for the whole process, so shares are given room for
//! any seed: five standard deviations.

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor};
use burn_flex::Flex;
use burn_zoo_core::Mode;
use burn_zoo_nn::{dropout, stochastic_depth};

type B = Autodiff<Flex>;

const ROWS: usize = 400;
const PROB: f64 = 0.3;

fn numbers(shape: [usize; 4]) -> Tensor<B, 4> {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|i| 1.0 + (i % 7) as f64).collect();
    let data = burn::tensor::TensorData::new(values, shape);
    Tensor::from_data(data, (&Default::default(), DType::F64)).require_grad()
}

fn values(x: Tensor<B, 4>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

fn gradient(x: &Tensor<B, 4>, y: Tensor<B, 4>) -> Vec<f64> {
    let grads = y.sum().backward();
    let grad = x.grad(&grads).expect("it is tracked").into_data();
    grad.iter::<f64>().collect()
}

fn assert_share(dropped: usize, of: usize) {
    let (n, share) = (of as f64, dropped as f64 / of as f64);
    let deviation = (PROB * (1.0 - PROB) / n).sqrt();
    assert!(
        (share - PROB).abs() < 5.0 * deviation,
        "{share} of {of} dropped"
    );
}

#[test]
fn dropout_drops_its_share_and_scales_the_rest() {
    let x = numbers([ROWS, 3, 2, 1]);
    let y = dropout(x.clone(), PROB, Mode::Train);
    let (before, after) = (values(x.clone()), values(y.clone()));
    let scaled = before.iter().map(|v| v / (1.0 - PROB));
    let mut dropped = 0;
    for ((scaled, y), grad) in scaled.zip(&after).zip(gradient(&x, y)) {
        if *y == 0.0 {
            dropped += 1;
            assert_eq!(grad, 0.0);
        } else {
            assert!((y - scaled).abs() < 1e-12, "{y} for {scaled}");
            assert!((grad - 1.0 / (1.0 - PROB)).abs() < 1e-12, "{grad}");
        }
    }
    assert_share(dropped, before.len());
}

#[test]
fn stochastic_depth_drops_whole_images() {
    let x = numbers([ROWS, 2, 3, 3]);
    let y = stochastic_depth(x.clone(), PROB, Mode::Train);
    let (before, after) = (values(x), values(y));
    let mut dropped = 0;
    for (before, after) in before.chunks(18).zip(after.chunks(18)) {
        let gone = after.iter().all(|v| *v == 0.0);
        let kept = before.iter().zip(after);
        let kept = kept
            .map(|(b, a)| (a - b / (1.0 - PROB)).abs())
            .all(|off| off < 1e-12);
        assert!(gone != kept, "an image is dropped or kept as a whole");
        dropped += usize::from(gone);
    }
    assert_share(dropped, ROWS);
}

#[test]
fn nothing_changes_in_evaluation_or_without_a_probability() {
    let x = numbers([3, 2, 2, 2]);
    for y in [
        dropout(x.clone(), PROB, Mode::Eval),
        dropout(x.clone(), 0.0, Mode::Train),
        stochastic_depth(x.clone(), PROB, Mode::Eval),
    ] {
        assert_eq!(values(y), values(x.clone()));
    }
}
