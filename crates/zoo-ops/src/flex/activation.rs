use super::math::{normal, sigmoid};
use super::{Kind, contiguous, float, from_vec, is_f32, kind, own, run, same, slice, tensor};
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
    x: Tensor<B, D>,
) -> Result<Tensor<B, D>, Tensor<B, D>> {
    let Some(kind) = kind::<B>() else {
        return Err(x);
    };
    if !is_f32(&x) || x.dims().contains(&0) {
        return Err(x);
    }
    counter::took_fast_path();
    if let Kind::Plain = kind {
        return Ok(tensor(same(forward(activation, same(float(x))))));
    }
    let y = run::<B, _, 1>(Elementwise, [float(x)], |[x]| {
        let (y, kept) = match activation {
            Activation::Relu => {
                let y = forward(activation, x);
                (y.clone(), y)
            }
            _ => {
                let x = contiguous(x);
                (forward(activation, x.clone()), x)
            }
        };
        (y, (activation, kept))
    });
    Ok(tensor(y))
}

/// The function of each element, where NaN stays NaN as in PyTorch: in `x`'s own memory, where nothing else holds it.
fn forward(activation: Activation, x: FlexTensor) -> FlexTensor {
    let mut x = contiguous(x);
    if let Some(own) = own(&mut x) {
        own.par_chunks_mut(CHUNK)
            .for_each(|chunk| values(activation, chunk));
        return x;
    }
    let mut y = vec![0.0f32; slice(&x).len()];
    y.par_chunks_mut(CHUNK)
        .zip(slice(&x).par_chunks(CHUNK))
        .for_each(|(y, x)| {
            y.copy_from_slice(x);
            values(activation, y);
        });
    from_vec(y, &x.shape().to_vec())
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

/// `x = f(x)` for every element.
#[inline(always)]
fn every(x: &mut [f32], f: impl Fn(f32) -> f32) {
    for x in x {
        *x = f(*x);
    }
}

/// `out = f(a, b)` for every element.
#[inline(always)]
fn each(out: &mut [f32], a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = f(*a, *b);
    }
}

vectorized! {
    fn values<'a>(activation: Activation, x: &'a mut [f32]) -> () {
        match activation {
            Activation::Relu => every(x, |x| if x < 0.0 { 0.0 } else { x }),
            Activation::Relu6 => every(x, relu6),
            Activation::Silu => every(x, |x| x * sigmoid(x)),
            Activation::HardSwish => every(x, |x| x * (relu6(x + 3.0) / 6.0)),
            Activation::HardSigmoid => every(x, |x| relu6(x + 3.0) / 6.0),
            Activation::Sigmoid => every(x, sigmoid),
            Activation::Tanh => every(x, |x| x.tanh()),
            Activation::Gelu => every(x, |x| x * normal(x)[0]),
            // (1 + tanh z) / 2 = σ(2 z)
            Activation::GeluTanh => every(x, |x| x * sigmoid(gelu_argument(x))),
            Activation::QuickGelu => every(x, |x| x * sigmoid(1.702 * x)),
        }
    }
}

vectorized! {
    /// The gradient `dy` times the derivative at the input, or for ReLU where the result is.
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

/// Backward from the input, or for ReLU from the result, which the next layer keeps anyway.
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
