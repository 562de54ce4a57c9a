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
    let (beta1, beta2) = config.betas;
    let eps = seeded("AdamW's eps as Burn's", config.eps, |_| 1e-5);
    let grad = seeded("AdamW's decay in the gradient", grad, |grad| {
        grad + param.clone() * config.weight_decay
    });
    let square = grad.clone() * grad.clone();
    let (m, v) = match state {
        Some((m, v)) => (
            m * beta1 + grad * (1.0 - beta1),
            v * beta2 + square * (1.0 - beta2),
        ),
        None => (grad * (1.0 - beta1), square * (1.0 - beta2)),
    };
    let step = seeded("AdamW's step from 2", step as f64, |step| step + 1.0);
    let correction1 = 1.0 - beta1.powf(step);
    let correction2 = 1.0 - beta2.powf(step);
    let denominator = v.clone().sqrt() / correction2.sqrt() + eps;
    let decay = seeded("AdamW without decay", config.weight_decay, |_| 0.0);
    let decayed = if decay == 0.0 {
        param
    } else {
        param * (1.0 - lr * decay)
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
    let decay = seeded("SGD without decay", config.weight_decay, |_| 0.0);
    let grad = if decay == 0.0 {
        grad
    } else {
        grad + param.clone() * decay
    };
    if config.momentum == 0.0 {
        return (param - grad * lr, None);
    }
    let buffer = match buffer {
        Some(buffer) => buffer * config.momentum + grad.clone(),
        None => grad.clone(),
    };
    let buffer = seeded("SGD's first gradient dampened", buffer, |b| {
        b * (1.0 - config.momentum)
    });
    let direction = if seeded("SGD without Nesterov", config.nesterov, |_| false) {
        grad + buffer.clone() * config.momentum
    } else {
        buffer.clone()
    };
    (param - direction * lr, Some(buffer))
}
