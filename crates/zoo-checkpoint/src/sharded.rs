//! Checkpoints in several files, with an index that says which tensor is where.

use crate::atomic::write_atomically;
use crate::lazy::{LazyTensor, open_one};
use crate::safetensors_file::{Outgoing, write};
pub(crate) use burn_zoo_core::stays_inside;
use burn_zoo_core::{Error, Result, nearest};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// An index is a list of names; none comes near this.
const MOST_INDEX_BYTES: u64 = 100 << 20;

#[derive(Serialize, Deserialize)]
struct Index {
    #[serde(default)]
    metadata: serde_json::Value,
    weight_map: BTreeMap<String, String>,
}

/// The tensors of all shards: exactly those that the index names.
pub(crate) fn open(path: &Path) -> Result<BTreeMap<String, LazyTensor>> {
    let index = read_index(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let shards: BTreeSet<&String> = index.weight_map.values().collect();
    let mut tensors = BTreeMap::new();
    for shard in shards {
        let file = shard_path(path, folder, shard)?;
        for (key, tensor) in open_one(&file)?.tensors {
            if index.weight_map.get(&key) != Some(shard) {
                let message = format!("key `{key}` is not what {} says is in it", path.display());
                return Err(Error::malformed(file, message));
            }
            tensors.insert(key, tensor);
        }
    }
    match index
        .weight_map
        .iter()
        .find(|(key, _)| !tensors.contains_key(*key))
    {
        None => Ok(tensors),
        Some((key, shard)) => {
            let nearest = nearest(key, tensors.keys().map(String::as_str));
            let nearest = nearest.map_or(String::new(), |n| format!(" (did you mean `{n}`?)"));
            let message = format!("key `{key}` is not in {shard}, where the index says{nearest}");
            Err(Error::malformed(path, message))
        }
    }
}

fn read_index(path: &Path) -> Result<Index> {
    let file = std::fs::File::open(path).map_err(Error::io(path, "read"))?;
    let mut text = String::new();
    file.take(MOST_INDEX_BYTES)
        .read_to_string(&mut text)
        .map_err(Error::io(path, "read"))?;
    let index: Index = serde_json::from_str(&text)
        .map_err(|e| Error::malformed(path, format!("not an index of shards: {e}")))?;
    if index.weight_map.is_empty() {
        return Err(Error::malformed(path, "the index names no tensors"));
    }
    Ok(index)
}

/// The file of a shard, which must be beside the index.
fn shard_path(index: &Path, folder: &Path, shard: &str) -> Result<PathBuf> {
    let mut components = Path::new(shard).components();
    let plain = matches!(components.next(), Some(Component::Normal(_)))
        && components.next().is_none()
        && !shard.contains(['/', '\\']);
    if !plain {
        let message = format!("the shard `{shard}` is not a plain file name");
        return Err(Error::malformed(index, message));
    }
    let file = folder.join(shard);
    if !file.is_file() {
        return Err(Error::NotFound {
            path: file,
            hint: format!("a shard that {} names is missing", index.display()),
        });
    }
    stays_inside(&file, folder)?;
    Ok(file)
}

/// Writes tensors into `folder`: as `model.safetensors`, or in shards of at most `most_bytes`
/// (but at least one tensor) with an index, named as transformers names them.
pub(crate) fn write_folder(folder: &Path, tensors: Vec<Outgoing>, most_bytes: usize) -> Result<()> {
    let total: usize = tensors.iter().map(Outgoing::bytes).sum();
    if total <= most_bytes {
        return write(&folder.join("model.safetensors"), tensors);
    }
    let mut shards: Vec<Vec<Outgoing>> = vec![Vec::new()];
    let mut filled = 0;
    for tensor in tensors {
        if filled > 0 && filled + tensor.bytes() > most_bytes {
            shards.push(Vec::new());
            filled = 0;
        }
        filled += tensor.bytes();
        if let Some(last) = shards.last_mut() {
            last.push(tensor);
        }
    }
    let count = shards.len();
    let mut weight_map = BTreeMap::new();
    for (i, shard) in shards.into_iter().enumerate() {
        let name = format!("model-{:05}-of-{count:05}.safetensors", i + 1);
        weight_map.extend(shard.iter().map(|t| (t.key.clone(), name.clone())));
        write(&folder.join(&name), shard)?;
    }
    let metadata = serde_json::json!({ "total_size": total });
    let index = Index {
        metadata,
        weight_map,
    };
    let path = folder.join("model.safetensors.index.json");
    let json =
        serde_json::to_string_pretty(&index).map_err(|e| Error::malformed(&path, e.to_string()))?;
    write_atomically(&path, json.as_bytes())
}
