use crate::choose::{Weights, shards, small_files, weights};
use crate::lock::Lock;
use crate::metadata::is_commit;
use crate::progress::Tell;
use crate::{Hub, RepoId};
use burn_zoo_core::{Error, Result, stays_inside};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A model's part of the cache, laid out as huggingface_hub does:
///
/// ```text
/// models--ORG--NAME/blobs/ETAG
/// models--ORG--NAME/refs/REVISION               the commit it was when it was last asked for
/// models--ORG--NAME/snapshots/COMMIT/FILE       a link to ../../blobs/ETAG
/// .locks/models--ORG--NAME/ETAG.lock
/// ```
pub(crate) struct ModelCache {
    root: PathBuf,
    locks: PathBuf,
}

impl ModelCache {
    pub fn new(hub: &Hub, repo: &RepoId) -> Self {
        Self {
            root: hub.cache.join(repo.folder()),
            locks: hub.cache.join(".locks").join(repo.folder()),
        }
    }

    pub fn snapshot(&self, commit: &str) -> PathBuf {
        self.root.join("snapshots").join(commit)
    }

    pub fn blob(&self, etag: &str) -> PathBuf {
        self.root.join("blobs").join(etag)
    }

    pub fn lock(&self, etag: &str, tell: &mut Tell) -> Result<Lock> {
        Lock::take(&self.locks.join(format!("{etag}.lock")), tell)
    }

    /// A file of a commit, if it is there; it must be in the cache itself.
    pub fn file(&self, commit: &str, name: &str) -> Result<Option<PathBuf>> {
        let folder = self.snapshot(commit);
        let path = folder.join(name);
        if !path.is_file() {
            return Ok(None);
        }
        stays_inside(&path, &folder)?;
        Ok(Some(path))
    }

    /// Gives a blob its name in a commit.
    pub fn link(&self, etag: &str, commit: &str, name: &str) -> Result<()> {
        let path = self.snapshot(commit).join(name);
        let folder = path.parent().unwrap_or(&self.root);
        std::fs::create_dir_all(folder).map_err(Error::io(folder, "create the folder"))?;
        // A link to a blob that is gone.
        if path.is_symlink() && !path.exists() {
            std::fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
        }
        let up = "../".repeat(name.matches('/').count() + 2);
        let linked = symlink(Path::new(&format!("{up}blobs/{etag}")), &path);
        if linked.is_ok() || path.is_file() {
            return Ok(());
        }
        // A system without links, where Python's client copies too.
        let write = |e| Error::io(&path, "write")(e);
        let copy = temporary(folder).map_err(write)?;
        std::fs::copy(self.blob(etag), copy.path()).map_err(write)?;
        copy.persist(&path).map_err(|e| write(e.error))?;
        Ok(())
    }

    /// Keeps which commit a branch or tag is.
    pub fn write_ref(&self, revision: &str, commit: &str) -> Result<()> {
        let path = self.root.join("refs").join(revision);
        let folder = path.parent().unwrap_or(&self.root);
        std::fs::create_dir_all(folder).map_err(Error::io(folder, "create the folder"))?;
        if std::fs::read_to_string(&path).is_ok_and(|old| old == commit) {
            return Ok(());
        }
        let write = |e| Error::io(&path, "write")(e);
        let file = temporary(folder).map_err(write)?;
        std::fs::write(file.path(), commit).map_err(write)?;
        file.persist(&path).map_err(|e| write(e.error))?;
        Ok(())
    }

    /// The folder of a revision that was downloaded whole.
    pub fn at_hand(&self, repo: &RepoId) -> Result<PathBuf> {
        let reference = self.root.join("refs").join(repo.revision());
        let commit = match is_commit(repo.revision()) {
            true => repo.revision().to_string(),
            false => std::fs::read_to_string(&reference).unwrap_or_default(),
        };
        let missing = |path: PathBuf| Error::NotFound {
            path,
            hint: format!("with a network, `zoo fetch {repo}` downloads it"),
        };
        let commit = commit.trim();
        if commit.is_empty() {
            return Err(missing(self.root.clone()));
        }
        if !is_commit(commit) {
            return Err(Error::malformed(reference, "holds no commit"));
        }
        let folder = self.snapshot(commit);
        let names = names(&folder);
        let weights = weights(&names).map_err(|_| missing(folder.join("model.safetensors")))?;
        for name in small_files(&names) {
            self.file(commit, name)?;
        }
        let mut wanted = BTreeSet::new();
        match weights {
            Weights::One(name) => {
                wanted.insert(name.to_string());
            }
            Weights::Sharded(name) => {
                if let Some(index) = self.file(commit, name)? {
                    wanted = shards(&index)?;
                }
            }
        }
        for name in wanted {
            if self.file(commit, &name)?.is_none() {
                return Err(missing(folder.join(name)));
            }
        }
        Ok(folder)
    }
}

/// A file for what will have another name, with the permissions that files have here.
pub(crate) fn temporary(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".part-")
        .make_in(folder, |path| std::fs::File::create_new(path))
}

/// The files of a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    // Windows takes no slashes in a link.
    let target: PathBuf = target.components().collect();
    std::os::windows::fs::symlink_file(target, link)
}

#[cfg(not(any(unix, windows)))]
fn symlink(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
