use burn_zoo_core::{Error, Result, TEXT_FILES};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Small files that say what a model is and how its input is made, beside those of texts.
const SMALL_FILES: [&str; 5] = [
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "source.spm",
    "target.spm",
];

/// Weights in the order in which the zoo's reader prefers them.
const WEIGHTS: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

/// An index is a list of names; none comes near this.
const MOST_INDEX_BYTES: u64 = 100 << 20;

/// Where a model's weights are.
#[derive(Debug, PartialEq)]
pub(crate) enum Weights<'a> {
    /// In one file.
    One(&'a str),
    /// In the shards that this index names.
    Sharded(&'a str),
}

/// Those of a model's small files that are among `names`.
pub(crate) fn small_files(names: &BTreeSet<String>) -> impl Iterator<Item = &'static str> {
    let all = SMALL_FILES.into_iter().chain(TEXT_FILES);
    all.filter(|name| names.contains(*name))
}

/// The weights that are read where a model has these files.
pub(crate) fn weights(names: &BTreeSet<String>) -> std::result::Result<Weights<'_>, String> {
    let first = WEIGHTS.into_iter().find(|name| names.contains(*name));
    if let Some(name) = first {
        return Ok(match name.ends_with(".index.json") {
            true => Weights::Sharded(name),
            false => Weights::One(name),
        });
    }
    let is_gguf = |name: &&String| name.ends_with(".gguf") && !name.contains('/');
    let mut ggufs = names.iter().filter(is_gguf);
    match (ggufs.next(), ggufs.next()) {
        (Some(name), None) => Ok(Weights::One(name)),
        (Some(_), Some(_)) => Err(
            "has several .gguf files and no other weights; download one and give its path".into(),
        ),
        _ => Err(format!("has no weights: none of {}", WEIGHTS.join(", "))),
    }
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The shards that an index names, each a plain name of a file beside it.
pub(crate) fn shards(index: &Path) -> Result<BTreeSet<String>> {
    let bytes = std::fs::metadata(index)
        .map_err(Error::io(index, "read"))?
        .len();
    if bytes > MOST_INDEX_BYTES {
        return Err(Error::malformed(
            index,
            "is too long for an index of shards",
        ));
    }
    let text = std::fs::read_to_string(index).map_err(Error::io(index, "read"))?;
    let parsed: Index = serde_json::from_str(&text)
        .map_err(|e| Error::malformed(index, format!("not an index of shards: {e}")))?;
    let shards: BTreeSet<String> = parsed.weight_map.into_values().collect();
    let plain = |name: &&String| !crate::repo::is_safe_file(name) || name.contains('/');
    match shards.iter().find(plain) {
        Some(name) => {
            let message = format!(
                "the shard `{}` is not a plain file name",
                name.escape_debug()
            );
            Err(Error::malformed(index, message))
        }
        None => Ok(shards),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn weights_are_chosen_as_they_are_read() {
        let all = set(&[
            "pytorch_model.bin",
            "model.safetensors.index.json",
            "x.gguf",
            "a.md",
        ]);
        assert_eq!(
            weights(&all),
            Ok(Weights::Sharded("model.safetensors.index.json"))
        );
        let gguf = set(&["x.gguf", "config.json", "sub/y.gguf"]);
        assert_eq!(weights(&gguf), Ok(Weights::One("x.gguf")));
        assert!(weights(&set(&["x.gguf", "y.gguf"])).is_err_and(|e| e.contains("several")));
        assert!(weights(&set(&["tf_model.h5"])).is_err_and(|e| e.contains("no weights")));
        assert_eq!(small_files(&gguf).collect::<Vec<_>>(), ["config.json"]);
    }

    #[test]
    fn shards_outside_the_folder_are_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("index.json");
        for (shard, fine) in [
            ("a-1.safetensors", true),
            ("../a", false),
            ("/a", false),
            ("s/a", false),
        ] {
            let json = serde_json::json!({"weight_map": {"key": shard}});
            std::fs::write(&path, json.to_string()).expect("writable");
            assert_eq!(shards(&path).is_ok(), fine, "{shard}");
        }
    }
}
