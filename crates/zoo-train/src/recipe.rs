use burn_zoo_core::{Error, Result};
use burn_zoo_images::Augment;
use burn_zoo_optim::OptimizerSpec;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How the learning rate goes on after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Half a cosine down to `min_lr`.
    Cosine,
    /// Stays.
    Constant,
}

/// What a language model learns from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextRecipe {
    /// What tokens are: `bytes`, `chars`, `bpe:N`, or the tokenizer of a model.
    pub vocabulary: String,
    /// Tokens of a sequence.
    pub sequence_length: usize,
}

/// Everything that decides a run. The same recipe gives the same run on the same machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name of the model, a preset or an example's own.
    pub model: String,
    /// The model's configuration, with its `model_type`.
    pub model_config: serde_json::Value,
    /// Weights it started from, as they were named; without, random ones.
    #[serde(default)]
    pub weights: Option<String>,
    /// Keys that those may lack or have in another shape; `*` stands for any text.
    #[serde(default)]
    pub allow_missing: Vec<String>,
    /// Name of the data set.
    pub dataset: String,
    /// Folder of the data, where it was given.
    pub data_dir: Option<PathBuf>,
    /// Side in pixels of the model's input, for image folders.
    pub image_size: usize,
    /// What a language model learns from.
    #[serde(default)]
    pub text: Option<TextRecipe>,
    /// Share of the training data held out for validation.
    pub valid_fraction: f64,
    /// Random changes to training images.
    pub augment: Augment,
    /// Passes over the training images.
    pub epochs: usize,
    /// Steps after which the run ends, where that is before its last epoch does.
    #[serde(default)]
    pub max_steps: Option<usize>,
    /// Images or sequences of a batch.
    pub batch_size: usize,
    /// Batches a step: their gradients are averaged, which takes the memory of one.
    #[serde(default = "one")]
    pub accumulate: usize,
    /// The optimizer.
    pub optimizer: OptimizerSpec,
    /// Whether norms and biases are decayed too, as PyTorch does unless told otherwise.
    pub decay_norms_and_biases: bool,
    /// Peak learning rate.
    pub lr: f64,
    /// Learning rate at the end of a cosine.
    pub min_lr: f64,
    /// Epochs of linear warm-up; may be a fraction.
    pub warmup_epochs: f64,
    /// What follows the warm-up.
    pub schedule: Schedule,
    /// Share of the target spread over all classes.
    pub label_smoothing: f64,
    /// Largest global norm of the gradient; 0 does not clip.
    pub clip_norm: f64,
    /// Decay of the averaged weights that are evaluated and saved; 0 keeps none.
    pub ema_decay: f64,
    /// Seed of weights, order and augmentation.
    pub seed: u64,
    /// Threads that decode and augment.
    pub workers: usize,
    /// Steps between checkpoints within an epoch; one is written after every epoch anyway.
    pub checkpoint_every: usize,
    /// Checkpoints kept beside the best.
    pub keep_checkpoints: usize,
    /// Backend the run was started on.
    pub backend: String,
    /// Threads that compute. Sums are added in another order with another number.
    pub threads: usize,
}

fn one() -> usize {
    1
}

impl Recipe {
    /// Steps of the whole run, with so many batches an epoch.
    pub fn steps(&self, batches: usize) -> usize {
        let all = batches.saturating_mul(self.epochs);
        self.max_steps.map_or(all, |most| all.min(most))
    }

    /// Checks every number.
    ///
    /// # Errors
    /// Names the option that cannot be used.
    pub fn validate(&self) -> Result<()> {
        let mut checks = Vec::new();
        match self.optimizer {
            OptimizerSpec::AdamW {
                beta1,
                beta2,
                eps,
                weight_decay,
            } => checks.extend([
                ("beta1", beta1, (0.0..1.0).contains(&beta1)),
                ("beta2", beta2, (0.0..1.0).contains(&beta2)),
                ("eps", eps, eps > 0.0 && eps.is_finite()),
                (
                    "--weight-decay",
                    weight_decay,
                    weight_decay >= 0.0 && weight_decay.is_finite(),
                ),
            ]),
            OptimizerSpec::Sgd {
                momentum,
                weight_decay,
                nesterov,
            } => {
                if nesterov && momentum == 0.0 {
                    return Err(Error::usage("--nesterov", "needs a momentum above 0"));
                }
                checks.extend([
                    ("--momentum", momentum, (0.0..1.0).contains(&momentum)),
                    (
                        "--weight-decay",
                        weight_decay,
                        weight_decay >= 0.0 && weight_decay.is_finite(),
                    ),
                ]);
            }
        }
        let positive = |v: f64| v > 0.0 && v.is_finite();
        let share = |v: f64| (0.0..1.0).contains(&v);
        checks.extend([
            ("--lr", self.lr, positive(self.lr)),
            (
                "--min-lr",
                self.min_lr,
                self.min_lr >= 0.0 && self.min_lr <= self.lr,
            ),
            (
                "--warmup-epochs",
                self.warmup_epochs,
                self.warmup_epochs >= 0.0 && self.warmup_epochs.is_finite(),
            ),
            (
                "--label-smoothing",
                self.label_smoothing,
                share(self.label_smoothing),
            ),
            (
                "--clip-norm",
                self.clip_norm,
                self.clip_norm >= 0.0 && self.clip_norm.is_finite(),
            ),
            ("--ema-decay", self.ema_decay, share(self.ema_decay)),
            (
                "augment.crop_area",
                self.augment.crop_area,
                (0.0..=1.0).contains(&self.augment.crop_area),
            ),
        ]);
        for (option, value, fine) in checks {
            if !fine {
                return Err(Error::usage(option, format!("{value} cannot be used")));
            }
        }
        let counts = [
            ("--epochs", self.epochs, 1_000_000),
            ("--batch-size", self.batch_size, 1_000_000),
            ("--workers", self.workers, 64),
            ("--checkpoint-every", self.checkpoint_every, usize::MAX),
            ("--keep-checkpoints", self.keep_checkpoints, 1_000_000),
            ("--accumulate", self.accumulate, 1_000_000),
            ("--steps", self.max_steps.unwrap_or(1), usize::MAX),
        ];
        for (option, value, most) in counts {
            if value == 0 || value > most {
                return Err(Error::usage(
                    option,
                    format!("must be 1 to {most}, got {value}"),
                ));
            }
        }
        if let Some(text) = &self.text
            && !(1..=1 << 20).contains(&text.sequence_length)
        {
            let message = format!("must be 1 to {}, got {}", 1 << 20, text.sequence_length);
            return Err(Error::usage("--sequence-length", message));
        }
        if self.augment.shift > 1000 {
            return Err(Error::usage("augment.shift", "must be at most 1000 pixels"));
        }
        Ok(())
    }
}
