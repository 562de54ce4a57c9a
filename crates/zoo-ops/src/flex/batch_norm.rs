use super::math::sum2;
use super::{
    Kind, constant, contiguous, float, from_vec, is_f32, kind, own, run, same, slice, tensor,
};
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

/// What the backward pass needs.
#[derive(Clone, Debug)]
struct Saved {
    x: FlexTensor,
    weight: FlexTensor,
    /// Per channel: mean, biased variance, 1 / sqrt(variance + eps).
    stats: Vec<[f32; 3]>,
}

impl Saved {
    fn column(&self, i: usize) -> FlexTensor {
        from_vec(
            self.stats.iter().map(|s| s[i]).collect(),
            &[self.stats.len()],
        )
    }
}

/// `[batch, channels, plane]` of a `[batch, channels, height, width]` tensor.
fn dims(x: &FlexTensor) -> [usize; 3] {
    let shape = x.shape();
    [shape[0], shape[1], shape[2] * shape[3]]
}

/// Whether `x` has elements and each vector has one value a channel.
fn fits<B: Backend>(x: &Tensor<B, 4>, vectors: [&Tensor<B, 1>; 2]) -> bool {
    let dims = x.dims();
    let vector = |v: &Tensor<B, 1>| is_f32(v) && v.dims() == [dims[1]];
    kind::<B>().is_some() && is_f32(x) && !dims.contains(&0) && vectors.into_iter().all(vector)
}

/// See [`crate::batch_norm_train`].
#[allow(clippy::type_complexity)]
pub(crate) fn batch_norm_train<B: Backend>(
    x: &Tensor<B, 4>,
    weight: &Tensor<B, 1>,
    bias: &Tensor<B, 1>,
    eps: f64,
) -> Option<(Tensor<B, 4>, Tensor<B, 1>, Tensor<B, 1>)> {
    if !fits(x, [weight, bias]) {
        return None;
    }
    counter::took_fast_path();
    let mut statistics = None;
    let inputs = [float(x.clone()), float(weight.clone()), float(bias.clone())];
    let y = run::<B, _, 3>(BatchNorm, inputs, |[x, weight, bias]| {
        let (y, saved) = forward(x, weight, bias, eps as f32);
        statistics = Some([saved.column(0), saved.column(1)]);
        (y, saved)
    });
    let [mean, var] = statistics?.map(|column| tensor(constant::<B>(column)));
    Some((tensor(y), mean, var))
}

/// `x · scale[c] + shift[c]`.
pub(crate) fn scale_shift<B: Backend>(
    x: Tensor<B, 4>,
    scale: &Tensor<B, 1>,
    shift: &Tensor<B, 1>,
) -> Result<Tensor<B, 4>, Tensor<B, 4>> {
    if !fits(&x, [scale, shift]) {
        return Err(x);
    }
    counter::took_fast_path();
    let [scale, shift] = [scale, shift].map(|v| float(v.clone()));
    if let Some(Kind::Plain) = kind::<B>() {
        let mut x = contiguous(same(float(x)));
        let [scale, shift] = [scale, shift].map(|v| contiguous(same(v)));
        let [_, channels, plane] = dims(&x);
        let Some(own) = own(&mut x) else {
            return Ok(tensor(same(apply(&x, slice(&scale), slice(&shift)))));
        };
        let (scale, shift) = (slice(&scale), slice(&shift));
        own.par_chunks_exact_mut(plane)
            .enumerate()
            .for_each(|(i, x)| {
                scale_plane(x, scale[i % channels], shift[i % channels]);
            });
        return Ok(tensor(same(x)));
    }
    let y = run::<B, _, 3>(ScaleShift, [float(x), scale, shift], |[x, scale, shift]| {
        let (x, scale, shift) = (contiguous(x), contiguous(scale), contiguous(shift));
        (apply(&x, slice(&scale), slice(&shift)), (x, scale))
    });
    Ok(tensor(y))
}

vectorized! {
    fn scale_plane<'a>(x: &'a mut [f32], scale: f32, shift: f32) -> () {
        for x in x {
            *x = *x * scale + shift;
        }
    }
}

/// Normalises with the batch's statistics.
fn forward(x: FlexTensor, weight: FlexTensor, bias: FlexTensor, eps: f32) -> (FlexTensor, Saved) {
    let (x, weight, bias) = (contiguous(x), contiguous(weight), contiguous(bias));
    let [batch, channels, plane] = dims(&x);
    let count = (batch * plane) as f64;
    let arch = pulp::Arch::new();
    let stats: Vec<[f32; 3]> = {
        let x = slice(&x);
        (0..channels)
            .into_par_iter()
            .map(|c| {
                arch.dispatch(|| {
                    let planes = || (0..batch).map(|n| &x[(n * channels + c) * plane..][..plane]);
                    let mean = planes().map(|p| sum2(p, p, |v, _| v)).sum::<f64>() / count;
                    let shift = mean as f32;
                    let square = |v: f32, _| (v - shift) * (v - shift);
                    let var = planes().map(|p| sum2(p, p, square)).sum::<f64>() / count;
                    // The mean was rounded to f32 before it was subtracted: correct for that.
                    let var = (var - (mean - f64::from(shift)).powi(2)).max(0.0);
                    [
                        shift,
                        var as f32,
                        (1.0 / (var + f64::from(eps)).sqrt()) as f32,
                    ]
                })
            })
            .collect()
    };
    let scale: Vec<f32> = slice(&weight)
        .iter()
        .zip(&stats)
        .map(|(w, s)| w * s[2])
        .collect();
    let shift: Vec<f32> = slice(&bias)
        .iter()
        .zip(&stats)
        .zip(&scale)
        .map(|((b, s), scale)| b - s[0] * scale)
        .collect();
    let y = apply(&x, &scale, &shift);
    (y, Saved { x, weight, stats })
}

fn apply(x: &FlexTensor, scale: &[f32], shift: &[f32]) -> FlexTensor {
    let [_, channels, plane] = dims(x);
    let arch = pulp::Arch::new();
    let mut y = vec![0.0f32; x.shape().num_elements()];
    y.par_chunks_mut(plane)
        .zip(slice(x).par_chunks(plane))
        .enumerate()
        .for_each(|(i, (y, x))| {
            let (scale, shift) = (scale[i % channels], shift[i % channels]);
            arch.dispatch(|| {
                for (y, x) in y.iter_mut().zip(x) {
                    *y = x * scale + shift;
                }
            });
        });
    from_vec(y, &x.shape().to_vec())
}

/// Backward of batch normalisation in training mode.
///
/// With `x̂ = (x - mean) · invstd` and `N` values a channel:
/// `db = Σ dy`, `dw = Σ dy x̂`, `dx = w · invstd · (dy - db / N - x̂ dw / N)`.
#[derive(Debug)]
struct BatchNorm;

impl Backward<Flex, 3> for BatchNorm {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = contiguous(grads.consume::<Flex>(&ops.node));
        let Saved { x, weight, stats } = ops.state;
        let [batch, channels, plane] = dims(&x);
        let count = (batch * plane) as f64;
        let arch = pulp::Arch::new();
        let (dy, xs, ws) = (slice(&dy), slice(&x), slice(&weight));
        let at = |n: usize, c: usize| (n * channels + c) * plane;
        let sums: Vec<[f64; 2]> = (0..channels)
            .into_par_iter()
            .map(|c| {
                let [mean, _, invstd] = stats[c];
                arch.dispatch(|| {
                    let mut sums = [0.0f64; 2];
                    for n in 0..batch {
                        let (dy, x) = (&dy[at(n, c)..][..plane], &xs[at(n, c)..][..plane]);
                        sums[0] += sum2(dy, x, |dy, _| dy);
                        sums[1] += sum2(dy, x, |dy, x| dy * ((x - mean) * invstd));
                    }
                    sums
                })
            })
            .collect();
        let [node_x, node_weight, node_bias] = ops.parents;
        if let Some(node) = node_x {
            let mut dx = vec![0.0f32; xs.len()];
            dx.par_chunks_mut(plane).enumerate().for_each(|(i, dx)| {
                let c = i % channels;
                let [mean, _, invstd] = stats[c];
                let scale = ws[c] * invstd;
                let along_bias = (sums[c][0] / count) as f32;
                let along_x = (sums[c][1] / count) as f32 * invstd;
                let (dy, x) = (&dy[i * plane..][..plane], &xs[i * plane..][..plane]);
                arch.dispatch(|| {
                    for ((dx, dy), x) in dx.iter_mut().zip(dy).zip(x) {
                        *dx = scale * (dy - along_bias - (x - mean) * along_x);
                    }
                });
            });
            grads.register::<Flex>(node.id, from_vec(dx, &x.shape().to_vec()));
        }
        let column = |i: usize| from_vec(sums.iter().map(|s| s[i] as f32).collect(), &[channels]);
        if let Some(node) = node_weight {
            grads.register::<Flex>(node.id, column(1));
        }
        if let Some(node) = node_bias {
            grads.register::<Flex>(node.id, column(0));
        }
    }
}

/// Backward of [`scale_shift`]: `dx = dy · scale[c]`, `dscale = Σ dy x`, `dshift = Σ dy`.
#[derive(Debug)]
struct ScaleShift;

impl Backward<Flex, 3> for ScaleShift {
    type State = (FlexTensor, FlexTensor);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = contiguous(grads.consume::<Flex>(&ops.node));
        let (x, scale) = ops.state;
        let [batch, channels, plane] = dims(&x);
        let [node_x, node_scale, node_shift] = ops.parents;
        if let Some(node) = node_x {
            let dx = apply(&dy, slice(&scale), &vec![0.0; channels]);
            grads.register::<Flex>(node.id, dx);
        }
        let arch = pulp::Arch::new();
        let (dy, xs) = (slice(&dy), slice(&x));
        let sums = |f: fn(f32, f32) -> f32| -> FlexTensor {
            let sum = |c: usize| -> f32 {
                let planes = (0..batch).map(|n| (n * channels + c) * plane);
                let part =
                    |at: usize| arch.dispatch(|| sum2(&dy[at..][..plane], &xs[at..][..plane], f));
                planes.map(part).sum::<f64>() as f32
            };
            from_vec(
                (0..channels).into_par_iter().map(sum).collect(),
                &[channels],
            )
        };
        if let Some(node) = node_scale {
            grads.register::<Flex>(node.id, sums(|dy, x| dy * x));
        }
        if let Some(node) = node_shift {
            grads.register::<Flex>(node.id, sums(|dy, _| dy));
        }
    }
}
