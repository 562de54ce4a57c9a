//! Training of language models.

use super::{Args, Place, Start, from_weights, new_place};
use crate::common::{bar, print_json, set_threads};
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn_zoo::{AutoConfig, DeviceSpec, ModelCard, WithBackend, WithDecoder, with_backend};
use burn_zoo_checkpoint::{KeyMap, save, write_atomically};
use burn_zoo_core::{Error, Result, group_digits};
use burn_zoo_nn::CausalLm;
use burn_zoo_optim::trainable;
use burn_zoo_text::{GenerateOptions, Sampling, Tokenizer, generate};
use burn_zoo_texts::{CORPORA, Corpus, Tokens, Trigram, Vocabulary, Windows};
use burn_zoo_train::{
    LanguageTask, Outcome, ProgressKind, Recipe, RunDir, Score, TextReportInput, TrainInput,
    evaluate_text, interrupt_flag, parts, train, write_text_report,
};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Whether the options ask for a language model.
pub fn is_meant(args: &Args) -> Result<bool> {
    match &args.resume {
        Some(folder) => Ok(CORPORA.contains(&RunDir::open(folder)?.1.dataset.as_str())),
        None => Ok(CORPORA.contains(&args.dataset_name().as_str())),
    }
}

/// A text as token numbers.
struct Text {
    tokens: Tokens,
    tokenizer: Tokenizer,
    /// The tokenizer, to be kept with the run.
    json: String,
    letters: usize,
    attribution: String,
}

impl Text {
    /// The text of `corpus` by the tokenizer `json`, or by one that `vocabulary` learns.
    fn open(corpus: &Corpus, vocabulary: &str, json: Option<String>) -> Result<Self> {
        let json = match json {
            Some(json) => json,
            None => vocabulary
                .parse::<Vocabulary>()?
                .tokenizer_json(&corpus.text)?,
        };
        let tokenizer = Vocabulary::tokenizer(&json)?;
        Ok(Self {
            tokens: Tokens::of(&corpus.text, &tokenizer)?,
            tokenizer,
            json,
            letters: corpus.text.chars().count(),
            attribution: corpus.attribution.clone(),
        })
    }
}

/// `tokenizer.json` in a folder.
pub(super) fn tokenizer_json(folder: &Path) -> Result<String> {
    let path = folder.join("tokenizer.json");
    std::fs::read_to_string(&path).map_err(Error::io(&path, "read"))
}

pub fn run_as(args: &Args, program: &str) -> Result<i32> {
    let (place, recipe, text) = match &args.resume {
        Some(folder) => {
            let (mut run, mut recipe) = RunDir::open(folder)?;
            args.agree_with(&recipe)?;
            args.adjust(&mut recipe)?;
            recipe.threads = set_threads(args.threads.or(Some(recipe.threads)))?;
            recipe.validate()?;
            let corpus = Corpus::open(&recipe.dataset, recipe.data_dir.as_deref())?;
            let text = Text::open(&corpus, "", Some(tokenizer_json(folder)?))?;
            run.lock()?;
            (Place::Resumed(run), recipe, text)
        }
        None => {
            let name = args.dataset_name();
            let corpus = Corpus::open(&name, args.data_dir.as_deref())?;
            let start = Start::new(args, super::args::default_model(&name))?;
            // A model that has learnt already has its own tokens.
            let own = match &start.weights {
                Some((_, path)) if args.vocabulary.is_some() => {
                    let message = format!("the weights in {} have their own", path.display());
                    return Err(Error::usage("--vocabulary", message));
                }
                Some((_, path)) if path.is_dir() => Some(tokenizer_json(path)?),
                Some((_, path)) => Some(tokenizer_json(path.parent().unwrap_or(path))?),
                None => None,
            };
            let vocabulary = match &own {
                Some(_) => "the model's".to_string(),
                None => args.vocabulary.clone().unwrap_or_else(|| "chars".into()),
            };
            burn_zoo_core::note!("reading {} …", corpus.name);
            let text = Text::open(&corpus, &vocabulary, own)?;
            let length = args.sequence_length.unwrap_or(64);
            let config = match &start.weights {
                Some(_) => start.config.clone(),
                None => start
                    .config
                    .clone()
                    .with_vocabulary(text.tokenizer.vocab_size(), length)?,
            };
            let threads = set_threads(args.threads)?;
            let recipe = args.text_recipe(&name, config, vocabulary, &start, threads)?;
            (new_place(args, &recipe, start, program), recipe, text)
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
        text: &text,
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
    text: &'a Text,
    config: &'a AutoConfig,
    interrupt: Arc<AtomicBool>,
    progress: ProgressKind,
}

/// A run that came to its end.
struct Done {
    score: Score,
    trigram: f64,
    samples: Vec<(String, String)>,
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
        config.with_decoder::<B, _>(Some(seed), &device, on_device)?
    }
}

struct OnDevice<'a, D> {
    job: Job<'a>,
    device: D,
}

impl<B: AutodiffBackend> WithDecoder<B> for OnDevice<'_, <B as BackendTypes>::Device> {
    type Output = Result<(RunDir, Option<Done>)>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + CausalLm<B>,
        M::InnerModule: CausalLm<B::InnerBackend>,
    {
        let Job {
            place,
            recipe,
            text,
            config,
            interrupt,
            progress,
        } = self.job;
        let length = recipe.text.as_ref().map_or(0, |text| text.sequence_length);
        if length > model.max_positions() {
            let message = format!(
                "{length} is more than the {} of the model",
                model.max_positions()
            );
            return Err(Error::usage("--sequence-length", message));
        }
        let (model, weights) = match &place {
            Place::New {
                weights: Some(path),
                ..
            } => from_weights(model, path, recipe, &key_maps)?,
            _ => (model, None),
        };
        let task = LanguageTask::<B>::new(recipe, &text.tokens, model.vocab_size(), &self.device)?;
        let (run, resume) = match place {
            Place::New { out, command, .. } => (RunDir::create(&out, recipe, &command)?, false),
            Place::Resumed(run) => (run, true),
        };
        write_atomically(&run.file("tokenizer.json"), text.json.as_bytes())?;
        let num_parameters = trainable::<B, M>(&model).iter().map(|(_, len)| len).sum();
        let [train_part, valid_part] = parts(text.tokens.len(), recipe.valid_fraction);
        burn_zoo_core::say!(
            "{} ({} parameters) on {}: {} training and {} validation tokens of {} kinds; {} with {} threads; run folder {}",
            recipe.model,
            group_digits(num_parameters as u64),
            recipe.dataset,
            group_digits(train_part.len() as u64),
            group_digits(valid_part.len() as u64),
            text.tokenizer.vocab_size(),
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
        let card = ModelCard {
            name: recipe.model.clone(),
            model: config.clone(),
            preprocessing: None,
            class_names: Vec::new(),
        };
        card.write(run.path())?;
        let done = report::<B, _>(&outcome, recipe, text, &run, num_parameters, &self.device)?;
        Ok((run, Some(done)))
    }
}

/// Measures the model beside a trigram, lets it go on with some beginnings, and writes both down.
fn report<B: AutodiffBackend, M: CausalLm<B::InnerBackend>>(
    outcome: &Outcome<M>,
    recipe: &Recipe,
    text: &Text,
    run: &RunDir,
    num_parameters: usize,
    device: &<B as BackendTypes>::Device,
) -> Result<Done> {
    let model = &outcome.model;
    let length = recipe.text.as_ref().map_or(1, |text| text.sequence_length);
    let [train_part, valid_part] = parts(text.tokens.len(), recipe.valid_fraction);
    let size = recipe.batch_size;
    let windows = Windows::new(text.tokens.clone(), valid_part.clone(), length, size, None)?;
    let bar = bar(windows.batches(), "measuring the validation part");
    let score = evaluate_text(model, &windows, device, |done| {
        bar.set_position(done as u64)
    })?;
    bar.finish_and_clear();
    burn_zoo_core::note!("tuning a trigram to compare with …");
    let vocab = text.tokenizer.vocab_size();
    let counted = text.tokens.read(train_part)?;
    let trigram = Trigram::fit(&counted, vocab)?.loss(&text.tokens.read(valid_part)?);
    let samples = samples(model, text, recipe.seed, device)?;

    let letters_per_token = text.letters as f64 / text.tokens.len().max(1) as f64;
    let letter_nats = std::f64::consts::LN_2 * letters_per_token;
    let path = run.file("evaluation.json");
    let json = json!({
        "loss": score.loss, "perplexity": score.loss.exp(), "accuracy": score.accuracy,
        "trigram_loss": trigram, "samples": samples,
    });
    write_atomically(&path, format!("{json:#}\n").as_bytes())?;
    write_text_report(
        &run.file("report.html"),
        &TextReportInput {
            recipe,
            attribution: &text.attribution,
            command: &run.command(),
            rows: &outcome.rows,
            facts: vec![
                ("validation loss", format!("{:.4}", score.loss)),
                ("a trigram's loss", format!("{trigram:.4}")),
                ("perplexity", format!("{:.2}", score.loss.exp())),
                ("bits a letter", format!("{:.3}", score.loss / letter_nats)),
                (
                    "next token right",
                    format!("{:.2} %", 100.0 * score.accuracy),
                ),
            ],
            baseline: Some(("trigram", trigram)),
            unit: "tokens",
            samples: &samples,
            seconds: outcome.seconds,
            num_parameters,
        },
    )?;
    Ok(Done {
        score,
        trigram,
        samples,
        seconds: outcome.seconds,
        step: outcome.step,
    })
}

/// Beginnings of lines of the text, and how the model goes on.
fn samples<B: burn::tensor::backend::Backend, M: CausalLm<B>>(
    model: &M,
    text: &Text,
    seed: u64,
    device: &B::Device,
) -> Result<Vec<(String, String)>> {
    let all = text.tokens.len();
    let mut samples = Vec::new();
    for place in [all / 3, all / 2, all - all / 20] {
        // From the next line on, a few letters.
        let near = text.tokens.read(place..(place + 400).min(all))?;
        let near: Vec<usize> = near.iter().map(|id| *id as usize).collect();
        let near = text.tokenizer.decode(&near, false)?;
        let line = near
            .split_once('\n')
            .map_or(near.as_str(), |(_, rest)| rest);
        let prompt: String = line.trim_start().chars().take(16).collect();
        let tokens = text.tokenizer.encode(&prompt, false)?;
        if tokens.is_empty() {
            continue;
        }
        let options = GenerateOptions {
            max_new_tokens: 240,
            sampling: Sampling {
                temperature: 0.7,
                top_p: 0.95,
                seed,
                ..Sampling::default()
            },
            stop_tokens: Vec::new(),
            slide: true,
        };
        let each = |_, _| Ok(ControlFlow::Continue(()));
        let generated = generate(model, &[tokens], &options, device, each)?;
        samples.push((prompt, text.tokenizer.decode(&generated[0].tokens, false)?));
    }
    Ok(samples)
}

/// The last lines: what came out, where it is and what to try next.
fn finish(args: &Args, run: &RunDir, recipe: &Recipe, done: &Done, program: &str) {
    let folder = run.path().display();
    let (loss, trigram) = (done.score.loss, done.trigram);
    if args.json {
        print_json(&json!({
            "run": folder.to_string(),
            "model": recipe.model,
            "dataset": recipe.dataset,
            "seed": recipe.seed,
            "steps": done.step,
            "seconds": done.seconds,
            "valid_loss": loss,
            "valid_accuracy": done.score.accuracy,
            "trigram_loss": trigram,
        }));
        return;
    }
    for (prompt, text) in &done.samples {
        burn_zoo_core::say!("\n[{prompt}]{text}");
    }
    burn_zoo_core::say!(
        "\nvalidation loss {loss:.4} nats a token after {} steps in {:.1} s; a tuned trigram has {trigram:.4}, {}\n",
        done.step,
        done.seconds,
        if loss < trigram {
            "which is worse"
        } else {
            "which is better"
        }
    );
    burn_zoo_core::say!("everything is in {folder}/");
    burn_zoo_core::say!("  report.html        curves and samples: open it in a browser");
    burn_zoo_core::say!(
        "  model.safetensors  the weights in upstream's names, with config.json and tokenizer.json"
    );
    burn_zoo_core::say!("  metrics.csv        every measurement");
    burn_zoo_core::say!("  checkpoints/       to continue from\n");
    burn_zoo_core::say!("next:");
    burn_zoo_core::say!(
        "  cargo run --release -p burn-zoo-cli -- generate {folder} \"And it came to pass\" --slide --temperature 0.7"
    );
    burn_zoo_core::say!("  {program} --vocabulary bpe:1024");
    burn_zoo_core::say!("  {program} --dataset text-file --data-dir YOUR_TEXT.txt");
}
