//! What every kind of training does: a model on its device, its run, and the last lines.

use super::Args;
use super::place::Place;
use crate::common::print_json;
use crate::text::folder_of;
use burn::module::{AutodiffModule, Module};
use burn::tensor::DType;
use burn::tensor::backend::{AutodiffBackend, Backend, BackendTypes};
use burn_zoo::{AutoConfig, DeviceSpec, ModelCard, WithBackend, with_backend};
use burn_zoo_checkpoint::{KeyMap, LazyTensors, LoadOptions, load_with, save, write_atomically};
use burn_zoo_core::{Error, Preprocessing, Result, group_digits, read_text_files};
use burn_zoo_optim::trainable;
use burn_zoo_train::{
    Outcome, ProgressKind, Recipe, RunDir, Task, TrainInput, interrupt_flag, train,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is learnt, from which data.
pub trait Lesson {
    /// Trains a model of `launch`'s configuration. No closing words where the run was interrupted.
    fn learn<B: AutodiffBackend>(
        self,
        launch: &Launch,
        place: Place,
        device: &<B as BackendTypes>::Device,
    ) -> Result<(RunDir, Option<Closing>)>;
}

/// A lesson on its device, for the visitors that name the model's type.
pub struct OnDevice<'a, L, D> {
    pub launch: &'a Launch<'a>,
    pub place: Place,
    pub lesson: L,
    pub device: &'a D,
}

/// What a run needs whatever it learns.
pub struct Launch<'a> {
    pub recipe: &'a Recipe,
    pub config: &'a AutoConfig,
    /// How the user calls this.
    pub program: &'a str,
    /// Whether the result is printed for machines.
    pub json: bool,
    interrupt: Arc<AtomicBool>,
    progress: ProgressKind,
}

/// Data that a model was trained on, as the run's folder and its first line tell of it.
pub struct About {
    /// The data set and how much of it is for what.
    pub data: String,
    /// The contents of `tokenizer.json`.
    pub tokenizer: Option<String>,
    pub preprocessing: Option<Preprocessing>,
    pub class_names: Vec<String>,
}

/// A run that came to its end.
pub struct Trained<M> {
    pub outcome: Outcome<M>,
    pub num_parameters: usize,
}

/// The last words of a run.
pub struct Closing {
    /// For machines, what this kind of run has beside what all have.
    pub json: Value,
    /// What came out.
    pub lines: Vec<String>,
    /// What `report.html` shows.
    pub report: &'static str,
    /// What to try next.
    pub next: Vec<String>,
}

/// Runs `lesson` on the device of the recipe. Gives the exit code.
pub fn launch(
    args: &Args,
    program: &str,
    place: Place,
    recipe: &Recipe,
    lesson: impl Lesson,
) -> Result<i32> {
    let config: AutoConfig = serde_json::from_value(recipe.model_config.clone())
        .map_err(|e| Error::malformed("recipe.json", format!("model_config: {e}")))?;
    let spec = DeviceSpec {
        backend: recipe.backend.parse()?,
        index: args.backend.device,
    };
    let launch = Launch {
        recipe,
        config: &config,
        program,
        json: args.json,
        interrupt: interrupt_flag(),
        progress: args.progress_kind()?,
    };
    let on_backend = OnBackend {
        launch: &launch,
        place,
        lesson,
    };
    let (run, closing) = with_backend(spec, on_backend)??;
    match closing {
        Some(closing) => {
            closing.tell(&launch, &run);
            Ok(0)
        }
        None => {
            let folder = run.path().display();
            burn_zoo_core::say!("stopped and saved; continue with\n  {program} --resume {folder}");
            Ok(130)
        }
    }
}

struct OnBackend<'a, L> {
    launch: &'a Launch<'a>,
    place: Place,
    lesson: L,
}

impl<L: Lesson> WithBackend for OnBackend<'_, L> {
    type Output = Result<(RunDir, Option<Closing>)>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        self.lesson.learn::<B>(self.launch, self.place, &device)
    }
}

impl<L, D> OnDevice<'_, L, D> {
    /// Trains `model` on the task that `task` makes, keeps the best with all that is needed to use it, and lets
    /// `report` say how good it is. Nothing but the run where it was interrupted.
    pub fn train<B, M, T>(
        self,
        model: M,
        key_maps: &[KeyMap],
        task: impl FnOnce(&M) -> Result<T>,
        about: About,
        report: impl FnOnce(&Trained<M::InnerModule>, &RunDir) -> Result<Closing>,
    ) -> Result<(RunDir, Option<Closing>)>
    where
        B: AutodiffBackend + BackendTypes<Device = D>,
        M: AutodiffModule<B>,
        T: Task<B, M>,
    {
        let Self {
            launch,
            place,
            device,
            ..
        } = self;
        let recipe = launch.recipe;
        let task = task(&model)?;
        let (model, weights) = match place.weights() {
            Some(path) => from_weights(model, path, recipe, key_maps)?,
            None => (model, None),
        };
        // A template of conversations, special tokens: what was learnt from keeps its use.
        let beside = match (place.weights(), &about.tokenizer) {
            (Some(path), Some(_)) => read_text_files(folder_of(path))?,
            _ => Vec::new(),
        };
        let (run, resume) = place.open(recipe)?;
        for (name, bytes) in beside.iter().filter(|(name, _)| name != "tokenizer.json") {
            write_atomically(&run.file(name), bytes)?;
        }
        if let Some(tokenizer) = &about.tokenizer {
            write_atomically(&run.file("tokenizer.json"), tokenizer.as_bytes())?;
        }
        let num_parameters = trainable::<B, M>(&model).iter().map(|(_, len)| len).sum();
        burn_zoo_core::say!(
            "{} ({} parameters) on {}; {} with {} threads; run folder {}",
            recipe.model,
            group_digits(num_parameters as u64),
            about.data,
            recipe.backend,
            recipe.threads,
            run.path().display()
        );
        if let Some(weights) = weights {
            burn_zoo_core::say!("{weights}");
        }
        let input = TrainInput {
            recipe,
            run: &run,
            resume,
            key_map: &key_maps[0],
            device,
            progress: launch.progress,
            interrupt: launch.interrupt.clone(),
        };
        let outcome = match train(model, &task, input) {
            Ok(outcome) => outcome,
            Err(error) => {
                if !resume {
                    run.abandon();
                }
                return Err(error);
            }
        };
        if outcome.interrupted {
            return Ok((run, None));
        }
        save(&outcome.model, &run.file("model.safetensors"), &key_maps[0])?;
        let card = ModelCard {
            name: recipe.model.clone(),
            model: launch.config.clone(),
            preprocessing: about.preprocessing,
            class_names: about.class_names,
        };
        card.write(run.path())?;
        let trained = Trained {
            outcome,
            num_parameters,
        };
        let closing = report(&trained, &run)?;
        Ok((run, Some(closing)))
    }
}

impl Closing {
    /// Prints what came out, where it is and what to try next.
    fn tell(&self, launch: &Launch, run: &RunDir) {
        let folder = run.path().display();
        let recipe = launch.recipe;
        if launch.json {
            let mut json = json!({
                "run": folder.to_string(),
                "model": recipe.model,
                "dataset": recipe.dataset,
                "seed": recipe.seed,
            });
            if let (Some(all), Some(own)) = (json.as_object_mut(), self.json.as_object()) {
                all.extend(own.clone());
            }
            return print_json(&json);
        }
        for line in &self.lines {
            burn_zoo_core::say!("{line}");
        }
        let beside = match run.file("tokenizer.json").exists() {
            true => "config.json and tokenizer.json",
            false => "config.json",
        };
        burn_zoo_core::say!("\neverything is in {folder}/");
        burn_zoo_core::say!("  report.html        {}: open it in a browser", self.report);
        burn_zoo_core::say!("  model.safetensors  the weights in upstream's names, with {beside}");
        burn_zoo_core::say!("  metrics.csv        every measurement");
        burn_zoo_core::say!("  checkpoints/       to continue from\n");
        burn_zoo_core::say!("next:");
        for next in &self.next {
            burn_zoo_core::say!("  {next}");
        }
    }
}

/// The model with the recipe's weights, and a line that says what was loaded and what is new.
fn from_weights<B: Backend, M: Module<B>>(
    model: M,
    path: &Path,
    recipe: &Recipe,
    key_maps: &[KeyMap],
) -> Result<(M, Option<String>)> {
    let options = LoadOptions {
        dtype: DType::F32,
        allow_missing: recipe.allow_missing.clone(),
    };
    let loaded = load_with(model, &LazyTensors::open(path)?, key_maps, &options);
    let (model, report) = loaded.map_err(|error| match &error {
        Error::Shape { key, .. } | Error::MissingKey { key, .. } => {
            let layer = key
                .rsplit_once('.')
                .map_or(key.as_str(), |(layer, _)| layer);
            let hint = format!("{error}; --allow-missing '{layer}.*' lets it start anew");
            Error::usage("--weights", hint)
        }
        _ => error,
    })?;
    let new = match report.initialised.as_slice() {
        [] => "nothing is new".to_string(),
        new => format!("new: {}", new.join(", ")),
    };
    let line = format!(
        "{} tensors from {} in {}'s names; {new}",
        report.loaded,
        path.display(),
        report.spelling
    );
    Ok((model, Some(line)))
}
