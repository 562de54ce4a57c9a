//! Fast paths on burn-flex.
//!
//! A function generic over `B: Backend` finds out at run time whether `B` is `Flex` or
//! `Autodiff<Flex>` and takes the tensor's primitive out through `Any`; no trait bound on models
//! is needed. Every function gives None where the fast path does not apply.

/// A function that is compiled once for each kind of vector registers, and runs in the best form for the
/// processor. What it calls must be `#[inline(always)]`, or small.
macro_rules! vectorized {
    ($(#[$about:meta])* fn $name:ident<'a>($($arg:ident: $type:ty),* $(,)?) -> $result:ty $body:block) => {
        $(#[$about])*
        fn $name<'a>($($arg: $type),*) -> $result {
            struct Call<'a> {
                $($arg: $type,)*
                lifetime: std::marker::PhantomData<&'a ()>,
            }
            impl pulp::NullaryFnOnce for Call<'_> {
                type Output = $result;

                #[inline(always)]
                fn call(self) -> $result {
                    let Self { $($arg,)* .. } = self;
                    $body
                }
            }
            let lifetime = std::marker::PhantomData;
            pulp::Arch::new().dispatch(Call { $($arg,)* lifetime })
        }
    };
}

mod activation;
mod attention;
mod batch_norm;
mod conv;
mod gemm;
mod layer_norm;
mod linear;
mod loss;
mod math;
mod max_pool;
mod optim;

pub(crate) use activation::activation;
pub(crate) use attention::attention;
pub(crate) use batch_norm::{batch_norm_train, scale_shift};
pub(crate) use conv::conv2d;
pub(crate) use layer_norm::{layer_norm, rms_norm};
pub(crate) use linear::linear;
pub(crate) use loss::cross_entropy;
pub(crate) use max_pool::max_pool2d;
pub(crate) use optim::{adamw_step, sgd_step};

use burn::tensor::backend::{Backend, BackendTypes};
use burn::tensor::{DType, Tensor, TensorData, TensorPrimitive};
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::{
    BalancedCheckpointing, CheckpointStrategy, NoCheckpointing,
};
use burn_autodiff::ops::{Backward, OpsKind};
use burn_flex::{Flex, FlexTensor};
use std::any::{Any, TypeId};

type Float<B> = <B as BackendTypes>::FloatTensorPrimitive;
type Tracked<C> = Float<Autodiff<Flex, C>>;

/// Which concrete backend a type parameter stands for.
enum Kind {
    Plain,
    Tracked,
    TrackedBalanced,
}

fn kind<B: Backend>() -> Option<Kind> {
    let id = TypeId::of::<B>();
    if id == TypeId::of::<Flex>() {
        Some(Kind::Plain)
    } else if id == TypeId::of::<Autodiff<Flex, NoCheckpointing>>() {
        Some(Kind::Tracked)
    } else if id == TypeId::of::<Autodiff<Flex, BalancedCheckpointing>>() {
        Some(Kind::TrackedBalanced)
    } else {
        None
    }
}

/// `value` as a `U`, which the caller knows it to be.
fn same<T: 'static, U: 'static>(value: T) -> U {
    let mut value = Some(value);
    (&mut value as &mut dyn Any)
        .downcast_mut::<Option<U>>()
        .and_then(Option::take)
        .expect("the backend was recognised by its type")
}

fn float<B: Backend, const D: usize>(x: Tensor<B, D>) -> Float<B> {
    x.into_primitive().tensor()
}

fn tensor<B: Backend, const D: usize>(x: Float<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(x))
}

fn is_f32<B: Backend, const D: usize>(x: &Tensor<B, D>) -> bool {
    x.dtype() == DType::F32
}

/// What `forward` gives for primitives of flex, and with it under autodiff the backward pass `op`.
fn run<B: Backend, O: Backward<Flex, N>, const N: usize>(
    op: O,
    inputs: [Float<B>; N],
    forward: impl FnOnce([FlexTensor; N]) -> (FlexTensor, O::State),
) -> Float<B> {
    match kind::<B>().expect("the caller asked before") {
        Kind::Plain => same(forward(inputs.map(same)).0),
        Kind::Tracked => tracked::<B, NoCheckpointing, O, N>(op, inputs, forward),
        Kind::TrackedBalanced => tracked::<B, BalancedCheckpointing, O, N>(op, inputs, forward),
    }
}

fn tracked<B: Backend, C: CheckpointStrategy, O: Backward<Flex, N>, const N: usize>(
    op: O,
    inputs: [Float<B>; N],
    forward: impl FnOnce([FlexTensor; N]) -> (FlexTensor, O::State),
) -> Float<B> {
    let inputs: [Tracked<C>; N] = inputs.map(same);
    let nodes = inputs.each_ref().map(|input| input.node.clone());
    // Until the new node is known: another thread's backward pass would take them for forgotten.
    let _held = inputs.each_ref().map(|input| input.rc.clone());
    let prep = op.prepare::<C>(nodes).compute_bound().stateful();
    let (y, state) = forward(inputs.map(|input| input.primitive));
    same(match prep {
        OpsKind::Tracked(prep) => prep.finish(state, y),
        OpsKind::UnTracked(prep) => prep.finish(y),
    })
}

/// A tensor of flex as one of `B` that nothing was computed from.
fn constant<B: Backend>(x: FlexTensor) -> Float<B> {
    match kind::<B>().expect("the caller asked before") {
        Kind::Plain => same(x),
        Kind::Tracked => same(Tracked::<NoCheckpointing>::new(x)),
        Kind::TrackedBalanced => same(Tracked::<BalancedCheckpointing>::new(x)),
    }
}

/// The elements in row-major order, copied only if they are not laid out so.
fn contiguous(x: FlexTensor) -> FlexTensor {
    if x.as_slice::<f32>().is_some() {
        x
    } else {
        x.to_contiguous()
    }
}

/// The elements, if no other tensor shares them and they are laid out in row-major order.
fn own(x: &mut FlexTensor) -> Option<&mut [f32]> {
    let whole = x.as_slice::<f32>()?.len() == x.storage::<f32>().len();
    if whole {
        x.try_storage_mut::<f32>()
    } else {
        None
    }
}

fn slice(x: &FlexTensor) -> &[f32] {
    x.as_slice::<f32>().expect("made contiguous f32 before")
}

fn from_vec(values: Vec<f32>, shape: &[usize]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.to_vec()))
}
