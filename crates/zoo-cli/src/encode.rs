//! `zoo embed`, `zoo fill-mask` and `zoo classify`: what encoders say about texts.

use crate::common::{bar, dtype, print_json, table};
use crate::text::{TextArgs, TextModel, by_length, texts};
use burn::tensor::activation::softmax;
use burn::tensor::backend::{AutodiffBackend, Backend, BackendTypes};
use burn::tensor::{DType, Tensor};
use burn_zoo::{WithBackend, with_backend};
use burn_zoo_bert::{Bert, BertConfig, TextHead};
use burn_zoo_core::{Arguments, CollectStages, Error, Flat, Mode, Network, Result};
use burn_zoo_text::Pooling;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo embed sentence-transformers/all-MiniLM-L6-v2 \"The weather is lovely today.\" \"It's so sunny outside!\"\n  zoo embed model/ --file sentences.txt --json\n\nSeveral texts are compared: the table holds the cosines of their vectors."
)]
pub struct EmbedArgs {
    #[command(flatten)]
    text: TextArgs,
    /// Texts
    texts: Vec<String>,
    /// A file with a text in each line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How tokens become one vector: mean, cls or last [default: as the model's folder says, or mean]
    #[arg(long, value_name = "WAY")]
    pooling: Option<String>,
    /// Leave the vectors as long as they are
    #[arg(long)]
    no_normalize: bool,
    /// Texts at once
    #[arg(long, default_value_t = 32, value_name = "N")]
    batch_size: usize,
    /// Print JSON: the vectors
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo fill-mask google-bert/bert-base-uncased \"Paris is the [MASK] of France.\"\n  zoo fill-mask model/ \"Hello <mask>!\" --top 3 --json"
)]
pub struct FillMaskArgs {
    #[command(flatten)]
    text: TextArgs,
    /// Texts with the model's mask token in them
    #[arg(required = true)]
    texts: Vec<String>,
    /// Tokens to show
    #[arg(long, default_value_t = 5, value_name = "K")]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo classify distilbert/distilbert-base-uncased-finetuned-sst-2-english \"What a fine film.\"\n  zoo classify model/ --file reviews.txt --json"
)]
pub struct ClassifyArgs {
    #[command(flatten)]
    text: TextArgs,
    /// Texts
    texts: Vec<String>,
    /// A file with a text in each line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Classes to show
    #[arg(long, default_value_t = 3, value_name = "K")]
    top: usize,
    /// Texts at once
    #[arg(long, default_value_t = 32, value_name = "N")]
    batch_size: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the encoder over rows of token numbers, the longest first, and gives for each row what `read` takes
/// from its output.
struct Encode<'a> {
    args: &'a TextArgs,
    model: &'a TextModel,
    rows: &'a [Vec<usize>],
    batch_size: usize,
    heads: &'a [TextHead],
    read: Read<'a>,
}

/// What is taken from a batch.
enum Read<'a> {
    /// A vector for each text.
    Vectors(Pooling, bool),
    /// Probabilities at these places.
    At(&'a [usize]),
    /// Probabilities of the classes: of one of them, or of each by itself.
    Classes { each: bool },
}

impl WithBackend for Encode<'_> {
    type Output = Result<Vec<Vec<f32>>>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let dtype = dtype::<B>(&self.args.dtype, &device)?;
        let encoder = self
            .model
            .pretrained
            .encoder::<B::InnerBackend>(dtype, &device)?;
        let (model, config) = encoder;
        if !self.heads.contains(&config.head) {
            let message = format!("has no such head, it has {:?}", config.head);
            return Err(Error::usage("the model", message));
        }
        self.model.tokenizer.fits(config.vocab_size)?;
        let bar = bar(self.rows.len(), "reading");
        let mut found = vec![Vec::new(); self.rows.len()];
        for places in by_length(self.rows, self.batch_size) {
            let rows: Vec<&[usize]> = places.iter().map(|i| self.rows[*i].as_slice()).collect();
            let values = self.batch(&model, &rows, dtype, &device)?;
            for (place, values) in places.iter().zip(values) {
                found[*place] = values;
            }
            bar.inc(places.len() as u64);
        }
        bar.finish_and_clear();
        if found.iter().flatten().any(|value| !value.is_finite()) {
            let message =
                "gives numbers that are not finite: its weights are damaged or it diverged";
            return Err(Error::usage("the model", message));
        }
        Ok(found)
    }
}

impl Encode<'_> {
    fn batch<B: Backend>(
        &self,
        model: &Bert<B>,
        rows: &[&[usize]],
        dtype: DType,
        device: &B::Device,
    ) -> Result<Vec<Vec<f32>>> {
        let tensors = self.model.arguments(rows);
        let from = Path::new("the texts");
        let arguments = Arguments::read(&model.arguments(), &tensors, from, dtype, device)?;
        let mut stages = CollectStages::new();
        let output = model.run(&arguments, Mode::Eval, Some(&mut stages))?;
        let result: Tensor<B, 2> = match self.read {
            Read::Vectors(pooling, normalize) => {
                // The last layer's, whatever stands on it.
                let outputs = model.upstream_outputs();
                let last = outputs
                    .iter()
                    .rfind(|o| o.name.starts_with("hidden_states"));
                let found = last.and_then(|last| stages.0.into_iter().find(|s| s.0 == last.stage));
                let hidden = found.map(|(_, values, shape)| Flat { values, shape });
                let hidden = hidden.and_then(|flat| flat.tensor::<3>());
                let (Some(hidden), Some(mask)) = (hidden, arguments.tokens("attention_mask"))
                else {
                    return Err(Error::usage("the model", "gives no hidden states"));
                };
                pooling.pool(hidden, mask, normalize)
            }
            Read::At(places) => {
                let logits = output.tensor::<3>();
                let logits = logits.ok_or_else(|| Error::usage("the model", "gives no logits"))?;
                softmax(
                    burn_zoo_nn::rows_at(logits, &places[..rows.len()]).cast(DType::F32),
                    1,
                )
            }
            Read::Classes { each } => {
                let logits = output.tensor::<2>();
                let logits = logits.ok_or_else(|| Error::usage("the model", "gives no classes"))?;
                let logits = logits.cast(DType::F32);
                match each {
                    true => burn::tensor::activation::sigmoid(logits),
                    false => softmax(logits, 1),
                }
            }
        };
        let [_, size] = result.dims();
        let values: Vec<f32> = result.into_data().iter::<f32>().collect();
        Ok(values.chunks(size).map(<[f32]>::to_vec).collect())
    }
}

fn config(model: &TextModel) -> Result<&BertConfig> {
    match &model.pretrained.card.model {
        burn_zoo::AutoConfig::Bert(config) => Ok(config),
        _ => Err(Error::usage("the model", "is no encoder of text")),
    }
}

fn positive(batch_size: usize, top: usize) -> Result<()> {
    match batch_size == 0 || top == 0 {
        true => Err(Error::usage("--top and --batch-size", "must be at least 1")),
        false => Ok(()),
    }
}

/// A setting of a Sentence-Transformers folder, where there is one.
fn setting(model: &TextModel, file: &str) -> Result<serde_json::Value> {
    let path = &model.pretrained.weights.path;
    let path = path.parent().unwrap_or(path).join(file);
    if !path.is_file() {
        return Ok(serde_json::Value::Null);
    }
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
    serde_json::from_str(&text).map_err(|e| Error::malformed(&path, e.to_string()))
}

pub fn embed(args: &EmbedArgs) -> Result<()> {
    positive(args.batch_size, 1)?;
    let texts = texts(&args.texts, args.file.as_deref())?;
    let asked = args
        .pooling
        .as_deref()
        .map(str::parse::<Pooling>)
        .transpose()?;
    let model = args.text.open()?;
    let pooling = match asked {
        Some(pooling) => pooling,
        None => {
            let json = setting(&model, "1_Pooling/config.json")?;
            let is = |key: &str| json[key].as_bool() == Some(true);
            match (is("pooling_mode_cls_token"), is("pooling_mode_lasttoken")) {
                (true, _) => Pooling::Cls,
                (_, true) => Pooling::Last,
                _ => Pooling::Mean,
            }
        }
    };
    let longest = config(&model)?.max_length();
    let stated = setting(&model, "sentence_bert_config.json")?["max_seq_length"].as_u64();
    let most = stated
        .map_or(longest, |stated| longest.min(stated as usize))
        .max(2);
    let rows = model.encode(&texts, most)?;
    let encode = Encode {
        args: &args.text,
        model: &model,
        rows: &rows,
        batch_size: args.batch_size,
        heads: &[
            TextHead::None,
            TextHead::MaskedLm,
            TextHead::SequenceClassification,
            TextHead::TokenClassification,
            TextHead::QuestionAnswering,
        ],
        read: Read::Vectors(pooling, !args.no_normalize),
    };
    let vectors = with_backend(args.text.backend.spec()?, encode)??;
    if args.json {
        let all = texts.iter().zip(&vectors).zip(&rows).map(
            |((text, vector), row)| json!({ "text": text, "tokens": row.len(), "vector": vector }),
        );
        print_json(&json!({ "pooling": pooling, "texts": all.collect::<Vec<_>>() }));
        return Ok(());
    }
    if texts.len() > 40 {
        let message = "are too many for a table of cosines: --json prints their vectors";
        return Err(Error::usage("TEXTS", format!("{} {message}", texts.len())));
    }
    let dot = |a: &[f32], b: &[f32]| {
        let sum = |a: &[f32], b: &[f32]| -> f64 {
            a.iter()
                .zip(b)
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum()
        };
        sum(a, b) / (sum(a, a) * sum(b, b)).sqrt()
    };
    let numbers: Vec<String> = (1..=texts.len()).map(|i| i.to_string()).collect();
    let mut header = vec!["", "text"];
    header.extend(numbers.iter().map(String::as_str));
    let mut table = table(&header);
    for (i, text) in texts.iter().enumerate() {
        let shown: String = text.chars().take(48).collect();
        let mut row = vec![numbers[i].clone(), shown];
        row.extend(
            vectors
                .iter()
                .map(|other| format!("{:.4}", dot(&vectors[i], other))),
        );
        table.add_row(row);
    }
    burn_zoo_core::say!("{table}");
    burn_zoo_core::say!(
        "cosines of vectors of {} numbers; --json prints them",
        vectors[0].len()
    );
    Ok(())
}

/// The likeliest of some probabilities.
fn likeliest(probabilities: &[f32], count: usize) -> Vec<(usize, f32)> {
    let mut all: Vec<(usize, f32)> = probabilities.iter().copied().enumerate().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(count);
    all
}

pub fn fill_mask(args: &FillMaskArgs) -> Result<()> {
    positive(1, args.top)?;
    let model = args.text.open()?;
    let tokenizer = &model.tokenizer;
    let mask = tokenizer.special.mask.clone();
    let Some((mask, id)) = mask.and_then(|mask| Some((mask.clone(), tokenizer.id(&mask)?))) else {
        return Err(Error::malformed(&tokenizer.path, "has no mask token"));
    };
    let rows = model.encode(&args.texts, config(&model)?.max_length())?;
    // A row for each mask, and its place.
    let mut masked = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let places = row.iter().enumerate().filter(|(_, token)| **token == id);
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        if places.is_empty() {
            let message = format!("`{}` has no {mask} in it", args.texts[i]);
            return Err(Error::usage("TEXTS", message));
        }
        masked.extend(places.into_iter().map(|place| (i, place)));
    }
    let mut results = Vec::new();
    for (i, place) in masked {
        let encode = Encode {
            args: &args.text,
            model: &model,
            rows: &rows[i..=i],
            batch_size: 1,
            heads: &[TextHead::MaskedLm],
            read: Read::At(&[place]),
        };
        let probabilities = with_backend(args.text.backend.spec()?, encode)??;
        results.push((i, likeliest(&probabilities[0], args.top)));
    }
    let word = |id: usize| tokenizer.decode(&[id], false);
    let mut shown = table(&["text", "token", "probability"]);
    let mut all = Vec::new();
    for (i, top) in &results {
        let mut tokens = Vec::new();
        for (n, (id, probability)) in top.iter().enumerate() {
            let word = word(*id)?;
            let text = if n == 0 { args.texts[*i].as_str() } else { "" };
            shown.add_row([text, word.trim(), &format!("{:.2} %", 100.0 * probability)]);
            tokens.push(json!({ "id": id, "token": word.trim(), "probability": probability }));
        }
        all.push(json!({ "text": args.texts[*i], "top": tokens }));
    }
    match args.json {
        true => print_json(&json!(all)),
        false => burn_zoo_core::say!("{shown}"),
    }
    Ok(())
}

pub fn classify(args: &ClassifyArgs) -> Result<()> {
    positive(args.batch_size, args.top)?;
    let texts = texts(&args.texts, args.file.as_deref())?;
    let model = args.text.open()?;
    let config = config(&model)?;
    let rows = model.encode(&texts, config.max_length())?;
    // As transformers' pipeline has it: several classes may be true of a text, or there is but one.
    let upstream = model.pretrained.upstream_config.as_ref();
    let problem = upstream.and_then(|json| json["problem_type"].as_str());
    let each = config.num_labels == 1 || problem == Some("multi_label_classification");
    let encode = Encode {
        args: &args.text,
        model: &model,
        rows: &rows,
        batch_size: args.batch_size,
        heads: &[TextHead::SequenceClassification],
        read: Read::Classes { each },
    };
    let probabilities = with_backend(args.text.backend.spec()?, encode)??;
    let names = &model.pretrained.card.class_names;
    let name = |label: usize| {
        names
            .get(label)
            .cloned()
            .unwrap_or_else(|| label.to_string())
    };
    let mut shown = table(&["text", "class", "probability"]);
    let mut all = Vec::new();
    for (text, probabilities) in texts.iter().zip(&probabilities) {
        let top = likeliest(probabilities, args.top);
        for (n, (label, probability)) in top.iter().enumerate() {
            let text = if n == 0 { text.as_str() } else { "" };
            shown.add_row([
                text,
                &name(*label),
                &format!("{:.2} %", 100.0 * probability),
            ]);
        }
        let top = top.iter().map(|(label, probability)| {
            json!({ "label": label, "class": name(*label), "probability": probability })
        });
        all.push(json!({ "text": text, "top": top.collect::<Vec<_>>() }));
    }
    match args.json {
        true => print_json(&json!(all)),
        false => burn_zoo_core::say!("{shown}"),
    }
    Ok(())
}
