use super::math::{exp, max, sum};
use super::{contiguous, float, from_vec, is_f32, kind, run, slice, tensor};
use crate::counter;
use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor};
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops},
};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;

/// See [`crate::cross_entropy`]; None if a target is no class, too.
pub(crate) fn cross_entropy<B: Backend>(
    logits: &Tensor<B, 2>,
    targets: &Tensor<B, 1, Int>,
    label_smoothing: f64,
) -> Option<Tensor<B, 1>> {
    let [batch, classes] = logits.dims();
    let fits = batch * classes > 0 && targets.dims() == [batch];
    if kind::<B>().is_none() || !is_f32(logits) || !fits {
        return None;
    }
    let targets: Vec<i64> = targets.to_data().iter::<i64>().collect();
    let class = |target: i64| usize::try_from(target).ok().filter(|t| *t < classes);
    let targets: Vec<usize> = targets.into_iter().map(class).collect::<Option<_>>()?;
    counter::took_fast_path();
    let loss = run::<B, _, 1>(CrossEntropy, [float(logits.clone())], |[logits]| {
        forward(logits, targets, classes, label_smoothing)
    });
    Some(tensor(loss))
}

/// What the backward pass needs.
#[derive(Clone, Debug)]
struct Saved {
    logits: FlexTensor,
    targets: Vec<usize>,
    classes: usize,
    label_smoothing: f64,
    /// Of each row the largest logit and `1 / Σ e^(logit - largest)`.
    rows: Vec<[f32; 2]>,
}

/// `mean_n [lse_n - (1 - ε) logit(n, target_n) - ε mean_c logit(n, c)]`.
fn forward(
    logits: FlexTensor,
    targets: Vec<usize>,
    classes: usize,
    label_smoothing: f64,
) -> (FlexTensor, Saved) {
    let logits = contiguous(logits);
    let (rows, losses): (Vec<[f32; 2]>, Vec<f64>) = slice(&logits)
        .par_chunks_exact(classes)
        .zip(&targets)
        .map(|(row, target)| {
            let (largest, total, mean) = sums(row);
            let mut wanted = f64::from(row[*target]);
            if label_smoothing > 0.0 {
                wanted += label_smoothing * (mean - wanted);
            }
            let loss = f64::from(largest) + total.ln() - wanted;
            ([largest, (1.0 / total) as f32], loss)
        })
        .unzip();
    let loss = losses.iter().sum::<f64>() / targets.len() as f64;
    let saved = Saved {
        logits,
        targets,
        classes,
        label_smoothing,
        rows,
    };
    (from_vec(vec![loss as f32], &[1]), saved)
}

vectorized! {
    /// The largest number, the sum of `e^(number - largest)`, and the mean.
    fn sums<'a>(row: &'a [f32]) -> (f32, f64, f64) {
        let largest = max(row);
        let total = sum(row, |v| exp(v - largest));
        (largest, total, sum(row, |v| v) / row.len() as f64)
    }
}

vectorized! {
    /// `dx = factor · (e^(number - largest) · share - spread)`.
    fn differentiate<'a>(
        dx: &'a mut [f32],
        row: &'a [f32],
        largest: f32,
        share: f32,
        factor: f32,
        spread: f32,
    ) -> () {
        for (dx, v) in dx.iter_mut().zip(row) {
            *dx = factor * (exp(v - largest) * share - spread);
        }
    }
}

/// Backward of the mean cross-entropy: `dlogit = (p - (1 - ε) [c = target] - ε / C) / N`.
#[derive(Debug)]
struct CrossEntropy;

impl Backward<Flex, 1> for CrossEntropy {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = contiguous(grads.consume::<Flex>(&ops.node));
        let [Some(node)] = ops.parents else {
            return;
        };
        let Saved {
            logits,
            targets,
            classes,
            label_smoothing,
            rows,
        } = ops.state;
        let factor = (f64::from(slice(&dy)[0]) / targets.len() as f64) as f32;
        let values = slice(&logits);
        let spread = (label_smoothing / classes as f64) as f32;
        let mut dx = vec![0.0f32; values.len()];
        dx.par_chunks_exact_mut(classes)
            .zip(values.par_chunks_exact(classes))
            .zip(&rows)
            .zip(&targets)
            .for_each(|(((dx, row), [largest, share]), target)| {
                differentiate(dx, row, *largest, *share, factor, spread);
                dx[*target] -= factor * (1.0 - label_smoothing) as f32;
            });
        let shape = [targets.len(), classes];
        grads.register::<Flex>(node.id, from_vec(dx, &shape));
    }
}
