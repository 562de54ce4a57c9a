use super::math::{sum, sum2};
use super::{contiguous, float, from_vec, is_f32, kind, run, slice, tensor};
use crate::counter;
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorMetadata};
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops},
};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;

/// Rows that are summed over before the sums of all are added: the same for any number of threads, so that
/// the bits are.
const ROWS: usize = 32;

/// Whether `x` has elements and each vector has as many values as a row.
fn fits<B: Backend, const D: usize>(x: &Tensor<B, D>, vectors: &[&Tensor<B, 1>]) -> bool {
    let dims = x.dims();
    let vector = |v: &&Tensor<B, 1>| is_f32(v) && v.dims() == [dims[D - 1]];
    kind::<B>().is_some() && is_f32(x) && !dims.contains(&0) && vectors.iter().all(vector)
}

/// See [`crate::layer_norm`].
pub(crate) fn layer_norm<B: Backend, const D: usize>(
    x: &Tensor<B, D>,
    weight: &Tensor<B, 1>,
    bias: &Tensor<B, 1>,
    eps: f64,
) -> Option<Tensor<B, D>> {
    if !fits(x, &[weight, bias]) {
        return None;
    }
    counter::took_fast_path();
    let inputs = [float(x.clone()), float(weight.clone()), float(bias.clone())];
    let y = run::<B, _, 3>(LayerNorm, inputs, |[x, weight, bias]| {
        forward(x, weight, Some(bias), eps)
    });
    Some(tensor(y))
}

/// See [`crate::rms_norm`].
pub(crate) fn rms_norm<B: Backend, const D: usize>(
    x: &Tensor<B, D>,
    weight: &Tensor<B, 1>,
    eps: f64,
) -> Option<Tensor<B, D>> {
    if !fits(x, &[weight]) {
        return None;
    }
    counter::took_fast_path();
    let inputs = [float(x.clone()), float(weight.clone())];
    let y = run::<B, _, 2>(RmsNorm, inputs, |[x, weight]| forward(x, weight, None, eps));
    Some(tensor(y))
}

/// What the backward pass needs.
#[derive(Clone, Debug)]
struct Saved {
    x: FlexTensor,
    weight: FlexTensor,
    /// Of each row: what is taken away, 0 without a bias, and what it is multiplied with.
    rows: Vec<[f32; 2]>,
}

/// Normalises each row; without a bias its mean stays.
fn forward(
    x: FlexTensor,
    weight: FlexTensor,
    bias: Option<FlexTensor>,
    eps: f64,
) -> (FlexTensor, Saved) {
    let (x, weight, bias) = (contiguous(x), contiguous(weight), bias.map(contiguous));
    let features = weight.shape().num_elements();
    let (values, weights) = (slice(&x), slice(&weight));
    let biases = bias.as_ref().map(slice);
    let mut y = vec![0.0f32; values.len()];
    let mut rows = vec![[0.0f32; 2]; values.len() / features];
    y.par_chunks_mut(ROWS * features)
        .zip(values.par_chunks(ROWS * features))
        .zip(rows.par_chunks_mut(ROWS))
        .for_each(|((y, x), rows)| normalise(y, x, weights, biases, rows, eps));
    let y = from_vec(y, &x.shape().to_vec());
    (y, Saved { x, weight, rows })
}

vectorized! {
    /// Some rows; see [`forward`].
    fn normalise<'a>(
        y: &'a mut [f32],
        x: &'a [f32],
        weights: &'a [f32],
        biases: Option<&'a [f32]>,
        rows: &'a mut [[f32; 2]],
        eps: f64,
    ) -> () {
        let features = weights.len();
        let count = features as f64;
        let each = y.chunks_exact_mut(features).zip(x.chunks_exact(features));
        for ((y, x), row) in each.zip(rows) {
            let mean = match biases {
                Some(_) => sum(x, |v| v) / count,
                None => 0.0,
            };
            let shift = mean as f32;
            let square = sum(x, |v| (v - shift) * (v - shift)) / count;
            // The mean was rounded to f32 before it was subtracted: correct for that.
            let square = square - (mean - f64::from(shift)).powi(2);
            let scale = (1.0 / (square.max(0.0) + eps).sqrt()) as f32;
            // The larger of NaN and 0 is 0.
            let scale = if square.is_nan() { f32::NAN } else { scale };
            match biases {
                Some(biases) => {
                    for (((y, x), w), b) in y.iter_mut().zip(x).zip(weights).zip(biases) {
                        *y = ((x - shift) * scale).mul_add(*w, *b);
                    }
                }
                None => {
                    for ((y, x), w) in y.iter_mut().zip(x).zip(weights) {
                        *y = x * scale * w;
                    }
                }
            }
            *row = [shift, scale];
        }
    }
}

/// Gradients of input, weight and bias.
///
/// With `x̂ = (x - shift) · scale`, `g = dy · w` and means over a row: `db = Σ dy`, `dw = Σ dy x̂`,
/// `dx = scale · (g - mean(g) - x̂ mean(g x̂))`, where `mean(g)` is left out without a bias.
fn backward(saved: &Saved, dy: &FlexTensor, with_bias: bool) -> [FlexTensor; 3] {
    let Saved { x, weight, rows } = saved;
    let features = weight.shape().num_elements();
    let (values, dys, weights) = (slice(x), slice(dy), slice(weight));
    let mut dx = vec![0.0f32; values.len()];
    let size = ROWS * features;
    let sums: Vec<Vec<f32>> = dx
        .par_chunks_mut(size)
        .zip(values.par_chunks(size))
        .zip(dys.par_chunks(size))
        .zip(rows.par_chunks(ROWS))
        .map(|(((dx, x), dy), rows)| {
            let mut sums = vec![0.0f32; 2 * features];
            differentiate(dx, x, dy, weights, rows, &mut sums, with_bias);
            sums
        })
        .collect();
    let mut total = vec![0.0f64; 2 * features];
    for part in &sums {
        for (total, part) in total.iter_mut().zip(part) {
            *total += f64::from(*part);
        }
    }
    let column = |i: usize| {
        let part = total[i * features..][..features].iter();
        from_vec(part.map(|v| *v as f32).collect(), &[features])
    };
    [from_vec(dx, &x.shape().to_vec()), column(0), column(1)]
}

vectorized! {
    /// Some rows; adds up `dw` and after it `db` in `sums`. See [`backward`].
    fn differentiate<'a>(
        dx: &'a mut [f32],
        x: &'a [f32],
        dy: &'a [f32],
        weights: &'a [f32],
        rows: &'a [[f32; 2]],
        sums: &'a mut [f32],
        with_bias: bool,
    ) -> () {
        let features = weights.len();
        let count = features as f64;
        let (dw, db) = sums.split_at_mut(features);
        let each = dx.chunks_exact_mut(features).zip(x.chunks_exact(features));
        for (((dx, x), dy), [shift, scale]) in each.zip(dy.chunks_exact(features)).zip(rows) {
            // dx holds g for a while.
            for i in 0..features {
                dx[i] = dy[i] * weights[i];
                dw[i] += dy[i] * ((x[i] - shift) * scale);
                db[i] += dy[i];
            }
            let mean = match with_bias {
                true => (sum(dx, |g| g) / count) as f32,
                false => 0.0,
            };
            let along = (sum2(dx, x, |g, x| g * ((x - shift) * scale)) / count) as f32;
            for (g, x) in dx.iter_mut().zip(x) {
                *g = scale * (*g - mean - (x - shift) * scale * along);
            }
        }
    }
}

/// Backward of layer normalisation.
#[derive(Debug)]
struct LayerNorm;

impl Backward<Flex, 3> for LayerNorm {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = contiguous(grads.consume::<Flex>(&ops.node));
        let found = backward(&ops.state, &dy, true);
        for (node, grad) in ops.parents.into_iter().zip(found) {
            if let Some(node) = node {
                grads.register::<Flex>(node.id, grad);
            }
        }
    }
}

/// Backward of root-mean-square normalisation.
#[derive(Debug)]
struct RmsNorm;

impl Backward<Flex, 2> for RmsNorm {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = contiguous(grads.consume::<Flex>(&ops.node));
        let [dx, dw, _] = backward(&ops.state, &dy, false);
        for (node, grad) in ops.parents.into_iter().zip([dx, dw]) {
            if let Some(node) = node {
                grads.register::<Flex>(node.id, grad);
            }
        }
    }
}
