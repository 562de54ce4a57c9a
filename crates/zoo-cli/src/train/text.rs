//! Training of language models.

use super::Args;
use super::launch::{About, Closing, Launch, Lesson, OnDevice, Trained, launch};
use super::place::{Place, stopped_run};
use super::start::{Start, tokenizer_json};
use crate::common::{bar, set_threads};
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn_zoo::WithDecoder;
use burn_zoo_checkpoint::{KeyMap, write_atomically};
use burn_zoo_core::{Error, Result, group_digits};
use burn_zoo_nn::CausalLm;
use burn_zoo_text::{GenerateOptions, Sampling, Tokenizer, generate};
use burn_zoo_texts::{Corpus, Tokens, Trigram, Vocabulary, Windows};
use burn_zoo_train::{
    LanguageTask, RunDir, TextReportInput, evaluate_text, parts, write_text_report,
};
use serde_json::json;
use std::ops::ControlFlow;

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

pub fn run_as(args: &Args, program: &str) -> Result<i32> {
    let (place, recipe, text) = match &args.resume {
        Some(folder) => {
            let (run, recipe) = stopped_run(args, folder)?;
            let corpus = Corpus::open(&recipe.dataset, recipe.data_dir.as_deref())?;
            let text = Text::open(&corpus, "", Some(tokenizer_json(folder)?))?;
            (Place::resumed(run)?, recipe, text)
        }
        None => {
            let name = args.dataset_name();
            let corpus = Corpus::open(&name, args.data_dir.as_deref())?;
            let start = Start::new(args, super::args::default_model(&name))?;
            if let (Some((_, path)), Some(_)) = (&start.weights, &args.vocabulary) {
                let message = format!("the weights in {} have their own", path.display());
                return Err(Error::usage("--vocabulary", message));
            }
            let own = start.tokenizer_json()?;
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
            (Place::new(args, &recipe, start, program), recipe, text)
        }
    };
    launch(args, program, place, &recipe, &text)
}

impl Lesson for &Text {
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
            .with_decoder::<B, _>(seed, device, on_device)?
    }
}

impl<B: AutodiffBackend> WithDecoder<B> for OnDevice<'_, &Text, <B as BackendTypes>::Device> {
    type Output = Result<(RunDir, Option<Closing>)>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + CausalLm<B>,
        M::InnerModule: CausalLm<B::InnerBackend>,
    {
        let (launch, text, device) = (self.launch, self.lesson, self.device);
        let recipe = launch.recipe;
        let length = recipe.text.as_ref().map_or(0, |text| text.sequence_length);
        if length > model.max_positions() {
            let message = format!(
                "{length} is more than the {} of the model",
                model.max_positions()
            );
            return Err(Error::usage("--sequence-length", message));
        }
        let [train_part, valid_part] = parts(text.tokens.len(), recipe.valid_fraction);
        let about = About {
            data: format!(
                "{}: {} training and {} validation tokens of {} kinds",
                recipe.dataset,
                group_digits(train_part.len() as u64),
                group_digits(valid_part.len() as u64),
                text.tokenizer.vocab_size()
            ),
            tokenizer: Some(text.json.clone()),
            preprocessing: None,
            class_names: Vec::new(),
        };
        let task =
            |model: &M| LanguageTask::<B>::new(recipe, &text.tokens, model.vocab_size(), device);
        let report = |trained: &Trained<M::InnerModule>, run: &RunDir| {
            report::<B, _>(trained, launch, text, run, device)
        };
        self.train::<B, _, _>(model, &key_maps, task, about, report)
    }
}

/// Measures the model beside a trigram, lets it go on with some beginnings, and writes both down.
fn report<B: AutodiffBackend, M: CausalLm<B::InnerBackend>>(
    trained: &Trained<M>,
    launch: &Launch,
    text: &Text,
    run: &RunDir,
    device: &<B as BackendTypes>::Device,
) -> Result<Closing> {
    let (recipe, outcome) = (launch.recipe, &trained.outcome);
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
            num_parameters: trained.num_parameters,
        },
    )?;
    let mut lines: Vec<String> = samples
        .iter()
        .map(|(prompt, text)| format!("\n[{prompt}]{text}"))
        .collect();
    lines.push(format!(
        "\nvalidation loss {:.4} nats a token after {} steps in {:.1} s; a tuned trigram has {trigram:.4}, which is {}",
        score.loss,
        outcome.step,
        outcome.seconds,
        if score.loss < trigram { "worse" } else { "better" }
    ));
    let (folder, program) = (run.path().display(), launch.program);
    Ok(Closing {
        json: json!({
            "steps": outcome.step,
            "seconds": outcome.seconds,
            "valid_loss": score.loss,
            "valid_accuracy": score.accuracy,
            "trigram_loss": trigram,
        }),
        lines,
        report: "curves and samples",
        next: vec![
            format!(
                "cargo run --release -p burn-zoo-cli -- generate {folder} \"And it came to pass\" --slide --temperature 0.7"
            ),
            format!("{program} --vocabulary bpe:1024"),
            format!("{program} --dataset text-file --data-dir YOUR_TEXT.txt"),
        ],
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
