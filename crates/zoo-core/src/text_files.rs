use crate::{Error, Result};
use std::io::Read;
use std::path::Path;

/// Files of a text model's folder beside its configuration and weights, by the names that transformers
/// gives them: how text becomes tokens, how a conversation becomes text, where a generated text ends.
pub const TEXT_FILES: [&str; 14] = [
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "normalizer.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "chat_template.jinja",
    "chat_template.json",
];

/// The largest tokenizers in use have 40 MB.
const MOST_BYTES: u64 = 256 << 20;

/// The contents of one of [`TEXT_FILES`].
///
/// # Errors
/// If it cannot be read, or is far too large to be what its name says.
pub fn read_text_file(path: &Path) -> Result<Vec<u8>> {
    let file = std::fs::File::open(path).map_err(Error::io(path, "read"))?;
    let mut bytes = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(Error::io(path, "read"))?;
    if bytes.len() as u64 > MOST_BYTES {
        let message = format!(
            "has more than {} MiB, which no tokenizer has",
            MOST_BYTES >> 20
        );
        return Err(Error::malformed(path, message));
    }
    Ok(bytes)
}

/// Those of [`TEXT_FILES`] that are in a folder, with their contents.
///
/// # Errors
/// As [`read_text_file`].
pub fn read_text_files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let there = TEXT_FILES
        .into_iter()
        .filter(|name| folder.join(name).is_file());
    there
        .map(|name| Ok((name.into(), read_text_file(&folder.join(name))?)))
        .collect()
}
