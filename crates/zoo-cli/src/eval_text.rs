//! `zoo eval` of a decoder: its perplexity on a text.

use crate::common::{BlockArgs, bar, dtype, print_json};
use crate::model::ModelArgs;
use crate::text::own_tokenizer;
use burn::tensor::backend::{AutodiffBackend, Backend, BackendTypes};
use burn_zoo::{Pretrained, WithBackend, WithCausalLm, with_backend};
use burn_zoo_core::{Error, Result, group_digits};
use burn_zoo_nn::CausalLm;
use burn_zoo_text::Tokenizer;
use burn_zoo_texts::{Corpus, Tokens, Windows};
use burn_zoo_train::{RunDir, Score, evaluate_text, parts};
use serde_json::json;
use std::path::{Path, PathBuf};

/// What is measured, where it was given.
pub struct Asked<'a> {
    pub model: &'a ModelArgs,
    pub blocks: &'a BlockArgs,
    pub dataset: Option<&'a str>,
    pub data_dir: Option<&'a Path>,
    pub batch_size: usize,
    pub json: bool,
}

/// A text, the share of it that is measured, and the tokens of a sequence.
struct Measured {
    corpus: Corpus,
    valid_fraction: Option<f64>,
    length: usize,
}

/// The text that was asked for, whole, or the validation part of the run's.
fn measured(asked: &Asked) -> Result<Measured> {
    let run = RunDir::open(Path::new(&asked.model.model))
        .ok()
        .map(|(_, recipe)| recipe);
    let length = run
        .as_ref()
        .and_then(|recipe| Some(recipe.text.as_ref()?.sequence_length));
    if let Some(name) = asked.dataset {
        return Ok(Measured {
            corpus: Corpus::open(name, asked.data_dir)?,
            valid_fraction: None,
            length: length.unwrap_or(512),
        });
    }
    let Some(recipe) = run.filter(|recipe| recipe.text.is_some()) else {
        let message = format!(
            "is needed, since {} is no run folder: text-file with --data-dir FILE, or kjv",
            asked.model.model
        );
        return Err(Error::usage("--dataset", message));
    };
    let file: Option<PathBuf> = asked.data_dir.map(Into::into).or(recipe.data_dir);
    Ok(Measured {
        corpus: Corpus::open(&recipe.dataset, file.as_deref())?,
        valid_fraction: Some(recipe.valid_fraction),
        length: length.unwrap_or(512),
    })
}

struct OnBackend<'a> {
    asked: &'a Asked<'a>,
    pretrained: &'a Pretrained,
    measured: &'a Measured,
}

impl WithBackend for OnBackend<'_> {
    type Output = Result<(Score, usize)>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let dtype = dtype::<B>(&self.asked.model.dtype, &device)?;
        let measure = Measure {
            of: &self,
            tokenizer: own_tokenizer(self.pretrained)?,
            device: &device,
        };
        let spec = self.asked.model.backend.spec()?;
        let products = self.asked.blocks.products(spec, dtype)?;
        self.pretrained
            .with_causal_lm::<B::InnerBackend, _>(dtype, products, &device, measure)?
    }
}

struct Measure<'a, D> {
    of: &'a OnBackend<'a>,
    tokenizer: Tokenizer,
    device: &'a D,
}

impl<B: Backend> WithCausalLm<B> for Measure<'_, <B as BackendTypes>::Device> {
    type Output = Result<(Score, usize)>;

    fn run<M: CausalLm<B>>(self, model: M) -> Self::Output {
        let Measured {
            corpus,
            valid_fraction,
            length,
        } = self.of.measured;
        self.tokenizer.fits(model.vocab_size())?;
        let tokens = Tokens::of(&corpus.text, &self.tokenizer)?;
        let part = match valid_fraction {
            Some(share) => parts(tokens.len(), *share)[1].clone(),
            None => 0..tokens.len(),
        };
        let count = part.len();
        let length = (*length)
            .min(model.max_positions())
            .min(count.saturating_sub(1))
            .max(1);
        let windows = Windows::new(tokens, part, length, self.of.asked.batch_size, None)?;
        let bar = bar(windows.batches(), "evaluating");
        let done = |done| bar.set_position(done as u64);
        let score = evaluate_text(&model, &windows, self.device, done)?;
        bar.finish_and_clear();
        Ok((score, count))
    }
}

pub fn run(pretrained: &Pretrained, asked: &Asked) -> Result<()> {
    let measured = measured(asked)?;
    let on_backend = OnBackend {
        asked,
        pretrained,
        measured: &measured,
    };
    let (score, count) = with_backend(asked.model.backend.spec()?, on_backend)??;
    let (name, text) = (&pretrained.card.name, &measured.corpus.name);
    if asked.json {
        print_json(&json!({
            "model": name,
            "dataset": text,
            "tokens": count,
            "loss": score.loss,
            "perplexity": score.loss.exp(),
            "accuracy": score.accuracy,
        }));
        return Ok(());
    }
    let part = match measured.valid_fraction {
        Some(_) => "the validation part, ",
        None => "",
    };
    burn_zoo_core::say!(
        "{name} on {text} ({part}{} tokens)",
        group_digits(count as u64)
    );
    burn_zoo_core::say!("loss        {:.4} nats a token", score.loss);
    burn_zoo_core::say!("perplexity  {:.3}", score.loss.exp());
    burn_zoo_core::say!("next token  {:.2} % right", 100.0 * score.accuracy);
    Ok(())
}
