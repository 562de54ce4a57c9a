use super::Args;
use crate::source::{self, locate};
use crate::text::folder_of;
use burn_zoo::{AutoConfig, find};
use burn_zoo_core::{Error, Result, read_text_file};
use burn_zoo_text::Tokenizer;
use std::path::{Path, PathBuf};

/// What a new run begins with.
pub struct Start {
    /// The model's name: a listed one, or the folder or hub name that the user gave.
    pub name: String,
    /// Its configuration, not yet that of the data set.
    pub config: AutoConfig,
    /// Weights as the user named them, and where they are.
    pub weights: Option<(String, PathBuf)>,
}

impl Start {
    /// From `--model` and `--weights`; `default` is the model where none is named. A model that a
    /// folder or a hub describes starts from its own weights.
    pub fn new(args: &Args, default: &str) -> Result<Self> {
        let default = args.default_model.unwrap_or(default);
        let name = args.model.as_deref().unwrap_or(default);
        let start = if Path::new(name).exists() || name.contains(['/', ':']) {
            Self::described(args, name)?
        } else {
            let config = find(name)?.config;
            let weights = match &args.weights {
                Some(weights) => Some((weights.clone(), locate(weights, &args.net)?.path)),
                None => None,
            };
            Self {
                name: name.into(),
                config,
                weights,
            }
        };
        if start.weights.is_none() && !args.allow_missing.is_empty() {
            let message = "is about weights to start from: name them with --weights, or give a folder or ORG/NAME as --model";
            return Err(Error::usage("--allow-missing", message));
        }
        Ok(start)
    }

    fn described(args: &Args, name: &str) -> Result<Self> {
        if args.weights.is_some() {
            let message = format!("is for a listed model; {name} has its own");
            return Err(Error::usage("--weights", message));
        }
        if Path::new(name).is_file() {
            let message = format!(
                "{name} does not say which model it is: name that one, and give the file as --weights"
            );
            return Err(Error::usage("--model", message));
        }
        let pretrained = source::open(name, None, &args.net)?;
        Ok(Self {
            name: name.into(),
            config: pretrained.card.model,
            weights: Some((name.into(), pretrained.weights.path)),
        })
    }
}

impl Start {
    /// The tokenizer that belongs to the weights: a model that has learnt already has its own tokens.
    pub fn tokenizer_json(&self) -> Result<Option<String>> {
        let Some((_, path)) = &self.weights else {
            return Ok(None);
        };
        tokenizer_json(folder_of(path)).map(Some)
    }
}

/// `tokenizer.json` in a folder, or what its older files make one.
pub fn tokenizer_json(folder: &Path) -> Result<String> {
    let path = folder.join("tokenizer.json");
    match path.is_file() {
        true => String::from_utf8(read_text_file(&path)?)
            .map_err(|_| Error::malformed(&path, "is not UTF-8")),
        false => Tokenizer::from_folder(folder)?.json(),
    }
}
