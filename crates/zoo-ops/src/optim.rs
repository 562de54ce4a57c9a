use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::seeded;

/// AdamW (Loshchilov and Hutter 2019) with PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Decay of the gradient's running mean and of its square's.
    pub betas: (f64, f64),
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
}

impl Default for AdamW {
    fn default() -> Self {
        Self {
            betas: (0.9, 0.999),
            eps: 1e-8,
            weight_decay: 1e-2,
        }
    }
}

/// Stochastic gradient descent with PyTorch's definition of momentum and PyTorch's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sgd {
    /// Momentum factor.
    pub momentum: f64,
    /// L2 penalty added to the gradient.
    pub weight_decay: f64,
    /// Nesterov's look-ahead.
    pub nesterov: bool,
}

/// One AdamW update of one parameter; `step` counts from 1.
///
/// `p ← p (1 - lr λ); m ← β₁ m + (1-β₁) g; v ← β₂ v + (1-β₂) g²;`
/// `p ← p - lr/(1-β₁ᵗ) · m / (√v / √(1-β₂ᵗ) + ε)`
///
/// All tensors have the parameter's shape. Returns the parameter, `m` and `v`.
pub fn adamw_step<B: Backend, const D: usize>(
    param: Tensor<B, D>,
    grad: Tensor<B, D>,
    state: Option<(Tensor<B, D>, Tensor<B, D>)>,
    step: usize,
    lr: f64,
    config: &AdamW,
) -> (Tensor<B, D>, Tensor<B, D>, Tensor<B, D>) {
    let grad = seeded("AdamW's decay in the gradient", grad, |grad| {
        grad + param.clone() * config.weight_decay
    });
    let step = seeded("AdamW's step from 2", step as f64, |step| step + 1.0);
    let config = AdamW {
        betas: config.betas,
        eps: seeded("AdamW's eps as Burn's", config.eps, |_| 1e-5),
        weight_decay: seeded("AdamW without decay", config.weight_decay, |_| 0.0),
    };
    let (m, v) = state.unwrap_or_else(|| {
        let zeros = || Tensor::zeros(grad.dims(), (&grad.device(), grad.dtype()));
        (zeros(), zeros())
    });
    #[cfg(feature = "flex")]
    let [param, m, v] = match crate::flex::adamw_step(param, &grad, [m, v], step, lr, &config) {
        Ok([param, m, v]) => return (param, m, v),
        Err(inputs) => inputs,
    };
    crate::counter::took_generic_path();
    let (beta1, beta2) = config.betas;
    let square = grad.clone() * grad.clone();
    let m = m * beta1 + grad * (1.0 - beta1);
    let v = v * beta2 + square * (1.0 - beta2);
    let correction1 = 1.0 - beta1.powf(step);
    let correction2 = 1.0 - beta2.powf(step);
    let denominator = v.clone().sqrt() / correction2.sqrt() + config.eps;
    let decayed = if config.weight_decay == 0.0 {
        param
    } else {
        param * (1.0 - lr * config.weight_decay)
    };
    let param = decayed - m.clone() / denominator * (lr / correction1);
    (param, m, v)
}

/// One SGD update of one parameter.
///
/// `g ← g + λ p; b ← μ b + g` (`b = g` at first)`; p ← p - lr (g + μ b` if Nesterov else `b)`.
///
/// All tensors have the parameter's shape. Returns the parameter and the momentum buffer, which is
/// `None` without momentum.
pub fn sgd_step<B: Backend, const D: usize>(
    param: Tensor<B, D>,
    grad: Tensor<B, D>,
    buffer: Option<Tensor<B, D>>,
    lr: f64,
    config: &Sgd,
) -> (Tensor<B, D>, Option<Tensor<B, D>>) {
    let config = Sgd {
        momentum: config.momentum,
        weight_decay: seeded("SGD without decay", config.weight_decay, |_| 0.0),
        nesterov: seeded("SGD without Nesterov", config.nesterov, |_| false),
    };
    let dampened = seeded("SGD's first gradient dampened", 1.0, |_| {
        1.0 - config.momentum
    });
    #[cfg(feature = "flex")]
    let (param, buffer) = if dampened == 1.0 && config.momentum != 0.0 {
        let first = buffer.is_none();
        let zeros = || Tensor::zeros(grad.dims(), (&grad.device(), grad.dtype()));
        let buffer = buffer.unwrap_or_else(zeros);
        match crate::flex::sgd_step(param, &grad, buffer, lr, &config) {
            Ok([param, buffer]) => return (param, Some(buffer)),
            Err([param, buffer]) => (param, (!first).then_some(buffer)),
        }
    } else {
        (param, buffer)
    };
    crate::counter::took_generic_path();
    let grad = if config.weight_decay == 0.0 {
        grad
    } else {
        grad + param.clone() * config.weight_decay
    };
    if config.momentum == 0.0 {
        return (param - grad * lr, None);
    }
    let mut buffer = match buffer {
        Some(buffer) => buffer * config.momentum + grad.clone(),
        None => grad.clone(),
    };
    if dampened != 1.0 {
        buffer = buffer * dampened;
    }
    let direction = if config.nesterov {
        grad + buffer.clone() * config.momentum
    } else {
        buffer.clone()
    };
    (param - direction * lr, Some(buffer))
}
