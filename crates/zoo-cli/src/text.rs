//! Which model of text a command uses, and how texts become its input.

use crate::common::BackendArgs;
use crate::source::{NetArgs, open};
use burn_zoo::Pretrained;
use burn_zoo_checkpoint::Tensors;
use burn_zoo_core::{Error, Result, read_text_files};
use burn_zoo_nn::pad_right;
use burn_zoo_text::Tokenizer;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A model of text and where to compute with it.
#[derive(clap::Args)]
pub struct TextArgs {
    /// A model folder, a GGUF file, a model of `zoo list`, ORG/NAME[@REVISION] of a hub, or a weights file with --arch
    pub model: String,
    /// The model of `zoo list` that a weights file belongs to
    #[arg(long, value_name = "NAME")]
    arch: Option<String>,
    /// A folder with the tokenizer, or a GGUF file that holds one [default: the model's]
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
    /// f32, f64, bf16 or f16
    #[arg(long, default_value = "f32", value_name = "TYPE")]
    pub dtype: String,
    #[command(flatten)]
    net: NetArgs,
    #[command(flatten)]
    pub backend: BackendArgs,
}

/// A model of text, not loaded yet, and its tokenizer.
pub struct TextModel {
    pub pretrained: Pretrained,
    pub tokenizer: Tokenizer,
}

impl TextArgs {
    /// Opens the model and its tokenizer.
    pub fn open(&self) -> Result<TextModel> {
        let pretrained = open(&self.model, self.arch.as_deref(), &self.net)?;
        let tokenizer = match &self.tokenizer {
            Some(path) if path.is_dir() => Tokenizer::from_folder(path)?,
            Some(path) => Tokenizer::from_gguf(&burn_zoo_checkpoint::LazyTensors::open(path)?)?,
            None => own_tokenizer(&pretrained)?,
        };
        Ok(TextModel {
            pretrained,
            tokenizer,
        })
    }
}

/// The tokenizer in the model's GGUF file or in its folder.
pub fn own_tokenizer(pretrained: &Pretrained) -> Result<Tokenizer> {
    match pretrained.weights.metadata.is_empty() {
        true => Tokenizer::from_folder(folder(pretrained)),
        false => Tokenizer::from_gguf(&pretrained.weights),
    }
}

/// The files of the model's tokenizer, as they are in its folder or as its GGUF file says them.
pub fn own_text_files(pretrained: &Pretrained) -> Result<Vec<(String, Vec<u8>)>> {
    let weights = &pretrained.weights;
    if weights.metadata.is_empty() {
        return read_text_files(folder(pretrained));
    }
    // A file of weights alone can be written too.
    match weights.gguf_tokenizer()? {
        Some(_) => Tokenizer::from_gguf(weights)?.files(),
        None => Ok(Vec::new()),
    }
}

/// Cuts a text to `most` tokens, at least 2: what ends it stays its end. Whether anything was cut.
pub fn cut(row: &mut Vec<usize>, most: usize) -> bool {
    let longer = row.len() > most;
    if longer {
        let last = row[row.len() - 1];
        row.truncate(most - 1);
        row.push(last);
    }
    longer
}

/// The folder of weights, which may be that folder.
pub fn folder_of(weights: &Path) -> &Path {
    match weights.is_dir() {
        true => weights,
        false => weights.parent().unwrap_or(weights),
    }
}

fn folder(pretrained: &Pretrained) -> &Path {
    folder_of(&pretrained.weights.path)
}

impl TextModel {
    /// Tokens that end a text: the configuration's for generation, the model's, or the tokenizer's.
    pub fn stop_tokens(&self) -> Result<Vec<usize>> {
        let path = folder(&self.pretrained).join("generation_config.json");
        let generation = match self.pretrained.weights.metadata.is_empty() && path.is_file() {
            true => {
                let text = std::fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
                serde_json::from_str(&text).map_err(|e| Error::malformed(&path, e.to_string()))?
            }
            false => Value::Null,
        };
        let config = self
            .pretrained
            .upstream_config
            .as_ref()
            .unwrap_or(&Value::Null);
        for json in [&generation, config] {
            let ids = &json["eos_token_id"];
            let number = |id: &Value| id.as_u64().map(|id| id as usize);
            let found: Vec<usize> = match ids.as_array() {
                Some(ids) => ids.iter().filter_map(number).collect(),
                None => number(ids).into_iter().collect(),
            };
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let eos = self.tokenizer.special.eos.as_deref();
        Ok(eos
            .and_then(|eos| self.tokenizer.id(eos))
            .into_iter()
            .collect())
    }

    /// Token numbers of texts, each cut to `most` tokens; says on standard error how many were cut.
    pub fn encode(&self, texts: &[String], most: usize) -> Result<Vec<Vec<usize>>> {
        let ids = texts.iter().map(|text| self.tokenizer.encode(text, true));
        let mut ids = ids.collect::<Result<Vec<_>>>()?;
        let shorter = ids
            .iter_mut()
            .filter_map(|row| cut(row, most).then_some(()));
        let shorter = shorter.count();
        if shorter > 0 {
            burn_zoo_core::note!(
                "{shorter} texts are longer than {most} tokens, the rest of them was cut off"
            );
        }
        Ok(ids)
    }

    /// The arguments of the model for rows of token numbers, padded on the right.
    pub fn arguments(&self, rows: &[&[usize]]) -> Tensors {
        let pad = self.tokenizer.special.pad.as_deref();
        let pad = pad.and_then(|pad| self.tokenizer.id(pad));
        pad_right(rows, pad.unwrap_or(0))
    }
}

/// The texts that were given, or the lines of a file; none of them empty.
pub fn texts(given: &[String], file: Option<&Path>) -> Result<Vec<String>> {
    let mut texts = given.to_vec();
    if let Some(path) = file {
        let text = std::fs::read(path).map_err(Error::io(path, "read"))?;
        let text = String::from_utf8(text).map_err(|e| Error::malformed(path, e.to_string()))?;
        texts.extend(
            text.lines()
                .filter(|line| !line.trim().is_empty())
                .map(String::from),
        );
    }
    if texts.is_empty() {
        return Err(Error::usage(
            "TEXT",
            "give a text, or a file of lines with --file",
        ));
    }
    Ok(texts)
}

/// Rows in batches, the longest first, so that little is padded: each with its places in the list.
pub fn by_length(rows: &[Vec<usize>], batch_size: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(rows[*i].len()));
    order
        .chunks(batch_size.max(1))
        .map(<[usize]>::to_vec)
        .collect()
}
