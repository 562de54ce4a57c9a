use super::{contiguous, from_vec, slice};
use burn::tensor::TensorMetadata;
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops},
};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;

/// What the backward pass needs.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    x: FlexTensor,
    weight: FlexTensor,
    /// Per channel: mean, biased variance, 1 / sqrt(variance + eps).
    stats: Vec<[f32; 3]>,
}

impl Saved {
    pub fn mean(&self) -> FlexTensor {
        self.column(0)
    }

    pub fn var(&self) -> FlexTensor {
        self.column(1)
    }

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

/// Sums `f(element of a, element of b)`: sixteen partial sums a compiler can keep in registers,
/// added up in f64 a plane at a time.
#[inline(always)]
fn sum2(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> f64 {
    const LANES: usize = 16;
    let mut lanes = [0.0f32; LANES];
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for i in 0..LANES {
            lanes[i] += f(a[i], b[i]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| f64::from(f(*a, *b)));
    lanes.iter().map(|v| f64::from(*v)).chain(rest).sum()
}

/// Normalises with the batch's statistics; see [`crate::batch_norm_train`].
pub(super) fn forward(
    x: FlexTensor,
    weight: FlexTensor,
    bias: FlexTensor,
    eps: f32,
) -> (FlexTensor, Saved) {
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

/// `x · scale[c] + shift[c]`, and the contiguous `x` and `scale` for the backward pass.
pub(super) fn scale_shift(
    x: FlexTensor,
    scale: FlexTensor,
    shift: FlexTensor,
) -> (FlexTensor, FlexTensor, FlexTensor) {
    let (x, scale, shift) = (contiguous(x), contiguous(scale), contiguous(shift));
    (apply(&x, slice(&scale), slice(&shift)), x, scale)
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
pub(super) struct BatchNorm;

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
pub(super) struct ScaleShift;

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
