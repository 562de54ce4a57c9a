use super::gemm::{Strides, gemm};
use super::math::sum2;
use super::{contiguous, float, from_vec, is_f32, kind, run, slice, tensor};
use crate::counter;
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops},
};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;

/// See [`crate::linear`].
///
/// # Shapes
/// - x: `[rows, in_features]`
pub(crate) fn linear<B: Backend>(
    x: &Tensor<B, 2>,
    weight: &Tensor<B, 2>,
    bias: Option<&Tensor<B, 1>>,
) -> Option<Tensor<B, 2>> {
    let ([rows, inputs], [outputs, depth]) = (x.dims(), weight.dims());
    let fits = is_f32(x) && is_f32(weight) && inputs == depth && rows * inputs * outputs > 0;
    let fits = fits && bias.is_none_or(|bias| is_f32(bias) && bias.dims() == [outputs]);
    if kind::<B>().is_none() || !fits {
        return None;
    }
    counter::took_fast_path();
    let size = Size {
        rows,
        inputs,
        outputs,
    };
    let both = [float(x.clone()), float(weight.clone())];
    let y = match bias {
        None => run::<B, _, 2>(Linear, both, |[x, weight]| size.forward(x, weight, None)),
        Some(bias) => {
            let [x, weight] = both;
            let all = [x, weight, float(bias.clone())];
            run::<B, _, 3>(LinearWithBias, all, |[x, weight, bias]| {
                size.forward(x, weight, Some(bias))
            })
        }
    };
    Some(tensor(y))
}

/// Rows that are not worth a product of packed matrices.
const FEW: usize = 4;

/// `y [rows, outputs] = x [rows, inputs] · Wᵀ`.
#[derive(Clone, Copy, Debug)]
struct Size {
    rows: usize,
    inputs: usize,
    outputs: usize,
}

type State = (Size, FlexTensor, FlexTensor);

impl Size {
    fn forward(
        self,
        x: FlexTensor,
        weight: FlexTensor,
        bias: Option<FlexTensor>,
    ) -> (FlexTensor, State) {
        let (x, weight) = (contiguous(x), contiguous(weight));
        let Self {
            rows,
            inputs,
            outputs,
        } = self;
        if rows <= FEW {
            let y = self.few(slice(&x), slice(&weight), bias);
            return (from_vec(y, &[rows, outputs]), (self, x, weight));
        }
        let mut y = match &bias {
            None => vec![0.0f32; rows * outputs],
            Some(bias) => slice(&contiguous(bias.clone())).repeat(rows),
        };
        gemm(
            [rows, outputs, inputs],
            (&mut y, outputs),
            bias.is_some(),
            (slice(&x), Strides::rows(inputs)),
            (slice(&weight), Strides::transposed(inputs)),
            self.parallel(),
        );
        (from_vec(y, &[rows, outputs]), (self, x, weight))
    }

    /// Scalar products of each row with the weights as they lie in memory: to pack them would cost more than to
    /// read them once.
    fn few(self, x: &[f32], weight: &[f32], bias: Option<FlexTensor>) -> Vec<f32> {
        /// Outputs that a thread works on at a time.
        const OUTPUTS: usize = 16;
        let mut columns = vec![0.0f32; self.outputs * self.rows];
        let work = |(columns, weight): (&mut [f32], &[f32])| dots(columns, x, weight, self.inputs);
        let parts = (OUTPUTS * self.rows, OUTPUTS * self.inputs);
        match self.parallel() {
            true => (columns
                .par_chunks_mut(parts.0)
                .zip(weight.par_chunks(parts.1)))
            .for_each(work),
            false => (columns.chunks_mut(parts.0).zip(weight.chunks(parts.1))).for_each(work),
        }
        let bias = bias.map(contiguous);
        let bias = bias.as_ref().map(slice);
        let places = (0..self.rows).flat_map(|i| (0..self.outputs).map(move |j| (i, j)));
        let at = |(i, j): (usize, usize)| columns[j * self.rows + i] + bias.map_or(0.0, |b| b[j]);
        places.map(at).collect()
    }

    /// Whether there is more to do than threads cost.
    fn parallel(self) -> bool {
        self.rows * self.inputs * self.outputs > 1 << 16
    }

    /// `dx = dy · W` and `dW = dyᵀ · x`, each if wanted.
    fn backward(
        self,
        x: &FlexTensor,
        weight: &FlexTensor,
        dy: &FlexTensor,
        want: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let Self {
            rows,
            inputs,
            outputs,
        } = self;
        let product = |size: [usize; 3], lhs, rhs| {
            let mut out = vec![0.0f32; size[0] * size[1]];
            let dst = (&mut out[..], size[1]);
            gemm(size, dst, false, lhs, rhs, self.parallel());
            from_vec(out, &size[..2])
        };
        let dx = || {
            product(
                [rows, inputs, outputs],
                (slice(dy), Strides::rows(outputs)),
                (slice(weight), Strides::rows(inputs)),
            )
        };
        let dw = || {
            product(
                [outputs, inputs, rows],
                (slice(dy), Strides::transposed(outputs)),
                (slice(x), Strides::rows(inputs)),
            )
        };
        [want[0].then(dx), want[1].then(dw)]
    }

    /// `db = Σ dy` over the rows.
    fn bias(self, dy: &FlexTensor) -> FlexTensor {
        /// Rows whose sums are added in f32, so that the bits are those of any number of threads.
        const ROWS: usize = 64;
        let parts: Vec<Vec<f32>> = slice(dy)
            .par_chunks(ROWS * self.outputs)
            .map(|part| {
                let mut sums = vec![0.0f32; self.outputs];
                add_rows(&mut sums, part);
                sums
            })
            .collect();
        let mut total = vec![0.0f64; self.outputs];
        for part in &parts {
            for (total, part) in total.iter_mut().zip(part) {
                *total += f64::from(*part);
            }
        }
        let total = total.into_iter().map(|sum| sum as f32);
        from_vec(total.collect(), &[self.outputs])
    }
}

vectorized! {
    /// `out [outputs, rows] = W · xᵀ`.
    fn dots<'a>(out: &'a mut [f32], x: &'a [f32], weight: &'a [f32], inputs: usize) -> () {
        let rows = x.len() / inputs;
        for (out, weight) in out.chunks_exact_mut(rows).zip(weight.chunks_exact(inputs)) {
            for (out, x) in out.iter_mut().zip(x.chunks_exact(inputs)) {
                *out = sum2(x, weight, |x, w| x * w) as f32;
            }
        }
    }
}

vectorized! {
    /// Adds every row to `sums`.
    fn add_rows<'a>(sums: &'a mut [f32], rows: &'a [f32]) -> () {
        for row in rows.chunks_exact(sums.len()) {
            for (sum, v) in sums.iter_mut().zip(row) {
                *sum += v;
            }
        }
    }
}

/// Backward without a bias.
#[derive(Debug)]
struct Linear;

impl Backward<Flex, 2> for Linear {
    type State = State;

    fn backward(self, ops: Ops<State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = contiguous(grads.consume::<Flex>(&ops.node));
        let (size, x, weight) = ops.state;
        let want = ops.parents.each_ref().map(Option::is_some);
        let found = size.backward(&x, &weight, &dy, want);
        for (node, grad) in ops.parents.into_iter().zip(found) {
            if let (Some(node), Some(grad)) = (node, grad) {
                grads.register::<Flex>(node.id, grad);
            }
        }
    }
}

/// Backward with a bias.
#[derive(Debug)]
struct LinearWithBias;

impl Backward<Flex, 3> for LinearWithBias {
    type State = State;

    fn backward(self, ops: Ops<State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = contiguous(grads.consume::<Flex>(&ops.node));
        let (size, x, weight) = ops.state;
        let want = ops.parents.each_ref().map(Option::is_some);
        let [dx, dw] = size.backward(&x, &weight, &dy, [want[0], want[1]]);
        let db = want[2].then(|| size.bias(&dy));
        for (node, grad) in ops.parents.into_iter().zip([dx, dw, db]) {
            if let (Some(node), Some(grad)) = (node, grad) {
                grads.register::<Flex>(node.id, grad);
            }
        }
    }
}
