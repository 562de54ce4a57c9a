//! SentencePiece's BPE in a GGUF file, as transformers' `LlamaTokenizer` makes it of one.

use crate::gguf::listed_pairs;
use crate::vocabulary::{added, whole};
use burn_zoo_checkpoint::{GgufTokenType, GgufTokenizer};
use burn_zoo_core::{Error, Result};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;

/// Letters of a piece that is merged from two others at most. SentencePiece's own limit is 16 by default;
/// longer tokens are taken whole or not at all.
const LONGEST: usize = 128;

/// The `tokenizer.json` that says the same.
///
/// # Errors
/// If tokens have no scores and the file lists no merges.
pub(crate) fn tokenizer_json(from: &GgufTokenizer, path: &Path) -> Result<Value> {
    if from.scores.is_empty() && from.merges.is_empty() {
        let message = "metadata `tokenizer.ggml.scores` is missing, and there are no merges";
        return Err(Error::malformed(path, message));
    }
    let pairs = match from.merges.is_empty() {
        true => merges(&from.tokens, &from.scores),
        false => listed_pairs(from, path)?,
    };
    let tokens = from.tokens.iter().enumerate();
    let vocab: Map<String, Value> = tokens
        .clone()
        .map(|(id, token)| (token.clone(), json!(id)))
        .collect();
    let kind = |id: usize| from.token_types.get(id);
    let special = tokens.filter_map(|(id, token)| match kind(id) {
        Some(GgufTokenType::Control | GgufTokenType::Unknown) => Some(added(id, token, true)),
        Some(GgufTokenType::UserDefined) => Some(added(id, token, false)),
        _ => None,
    });
    let model = json!({
        "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
        "vocab": vocab, "merges": pairs,
    });
    // Llama's begin with a space; a file may say that its own do not.
    let prefix = from.add_space_prefix.unwrap_or(true);
    let scheme = if prefix { "first" } else { "never" };
    let mut decoders = vec![
        json!({ "type": "Replace", "pattern": { "String": "▁" }, "content": " " }),
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ];
    if prefix {
        decoders.push(json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 }));
    }
    Ok(whole(
        model,
        special.collect(),
        Value::Null,
        json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": false }),
        Value::Null,
        json!({ "type": "Sequence", "decoders": decoders }),
    ))
}

/// The pairs that make each piece, those of the best pieces first (transformers' `generate_merges`).
fn merges<'a>(tokens: &'a [String], scores: &[f32]) -> Vec<(&'a str, &'a str)> {
    let ids: HashMap<&str, usize> = tokens
        .iter()
        .enumerate()
        .map(|(id, token)| (token.as_str(), id))
        .collect();
    let mut pairs = Vec::new();
    for (token, score) in tokens.iter().zip(scores) {
        if token.chars().count() > LONGEST {
            continue;
        }
        let ends = token.char_indices().skip(1);
        let mut own: Vec<_> = ends
            .filter_map(|(at, _)| {
                let (left, right) = token.split_at(at);
                let order = (*ids.get(left)?, *ids.get(right)?);
                Some((order, (left, right), *score))
            })
            .collect();
        own.sort_by_key(|(order, ..)| *order);
        pairs.extend(own);
    }
    // Of equal scores longer pieces come first.
    let length = |text: &str| text.chars().count();
    pairs.sort_by(|(_, a, score_a), (_, b, score_b)| {
        let lengths = |pair: &(&str, &str)| (length(pair.0), length(pair.1));
        let by_score = score_b.total_cmp(score_a);
        by_score.then_with(|| lengths(b).cmp(&lengths(a)))
    });
    pairs.into_iter().map(|(_, pair, _)| pair).collect()
}
