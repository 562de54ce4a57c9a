use crate::Init;
use burn::module::{Module, Param, RunningState};
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{Mode, seeded};
use burn_zoo_ops::{batch_norm_eval, batch_norm_train};

/// Batch normalisation over batch, height and width, PyTorch's `BatchNorm2d`.
///
/// In training mode the running variance moves towards the *unbiased* batch variance, as
/// PyTorch's does, and the output uses the biased one.
#[derive(Module, Debug)]
pub struct BatchNorm2d<B: Backend> {
    /// Scale γ, `[channels]`
    pub weight: Param<Tensor<B, 1>>,
    /// Shift β, `[channels]`
    pub bias: Param<Tensor<B, 1>>,
    running_mean: RunningState<Tensor<B, 1>>,
    running_var: RunningState<Tensor<B, 1>>,
    momentum: f64,
    eps: f64,
}

impl<B: Backend> BatchNorm2d<B> {
    /// γ = `weight`, β = 0, running mean 0 and variance 1; momentum 0.1 and eps 1e-5 as PyTorch.
    pub fn new(init: &Init<B>, channels: usize, weight: f32) -> Self {
        let running =
            |value: f32| RunningState::new(init.tensor(vec![value; channels], [channels]));
        Self {
            weight: init.constant([channels], weight),
            bias: init.constant([channels], 0.0),
            running_mean: running(0.0),
            running_var: running(1.0),
            momentum: 0.1,
            eps: 1e-5,
        }
    }

    /// The same with another `eps` and `momentum`, the weight of a batch's statistics in the running
    /// ones.
    pub fn with(self, eps: f64, momentum: f64) -> Self {
        Self {
            eps,
            momentum,
            ..self
        }
    }

    /// `[batch, channels, height, width]` to the same shape.
    pub fn forward(&self, x: Tensor<B, 4>, mode: Mode) -> Tensor<B, 4> {
        match mode {
            Mode::Eval => batch_norm_eval(
                x,
                self.running_mean.value_sync(),
                self.running_var.value_sync(),
                self.weight.val(),
                self.bias.val(),
                self.eps,
            ),
            Mode::Train => {
                let [batch, _, height, width] = x.dims();
                let count = (batch * height * width) as f64;
                let (y, mean, var) =
                    batch_norm_train(x, self.weight.val(), self.bias.val(), self.eps);
                // One value per channel has no spread: PyTorch refuses it, here it stays biased.
                let spread = count / (count - 1.0).max(1.0);
                let unbiased = var * seeded("running variance biased", spread, |_| 1.0);
                self.update(&self.running_mean, mean);
                self.update(&self.running_var, unbiased);
                y
            }
        }
    }

    fn update(&self, running: &RunningState<Tensor<B, 1>>, batch: Tensor<B, 1>) {
        let momentum = seeded("momentum the other way", self.momentum, |m| 1.0 - m);
        let moved = running.value_sync() * (1.0 - momentum) + batch * momentum;
        running.update(moved);
        // Without this the state lags one step behind: visitors and checkpoints would miss it.
        running.value_sync();
    }
}
