use super::{contiguous, float, from_vec, is_f32, kind, run, slice, tensor};
use crate::counter;
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops, unary},
};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;
use std::ops::Range;

/// See [`crate::max_pool2d`].
pub(crate) fn max_pool2d<B: Backend>(
    x: &Tensor<B, 4>,
    kernel_size: usize,
    stride: usize,
    padding: usize,
) -> Option<Tensor<B, 4>> {
    let [batch, channels, height, width] = x.dims();
    let windows = Windows {
        kernel_size,
        stride,
        padding,
        input: [height, width],
    };
    let whole = batch * channels * height * width > 0;
    // Every window has a pixel.
    let fits = kernel_size > 0
        && stride > 0
        && 2 * padding <= kernel_size
        && kernel_size <= 2 * padding + height.min(width);
    if kind::<B>().is_none() || !is_f32(x) || !whole || !fits {
        return None;
    }
    counter::took_fast_path();
    let y = run::<B, _, 1>(MaxPool, [float(x.clone())], |[x]| {
        let x = contiguous(x);
        let [rows, columns] = windows.output();
        let mut y = vec![0.0f32; batch * channels * rows * columns];
        y.par_chunks_exact_mut(rows * columns)
            .zip(slice(&x).par_chunks_exact(height * width))
            .for_each(|(y, x)| windows.forward(x, y));
        (from_vec(y, &[batch, channels, rows, columns]), (windows, x))
    });
    Some(tensor(y))
}

#[derive(Clone, Copy, Debug)]
struct Windows {
    kernel_size: usize,
    stride: usize,
    padding: usize,
    /// Height and width.
    input: [usize; 2],
}

impl Windows {
    fn output(self) -> [usize; 2] {
        self.input
            .map(|size| (size + 2 * self.padding - self.kernel_size) / self.stride + 1)
    }

    /// The pixels that window `i` sees along a side.
    fn seen(self, i: usize, side: usize) -> Range<usize> {
        let start = i * self.stride;
        let end = (start + self.kernel_size).saturating_sub(self.padding);
        start.saturating_sub(self.padding)..end.min(self.input[side])
    }

    /// The largest of every window of a plane: first down the columns, then along the rows.
    fn forward(self, x: &[f32], y: &mut [f32]) {
        let ([_, width], [_, columns]) = (self.input, self.output());
        let mut row = vec![0.0f32; width];
        for (i, y) in y.chunks_exact_mut(columns).enumerate() {
            let seen = self.seen(i, 0);
            row.copy_from_slice(&x[seen.start * width..][..width]);
            for x in x.chunks_exact(width).take(seen.end).skip(seen.start + 1) {
                larger_of_rows(&mut row, x);
            }
            for (j, y) in y.iter_mut().enumerate() {
                let seen = &row[self.seen(j, 1)];
                *y = seen[1..].iter().fold(seen[0], |most, v| larger(most, *v));
            }
        }
    }

    /// Adds the gradient of every window to the first of its largest pixels.
    fn backward(self, x: &[f32], dy: &[f32], dx: &mut [f32]) {
        let ([_, width], [_, columns]) = (self.input, self.output());
        for (window, dy) in dy.iter().enumerate() {
            let (rows, columns) = (
                self.seen(window / columns, 0),
                self.seen(window % columns, 1),
            );
            let mut place = rows.start * width + columns.start;
            for row in rows {
                for at in row * width + columns.start..row * width + columns.end {
                    if x[at] > x[place] || (x[at].is_nan() && !x[place].is_nan()) {
                        place = at;
                    }
                }
            }
            dx[place] += dy;
        }
    }
}

/// The larger, or what is no number, as in PyTorch.
#[inline(always)]
fn larger(most: f32, v: f32) -> f32 {
    if v > most || v.is_nan() { v } else { most }
}

vectorized! {
    fn larger_of_rows<'a>(most: &'a mut [f32], row: &'a [f32]) -> () {
        for (most, v) in most.iter_mut().zip(row) {
            *most = larger(*most, *v);
        }
    }
}

#[derive(Debug)]
struct MaxPool;

impl Backward<Flex, 1> for MaxPool {
    type State = (Windows, FlexTensor);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (windows, x) = ops.state;
        unary::<Flex, _>(ops.parents, ops.node, grads, |dy| {
            let dy = contiguous(dy);
            let [height, width] = windows.input;
            let [rows, columns] = windows.output();
            let mut dx = vec![0.0f32; slice(&x).len()];
            dx.par_chunks_exact_mut(height * width)
                .zip(slice(&x).par_chunks_exact(height * width))
                .zip(slice(&dy).par_chunks_exact(rows * columns))
                .for_each(|((dx, x), dy)| windows.backward(x, dy, dx));
            from_vec(dx, &burn::tensor::TensorMetadata::shape(&x).to_vec())
        });
    }
}
