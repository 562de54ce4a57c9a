//! Training of encoders that tell classes of texts apart.

use super::Args;
use super::launch::{About, Closing, Launch, Lesson, OnDevice, Trained, launch};
use super::place::{Place, stopped_run};
use super::start::{Start, tokenizer_json};
use crate::common::set_threads;
use crate::text::cut;
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn_zoo::WithModel;
use burn_zoo_checkpoint::{KeyMap, write_atomically};
use burn_zoo_core::{Error, Network, Result};
use burn_zoo_text::Tokenizer;
use burn_zoo_texts::{Labelled, word_pieces};
use burn_zoo_train::{
    LabelledTokens, RunDir, TextReportInput, TextTask, evaluate_texts, write_text_report,
};
use serde_json::json;
use std::path::Path;

/// Texts as token numbers.
struct Texts {
    set: Labelled,
    train: Vec<LabelledTokens>,
    valid: Vec<LabelledTokens>,
    test: Vec<LabelledTokens>,
    tokenizer: Tokenizer,
    pad: usize,
    json: String,
}

impl Texts {
    /// By the tokenizer `json`, or by one that learns word pieces; texts are cut to `most` tokens.
    fn new(set: Labelled, json: Option<String>, most: usize) -> Result<Self> {
        let json = match json {
            Some(json) => json,
            None => word_pieces(set.train.iter().map(|(text, _)| text.as_str()), 2000)?,
        };
        let tokenizer = Tokenizer::parse(&json, Path::new("tokenizer.json"))?;
        let encoded = |part: &[(String, usize)]| {
            let encode = |(text, label): &(String, usize)| {
                let mut ids = tokenizer.encode(text, true)?;
                cut(&mut ids, most);
                Ok((ids, *label))
            };
            part.iter().map(encode).collect::<Result<Vec<_>>>()
        };
        let pad = ["[PAD]", "<pad>"].iter().find_map(|pad| tokenizer.id(pad));
        Ok(Self {
            train: encoded(&set.train)?,
            valid: encoded(&set.valid)?,
            test: encoded(&set.test)?,
            pad: pad.unwrap_or(0),
            tokenizer,
            json,
            set,
        })
    }
}

/// Tokens of a text that are read: a model that has learnt has places for so many.
fn longest(args: &Args, start: &Start) -> Result<usize> {
    let places = start.weights.as_ref().and(start.config.max_length());
    let most = args.sequence_length;
    let most = most.unwrap_or_else(|| places.unwrap_or(128).min(128));
    if most < 2 {
        let message = format!("must be at least 2, got {most}");
        return Err(Error::usage("--sequence-length", message));
    }
    if let Some(places) = places.filter(|places| most > *places) {
        let message = format!("{} has places for {places} tokens, got {most}", start.name);
        return Err(Error::usage("--sequence-length", message));
    }
    Ok(most)
}

pub fn run_as(args: &Args, program: &str) -> Result<i32> {
    let share = |recipe: Option<f64>| recipe.or(args.valid_fraction).unwrap_or(0.1);
    let (place, recipe, texts) = match &args.resume {
        Some(folder) => {
            let (run, recipe) = stopped_run(args, folder)?;
            let share = share(Some(recipe.valid_fraction));
            let set = Labelled::open(&recipe.dataset, recipe.data_dir.as_deref(), share)?;
            let most = recipe
                .text
                .as_ref()
                .map_or(128, |text| text.sequence_length);
            let texts = Texts::new(set, Some(tokenizer_json(folder)?), most)?;
            (Place::resumed(run)?, recipe, texts)
        }
        None => {
            let name = args.dataset_name();
            let set = Labelled::open(&name, args.data_dir.as_deref(), share(None))?;
            if args.vocabulary.is_some() {
                let message =
                    "is for language models; an encoder learns word pieces or has its own";
                return Err(Error::usage("--vocabulary", message));
            }
            let start = Start::new(args, super::args::default_model(&name))?;
            let own = start.tokenizer_json()?;
            let classes = set.class_names.len();
            let most = longest(args, &start)?;
            let texts = Texts::new(set, own, most)?;
            let vocab = texts.tokenizer.vocab_size();
            let new = start.weights.is_none();
            let config = start.config.clone().classifying_texts(
                classes,
                most,
                new.then_some((vocab, texts.pad)),
            )?;
            let threads = set_threads(args.threads)?;
            let recipe = args.labelled_recipe(&name, config, most, &start, threads)?;
            (Place::new(args, &recipe, start, program), recipe, texts)
        }
    };
    launch(args, program, place, &recipe, &texts)
}

impl Lesson for &Texts {
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
        launch.config.with_model::<B, _>(seed, device, on_device)?
    }
}

impl<B: AutodiffBackend> WithModel<B> for OnDevice<'_, &Texts, <B as BackendTypes>::Device> {
    type Output = Result<(RunDir, Option<Closing>)>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + Network<B>,
        M::InnerModule: Network<B::InnerBackend>,
    {
        let (launch, texts, device) = (self.launch, self.lesson, self.device);
        let about = About {
            data: format!(
                "{}: {} training, {} validation and {} test texts of {} classes",
                launch.recipe.dataset,
                texts.train.len(),
                texts.valid.len(),
                texts.test.len(),
                texts.set.class_names.len()
            ),
            tokenizer: Some(texts.json.clone()),
            preprocessing: None,
            class_names: texts.set.class_names.clone(),
        };
        let task = |_: &M| {
            let (train_part, valid_part) = (texts.train.clone(), texts.valid.clone());
            TextTask::<B>::new(launch.recipe, train_part, valid_part, texts.pad, device)
        };
        let report = |trained: &Trained<M::InnerModule>, run: &RunDir| {
            report::<B, _>(trained, launch, texts, run, device)
        };
        self.train::<B, _, _>(model, &key_maps, task, about, report)
    }
}

/// Evaluates on the test texts and writes `evaluation.json` and `report.html`.
fn report<B: AutodiffBackend, M: Network<B::InnerBackend>>(
    trained: &Trained<M>,
    launch: &Launch,
    texts: &Texts,
    run: &RunDir,
    device: &<B as BackendTypes>::Device,
) -> Result<Closing> {
    let (recipe, outcome) = (launch.recipe, &trained.outcome);
    let (size, pad) = (recipe.batch_size, texts.pad);
    let (predictions, score) = evaluate_texts(&outcome.model, &texts.test, size, pad, device)?;
    let names = &texts.set.class_names;
    // Of every class some.
    let step = (predictions.len() / 24).max(1);
    let shown = predictions
        .iter()
        .zip(&texts.set.test)
        .step_by(step)
        .take(24);
    let shown = shown.map(|((best, probability), (text, label))| {
        let mark = if best == label { "✓" } else { "✗" };
        let said = format!("{mark} {} {:.0} %", names[*best], 100.0 * probability);
        let said = match best == label {
            true => said,
            false => format!("{said} (is {})", names[*label]),
        };
        (said, format!("  {text}"))
    });
    let samples: Vec<(String, String)> = shown.collect();
    let count = texts.test.len();
    let path = run.file("evaluation.json");
    let json = json!({
        "loss": score.loss, "accuracy": score.accuracy, "count": count,
        "predictions": predictions,
    });
    write_atomically(&path, format!("{json:#}\n").as_bytes())?;
    write_text_report(
        &run.file("report.html"),
        &TextReportInput {
            recipe,
            attribution: &texts.set.attribution,
            command: &run.command(),
            rows: &outcome.rows,
            facts: vec![
                ("test accuracy", format!("{:.2} %", 100.0 * score.accuracy)),
                ("test texts", count.to_string()),
                ("test loss", format!("{:.4}", score.loss)),
            ],
            baseline: None,
            unit: "texts",
            samples: &samples,
            seconds: outcome.seconds,
            num_parameters: trained.num_parameters,
        },
    )?;
    let mut lines: Vec<String> = samples
        .iter()
        .step_by(4)
        .map(|(said, text)| format!("{said}{}", text.chars().take(90).collect::<String>()))
        .collect();
    lines.push(format!(
        "test accuracy {:.2} % on {count} texts after {} steps in {:.1} s",
        100.0 * score.accuracy,
        outcome.step,
        outcome.seconds
    ));
    let (folder, program) = (run.path().display(), launch.program);
    Ok(Closing {
        json: json!({
            "steps": outcome.step,
            "seconds": outcome.seconds,
            "test_accuracy": score.accuracy,
            "test_loss": score.loss,
            "test_count": count,
        }),
        lines,
        report: "curves and predictions",
        next: vec![
            format!("cargo run --release -p burn-zoo-cli -- classify {folder} \"YOUR TEXT\""),
            format!(
                "{program} --model MODEL_FOLDER --dataset labelled-file --data-dir YOUR_TEXTS.csv --allow-missing 'classifier.*'"
            ),
        ],
    })
}
