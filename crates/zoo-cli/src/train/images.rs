//! Training of image classifiers.

use super::Args;
use super::launch::{About, Closing, Launch, Lesson, OnDevice, Trained, launch};
use super::place::{Place, stopped_run};
use super::start::Start;
use crate::common::{bar, set_threads};
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn::tensor::{DType, Tensor};
use burn_zoo::WithClassifier;
use burn_zoo_checkpoint::{KeyMap, write_atomically};
use burn_zoo_core::{Error, ImageClassifier, Mode, Result};
use burn_zoo_images::{Dataset, Loader, LoaderOptions, OpenOptions, Transform, open};
use burn_zoo_train::{
    Evaluation, ImageTask, Recipe, ReportInput, RunDir, draw_images, evaluate, write_report,
};
use serde_json::json;
use std::io::IsTerminal;

pub fn run_as(args: &Args, program: &str) -> Result<i32> {
    let (place, recipe, dataset) = match &args.resume {
        Some(folder) => {
            let (run, recipe) = stopped_run(args, folder)?;
            let dataset = open(&recipe.dataset, &open_options(&recipe))?;
            (Place::resumed(run)?, recipe, dataset)
        }
        None => {
            let options = OpenOptions {
                data_dir: args.data_dir.clone(),
                valid_fraction: args.valid_fraction.unwrap_or(0.1),
                image_size: args.image_size.unwrap_or(224),
                ..OpenOptions::default()
            };
            let dataset = open(&args.dataset_name(), &options)?;
            let start = Start::new(args, super::args::default_model(&dataset.name))?;
            let recipe = args.recipe(&dataset, &start, set_threads(args.threads)?)?;
            (Place::new(args, &recipe, start, program), recipe, dataset)
        }
    };
    launch(args, program, place, &recipe, &dataset)
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

impl Lesson for &Dataset {
    fn learn<B: AutodiffBackend>(
        self,
        launch: &Launch,
        place: Place,
        device: &<B as BackendTypes>::Device,
    ) -> Result<(RunDir, Option<Closing>)> {
        let on_device = OnDevice {
            launch,
            place,
            lesson: self,
            device,
        };
        let seed = Some(launch.recipe.seed);
        launch
            .config
            .with_classifier::<B, _>(seed, device, on_device)?
    }
}

impl<B: AutodiffBackend> WithClassifier<B> for OnDevice<'_, &Dataset, <B as BackendTypes>::Device> {
    type Output = Result<(RunDir, Option<Closing>)>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
        M::InnerModule: ImageClassifier<B::InnerBackend>,
    {
        let (launch, dataset, device) = (self.launch, self.lesson, self.device);
        let about = About {
            data: format!(
                "{}: {} training, {} validation, {} test images",
                dataset.name,
                dataset.train.len(),
                dataset.valid.len(),
                dataset.test.len()
            ),
            tokenizer: None,
            preprocessing: Some(dataset.preprocessing.clone()),
            class_names: dataset.class_names.clone(),
        };
        let task = |_: &M| ImageTask::<B>::new(launch.recipe, dataset, device);
        let report = |trained: &Trained<M::InnerModule>, run: &RunDir| {
            let evaluation = report::<B, _>(trained, launch.recipe, dataset, run, device)?;
            closing(launch, run, dataset, trained, &evaluation)
        };
        self.train::<B, _, _>(model, &key_maps, task, about, report)
    }
}

/// Evaluates on the test images and writes `evaluation.json` and `report.html`.
fn report<B: AutodiffBackend, M: ImageClassifier<B::InnerBackend>>(
    trained: &Trained<M>,
    recipe: &Recipe,
    dataset: &Dataset,
    run: &RunDir,
    device: &<B as BackendTypes>::Device,
) -> Result<Evaluation> {
    let options = LoaderOptions {
        batch_size: recipe.batch_size.min(256),
        seed: None,
        workers: recipe.workers,
    };
    let transform = Transform::eval(dataset.preprocessing.clone());
    let [channels, height, width] = transform.shape();
    let loader = Loader::new(dataset.test.clone(), transform, options)?;
    let outcome = &trained.outcome;
    let logits = |x| outcome.model.logits(x, Mode::Eval, None);
    let bar = bar(loader.len(), "evaluating the test images");
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
            num_parameters: trained.num_parameters,
            flops: counts.flops,
        },
    )?;
    Ok(evaluation)
}

/// The last lines, with some of the images: drawn on a terminal, elsewhere in words.
fn closing<M>(
    launch: &Launch,
    run: &RunDir,
    dataset: &Dataset,
    trained: &Trained<M>,
    eval: &Evaluation,
) -> Result<Closing> {
    let outcome = &trained.outcome;
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
    let mut lines = Vec::new();
    if !launch.json && std::io::stdout().is_terminal() {
        let images = shown
            .iter()
            .map(|i| Ok((dataset.test.image(*i)?, caption(*i))))
            .collect::<Result<Vec<_>>>()?;
        lines.push("\nSome test images and what the model says:\n".into());
        lines.push(draw_images(&images, 76).trim_end().into());
    } else {
        let captions: Vec<String> = shown.iter().map(|i| caption(*i)).collect();
        lines.push(format!("some test images: {}", captions.join(" | ")));
    }
    lines.push(format!(
        "test accuracy {:.2} % on {} images after {} steps in {:.1} s",
        100.0 * eval.accuracy,
        eval.count,
        outcome.step,
        outcome.seconds
    ));
    let folder = run.path().display();
    Ok(Closing {
        json: json!({
            "steps": outcome.step,
            "seconds": outcome.seconds,
            "valid_accuracy": outcome.best_score,
            "test_accuracy": eval.accuracy,
            "test_loss": eval.loss,
            "test_count": eval.count,
        }),
        lines,
        report: "curves, confusion matrix and pictures",
        next: vec![
            format!("{} --dataset fashion-mnist", launch.program),
            format!("cargo run --release -p burn-zoo-cli -- predict {folder} YOUR_IMAGE.png"),
        ],
    })
}
