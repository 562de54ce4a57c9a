use super::{contiguous, from_vec, slice};
use crate::Activation;
use burn::tensor::TensorMetadata;
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops, unary},
};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;

/// Elements a thread works on at a time.
const CHUNK: usize = 1 << 14;

/// The function of each element, where NaN stays NaN as in PyTorch, and what the backward pass
/// looks at: the input, or for ReLU the result, which the next layer keeps anyway.
pub(super) fn forward(activation: Activation, x: FlexTensor) -> (FlexTensor, FlexTensor) {
    let x = contiguous(x);
    let y = match activation {
        Activation::Relu => map(&x, &x, |x, _| if x < 0.0 { 0.0 } else { x }),
        Activation::Relu6 => map(&x, &x, |x, _| relu6(x)),
        Activation::Silu => map(&x, &x, |x, _| x * sigmoid(x)),
        Activation::HardSwish => map(&x, &x, |x, _| x * (relu6(x + 3.0) / 6.0)),
        Activation::HardSigmoid => map(&x, &x, |x, _| relu6(x + 3.0) / 6.0),
        Activation::Sigmoid => map(&x, &x, |x, _| sigmoid(x)),
        Activation::Tanh => map(&x, &x, |x, _| x.tanh()),
        Activation::Gelu => map(&x, &x, |x, _| x * normal(x)),
        // (1 + tanh z) / 2 = σ(2 z)
        Activation::GeluTanh => map(&x, &x, |x, _| x * sigmoid(gelu_argument(x))),
        Activation::QuickGelu => map(&x, &x, |x, _| x * sigmoid(1.702 * x)),
    };
    match activation {
        Activation::Relu => (y.clone(), y),
        _ => (y, x),
    }
}

/// `f` of each pair of elements.
fn map(a: &FlexTensor, b: &FlexTensor, f: impl Fn(f32, f32) -> f32 + Sync) -> FlexTensor {
    let arch = pulp::Arch::new();
    let (values_a, values_b) = (slice(a), slice(b));
    let mut out = vec![0.0f32; values_a.len()];
    out.par_chunks_mut(CHUNK)
        .zip(values_a.par_chunks(CHUNK))
        .zip(values_b.par_chunks(CHUNK))
        .for_each(|((out, a), b)| {
            arch.dispatch(|| {
                for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                    *out = f(*a, *b);
                }
            });
        });
    from_vec(out, &a.shape().to_vec())
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The normal distribution's Φ.
fn normal(x: f32) -> f32 {
    0.5 * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// Twice the square root of 2 / π.
const SLOPE: f32 = 1.595_769;

/// Twice what GELU by a tangent takes the tangent of.
fn gelu_argument(x: f32) -> f32 {
    SLOPE * (x + 0.044715 * x * x * x)
}

fn relu6(x: f32) -> f32 {
    x.clamp(0.0, 6.0)
}

/// Backward of [`forward`] from what it kept: the gradient times the derivative there.
#[derive(Debug)]
pub(super) struct Elementwise;

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
            let dy = contiguous(dy);
            let inside = |x: f32| x > -3.0 && x < 3.0;
            match activation {
                Activation::Relu => map(&dy, &x, |dy, x| if x > 0.0 { dy } else { 0.0 }),
                Activation::Relu6 => {
                    map(&dy, &x, |dy, x| if x > 0.0 && x < 6.0 { dy } else { 0.0 })
                }
                Activation::Silu => map(&dy, &x, |dy, x| {
                    let s = sigmoid(x);
                    dy * (s * (1.0 + x * (1.0 - s)))
                }),
                Activation::HardSwish => map(&dy, &x, |dy, x| {
                    if inside(x) {
                        dy * (x / 3.0 + 0.5)
                    } else if x > 0.0 {
                        dy
                    } else {
                        0.0
                    }
                }),
                Activation::HardSigmoid => {
                    map(&dy, &x, |dy, x| if inside(x) { dy / 6.0 } else { 0.0 })
                }
                Activation::Sigmoid => map(&dy, &x, |dy, x| {
                    let s = sigmoid(x);
                    dy * (s * (1.0 - s))
                }),
                Activation::Tanh => map(&dy, &x, |dy, x| {
                    let t = x.tanh();
                    dy * (1.0 - t * t)
                }),
                Activation::Gelu => map(&dy, &x, |dy, x| {
                    let density = (-0.5 * x * x).exp()
                        * (0.5 * std::f32::consts::FRAC_2_SQRT_PI)
                        * std::f32::consts::FRAC_1_SQRT_2;
                    dy * (normal(x) + x * density)
                }),
                Activation::GeluTanh => map(&dy, &x, |dy, x| {
                    // Farther out it is 0 or 1, and its parts are no numbers.
                    let x = x.clamp(-15.0, 15.0);
                    let s = sigmoid(gelu_argument(x));
                    let slope = SLOPE * (1.0 + 3.0 * 0.044715 * x * x);
                    dy * (s + x * s * (1.0 - s) * slope)
                }),
                Activation::QuickGelu => map(&dy, &x, |dy, x| {
                    let s = sigmoid(1.702 * x);
                    dy * (s + x * s * (1.0 - s) * 1.702)
                }),
            }
        });
    }
}
