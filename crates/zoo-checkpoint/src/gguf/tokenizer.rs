use super::metadata::{MetadataArray, MetadataValue};
use crate::LazyTensors;
use burn_zoo_core::{Error, Result};

/// The tokenizer in a GGUF file's metadata, under `tokenizer.ggml.*`.
#[derive(Clone, Debug, PartialEq)]
pub struct GgufTokenizer {
    /// Its kind: `llama` (SentencePiece), `gpt2` (byte-level BPE), `bert`, `t5`…
    pub model: String,
    /// How text is split before BPE, as `llama-bpe` or `qwen2`.
    pub pre: Option<String>,
    /// Every token by its id.
    pub tokens: Vec<String>,
    /// A score for each token, or none at all.
    pub scores: Vec<f32>,
    /// What each token is, or none at all.
    pub token_types: Vec<GgufTokenType>,
    /// Pairs that BPE merges, first to last, a space between the two.
    pub merges: Vec<String>,
    /// Id of the token that begins a text.
    pub bos: Option<u32>,
    /// Id of the token that ends a text.
    pub eos: Option<u32>,
    /// Id of the token for what no other stands for.
    pub unknown: Option<u32>,
    /// Id of the token that fills a batch.
    pub padding: Option<u32>,
    /// Whether a text is to begin with [`Self::bos`].
    pub add_bos: Option<bool>,
    /// Whether a space is put before a text.
    pub add_space_prefix: Option<bool>,
    /// A Jinja template of a conversation.
    pub chat_template: Option<String>,
}

/// What a token is: `llama_token_type` of llama.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GgufTokenType {
    /// Not said.
    Undefined,
    /// Text.
    Normal,
    /// Stands for what no other token does.
    Unknown,
    /// Directs the model and is no text.
    Control,
    /// Text that is never split.
    UserDefined,
    /// A place in the vocabulary that is free.
    Unused,
    /// One byte.
    Byte,
}

/// [`GgufTokenType`] by its number.
const TOKEN_TYPES: [GgufTokenType; 7] = [
    GgufTokenType::Undefined,
    GgufTokenType::Normal,
    GgufTokenType::Unknown,
    GgufTokenType::Control,
    GgufTokenType::UserDefined,
    GgufTokenType::Unused,
    GgufTokenType::Byte,
];

const PREFIX: &str = "tokenizer.ggml.";

impl LazyTensors {
    /// The tokenizer in the file's metadata; `None` where it has none.
    ///
    /// # Errors
    /// The first metadata key that is missing or has another type, length or range than it must.
    pub fn gguf_tokenizer(&self) -> Result<Option<GgufTokenizer>> {
        if !self.metadata.keys().any(|key| key.starts_with(PREFIX)) {
            return Ok(None);
        }
        let missing = |name| move || self.bad(name, "is missing");
        let model = self.text(&key("model"))?;
        let model = model.ok_or_else(missing("model"))?;
        // So that a file says that it has none.
        if matches!(model.as_str(), "none" | "no_vocab") {
            return Ok(None);
        }
        let tokens = self.texts("tokens")?.ok_or_else(missing("tokens"))?;
        let scores = self.get(&key("scores"), "an array of f32", |value| {
            match value.as_array() {
                Some(MetadataArray::F32(scores)) => Some(scores.clone()),
                _ => None,
            }
        })?;
        let scores = scores.unwrap_or_default();
        let token_types = self.token_types()?;
        for (name, found) in [("scores", scores.len()), ("token_type", token_types.len())] {
            if found != 0 && found != tokens.len() {
                let message = format!("has {found} values for {} tokens", tokens.len());
                return Err(self.bad(name, &message));
            }
        }
        let id = |name| self.id(name, tokens.len());
        Ok(Some(GgufTokenizer {
            model,
            pre: self.text(&key("pre"))?,
            scores,
            token_types,
            merges: self.texts("merges")?.unwrap_or_default(),
            bos: id("bos_token_id")?,
            eos: id("eos_token_id")?,
            unknown: id("unknown_token_id")?,
            padding: id("padding_token_id")?,
            add_bos: self.get(
                &key("add_bos_token"),
                "a truth value",
                MetadataValue::as_bool,
            )?,
            add_space_prefix: self.get(
                &key("add_space_prefix"),
                "a truth value",
                MetadataValue::as_bool,
            )?,
            chat_template: self.text("tokenizer.chat_template")?,
            tokens,
        }))
    }

    fn token_types(&self) -> Result<Vec<GgufTokenType>> {
        let name = "token_type";
        let numbers = self.get(&key(name), "an array of i32", |value| {
            match value.as_array() {
                Some(MetadataArray::I32(numbers)) => Some(numbers),
                _ => None,
            }
        })?;
        let of = |number: &i32| {
            let found = usize::try_from(*number).ok();
            let found = found.and_then(|n| TOKEN_TYPES.get(n).copied());
            found.ok_or_else(|| self.bad(name, &format!("has {number}, which is no type of token")))
        };
        numbers.into_iter().flatten().map(of).collect()
    }

    fn id(&self, name: &str, tokens: usize) -> Result<Option<u32>> {
        let id = self.get(&key(name), "an integer", |value| value.as_u64())?;
        let fits = |id: u64| match u32::try_from(id) {
            Ok(fitting) if id < tokens as u64 => Ok(fitting),
            _ => Err(self.bad(name, &format!("is {id}, there are {tokens} tokens"))),
        };
        id.map(fits).transpose()
    }

    fn text(&self, key: &str) -> Result<Option<String>> {
        self.get(key, "a text", |value| value.as_str().map(String::from))
    }

    fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        self.get(&key(name), "an array of texts", |value| {
            match value.as_array() {
                Some(MetadataArray::String(texts)) => Some(texts.clone()),
                _ => None,
            }
        })
    }

    /// The metadata of `key` as `wanted`, where there is any.
    fn get<'a, T>(
        &'a self,
        key: &str,
        wanted: &str,
        read: impl Fn(&'a MetadataValue) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.metadata.get(key) else {
            return Ok(None);
        };
        let found = read(value).ok_or_else(|| {
            let message = format!("metadata `{key}` is {}, wanted {wanted}", value.kind());
            Error::malformed(&self.path, message)
        })?;
        Ok(Some(found))
    }

    fn bad(&self, name: &str, message: &str) -> Error {
        Error::malformed(&self.path, format!("metadata `{}` {message}", key(name)))
    }
}

fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}
