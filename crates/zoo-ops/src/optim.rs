use burn::tensor::{Tensor, backend::Backend};

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
    let square = grad.clone() * grad.clone();
    let (m, v) = match state {
        Some((m, v)) => (
            m * beta1 + grad * (1.0 - beta1),
            v * beta2 + square * (1.0 - beta2),
        ),
        None => (grad * (1.0 - beta1), square * (1.0 - beta2)),
    };
    let correction1 = 1.0 - beta1.powf(step as f64);
    let correction2 = 1.0 - beta2.powf(step as f64);
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
    let grad = if config.weight_decay == 0.0 {
        grad
    } else {
        grad + param.clone() * config.weight_decay
    };
    if config.momentum == 0.0 {
        return (param - grad * lr, None);
    }
    let buffer = match buffer {
        Some(buffer) => buffer * config.momentum + grad.clone(),
        None => grad.clone(),
    };
    let direction = if config.nesterov {
        grad + buffer.clone() * config.momentum
    } else {
        buffer.clone()
    };
    (param - direction * lr, Some(buffer))
}
