use burn_zoo_core::{Error, Result};
use burn_zoo_text::Tokenizer;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;
use tokenizers::decoders::wordpiece::WordPiece as WordPieceDecoder;
use tokenizers::models::bpe::{BPE, BpeTrainerBuilder};
use tokenizers::models::wordpiece::{WordPiece, WordPieceTrainerBuilder};
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::processors::bert::BertProcessing;

/// What tokens of a text are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// Its bytes: 256 tokens, and every text has some.
    Bytes,
    /// Its characters, as many as the text has.
    Chars,
    /// Pieces of words that are learnt from the text, so many (Sennrich et al. 2016), as GPT-2's.
    BytePairs(usize),
}

impl FromStr for Vocabulary {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name.split_once(':').unwrap_or((name, "")) {
            ("bytes", "") => Ok(Self::Bytes),
            ("chars", "") => Ok(Self::Chars),
            ("bpe", "") => Ok(Self::BytePairs(1024)),
            ("bpe", size) => match size.parse() {
                Ok(size) if (257..=1 << 20).contains(&size) => Ok(Self::BytePairs(size)),
                _ => Err(Error::usage(
                    "--vocabulary",
                    format!("bpe wants 257 to {} pieces, got {size}", 1 << 20),
                )),
            },
            _ => Err(Error::unknown(
                "vocabulary",
                name,
                ["bytes", "chars", "bpe", "bpe:N"],
            )),
        }
    }
}

impl std::fmt::Display for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes => f.write_str("bytes"),
            Self::Chars => f.write_str("chars"),
            Self::BytePairs(size) => write!(f, "bpe:{size}"),
        }
    }
}

impl Vocabulary {
    /// The `tokenizer.json` of this vocabulary for a text, of which pieces are learnt.
    ///
    /// # Errors
    /// If pieces cannot be learnt.
    pub fn tokenizer_json(self, text: &str) -> Result<String> {
        match self {
            Self::Bytes => {
                let mut letters: Vec<char> = ByteLevel::alphabet().into_iter().collect();
                letters.sort_unstable();
                Ok(whole(
                    single(letters),
                    byte_level(),
                    json!({ "type": "ByteLevel" }),
                )
                .to_string())
            }
            Self::Chars => {
                let letters: BTreeSet<char> = text.chars().collect();
                Ok(whole(single(letters), Value::Null, json!({ "type": "Fuse" })).to_string())
            }
            Self::BytePairs(size) => {
                let fail = |e: tokenizers::Error| Error::usage("--vocabulary", e.to_string());
                let mut trainer = BpeTrainerBuilder::new()
                    .vocab_size(size)
                    .show_progress(false)
                    .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
                    .build();
                let mut tokenizer: tokenizers::TokenizerImpl<
                    _,
                    tokenizers::NormalizerWrapper,
                    _,
                    ByteLevel,
                    ByteLevel,
                > = tokenizers::TokenizerBuilder::default()
                    .with_model(BPE::default())
                    .with_pre_tokenizer(Some(ByteLevel::new(false, true, true)))
                    .with_decoder(Some(ByteLevel::default()))
                    .with_normalizer(None)
                    .with_post_processor(None)
                    .build()
                    .map_err(fail)?;
                let lines = text.split_inclusive('\n');
                tokenizer.train(&mut trainer, lines).map_err(fail)?;
                tokenizer.to_string(false).map_err(fail)
            }
        }
    }

    /// The tokenizer that a `tokenizer.json` of [`tokenizer_json`](Self::tokenizer_json) says.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn tokenizer(json: &str) -> Result<Tokenizer> {
        Tokenizer::parse(json, Path::new("tokenizer.json"))
    }
}

/// The `tokenizer.json` of so many pieces of words that are learnt from texts, as BERT's: in lower case, with
/// `[CLS]` before and `[SEP]` after each text.
///
/// # Errors
/// If none can be learnt.
pub fn word_pieces<'a>(texts: impl Iterator<Item = &'a str> + Send, size: usize) -> Result<String> {
    let fail = |e: tokenizers::Error| Error::usage("--dataset", e.to_string());
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    let special = special.map(|token| tokenizers::AddedToken::from(token, true));
    let mut trainer = WordPieceTrainerBuilder::new()
        .vocab_size(size)
        .show_progress(false)
        .special_tokens(special.to_vec())
        .build();
    let model = WordPiece::builder()
        .unk_token("[UNK]".into())
        .build()
        .map_err(fail)?;
    let mut tokenizer: tokenizers::TokenizerImpl<_, _, _, BertProcessing, WordPieceDecoder> =
        tokenizers::TokenizerBuilder::default()
            .with_model(model)
            .with_normalizer(Some(BertNormalizer::default()))
            .with_pre_tokenizer(Some(BertPreTokenizer))
            .with_post_processor(None)
            .with_decoder(Some(WordPieceDecoder::default()))
            .build()
            .map_err(fail)?;
    tokenizer.train(&mut trainer, texts).map_err(fail)?;
    let id = |token: &str| {
        (
            token.to_string(),
            tokenizer.token_to_id(token).unwrap_or_default(),
        )
    };
    let around = BertProcessing::new(id("[SEP]"), id("[CLS]"));
    tokenizer.with_post_processor(Some(around));
    tokenizer.to_string(false).map_err(fail)
}

/// A token for each letter and no pairs.
fn single(letters: impl IntoIterator<Item = char>) -> Value {
    let vocab: Map<String, Value> = letters
        .into_iter()
        .enumerate()
        .map(|(id, c)| (c.to_string(), json!(id)))
        .collect();
    json!({
        "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
        "vocab": vocab, "merges": [],
    })
}

fn byte_level() -> Value {
    json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false })
}

fn whole(model: Value, pre_tokenizer: Value, decoder: Value) -> Value {
    let decoder = match decoder["type"].as_str() {
        Some("ByteLevel") => byte_level(),
        _ => decoder,
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": pre_tokenizer, "post_processor": null, "decoder": decoder, "model": model,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "the light and the deep\nthe earth, and the light: naïve 😀\n";

    #[test]
    fn every_vocabulary_gives_the_text_again() {
        for (name, size) in [("bytes", 256), ("chars", 18), ("bpe:270", 270)] {
            let vocabulary: Vocabulary = name.parse().expect("known");
            let json = vocabulary.tokenizer_json(TEXT).expect("a tokenizer");
            let tokenizer = Vocabulary::tokenizer(&json).expect("its own");
            assert_eq!(tokenizer.vocab_size(), size, "{name}");
            let ids = tokenizer.encode(TEXT, false).expect("its own text");
            assert_eq!(
                tokenizer.decode(&ids, false).expect("its own"),
                TEXT,
                "{name}"
            );
            match vocabulary {
                Vocabulary::Bytes => assert_eq!(ids.len(), TEXT.len()),
                Vocabulary::Chars => assert_eq!(ids.len(), TEXT.chars().count()),
                Vocabulary::BytePairs(_) => assert!(ids.len() < TEXT.len() / 2 + 20),
            }
            assert_eq!(
                vocabulary.to_string().parse::<Vocabulary>().expect("known"),
                vocabulary
            );
        }
        for wrong in ["words", "bpe:3", "bpe:x", "bytes:3"] {
            assert!(wrong.parse::<Vocabulary>().is_err(), "{wrong}");
        }
    }
}
