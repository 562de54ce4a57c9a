//! Tokenizers from older files than `tokenizer.json`, as transformers' converters make them.

use burn_zoo_core::{Error, Result};
use serde_json::{Map, Value, json};
use std::path::Path;

/// A tokenizer that knows one token, as an entry of `added_tokens`.
pub(crate) fn added(id: usize, content: &str, special: bool) -> Value {
    json!({
        "id": id, "content": content, "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false, "special": special,
    })
}

/// The whole of a `tokenizer.json`.
pub(crate) fn whole(
    model: Value,
    added_tokens: Vec<Value>,
    normalizer: Value,
    pre_tokenizer: Value,
    post_processor: Value,
    decoder: Value,
) -> Value {
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added_tokens,
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": post_processor,
        "decoder": decoder, "model": model,
    })
}

/// Bytes as letters; `use_regex` splits as GPT-2 does.
pub(crate) fn byte_level(use_regex: bool) -> Value {
    json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex })
}

/// BERT's `vocab.txt`, a token in each line.
pub(crate) fn word_pieces(text: &str, lowercase: bool, path: &Path) -> Result<Value> {
    let tokens: Vec<&str> = text
        .lines()
        .map(|line| line.trim_end_matches('\r'))
        .collect();
    let vocab: Map<String, Value> = tokens
        .iter()
        .enumerate()
        .map(|(id, token)| (token.to_string(), json!(id)))
        .collect();
    let special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"];
    let id = |token: &str| vocab.get(token).and_then(Value::as_u64);
    let (Some(cls), Some(sep), Some(_)) = (id("[CLS]"), id("[SEP]"), id("[UNK]")) else {
        return Err(Error::malformed(
            path,
            "lacks one of [CLS], [SEP] and [UNK]",
        ));
    };
    let found = special
        .iter()
        .filter_map(|token| Some(added(id(token)? as usize, token, true)));
    let normalizer = json!({
        "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
        "strip_accents": null, "lowercase": lowercase,
    });
    let found = found.collect();
    let model = json!({
        "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": vocab,
    });
    Ok(whole(
        model,
        found,
        normalizer,
        json!({ "type": "BertPreTokenizer" }),
        json!({ "type": "BertProcessing", "sep": ["[SEP]", sep], "cls": ["[CLS]", cls] }),
        json!({ "type": "WordPiece", "prefix": "##", "cleanup": true }),
    ))
}

/// GPT-2's and RoBERTa's `vocab.json` and `merges.txt`.
pub(crate) fn byte_pairs(vocab: Value, merges: &str, path: &Path) -> Result<Value> {
    let lines = merges
        .lines()
        .filter(|line| !line.starts_with("#version") && !line.is_empty());
    let pairs = lines.map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [a, b] => Ok(json!([a, b])),
        _ => Err(Error::malformed(
            path,
            format!("`{line}` is no pair of tokens"),
        )),
    });
    let pairs: Vec<Value> = pairs.collect::<Result<_>>()?;
    let id = |token: &str| vocab.get(token).and_then(Value::as_u64);
    let special = ["<|endoftext|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>"];
    let found = special
        .iter()
        .filter_map(|token| Some(added(id(token)? as usize, token, true)));
    let found = found.collect();
    let post = match (id("<s>"), id("</s>")) {
        (Some(cls), Some(sep)) => json!({
            "type": "RobertaProcessing", "sep": ["</s>", sep], "cls": ["<s>", cls],
            "trim_offsets": true, "add_prefix_space": false,
        }),
        _ => byte_level(true),
    };
    let model = json!({
        "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
        "end_of_word_suffix": "", "fuse_unk": false, "vocab": vocab, "merges": pairs,
    });
    Ok(whole(
        model,
        found,
        Value::Null,
        byte_level(true),
        post,
        byte_level(true),
    ))
}
