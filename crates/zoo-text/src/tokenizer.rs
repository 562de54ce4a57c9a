use crate::{ChatTemplate, Message, gguf, vocabulary};
use burn_zoo_checkpoint::LazyTensors;
use burn_zoo_core::{Error, Result, read_text_file};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Tokens with a meaning of their own, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Begins a text.
    pub bos: Option<String>,
    /// Ends a text.
    pub eos: Option<String>,
    /// Stands for nothing.
    pub pad: Option<String>,
    /// Stands for a token that is to be guessed.
    pub mask: Option<String>,
}

/// Text to token numbers and back.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// Tokens with a meaning of their own.
    pub special: SpecialTokens,
    template: Option<ChatTemplate>,
    /// The file it is from.
    pub path: PathBuf,
}

impl Tokenizer {
    /// The tokenizer of a model's folder: `tokenizer.json`, or `vocab.json` with `merges.txt`, or
    /// `vocab.txt`; special tokens and chat template are in `tokenizer_config.json` and
    /// `chat_template.jinja`.
    ///
    /// # Errors
    /// If there is none, or a file is malformed.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let file = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
        let config = match file("tokenizer_config.json") {
            Some(path) => json(&path)?,
            None => Value::Null,
        };
        let (path, whole) = if let Some(path) = file("tokenizer.json") {
            (path.clone(), read(&path)?)
        } else if let (Some(path), Some(merges)) = (file("vocab.json"), file("merges.txt")) {
            let whole = vocabulary::byte_pairs(json(&path)?, &read(&merges)?, &merges)?;
            (path, whole.to_string())
        } else if let Some(path) = file("vocab.txt") {
            let lowercase = config["do_lower_case"].as_bool().unwrap_or(true);
            let whole = vocabulary::word_pieces(&read(&path)?, lowercase, &path)?;
            (path, whole.to_string())
        } else {
            return Err(Error::NotFound {
                path: folder.join("tokenizer.json"),
                hint: "a text model's folder holds tokenizer.json, vocab.json with merges.txt, or vocab.txt".into(),
            });
        };
        let mut tokenizer = Self::parse(&whole, &path)?;
        let named = |key: &str| {
            let token = &config[key];
            token
                .as_str()
                .or(token["content"].as_str())
                .map(String::from)
        };
        tokenizer.special = SpecialTokens {
            bos: named("bos_token"),
            eos: named("eos_token"),
            pad: named("pad_token"),
            mask: named("mask_token").or_else(|| tokenizer.known(&["[MASK]", "<mask>"])),
        };
        tokenizer.template = match file("chat_template.jinja") {
            Some(path) => Some(ChatTemplate::new(read(&path)?, &path)),
            None => template(&config)
                .map(|text| ChatTemplate::new(text, &folder.join("tokenizer_config.json"))),
        };
        Ok(tokenizer)
    }

    /// The tokenizer in a GGUF file.
    ///
    /// # Errors
    /// If there is none, it is malformed, or of a kind that is not known here.
    pub fn from_gguf(file: &LazyTensors) -> Result<Self> {
        let path = &file.path;
        let Some(from) = file.gguf_tokenizer()? else {
            return Err(Error::malformed(path, "holds no tokenizer"));
        };
        let whole = gguf::tokenizer_json(&from, path)?;
        let mut tokenizer = Self::parse(&whole.to_string(), path)?;
        let token = |id: Option<u32>| id.map(|id| from.tokens[id as usize].clone());
        tokenizer.special = SpecialTokens {
            bos: token(from.bos),
            eos: token(from.eos),
            pad: token(from.padding),
            mask: None,
        };
        let template = from.chat_template.as_deref();
        tokenizer.template = template.map(|text| ChatTemplate::new(text, path));
        Ok(tokenizer)
    }

    /// From the text of a `tokenizer.json`.
    ///
    /// # Errors
    /// If it is malformed; `path` is named then.
    pub fn parse(whole: &str, path: &Path) -> Result<Self> {
        let malformed = |e: tokenizers::Error| Error::malformed(path, e.to_string());
        let mut inner = tokenizers::Tokenizer::from_bytes(whole.as_bytes()).map_err(malformed)?;
        // Some files ask for a fixed length, which is the caller's to decide.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(malformed)?;
        Ok(Self {
            inner,
            special: SpecialTokens::default(),
            template: None,
            path: path.to_path_buf(),
        })
    }

    /// `tokenizer.json`, `tokenizer_config.json` and `generation_config.json` that say the same, as
    /// transformers reads them.
    ///
    /// # Errors
    /// As [`json`](Self::json).
    pub fn files(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let special = &self.special;
        let tokens = [
            ("bos_token", &special.bos),
            ("eos_token", &special.eos),
            ("pad_token", &special.pad),
            ("mask_token", &special.mask),
        ];
        let mut config = json!({ "tokenizer_class": "PreTrainedTokenizerFast" });
        let mut generation = json!({});
        for (key, token) in tokens {
            let Some(token) = token else { continue };
            config[key] = json!(token);
            if key != "mask_token" {
                generation[format!("{key}_id")] = json!(self.id(token));
            }
        }
        if let Some(template) = &self.template {
            config["chat_template"] = json!(template.source());
        }
        let file = |name: &str, text: String| (name.to_string(), text.into_bytes());
        Ok(vec![
            file("tokenizer.json", self.json()?),
            file("tokenizer_config.json", format!("{config:#}\n")),
            file("generation_config.json", format!("{generation:#}\n")),
        ])
    }

    /// The text of its `tokenizer.json`.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn json(&self) -> Result<String> {
        self.inner.to_string(false).map_err(|e| self.fail(&e))
    }

    /// Token numbers of a text; `special` puts the tokens around it that the model expects.
    ///
    /// # Errors
    /// If a part of the text has no token.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<usize>> {
        let encoded = self
            .inner
            .encode(text, special)
            .map_err(|e| self.fail(&e))?;
        if self.drops_unknown() {
            // Tokens of known letters; whole words that were added have ranges of their own.
            let covered: usize = encoded.get_offsets().iter().map(|(a, b)| b - a).sum();
            let unknown = |letter: &char| self.id(letter.encode_utf8(&mut [0; 4])).is_none();
            if covered < text.len()
                && let Some(letter) = text.chars().find(unknown)
            {
                let message = format!("has no token for {letter:?}");
                return Err(Error::malformed(&self.path, message));
            }
        }
        Ok(encoded.get_ids().iter().map(|id| *id as usize).collect())
    }

    /// The text of tokens; `special` ones can be left out.
    ///
    /// # Errors
    /// If a number is no token's.
    pub fn decode(&self, ids: &[usize], skip_special: bool) -> Result<String> {
        let ids: Vec<u32> = ids.iter().map(|id| *id as u32).collect();
        self.inner
            .decode(&ids, skip_special)
            .map_err(|e| self.fail(&e))
    }

    /// The text of tokens that come one by one.
    pub fn pieces(&self, skip_special: bool) -> Pieces<'_> {
        Pieces {
            tokenizer: self,
            stream: Box::new(self.inner.decode_stream(skip_special)),
            skip_special,
            ids: Vec::new(),
        }
    }

    /// The text of a conversation by the model's template, to be encoded without special tokens; with
    /// `add_generation_prompt` it ends where the assistant begins to speak.
    ///
    /// # Errors
    /// If the model has no template, or it refuses.
    pub fn chat(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String> {
        let Some(template) = &self.template else {
            let message = "the model has no chat template: give it plain text";
            return Err(Error::malformed(&self.path, message));
        };
        let text = |token: &Option<String>| token.clone().unwrap_or_default();
        let (bos, eos) = (text(&self.special.bos), text(&self.special.eos));
        template.render(messages, add_generation_prompt, &bos, &eos)
    }

    /// The number of a token.
    pub fn id(&self, token: &str) -> Option<usize> {
        self.inner.token_to_id(token).map(|id| id as usize)
    }

    /// Tokens that are known.
    pub fn vocab_size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// Checks that a model of so many tokens knows all of this tokenizer's.
    ///
    /// # Errors
    /// If it does not.
    pub fn fits(&self, vocab_size: usize) -> Result<()> {
        let largest = self
            .inner
            .get_vocab(true)
            .values()
            .max()
            .copied()
            .unwrap_or_default() as usize;
        if largest < vocab_size {
            return Ok(());
        }
        let message = format!(
            "knows tokens up to {largest}, the model {vocab_size}: it is another model's tokenizer"
        );
        Err(Error::malformed(&self.path, message))
    }

    /// Whether letters that it does not know would be left out without a word, as of a vocabulary of single
    /// characters.
    fn drops_unknown(&self) -> bool {
        let alone =
            self.inner.get_pre_tokenizer().is_none() && self.inner.get_normalizer().is_none();
        match self.inner.get_model() {
            tokenizers::ModelWrapper::BPE(pairs) => {
                alone && pairs.unk_token.is_none() && !pairs.byte_fallback
            }
            _ => false,
        }
    }

    fn known(&self, tokens: &[&str]) -> Option<String> {
        let found = tokens.iter().find(|token| self.id(token).is_some());
        found.map(|token| token.to_string())
    }

    fn fail(&self, error: &tokenizers::Error) -> Error {
        Error::malformed(&self.path, error.to_string())
    }
}

/// The text of tokens that come one by one: a piece comes when its bytes are whole.
pub struct Pieces<'a> {
    tokenizer: &'a Tokenizer,
    stream: Box<Stream<'a>>,
    skip_special: bool,
    ids: Vec<usize>,
}

type Stream<'a> = tokenizers::DecodeStream<
    'a,
    tokenizers::ModelWrapper,
    tokenizers::NormalizerWrapper,
    tokenizers::PreTokenizerWrapper,
    tokenizers::PostProcessorWrapper,
    tokenizers::DecoderWrapper,
>;

impl Pieces<'_> {
    /// What the next token adds; empty while a letter is not whole.
    ///
    /// # Errors
    /// If the number is no token's.
    pub fn next(&mut self, id: usize) -> Result<String> {
        let piece = self.stream.step(id as u32);
        let piece = piece.map_err(|e| self.tokenizer.fail(&e))?;
        self.ids.push(id);
        Ok(piece.unwrap_or_default())
    }

    /// What is left after the text that `came` when no token comes any more: the bytes of an unfinished letter, as
    /// the text of all tokens has them. Nothing where that one changes letters that came: some decoders spoil a
    /// whole run of bytes.
    ///
    /// # Errors
    /// If a number is no token's.
    pub fn rest(&self, came: &str) -> Result<String> {
        let whole = self.tokenizer.decode(&self.ids, self.skip_special)?;
        Ok(whole.strip_prefix(came).unwrap_or_default().into())
    }
}

/// `chat_template` of a `tokenizer_config.json`: a text, or several with names.
fn template(config: &Value) -> Option<String> {
    let template = &config["chat_template"];
    if let Some(text) = template.as_str() {
        return Some(text.into());
    }
    let named = template.as_array()?;
    let default = named
        .iter()
        .find(|t| t["name"] == "default")
        .or(named.first())?;
    default["template"].as_str().map(String::from)
}

fn read(path: &Path) -> Result<String> {
    String::from_utf8(read_text_file(path)?).map_err(|e| Error::malformed(path, e.to_string()))
}

fn json(path: &Path) -> Result<Value> {
    serde_json::from_str(&read(path)?).map_err(|e| Error::malformed(path, e.to_string()))
}
