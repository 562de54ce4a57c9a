use burn_zoo_ops::AdamW;
use serde::{Deserialize, Serialize};

/// The optimizer and its constants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase", deny_unknown_fields)]
pub enum OptimizerSpec {
    /// AdamW (Loshchilov and Hutter 2019).
    AdamW {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        eps: f64,
        /// Decoupled weight decay.
        weight_decay: f64,
    },
    /// Stochastic gradient descent.
    Sgd {
        /// Momentum factor.
        momentum: f64,
        /// L2 penalty.
        weight_decay: f64,
        /// Nesterov's look-ahead.
        nesterov: bool,
    },
}

impl OptimizerSpec {
    /// PyTorch's `AdamW` with this weight decay.
    pub fn adamw(weight_decay: f64) -> Self {
        let AdamW {
            betas: (beta1, beta2),
            eps,
            ..
        } = AdamW::default();
        OptimizerSpec::AdamW {
            beta1,
            beta2,
            eps,
            weight_decay,
        }
    }

    /// PyTorch's `SGD` with this momentum and weight decay.
    pub fn sgd(momentum: f64, weight_decay: f64, nesterov: bool) -> Self {
        OptimizerSpec::Sgd {
            momentum,
            weight_decay,
            nesterov,
        }
    }
}
