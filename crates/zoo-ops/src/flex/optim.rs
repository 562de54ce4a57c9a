use super::{Float, contiguous, is_f32, kind, same, slice};
use crate::{AdamW, Sgd, counter};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorPrimitive};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;
use std::any::TypeId;

/// Elements a thread works on at a time.
const CHUNK: usize = 1 << 14;

/// Whether `B` is flex without autodiff, as optimizers see it, and every tensor has elements of f32.
fn fits<B: Backend, const D: usize>(tensors: &[&Tensor<B, D>]) -> bool {
    let all = |x: &&Tensor<B, D>| is_f32(x) && !x.dims().contains(&0);
    TypeId::of::<B>() == TypeId::of::<Flex>() && kind::<B>().is_some() && tensors.iter().all(all)
}

fn plain<B: Backend, const D: usize>(x: Tensor<B, D>) -> FlexTensor {
    contiguous(same::<Float<B>, FlexTensor>(x.into_primitive().tensor()))
}

fn back<B: Backend, const D: usize>(x: FlexTensor) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(same(x)))
}

/// The elements, which are copied first if another tensor shares them.
fn elements(x: &mut FlexTensor) -> &mut [f32] {
    if !x.is_contiguous()
        || x.layout().start_offset() != 0
        || x.storage::<f32>().len() != slice(x).len()
    {
        *x = FlexTensor::from_data(x.to_contiguous().into_data());
    }
    x.storage_mut::<f32>()
}

/// See [`crate::adamw_step`], in one pass over the memory of what it is given, where nothing else holds that.
#[allow(clippy::type_complexity)]
pub(crate) fn adamw_step<B: Backend, const D: usize>(
    param: Tensor<B, D>,
    grad: &Tensor<B, D>,
    [m, v]: [Tensor<B, D>; 2],
    step: f64,
    lr: f64,
    config: &AdamW,
) -> Result<[Tensor<B, D>; 3], [Tensor<B, D>; 3]> {
    if !fits(&[&param, grad, &m, &v]) {
        return Err([param, m, v]);
    }
    counter::took_fast_path();
    let grad = plain(grad.clone());
    let [mut param, mut m, mut v] = [plain(param), plain(m), plain(v)];
    let (beta1, beta2) = config.betas;
    let factors = [
        1.0 - lr * config.weight_decay,
        beta1,
        1.0 - beta1,
        beta2,
        1.0 - beta2,
        1.0 / (1.0 - beta2.powf(step)).sqrt(),
        config.eps,
        lr / (1.0 - beta1.powf(step)),
    ];
    let factors = factors.map(|factor| factor as f32);
    (elements(&mut param).par_chunks_mut(CHUNK))
        .zip(slice(&grad).par_chunks(CHUNK))
        .zip(elements(&mut m).par_chunks_mut(CHUNK))
        .zip(elements(&mut v).par_chunks_mut(CHUNK))
        .for_each(|(((param, grad), m), v)| adamw(param, grad, m, v, factors));
    Ok([back(param), back(m), back(v)])
}

/// See [`crate::sgd_step`] with momentum, in one pass as [`adamw_step`].
#[allow(clippy::type_complexity)]
pub(crate) fn sgd_step<B: Backend, const D: usize>(
    param: Tensor<B, D>,
    grad: &Tensor<B, D>,
    buffer: Tensor<B, D>,
    lr: f64,
    config: &Sgd,
) -> Result<[Tensor<B, D>; 2], [Tensor<B, D>; 2]> {
    if !fits(&[&param, grad, &buffer]) {
        return Err([param, buffer]);
    }
    counter::took_fast_path();
    let grad = plain(grad.clone());
    let [mut param, mut buffer] = [plain(param), plain(buffer)];
    // Of the gradient and of the buffer in the step.
    let shares = match config.nesterov {
        true => [1.0, config.momentum],
        false => [0.0, 1.0],
    };
    let factors = [
        config.weight_decay,
        config.momentum,
        lr,
        shares[0],
        shares[1],
    ];
    let factors = factors.map(|factor| factor as f32);
    (elements(&mut param).par_chunks_mut(CHUNK))
        .zip(slice(&grad).par_chunks(CHUNK))
        .zip(elements(&mut buffer).par_chunks_mut(CHUNK))
        .for_each(|((param, grad), buffer)| sgd(param, grad, buffer, factors));
    Ok([back(param), back(buffer)])
}

vectorized! {
    fn adamw<'a>(
        param: &'a mut [f32],
        grad: &'a [f32],
        m: &'a mut [f32],
        v: &'a mut [f32],
        factors: [f32; 8],
    ) -> () {
        let [keep, b1, rest1, b2, rest2, root, eps, rate] = factors;
        for (((p, g), m), v) in param.iter_mut().zip(grad).zip(m).zip(v) {
            *m = *m * b1 + g * rest1;
            *v = *v * b2 + g * g * rest2;
            *p = *p * keep - *m / (v.sqrt() * root + eps) * rate;
        }
    }
}

vectorized! {
    fn sgd<'a>(
        param: &'a mut [f32],
        grad: &'a [f32],
        buffer: &'a mut [f32],
        factors: [f32; 5],
    ) -> () {
        let [decay, momentum, rate, of_grad, of_buffer] = factors;
        for ((p, g), b) in param.iter_mut().zip(grad).zip(buffer) {
            let g = g + *p * decay;
            *b = *b * momentum + g;
            *p -= rate * (g * of_grad + *b * of_buffer);
        }
    }
}
