//! `zoo train`, and the examples that train.

mod args;
mod labelled;
mod start;
mod text;

pub use args::Args;
use start::Start;

use crate::common::{print_json, set_threads};
use burn::module::{AutodiffModule, Module};
use burn::tensor::backend::{AutodiffBackend, Backend, BackendTypes};
use burn::tensor::{DType, Tensor};
use burn_zoo::{AutoConfig, DeviceSpec, ModelCard, WithBackend, WithClassifier, with_backend};
use burn_zoo_checkpoint::{KeyMap, LazyTensors, LoadOptions, load_with, save, write_atomically};
use burn_zoo_core::{Error, ImageClassifier, Mode, Result, group_digits};
use burn_zoo_images::{Dataset, Loader, LoaderOptions, OpenOptions, Transform, open};
use burn_zoo_optim::trainable;
use burn_zoo_train::{
    Evaluation, ImageTask, Outcome, ProgressKind, Recipe, ReportInput, RunDir, TrainInput,
    draw_images, evaluate, interrupt_flag, train, write_report,
};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// `zoo train`.
pub fn run(args: Args) -> Result<i32> {
    run_as(args, "zoo train")
}

/// Trains; `program` is how the user calls it. Gives the exit code.
pub(crate) fn run_as(args: Args, program: &str) -> Result<i32> {
    if text::is_meant(&args)? {
        return text::run_as(&args, program);
    }
    if labelled::is_meant(&args)? {
        return labelled::run_as(&args, program);
    }
    let (place, recipe, dataset) = match &args.resume {
        Some(folder) => {
            let (mut run, mut recipe) = RunDir::open(folder)?;
            args.agree_with(&recipe)?;
            args.adjust(&mut recipe)?;
            recipe.threads = set_threads(args.threads.or(Some(recipe.threads)))?;
            recipe.validate()?;
            let dataset = open(&recipe.dataset, &open_options(&recipe))?;
            run.lock()?;
            (Place::Resumed(run), recipe, dataset)
        }
        None => {
            let options = OpenOptions {
                data_dir: args.data_dir.clone(),
                valid_fraction: args.valid_fraction.unwrap_or(0.1),
                image_size: args.image_size.unwrap_or(224),
                ..OpenOptions::default()
            };
            let dataset = open(&args.dataset_name(), &options)?;
            let start = Start::new(&args, args::default_model(&dataset.name))?;
            let recipe = args.recipe(&dataset, &start, set_threads(args.threads)?)?;
            (new_place(&args, &recipe, start, program), recipe, dataset)
        }
    };
    let config: AutoConfig = serde_json::from_value(recipe.model_config.clone())
        .map_err(|e| Error::malformed("recipe.json", format!("model_config: {e}")))?;
    let job = Job {
        place,
        recipe: &recipe,
        dataset: &dataset,
        config: &config,
        interrupt: interrupt_flag(),
        progress: args.progress_kind()?,
    };
    let spec = DeviceSpec {
        backend: recipe.backend.parse()?,
        index: args.backend.device,
    };
    match with_backend(spec, job)?? {
        (run, Some(done)) => {
            finish(&args, &run, &dataset, &recipe, &done, program)?;
            Ok(0)
        }
        (run, None) => {
            burn_zoo_core::say!(
                "stopped and saved; continue with\n  {program} --resume {}",
                run.path().display()
            );
            Ok(130)
        }
    }
}

/// The new folder of a run, and the command that the user gave.
fn new_place(args: &Args, recipe: &Recipe, start: Start, program: &str) -> Place {
    let given = std::env::args_os().skip(1);
    let given: Vec<String> = given.map(|arg| quoted(&arg.to_string_lossy())).collect();
    let given = given.strip_prefix(&["train".to_string()]).unwrap_or(&given);
    let command = format!("{program} {}", given.join(" "));
    Place::New {
        out: args.out.clone().unwrap_or_else(|| next_free(recipe)),
        command: command.trim().into(),
        weights: start.weights.map(|(_, path)| path),
    }
}

/// An argument as a shell reads it.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        return arg.to_string();
    }
    format!("'{}'", arg.replace('\'', "'\\''"))
}

/// Where a run's data is and how it was split.
pub(crate) fn open_options(recipe: &Recipe) -> OpenOptions {
    OpenOptions {
        data_dir: recipe.data_dir.clone(),
        valid_fraction: recipe.valid_fraction,
        image_size: recipe.image_size,
        ..OpenOptions::default()
    }
}

/// The first of `runs/MODEL-DATASET-1`, `-2`, … that is not there.
fn next_free(recipe: &Recipe) -> PathBuf {
    // Of `runs/digits` or `microsoft/resnet-50@main` the last name, as letters that any system takes.
    let model = recipe.model.trim_end_matches('/').rsplit('/').next();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let model = model.unwrap_or_default().replace(|c| !plain(c), "-");
    let name = |n: usize| PathBuf::from(format!("runs/{model}-{}-{n}", recipe.dataset));
    (1..)
        .map(name)
        .find(|path| !path.exists())
        .unwrap_or_else(|| name(0))
}

/// Where the run goes. A new folder is made only when model and device are known to be there.
enum Place {
    New {
        out: PathBuf,
        command: String,
        /// Where the run starts, if not at random.
        weights: Option<PathBuf>,
    },
    Resumed(RunDir),
}

struct Job<'a> {
    place: Place,
    recipe: &'a Recipe,
    dataset: &'a Dataset,
    config: &'a AutoConfig,
    interrupt: Arc<AtomicBool>,
    progress: ProgressKind,
}

/// A run that came to its end.
struct Done {
    evaluation: Evaluation,
    seconds: f64,
    best_score: Option<f64>,
    step: usize,
}

impl WithBackend for Job<'_> {
    type Output = Result<(RunDir, Option<Done>)>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let (config, seed) = (self.config, self.recipe.seed);
        config.with_classifier::<B, _>(
            Some(seed),
            &device.clone(),
            OnDevice { job: self, device },
        )?
    }
}

struct OnDevice<'a, D> {
    job: Job<'a>,
    device: D,
}

impl<B: AutodiffBackend> WithClassifier<B> for OnDevice<'_, <B as BackendTypes>::Device> {
    type Output = Result<(RunDir, Option<Done>)>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
        M::InnerModule: ImageClassifier<B::InnerBackend>,
    {
        let Job {
            place,
            recipe,
            dataset,
            config,
            interrupt,
            progress,
        } = self.job;
        let (model, weights) = match &place {
            Place::New {
                weights: Some(path),
                ..
            } => from_weights(model, path, recipe, &key_maps)?,
            _ => (model, None),
        };
        let (run, resume) = match place {
            Place::New { out, command, .. } => (RunDir::create(&out, recipe, &command)?, false),
            Place::Resumed(run) => (run, true),
        };
        let num_parameters = trainable(&model).iter().map(|(_, len)| len).sum();
        burn_zoo_core::say!(
            "{} ({} parameters) on {}: {} training, {} validation, {} test images; {} with {} threads; run folder {}",
            recipe.model,
            group_digits(num_parameters as u64),
            dataset.name,
            dataset.train.len(),
            dataset.valid.len(),
            dataset.test.len(),
            recipe.backend,
            recipe.threads,
            run.path().display()
        );
        if let Some(weights) = weights {
            burn_zoo_core::say!("{weights}");
        }
        let task = ImageTask::<B>::new(recipe, dataset, &self.device)?;
        let input = TrainInput {
            recipe,
            run: &run,
            resume,
            key_map: &key_maps[0],
            device: &self.device,
            progress,
            interrupt,
        };
        let outcome = train(model, &task, input)?;
        if outcome.interrupted {
            return Ok((run, None));
        }
        save(&outcome.model, &run.file("model.safetensors"), &key_maps[0])?;
        let card = ModelCard {
            name: recipe.model.clone(),
            model: config.clone(),
            preprocessing: Some(dataset.preprocessing.clone()),
            class_names: dataset.class_names.clone(),
        };
        card.write(run.path())?;
        let done = report::<B, _>(
            &outcome,
            recipe,
            dataset,
            &run,
            num_parameters,
            &self.device,
        )?;
        Ok((run, Some(done)))
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

/// Evaluates on the test images and writes `evaluation.json` and `report.html`.
fn report<B: AutodiffBackend, M: ImageClassifier<B::InnerBackend>>(
    outcome: &Outcome<M>,
    recipe: &Recipe,
    dataset: &Dataset,
    run: &RunDir,
    num_parameters: usize,
    device: &<B as BackendTypes>::Device,
) -> Result<Done> {
    let options = LoaderOptions {
        batch_size: recipe.batch_size.min(256),
        seed: None,
        workers: recipe.workers,
    };
    let transform = Transform::eval(dataset.preprocessing.clone());
    let [channels, height, width] = transform.shape();
    let loader = Loader::new(dataset.test.clone(), transform, options)?;
    let logits = |x| outcome.model.logits(x, Mode::Eval, None);
    let bar = crate::common::bar(loader.len(), "evaluating the test images");
    let classes = dataset.class_names.len();
    let evaluation = evaluate(&logits, &loader, classes, DType::F32, device, |done, _| {
        bar.set_position(done as u64)
    })?;
    bar.finish_and_clear();
    let one = Tensor::zeros([1, channels, height, width], (device, DType::F32));
    let (_, counts) = burn_zoo_ops::count(|| logits(one).into_data());

    let path = run.file("evaluation.json");
    let json =
        serde_json::to_string(&evaluation).map_err(|e| Error::malformed(&path, e.to_string()))?;
    write_atomically(&path, json.as_bytes())?;
    write_report(
        &run.file("report.html"),
        &ReportInput {
            recipe,
            dataset,
            command: &run.command(),
            rows: &outcome.rows,
            evaluation: &evaluation,
            seconds: outcome.seconds,
            best_step: outcome.best_step,
            num_parameters,
            flops: counts.flops,
        },
    )?;
    Ok(Done {
        evaluation,
        seconds: outcome.seconds,
        best_score: outcome.best_score,
        step: outcome.step,
    })
}

/// The last lines: pictures, what came out, where it is and what to try next.
fn finish(
    args: &Args,
    run: &RunDir,
    dataset: &Dataset,
    recipe: &Recipe,
    done: &Done,
    program: &str,
) -> Result<()> {
    let eval = &done.evaluation;
    let folder = run.path().display();
    if args.json {
        print_json(&serde_json::json!({
            "run": folder.to_string(),
            "model": recipe.model,
            "dataset": recipe.dataset,
            "seed": recipe.seed,
            "steps": done.step,
            "seconds": done.seconds,
            "valid_accuracy": done.best_score,
            "test_accuracy": eval.accuracy,
            "test_loss": eval.loss,
            "test_count": eval.count,
        }));
        return Ok(());
    }
    let count = eval.predictions.len();
    let shown: Vec<usize> = (0..count).step_by((count / 8).max(1)).take(8).collect();
    let caption = |i: usize| {
        let (guess, probability) = eval.predictions[i];
        let label = dataset.test.label(i);
        let mark = if guess == label { "✓" } else { "✗" };
        format!(
            "{mark} {} {:.0} %",
            dataset.class_names[guess],
            100.0 * probability
        )
    };
    if std::io::stdout().is_terminal() {
        let images = shown
            .iter()
            .map(|i| Ok((dataset.test.image(*i)?, caption(*i))))
            .collect::<Result<Vec<_>>>()?;
        burn_zoo_core::say!("\nSome test images and what the model says:\n");
        burn_zoo_core::say!("{}", draw_images(&images, 76).trim_end());
    } else {
        let captions: Vec<String> = shown.iter().map(|i| caption(*i)).collect();
        burn_zoo_core::say!("some test images: {}", captions.join(" | "));
    }
    burn_zoo_core::say!(
        "test accuracy {:.2} % on {} images after {} steps in {:.1} s\n",
        100.0 * eval.accuracy,
        eval.count,
        done.step,
        done.seconds
    );
    burn_zoo_core::say!("everything is in {folder}/");
    burn_zoo_core::say!(
        "  report.html        curves, confusion matrix and pictures: open it in a browser"
    );
    burn_zoo_core::say!("  model.safetensors  the weights in upstream's names, with config.json");
    burn_zoo_core::say!("  metrics.csv        every measurement");
    burn_zoo_core::say!("  checkpoints/       to continue from\n");
    burn_zoo_core::say!("next:");
    burn_zoo_core::say!("  {program} --dataset fashion-mnist");
    burn_zoo_core::say!("  cargo run --release -p burn-zoo-cli -- predict {folder} YOUR_IMAGE.png");
    Ok(())
}
