use super::math::{normal, sigmoid};
use super::{contiguous, float, from_vec, is_f32, kind, run, slice, tensor};
use crate::{Activation, counter};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorMetadata};
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops, unary},
};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;

/// Elements a thread works on at a time.
const CHUNK: usize = 1 << 14;

/// See [`Activation::forward`].
pub(crate) fn activation<B: Backend, const D: usize>(
    activation: Activation,
    x: &Tensor<B, D>,
) -> Option<Tensor<B, D>> {
    if kind::<B>().is_none() || !is_f32(x) || x.dims().contains(&0) {
        return None;
    }
    counter::took_fast_path();
    let y = run::<B, _, 1>(Elementwise, [float(x.clone())], |[x]| {
        let (y, kept) = forward(activation, x);
        (y, (activation, kept))
    });
    Some(tensor(y))
}

/// The function of each element, where NaN stays NaN as in PyTorch, and what the backward pass
/// looks at: the input, or for ReLU the result, which the next layer keeps anyway.
fn forward(activation: Activation, x: FlexTensor) -> (FlexTensor, FlexTensor) {
    let x = contiguous(x);
    let y = by_chunks(&x, &x, |out, x, _| values(activation, out, x));
    match activation {
        Activation::Relu => (y.clone(), y),
        _ => (y, x),
    }
}

/// A tensor like `a` that `f` fills from chunks of both.
fn by_chunks(
    a: &FlexTensor,
    b: &FlexTensor,
    f: impl Fn(&mut [f32], &[f32], &[f32]) + Sync,
) -> FlexTensor {
    let (values_a, values_b) = (slice(a), slice(b));
    let mut out = vec![0.0f32; values_a.len()];
    out.par_chunks_mut(CHUNK)
        .zip(values_a.par_chunks(CHUNK))
        .zip(values_b.par_chunks(CHUNK))
        .for_each(|((out, a), b)| f(out, a, b));
    from_vec(out, &a.shape().to_vec())
}

/// `out = f(a, b)` for every element.
#[inline(always)]
fn each(out: &mut [f32], a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = f(*a, *b);
    }
}

vectorized! {
    fn values<'a>(activation: Activation, out: &'a mut [f32], x: &'a [f32]) -> () {
        match activation {
            Activation::Relu => each(out, x, x, |x, _| if x < 0.0 { 0.0 } else { x }),
            Activation::Relu6 => each(out, x, x, |x, _| relu6(x)),
            Activation::Silu => each(out, x, x, |x, _| x * sigmoid(x)),
            Activation::HardSwish => each(out, x, x, |x, _| x * (relu6(x + 3.0) / 6.0)),
            Activation::HardSigmoid => each(out, x, x, |x, _| relu6(x + 3.0) / 6.0),
            Activation::Sigmoid => each(out, x, x, |x, _| sigmoid(x)),
            Activation::Tanh => each(out, x, x, |x, _| x.tanh()),
            Activation::Gelu => each(out, x, x, |x, _| x * normal(x)[0]),
            // (1 + tanh z) / 2 = σ(2 z)
            Activation::GeluTanh => each(out, x, x, |x, _| x * sigmoid(gelu_argument(x))),
            Activation::QuickGelu => each(out, x, x, |x, _| x * sigmoid(1.702 * x)),
        }
    }
}

vectorized! {
    /// The gradient `dy` times the derivative at what [`forward`] kept.
    fn derivatives<'a>(
        activation: Activation,
        out: &'a mut [f32],
        dy: &'a [f32],
        x: &'a [f32],
    ) -> () {
        let inside = |x: f32| x > -3.0 && x < 3.0;
        match activation {
            Activation::Relu => each(out, dy, x, |dy, x| if x > 0.0 { dy } else { 0.0 }),
            Activation::Relu6 => each(out, dy, x, |dy, x| {
                if x > 0.0 && x < 6.0 { dy } else { 0.0 }
            }),
            Activation::Silu => each(out, dy, x, |dy, x| {
                let s = sigmoid(x);
                dy * (s * (1.0 + x * (1.0 - s)))
            }),
            Activation::HardSwish => each(out, dy, x, |dy, x| {
                let slope = if x > 0.0 { 1.0 } else { 0.0 };
                dy * if inside(x) { x / 3.0 + 0.5 } else { slope }
            }),
            Activation::HardSigmoid => each(out, dy, x, |dy, x| {
                if inside(x) { dy / 6.0 } else { 0.0 }
            }),
            Activation::Sigmoid => each(out, dy, x, |dy, x| {
                let s = sigmoid(x);
                dy * (s * (1.0 - s))
            }),
            Activation::Tanh => each(out, dy, x, |dy, x| {
                let t = x.tanh();
                dy * (1.0 - t * t)
            }),
            Activation::Gelu => each(out, dy, x, |dy, x| {
                let [below, density] = normal(x);
                dy * (below + x * density)
            }),
            Activation::GeluTanh => each(out, dy, x, |dy, x| {
                // Farther out it is 0 or 1, and its parts are no numbers.
                let x = x.clamp(-15.0, 15.0);
                let s = sigmoid(gelu_argument(x));
                let slope = SLOPE * (1.0 + 3.0 * 0.044715 * x * x);
                dy * (s + x * s * (1.0 - s) * slope)
            }),
            Activation::QuickGelu => each(out, dy, x, |dy, x| {
                let s = sigmoid(1.702 * x);
                dy * (s + x * s * (1.0 - s) * 1.702)
            }),
        }
    }
}

/// Twice the square root of 2 / π.
const SLOPE: f32 = 1.595_769;

/// Twice what GELU by a tangent takes the tangent of.
#[inline(always)]
fn gelu_argument(x: f32) -> f32 {
    SLOPE * (x + 0.044715 * x * x * x)
}

#[inline(always)]
fn relu6(x: f32) -> f32 {
    x.clamp(0.0, 6.0)
}

/// Backward of [`forward`] from what it kept.
#[derive(Debug)]
struct Elementwise;

impl Backward<Flex, 1> for Elementwise {
    type State = (Activation, FlexTensor);

    fn backward(
        self,
        ops: Ops<(Activation, FlexTensor), 1>,
        grads: &mut Gradients,
        _: &mut Checkpointer,
    ) {
        let (activation, x) = ops.state;
        unary::<Flex, _>(ops.parents, ops.node, grads, |dy| {
            by_chunks(&contiguous(dy), &x, |out, dy, x| {
                derivatives(activation, out, dy, x);
            })
        });
    }
}
