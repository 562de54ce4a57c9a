//! Training of encoders that tell classes of texts apart.

use super::text::tokenizer_json;
use super::{Args, Place, Start, from_weights, new_place};
use crate::common::{print_json, set_threads};
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn_zoo::{AutoConfig, DeviceSpec, ModelCard, WithBackend, WithModel, with_backend};
use burn_zoo_checkpoint::{KeyMap, save, write_atomically};
use burn_zoo_core::{Error, Network, Result, group_digits};
use burn_zoo_optim::trainable;
use burn_zoo_text::Tokenizer;
use burn_zoo_texts::{LABELLED, Labelled, word_pieces};
use burn_zoo_train::{
    LabelledTokens, ProgressKind, Recipe, RunDir, Score, TextReportInput, TextTask, TrainInput,
    evaluate_texts, interrupt_flag, train, write_text_report,
};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Whether the options ask for a classifier of texts.
pub fn is_meant(args: &Args) -> Result<bool> {
    match &args.resume {
        Some(folder) => Ok(LABELLED.contains(&RunDir::open(folder)?.1.dataset.as_str())),
        None => Ok(LABELLED.contains(&args.dataset_name().as_str())),
    }
}

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
                if ids.len() > most {
                    let last = ids[ids.len() - 1];
                    ids.truncate(most - 1);
                    ids.push(last);
                }
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

pub fn run_as(args: &Args, program: &str) -> Result<i32> {
    let share = |recipe: Option<f64>| recipe.or(args.valid_fraction).unwrap_or(0.1);
    let (place, recipe, texts) = match &args.resume {
        Some(folder) => {
            let (mut run, mut recipe) = RunDir::open(folder)?;
            args.agree_with(&recipe)?;
            args.adjust(&mut recipe)?;
            recipe.threads = set_threads(args.threads.or(Some(recipe.threads)))?;
            recipe.validate()?;
            let share = share(Some(recipe.valid_fraction));
            let set = Labelled::open(&recipe.dataset, recipe.data_dir.as_deref(), share)?;
            let most = recipe
                .text
                .as_ref()
                .map_or(128, |text| text.sequence_length);
            let texts = Texts::new(set, Some(tokenizer_json(folder)?), most)?;
            run.lock()?;
            (Place::Resumed(run), recipe, texts)
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
            let own = match &start.weights {
                Some((_, path)) if path.is_dir() => Some(tokenizer_json(path)?),
                Some((_, path)) => Some(tokenizer_json(path.parent().unwrap_or(path))?),
                None => None,
            };
            let classes = set.class_names.len();
            let most = args.sequence_length.unwrap_or(128);
            if most < 2 {
                let message = format!("must be at least 2, got {most}");
                return Err(Error::usage("--sequence-length", message));
            }
            let texts = Texts::new(set, own, most)?;
            let vocab = texts.tokenizer.vocab_size();
            let new = start.weights.is_none();
            let config = start
                .config
                .clone()
                .classifying_texts(classes, new.then_some((vocab, most)))?;
            let threads = set_threads(args.threads)?;
            let recipe = args.labelled_recipe(&name, config, most, &start, threads)?;
            (new_place(args, &recipe, start, program), recipe, texts)
        }
    };
    let config: AutoConfig = serde_json::from_value(recipe.model_config.clone())
        .map_err(|e| Error::malformed("recipe.json", format!("model_config: {e}")))?;
    let spec = DeviceSpec {
        backend: recipe.backend.parse()?,
        index: args.backend.device,
    };
    let job = Job {
        place,
        recipe: &recipe,
        texts: &texts,
        config: &config,
        interrupt: interrupt_flag(),
        progress: args.progress_kind()?,
    };
    match with_backend(spec, job)?? {
        (run, Some(done)) => {
            finish(args, &run, &recipe, &done, program);
            Ok(0)
        }
        (run, None) => {
            let folder = run.path().display();
            burn_zoo_core::say!("stopped and saved; continue with\n  {program} --resume {folder}");
            Ok(130)
        }
    }
}

struct Job<'a> {
    place: Place,
    recipe: &'a Recipe,
    texts: &'a Texts,
    config: &'a AutoConfig,
    interrupt: Arc<AtomicBool>,
    progress: ProgressKind,
}

/// A run that came to its end.
struct Done {
    score: Score,
    samples: Vec<(String, String)>,
    count: usize,
    seconds: f64,
    step: usize,
}

impl WithBackend for Job<'_> {
    type Output = Result<(RunDir, Option<Done>)>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let (config, seed) = (self.config, self.recipe.seed);
        let on_device = OnDevice {
            job: self,
            device: device.clone(),
        };
        config.with_model::<B, _>(Some(seed), &device, on_device)?
    }
}

struct OnDevice<'a, D> {
    job: Job<'a>,
    device: D,
}

impl<B: AutodiffBackend> WithModel<B> for OnDevice<'_, <B as BackendTypes>::Device> {
    type Output = Result<(RunDir, Option<Done>)>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + Network<B>,
        M::InnerModule: Network<B::InnerBackend>,
    {
        let Job {
            place,
            recipe,
            texts,
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
        let (train_part, valid_part) = (texts.train.clone(), texts.valid.clone());
        let task = TextTask::<B>::new(recipe, train_part, valid_part, texts.pad, &self.device)?;
        let (run, resume) = match place {
            Place::New { out, command, .. } => (RunDir::create(&out, recipe, &command)?, false),
            Place::Resumed(run) => (run, true),
        };
        write_atomically(&run.file("tokenizer.json"), texts.json.as_bytes())?;
        let num_parameters = trainable::<B, M>(&model).iter().map(|(_, len)| len).sum();
        burn_zoo_core::say!(
            "{} ({} parameters) on {}: {} training, {} validation and {} test texts of {} classes; {} with {} threads; run folder {}",
            recipe.model,
            group_digits(num_parameters as u64),
            recipe.dataset,
            texts.train.len(),
            texts.valid.len(),
            texts.test.len(),
            texts.set.class_names.len(),
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
            device: &self.device,
            progress,
            interrupt,
        };
        let outcome = train(model, &task, input)?;
        if outcome.interrupted {
            return Ok((run, None));
        }
        save(&outcome.model, &run.file("model.safetensors"), &key_maps[0])?;
        let names = &texts.set.class_names;
        let card = ModelCard {
            name: recipe.model.clone(),
            model: config.clone(),
            preprocessing: None,
            class_names: names.clone(),
        };
        card.write(run.path())?;
        let (size, pad) = (recipe.batch_size, texts.pad);
        let evaluated = evaluate_texts(&outcome.model, &texts.test, size, pad, &self.device)?;
        let (predictions, score) = evaluated;
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
        let path = run.file("evaluation.json");
        let json = json!({
            "loss": score.loss, "accuracy": score.accuracy, "count": texts.test.len(),
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
                    ("test texts", texts.test.len().to_string()),
                    ("test loss", format!("{:.4}", score.loss)),
                ],
                baseline: None,
                unit: "texts",
                samples: &samples,
                seconds: outcome.seconds,
                num_parameters,
            },
        )?;
        let done = Done {
            score,
            samples,
            count: texts.test.len(),
            seconds: outcome.seconds,
            step: outcome.step,
        };
        Ok((run, Some(done)))
    }
}

/// The last lines: what came out, where it is and what to try next.
fn finish(args: &Args, run: &RunDir, recipe: &Recipe, done: &Done, program: &str) {
    let folder = run.path().display();
    if args.json {
        print_json(&json!({
            "run": folder.to_string(),
            "model": recipe.model,
            "dataset": recipe.dataset,
            "seed": recipe.seed,
            "steps": done.step,
            "seconds": done.seconds,
            "test_accuracy": done.score.accuracy,
            "test_loss": done.score.loss,
            "test_count": done.count,
        }));
        return;
    }
    for (said, text) in done.samples.iter().step_by(4) {
        let text: String = text.chars().take(90).collect();
        burn_zoo_core::say!("{said}{text}");
    }
    burn_zoo_core::say!(
        "test accuracy {:.2} % on {} texts after {} steps in {:.1} s\n",
        100.0 * done.score.accuracy,
        done.count,
        done.step,
        done.seconds
    );
    burn_zoo_core::say!("everything is in {folder}/");
    burn_zoo_core::say!("  report.html        curves and predictions: open it in a browser");
    burn_zoo_core::say!(
        "  model.safetensors  the weights in upstream's names, with config.json and tokenizer.json"
    );
    burn_zoo_core::say!("  metrics.csv        every measurement");
    burn_zoo_core::say!("  checkpoints/       to continue from\n");
    burn_zoo_core::say!("next:");
    burn_zoo_core::say!("  cargo run --release -p burn-zoo-cli -- classify {folder} \"YOUR TEXT\"");
    burn_zoo_core::say!(
        "  {program} --model MODEL_FOLDER --dataset labelled-file --data-dir YOUR_TEXTS.csv --allow-missing 'classifier.*'"
    );
}
