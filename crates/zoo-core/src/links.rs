use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Refuses a link that leads out of its model's folder.
///
/// In a hub's cache that folder is `models--ORG--NAME`: a snapshot's files are links to its blobs.
/// Python's client may keep those blobs once for all models, in `blobs` beside it.
///
/// # Errors
/// If `file` is no file or leads elsewhere.
pub fn stays_inside(file: &Path, folder: &Path) -> Result<()> {
    let real = |path: &Path| path.canonicalize().map_err(Error::io(path, "read"));
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let (file_at, folder_at) = (real(file)?, real(folder)?);
    if file_at.starts_with(&folder_at) || blobs(&folder_at).any(|blobs| file_at.starts_with(blobs))
    {
        return Ok(());
    }
    let message = format!("leads out of its folder to {}", file_at.display());
    Err(Error::malformed(file, message))
}

/// Where the files of `models--ORG--NAME/snapshots/COMMIT` may lie; for other folders, nowhere.
fn blobs(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let snapshots = folder.parent();
    let model = snapshots
        .filter(|parent| parent.file_name().is_some_and(|name| name == "snapshots"))
        .and_then(Path::parent);
    let own = model.map(|model| model.join("blobs"));
    let is_models = |model: &&Path| {
        let name = model.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("models--"))
    };
    let shared = model
        .filter(is_models)
        .and_then(Path::parent)
        .map(|cache| cache.join("blobs"))
        .filter(|blobs| blobs.join(".huggingface-shared-blobs").is_file());
    own.into_iter().chain(shared)
}
