use super::start::Start;
use crate::common::BackendArgs;
use crate::source::NetArgs;
use burn_zoo::{AutoConfig, BackendKind, ImageShape};
use burn_zoo_core::{Error, Result};
use burn_zoo_images::{Augment, Dataset, Loader, LoaderOptions, Transform};
use burn_zoo_optim::OptimizerSpec;
use burn_zoo_train::{ProgressKind, Recipe, Schedule, TextRecipe};
use std::path::PathBuf;

/// Options of a training run. What is not given follows the data set.
#[derive(clap::Args, Clone, Debug)]
#[command(
    args_override_self = true,
    allow_negative_numbers = true,
    after_help = "Examples:\n  zoo train --model resnet20 --dataset digits --out runs/digits\n  zoo train --model resnet18_cifar --dataset fashion-mnist --epochs 2 --batch-size 128\n  zoo train --model resnet18 --dataset image-folder --data-dir photos/ --epochs 20\n  zoo train --model resnet18 --dataset image-folder --data-dir photos/ --weights resnet18 --allow-missing 'fc.*'\n  zoo train --model microsoft/resnet-18 --dataset image-folder --data-dir photos/ --allow-missing 'classifier.*'\n  zoo train --model gpt2_mini --dataset kjv\n  zoo train --model llama_mini --dataset text-file --data-dir book.txt --vocabulary bpe:2048\n  zoo train --resume runs/digits\n\nCtrl-C saves and stops; --resume goes on from there."
)]
pub struct Args {
    /// A model of `zoo list`, or a folder or ORG/NAME[@REVISION] of a hub to start from its weights
    /// [default: a small one that suits the data set]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Where the user names none; an example's own.
    #[arg(skip)]
    pub default_model: Option<&'static str>,
    /// digits, mnist, fashion-mnist, cifar10 or image-folder; of texts kjv, text-file, verses or labelled-file [default: digits]
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
    /// Where the user names none; an example's own.
    #[arg(skip)]
    pub default_dataset: Option<&'static str>,
    /// Folder of the data, or the file of text-file and labelled-file; else the system's, or a download
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Input side in pixels for image-folder [default: 224]
    #[arg(long, value_name = "PIXELS")]
    pub image_size: Option<usize>,
    /// Share of the training images held out to choose the best checkpoint [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    pub valid_fraction: Option<f64>,
    /// Start from these weights: a file, the index of a sharded one, a folder, ORG/NAME of a hub, or the
    /// published ones of a model of `zoo list`
    #[arg(long, value_name = "PATH", conflicts_with = "resume")]
    pub weights: Option<String>,
    /// Keys that may be missing from --weights or have another shape there, as those of a new last
    /// layer; `*` stands for any text. May be given several times
    #[arg(long, value_name = "PATTERN", conflicts_with = "resume")]
    pub allow_missing: Vec<String>,
    /// New folder for the run [default: the next free runs/MODEL-DATASET-N]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Continue the run in this folder
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Passes over the training data
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,
    /// End the run after so many steps
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// Images or sequences of a batch
    #[arg(long, value_name = "N")]
    pub batch_size: Option<usize>,
    /// Batches a step: their gradients are averaged, which takes the memory of one [default: 1]
    #[arg(long, value_name = "N")]
    pub accumulate: Option<usize>,
    /// Tokens of a sequence, for texts [default: 64; of labelled texts at most 128]
    #[arg(long, value_name = "N")]
    pub sequence_length: Option<usize>,
    /// What tokens are, for texts: bytes, chars, bpe or bpe:N [default: chars; a model with weights has its own]
    #[arg(long, value_name = "KIND")]
    pub vocabulary: Option<String>,
    /// adamw or sgd, with PyTorch's constants [default: adamw]
    #[arg(long, value_name = "NAME")]
    pub optimizer: Option<String>,
    /// Peak learning rate
    #[arg(long, value_name = "RATE")]
    pub lr: Option<f64>,
    /// Learning rate at the end of the cosine [default: 0]
    #[arg(long, value_name = "RATE")]
    pub min_lr: Option<f64>,
    /// Weight decay
    #[arg(long, value_name = "DECAY")]
    pub weight_decay: Option<f64>,
    /// Momentum of sgd [default: 0.9]
    #[arg(long, value_name = "FACTOR")]
    pub momentum: Option<f64>,
    /// Nesterov's momentum for sgd
    #[arg(long)]
    pub nesterov: bool,
    /// Decay norms and biases too
    #[arg(long)]
    pub decay_norms_and_biases: bool,
    /// Epochs of linear warm-up
    #[arg(long, value_name = "EPOCHS")]
    pub warmup_epochs: Option<f64>,
    /// cosine or constant, after the warm-up [default: cosine]
    #[arg(long, value_name = "NAME")]
    pub schedule: Option<String>,
    /// Share of the target spread over all classes
    #[arg(long, value_name = "SHARE")]
    pub label_smoothing: Option<f64>,
    /// Largest global norm of the gradient; 0 does not clip
    #[arg(long, value_name = "NORM")]
    pub clip_norm: Option<f64>,
    /// Decay of the averaged weights; 0 keeps none
    #[arg(long, value_name = "DECAY")]
    pub ema_decay: Option<f64>,
    /// Seed of weights, order and augmentation [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Turn augmentation off
    #[arg(long)]
    pub no_augment: bool,
    /// Start every residual block as the identity
    #[arg(long)]
    pub zero_init_residual: bool,
    /// Threads that decode and augment images [default: 2]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Steps between checkpoints within an epoch [default: 500]
    #[arg(long, value_name = "STEPS")]
    pub checkpoint_every: Option<usize>,
    /// Checkpoints kept beside the best [default: 2]
    #[arg(long, value_name = "N")]
    pub keep_checkpoints: Option<usize>,
    /// Threads that compute [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// auto, dashboard or lines
    #[arg(long, default_value = "auto", value_name = "KIND")]
    pub progress: String,
    /// Print the result as JSON at the end
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub net: NetArgs,
    #[command(flatten)]
    pub backend: BackendArgs,
}

/// What suits a data set: model, epochs, batch size, learning rate, weight decay, warm-up epochs,
/// label smoothing, averaging.
struct Defaults(&'static str, usize, usize, f64, f64, f64, f64, f64);

fn defaults(dataset: &str) -> Defaults {
    match dataset {
        "digits" => Defaults("resnet20", 15, 32, 3e-3, 0.05, 1.5, 0.05, 0.99),
        "mnist" => Defaults("resnet20", 5, 128, 3e-3, 0.05, 0.5, 0.05, 0.999),
        "fashion-mnist" => Defaults("resnet20", 10, 128, 3e-3, 0.05, 1.0, 0.05, 0.999),
        "cifar10" => Defaults("resnet20", 50, 128, 3e-3, 0.05, 2.0, 0.05, 0.999),
        "verses" | "labelled-file" => Defaults("bert_mini", 8, 16, 1e-3, 0.05, 0.5, 0.0, 0.0),
        "kjv" => Defaults("gpt2_mini", 1, 16, 3e-3, 0.1, 0.02, 0.0, 0.0),
        "text-file" => Defaults("gpt2_mini", 1, 16, 1e-3, 0.1, 0.05, 0.0, 0.0),
        _ => Defaults("resnet18", 20, 32, 1e-3, 0.05, 1.0, 0.1, 0.999),
    }
}

/// The model where none is named.
pub fn default_model(dataset: &str) -> &'static str {
    defaults(dataset).0
}

impl Args {
    pub fn progress_kind(&self) -> Result<ProgressKind> {
        match self.progress.as_str() {
            "auto" => Ok(ProgressKind::Auto),
            "dashboard" => Ok(ProgressKind::Dashboard),
            "lines" => Ok(ProgressKind::Lines),
            other => Err(Error::unknown(
                "progress",
                other,
                ["auto", "dashboard", "lines"],
            )),
        }
    }

    pub fn dataset_name(&self) -> String {
        let default = self.default_dataset.unwrap_or("digits");
        self.dataset.clone().unwrap_or_else(|| default.into())
    }

    /// The recipe these options ask for on a data set of images.
    pub fn recipe(&self, dataset: &Dataset, start: &Start, threads: usize) -> Result<Recipe> {
        let config = start.config.clone().adapted(ImageShape {
            num_channels: dataset.preprocessing.num_channels,
            num_classes: dataset.class_names.len(),
        })?;
        if self.sequence_length.is_some() || self.vocabulary.is_some() {
            let message = "are for texts, such as --dataset kjv";
            return Err(Error::usage("--sequence-length and --vocabulary", message));
        }
        if self.image_size.is_some() && dataset.name != "image-folder" {
            let message = format!(
                "is for image-folder: the images of {} have one size",
                dataset.name
            );
            return Err(Error::usage("--image-size", message));
        }
        let recipe = Recipe {
            image_size: self.image_size.unwrap_or(224),
            augment: match self.no_augment {
                true => Augment::default(),
                false => dataset.augment,
            },
            ..self.common(&dataset.name, config, start, threads)?
        };
        recipe.validate()?;
        // A batch that is too large is found before a folder is made.
        let options = LoaderOptions {
            batch_size: recipe.batch_size,
            seed: Some(0),
            workers: 1,
        };
        Loader::new(
            dataset.train.clone(),
            Transform::eval(dataset.preprocessing.clone()),
            options,
        )?;
        Ok(recipe)
    }

    /// The recipe these options ask for on a text.
    pub fn text_recipe(
        &self,
        corpus: &str,
        config: AutoConfig,
        vocabulary: String,
        start: &Start,
        threads: usize,
    ) -> Result<Recipe> {
        let recipe = Recipe {
            text: Some(TextRecipe {
                vocabulary,
                sequence_length: self.sequence_length.unwrap_or(64),
            }),
            // The bundled text is worth some minutes.
            max_steps: self
                .steps
                .or((corpus == "kjv" && self.epochs.is_none()).then_some(1600)),
            ..self.common(corpus, config, start, threads)?
        };
        recipe.validate()?;
        Ok(recipe)
    }

    /// The recipe these options ask for on labelled texts.
    pub fn labelled_recipe(
        &self,
        dataset: &str,
        config: AutoConfig,
        sequence_length: usize,
        start: &Start,
        threads: usize,
    ) -> Result<Recipe> {
        let recipe = Recipe {
            text: Some(TextRecipe {
                vocabulary: "word pieces".into(),
                sequence_length,
            }),
            ..self.common(dataset, config, start, threads)?
        };
        recipe.validate()?;
        Ok(recipe)
    }

    /// What images and texts have in common.
    fn common(
        &self,
        dataset: &str,
        config: AutoConfig,
        start: &Start,
        threads: usize,
    ) -> Result<Recipe> {
        let Defaults(_, epochs, batch_size, lr, decay, warmup, smoothing, ema) = defaults(dataset);
        let decay = self.weight_decay.unwrap_or(decay);
        let optimizer = match self.optimizer.as_deref().unwrap_or("adamw") {
            "adamw" => OptimizerSpec::adamw(decay),
            "sgd" => OptimizerSpec::sgd(self.momentum.unwrap_or(0.9), decay, self.nesterov),
            other => return Err(Error::unknown("optimizer", other, ["adamw", "sgd"])),
        };
        if matches!(optimizer, OptimizerSpec::AdamW { .. })
            && (self.momentum.is_some() || self.nesterov)
        {
            return Err(Error::usage(
                "--momentum and --nesterov",
                "are for --optimizer sgd",
            ));
        }
        let schedule = match self.schedule.as_deref().unwrap_or("cosine") {
            "cosine" => Schedule::Cosine,
            "constant" => Schedule::Constant,
            other => return Err(Error::unknown("schedule", other, ["cosine", "constant"])),
        };
        Ok(Recipe {
            model_config: self.model_config(config)?,
            model: start.name.clone(),
            weights: start.weights.as_ref().map(|(name, _)| name.clone()),
            allow_missing: self.allow_missing.clone(),
            dataset: dataset.into(),
            data_dir: self.data_dir.clone(),
            image_size: 0,
            text: None,
            max_steps: self.steps,
            valid_fraction: self.valid_fraction.unwrap_or(0.1),
            augment: Augment::default(),
            epochs: self.epochs.unwrap_or(epochs),
            batch_size: self.batch_size.unwrap_or(batch_size),
            accumulate: self.accumulate.unwrap_or(1),
            optimizer,
            decay_norms_and_biases: self.decay_norms_and_biases,
            lr: self.lr.unwrap_or(lr),
            min_lr: self.min_lr.unwrap_or(0.0),
            warmup_epochs: self.warmup_epochs.unwrap_or(warmup),
            schedule,
            label_smoothing: self.label_smoothing.unwrap_or(smoothing),
            clip_norm: self.clip_norm.unwrap_or(1.0),
            ema_decay: self.ema_decay.unwrap_or(ema),
            seed: self.seed.unwrap_or(0),
            workers: self.workers.unwrap_or(2),
            checkpoint_every: self.checkpoint_every.unwrap_or(500),
            keep_checkpoints: self.keep_checkpoints.unwrap_or(2),
            backend: self.backend.spec()?.backend.name().into(),
            threads,
        })
    }

    fn model_config(&self, config: AutoConfig) -> Result<serde_json::Value> {
        let mut json =
            serde_json::to_value(config).map_err(|e| Error::usage("--model", e.to_string()))?;
        if self.zero_init_residual {
            json["zero_init_residual"] = true.into();
        }
        Ok(json)
    }

    /// Takes over the options that may change when a run is resumed.
    pub fn adjust(&self, recipe: &mut Recipe) -> Result<()> {
        if let Some(data_dir) = &self.data_dir {
            recipe.data_dir = Some(data_dir.clone());
        }
        if let Some(backend) = &self.backend.backend {
            let name = backend.parse::<BackendKind>()?.name();
            if name != recipe.backend {
                burn_zoo_core::note!(
                    "warning: the run was started on {} and goes on with {name}: it will not be bit-equal",
                    recipe.backend
                );
                recipe.backend = name.into();
            }
        }
        recipe.workers = self.workers.unwrap_or(recipe.workers);
        recipe.checkpoint_every = self.checkpoint_every.unwrap_or(recipe.checkpoint_every);
        recipe.keep_checkpoints = self.keep_checkpoints.unwrap_or(recipe.keep_checkpoints);
        Ok(())
    }

    /// Checks that no option asks for another run than the one that is resumed.
    pub fn agree_with(&self, recipe: &Recipe) -> Result<()> {
        let differ = |option: &str, started: String| {
            Err(Error::usage(
                option,
                format!(
                    "the run in --resume was started with {started}; a resumed run keeps its recipe"
                ),
            ))
        };
        if self.model.as_ref().is_some_and(|m| *m != recipe.model) {
            return differ("--model", recipe.model.clone());
        }
        if self.dataset.as_ref().is_some_and(|d| *d != recipe.dataset) {
            return differ("--dataset", recipe.dataset.clone());
        }
        let numbers = [
            (
                "--epochs",
                self.epochs.map(|v| v as f64),
                recipe.epochs as f64,
            ),
            (
                "--batch-size",
                self.batch_size.map(|v| v as f64),
                recipe.batch_size as f64,
            ),
            (
                "--accumulate",
                self.accumulate.map(|v| v as f64),
                recipe.accumulate as f64,
            ),
            (
                "--steps",
                self.steps.map(|v| v as f64),
                recipe.max_steps.unwrap_or(0) as f64,
            ),
            ("--lr", self.lr, recipe.lr),
            ("--min-lr", self.min_lr, recipe.min_lr),
            ("--warmup-epochs", self.warmup_epochs, recipe.warmup_epochs),
            (
                "--label-smoothing",
                self.label_smoothing,
                recipe.label_smoothing,
            ),
            ("--clip-norm", self.clip_norm, recipe.clip_norm),
            ("--ema-decay", self.ema_decay, recipe.ema_decay),
            (
                "--image-size",
                self.image_size.map(|v| v as f64),
                recipe.image_size as f64,
            ),
            (
                "--valid-fraction",
                self.valid_fraction,
                recipe.valid_fraction,
            ),
        ];
        for (option, given, started) in numbers {
            if given.is_some_and(|given| given != started) {
                return differ(option, started.to_string());
            }
        }
        if self.seed.is_some_and(|seed| seed != recipe.seed) {
            return differ("--seed", recipe.seed.to_string());
        }
        let others = [
            ("--optimizer", self.optimizer.is_some()),
            ("--weight-decay", self.weight_decay.is_some()),
            ("--momentum", self.momentum.is_some()),
            ("--nesterov", self.nesterov),
            ("--decay-norms-and-biases", self.decay_norms_and_biases),
            ("--schedule", self.schedule.is_some()),
            ("--sequence-length", self.sequence_length.is_some()),
            ("--vocabulary", self.vocabulary.is_some()),
            ("--no-augment", self.no_augment),
            ("--zero-init-residual", self.zero_init_residual),
        ];
        match others.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Error::usage(
                *option,
                "cannot be given with --resume: the run keeps its recipe",
            )),
            None => Ok(()),
        }
    }
}
