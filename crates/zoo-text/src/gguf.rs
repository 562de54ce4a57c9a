//! The tokenizer in a GGUF file, as transformers' and llama.cpp make it.

use crate::sentence_piece;
use crate::vocabulary::{added, byte_level, whole};
use burn_zoo_checkpoint::{GgufTokenType, GgufTokenizer};
use burn_zoo_core::{Error, Result};
use serde_json::{Map, Value, json};
use std::path::Path;

/// How text is split before pairs are merged, by llama.cpp's name.
const SPLITS: [&str; 5] = ["default", "gpt-2", "smollm", "llama-bpe", "qwen2"];

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The `tokenizer.json` that says the same.
///
/// # Errors
/// If its kind or its way to split text is not known here.
pub(crate) fn tokenizer_json(from: &GgufTokenizer, path: &Path) -> Result<Value> {
    let mut whole = match from.model.as_str() {
        "gpt2" => byte_pairs(from, path)?,
        "llama" => sentence_piece::tokenizer_json(from, path)?,
        other => {
            let error = Error::unknown("kind of tokenizer", other, ["gpt2", "llama"]);
            return Err(Error::malformed(path, error.to_string()));
        }
    };
    // SentencePiece's begin with it where a file does not say otherwise, as llama.cpp and transformers have it.
    let add_bos = from.add_bos.unwrap_or(from.model == "llama");
    if let (true, Some(bos)) = (add_bos, from.bos) {
        let token = &from.tokens[bos as usize];
        whole["post_processor"] = json!({
            "type": "TemplateProcessing",
            "single": [{ "SpecialToken": { "id": token, "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
            "pair": [{ "SpecialToken": { "id": token, "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
            "special_tokens": { token: { "id": token, "ids": [bos], "tokens": [token] } },
        });
    }
    Ok(whole)
}

/// The merges that the file lists.
pub(crate) fn listed_pairs<'a>(
    from: &'a GgufTokenizer,
    path: &Path,
) -> Result<Vec<(&'a str, &'a str)>> {
    let pair = |pair: &'a String| {
        let bad = || Error::malformed(path, format!("`{pair}` is no pair of tokens"));
        pair.split_once(' ').ok_or_else(bad)
    };
    from.merges.iter().map(pair).collect()
}

fn byte_pairs(from: &GgufTokenizer, path: &Path) -> Result<Value> {
    let split = from.pre.as_deref().unwrap_or("default");
    let by = |pattern: &str| {
        json!({ "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false },
            byte_level(false),
        ] })
    };
    let (pre_tokenizer, normalizer) = match split {
        "default" | "gpt-2" => (byte_level(true), Value::Null),
        "smollm" => {
            let digits = json!({ "type": "Digits", "individual_digits": true });
            let both = json!({ "type": "Sequence", "pretokenizers": [digits, byte_level(true)] });
            (both, Value::Null)
        }
        "llama-bpe" => (by(LLAMA3), Value::Null),
        "qwen2" => (by(QWEN2), json!({ "type": "NFC" })),
        other => {
            let error = Error::unknown("way to split text", other, SPLITS);
            return Err(Error::malformed(path, error.to_string()));
        }
    };
    let pairs = listed_pairs(from, path)?;
    let tokens = from.tokens.iter().enumerate();
    let vocab: Map<String, Value> = tokens
        .clone()
        .map(|(id, token)| (token.clone(), json!(id)))
        .collect();
    let found = tokens
        .zip(&from.token_types)
        .filter_map(|((id, token), kind)| match kind {
            GgufTokenType::Control => Some(added(id, token, true)),
            GgufTokenType::UserDefined => Some(added(id, token, false)),
            _ => None,
        });
    let found = found.collect();
    let model = json!({
        "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
        "ignore_merges": split == "llama-bpe", "vocab": vocab, "merges": pairs,
    });
    Ok(whole(
        model,
        found,
        normalizer,
        pre_tokenizer,
        Value::Null,
        byte_level(true),
    ))
}
