use crate::progress::{Progress, Tell};
use burn_zoo_core::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

/// Holds a file's lock until it is dropped; Python's client locks the same file in the same way.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, and says so where another process has it.
    pub fn take(path: &Path, tell: &mut Tell) -> Result<Self> {
        let fail = |e| Error::io(path, "lock")(e);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io(folder, "create the folder"))?;
        }
        loop {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false);
            let file = options.open(path).map_err(fail)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    tell(Progress::Note(format!(
                        "waiting for another process that downloads the same file ({})",
                        path.display()
                    )));
                    file.lock().map_err(fail)?;
                }
                Err(TryLockError::Error(e)) => return Err(fail(e)),
            }
            // Whoever had it may have removed the file, and a third may have made a new one.
            if is_at(&file, path) {
                return Ok(Self { _file: file });
            }
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}
