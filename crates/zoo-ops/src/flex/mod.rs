//! Fast paths on burn-flex.
//!
//! A function generic over `B: Backend` finds out at run time whether `B` is `Flex` or
//! `Autodiff<Flex>` and takes the tensor's primitive out through `Any`; no trait bound on models
//! is needed. Every function hands its inputs back when the fast path does not apply.

mod activation;
mod conv;
mod gemm;
mod norm;

use crate::{Activation, Conv2dOptions, counter};
use burn::tensor::backend::{Backend, BackendTypes};
use burn::tensor::{DType, Tensor, TensorData, TensorPrimitive};
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::{
    BalancedCheckpointing, CheckpointStrategy, NoCheckpointing,
};
use burn_autodiff::ops::{Backward, OpsKind};
use burn_flex::{Flex, FlexTensor};
use std::any::{Any, TypeId};

type Tracked<C> = <Autodiff<Flex, C> as BackendTypes>::FloatTensorPrimitive;

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

fn primitive<B: Backend, P: 'static, const D: usize>(x: Tensor<B, D>) -> P {
    same(x.into_primitive().tensor())
}

fn tensor<B: Backend, P: 'static, const D: usize>(x: P) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(same(x)))
}

fn is_f32<B: Backend, const D: usize>(x: &Tensor<B, D>) -> bool {
    x.dtype() == DType::F32
}

/// The elements in row-major order, copied only if they are not laid out so.
fn contiguous(x: FlexTensor) -> FlexTensor {
    if x.as_slice::<f32>().is_some() {
        x
    } else {
        x.to_contiguous()
    }
}

fn slice(x: &FlexTensor) -> &[f32] {
    x.as_slice::<f32>().expect("made contiguous f32 before")
}

fn from_vec(values: Vec<f32>, shape: &[usize]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.to_vec()))
}

/// `conv2d` without bias; the inputs come back when there is no fast path for them.
#[allow(clippy::type_complexity)]
pub(crate) fn conv2d<B: Backend>(
    x: Tensor<B, 4>,
    weight: Tensor<B, 4>,
    options: Conv2dOptions,
) -> Result<Tensor<B, 4>, (Tensor<B, 4>, Tensor<B, 4>)> {
    let Some(kind) = kind::<B>() else {
        return Err((x, weight));
    };
    let geometry = conv::Geometry::new(x.dims(), weight.dims(), options);
    if !is_f32(&x) || !is_f32(&weight) || !geometry.fits(weight.dims()[1]) {
        return Err((x, weight));
    }
    counter::took_fast_path();
    Ok(match kind {
        Kind::Plain => tensor(geometry.forward_tensor(primitive(x), primitive(weight)).0),
        Kind::Tracked => conv2d_tracked::<B, NoCheckpointing>(x, weight, geometry),
        Kind::TrackedBalanced => conv2d_tracked::<B, BalancedCheckpointing>(x, weight, geometry),
    })
}

fn conv2d_tracked<B: Backend, C: CheckpointStrategy>(
    x: Tensor<B, 4>,
    weight: Tensor<B, 4>,
    geometry: conv::Geometry,
) -> Tensor<B, 4> {
    let x: Tracked<C> = primitive(x);
    let weight: Tracked<C> = primitive(weight);
    let prep = conv::Conv2d
        .prepare::<C>([x.node, weight.node])
        .compute_bound()
        .stateful();
    let (y, x, weight) = geometry.forward_tensor(x.primitive, weight.primitive);
    tensor::<B, Tracked<C>, 4>(match prep {
        OpsKind::Tracked(prep) => prep.finish((geometry, x, weight), y),
        OpsKind::UnTracked(prep) => prep.finish(y),
    })
}

/// Whether `x` has elements and each vector has one value a channel.
fn per_channel<B: Backend>(x: &Tensor<B, 4>, vectors: [&Tensor<B, 1>; 2]) -> bool {
    let dims = x.dims();
    !dims.contains(&0) && vectors.iter().all(|v| v.dims() == [dims[1]])
}

/// `batch_norm_train`; `x` comes back when there is no fast path for it.
#[allow(clippy::type_complexity)]
pub(crate) fn batch_norm_train<B: Backend>(
    x: Tensor<B, 4>,
    weight: &Tensor<B, 1>,
    bias: &Tensor<B, 1>,
    eps: f64,
) -> Result<(Tensor<B, 4>, Tensor<B, 1>, Tensor<B, 1>), Tensor<B, 4>> {
    let Some(kind) = kind::<B>() else {
        return Err(x);
    };
    if !is_f32(&x) || !is_f32(weight) || !is_f32(bias) || !per_channel(&x, [weight, bias]) {
        return Err(x);
    }
    counter::took_fast_path();
    let (weight, bias) = (weight.clone(), bias.clone());
    Ok(match kind {
        Kind::Plain => {
            let (y, saved) =
                norm::forward(primitive(x), primitive(weight), primitive(bias), eps as f32);
            (tensor(y), tensor(saved.mean()), tensor(saved.var()))
        }
        Kind::Tracked => batch_norm_tracked::<B, NoCheckpointing>(x, weight, bias, eps),
        Kind::TrackedBalanced => {
            batch_norm_tracked::<B, BalancedCheckpointing>(x, weight, bias, eps)
        }
    })
}

fn batch_norm_tracked<B: Backend, C: CheckpointStrategy>(
    x: Tensor<B, 4>,
    weight: Tensor<B, 1>,
    bias: Tensor<B, 1>,
    eps: f64,
) -> (Tensor<B, 4>, Tensor<B, 1>, Tensor<B, 1>) {
    let x: Tracked<C> = primitive(x);
    let weight: Tracked<C> = primitive(weight);
    let bias: Tracked<C> = primitive(bias);
    let prep = norm::BatchNorm
        .prepare::<C>([x.node, weight.node, bias.node])
        .compute_bound()
        .stateful();
    let (y, saved) = norm::forward(x.primitive, weight.primitive, bias.primitive, eps as f32);
    let mean = Tracked::<C>::new(saved.mean());
    let var = Tracked::<C>::new(saved.var());
    let y = match prep {
        OpsKind::Tracked(prep) => prep.finish(saved, y),
        OpsKind::UnTracked(prep) => prep.finish(y),
    };
    (tensor(y), tensor(mean), tensor(var))
}

/// `x · scale[c] + shift[c]`; `x` comes back when there is no fast path for it.
pub(crate) fn scale_shift<B: Backend>(
    x: Tensor<B, 4>,
    scale: &Tensor<B, 1>,
    shift: &Tensor<B, 1>,
) -> Result<Tensor<B, 4>, Tensor<B, 4>> {
    let Some(kind) = kind::<B>() else {
        return Err(x);
    };
    if !is_f32(&x) || !is_f32(scale) || !is_f32(shift) || !per_channel(&x, [scale, shift]) {
        return Err(x);
    }
    counter::took_fast_path();
    let (scale, shift) = (scale.clone(), shift.clone());
    Ok(match kind {
        Kind::Plain => {
            let (y, ..) = norm::scale_shift(primitive(x), primitive(scale), primitive(shift));
            tensor(y)
        }
        Kind::Tracked => scale_shift_tracked::<B, NoCheckpointing>(x, scale, shift),
        Kind::TrackedBalanced => scale_shift_tracked::<B, BalancedCheckpointing>(x, scale, shift),
    })
}

fn scale_shift_tracked<B: Backend, C: CheckpointStrategy>(
    x: Tensor<B, 4>,
    scale: Tensor<B, 1>,
    shift: Tensor<B, 1>,
) -> Tensor<B, 4> {
    let x: Tracked<C> = primitive(x);
    let scale: Tracked<C> = primitive(scale);
    let shift: Tracked<C> = primitive(shift);
    let prep = norm::ScaleShift
        .prepare::<C>([x.node, scale.node, shift.node])
        .compute_bound()
        .stateful();
    let (y, x, scale) = norm::scale_shift(x.primitive, scale.primitive, shift.primitive);
    tensor::<B, Tracked<C>, 4>(match prep {
        OpsKind::Tracked(prep) => prep.finish((x, scale), y),
        OpsKind::UnTracked(prep) => prep.finish(y),
    })
}

/// An activation; `x` comes back when there is no fast path for it.
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
    Ok(match kind {
        Kind::Plain => tensor(activation::forward(activation, primitive(x)).0),
        Kind::Tracked => activation_tracked::<B, NoCheckpointing, D>(activation, x),
        Kind::TrackedBalanced => activation_tracked::<B, BalancedCheckpointing, D>(activation, x),
    })
}

fn activation_tracked<B: Backend, C: CheckpointStrategy, const D: usize>(
    activation: Activation,
    x: Tensor<B, D>,
) -> Tensor<B, D> {
    let x: Tracked<C> = primitive(x);
    let prep = activation::Elementwise
        .prepare::<C>([x.node])
        .compute_bound()
        .stateful();
    let (y, x) = activation::forward(activation, x.primitive);
    tensor::<B, Tracked<C>, D>(match prep {
        OpsKind::Tracked(prep) => prep.finish((activation, x), y),
        OpsKind::UnTracked(prep) => prep.finish(y),
    })
}
