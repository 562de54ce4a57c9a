use crate::{Error, Result};
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

/// None of them comes near this.
const MOST_BYTES: u64 = 256 << 20;

/// Those of [`TEXT_FILES`] that are in a folder, with their contents.
///
/// # Errors
/// If one cannot be read, or is far too large to be what its name says.
pub fn read_text_files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for name in TEXT_FILES {
        let path = folder.join(name);
        if !path.is_file() {
            continue;
        }
        let size = path.metadata().map_err(Error::io(&path, "look at"))?.len();
        if size > MOST_BYTES {
            let message = format!("has {size} bytes, and {MOST_BYTES} are the most");
            return Err(Error::malformed(path, message));
        }
        let bytes = std::fs::read(&path).map_err(Error::io(&path, "read"))?;
        files.push((name.into(), bytes));
    }
    Ok(files)
}
