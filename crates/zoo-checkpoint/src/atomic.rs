use burn_zoo_core::{Error, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes `bytes` beside `path`, syncs them to disk and renames them into place.
///
/// Whatever interrupts this, `path` holds either its old or its new contents, whole. A link stays one:
/// what it leads to is written.
///
/// # Errors
/// If the file cannot be written, or something that is no regular file has its name.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically_with(path, |file| file.write_all(bytes))
}

/// As [`write_atomically`], with contents that `write` gives piece by piece.
pub(crate) fn write_atomically_with(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<()> {
    let target = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => {
            std::fs::canonicalize(path).map_err(Error::io(path, "follow the link"))?
        }
        _ => path.to_path_buf(),
    };
    let path = target.as_path();
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Error::malformed(path, "is no regular file; name another"));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".part-");
    #[cfg(unix)]
    {
        // Temporary files are private; what gets a name has the permissions that the umask gives.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder
        .tempfile_in(folder)
        .map_err(Error::io(path, "write"))?;
    let mut buffer = BufWriter::with_capacity(1 << 20, file.as_file());
    write(&mut buffer)
        .and_then(|()| buffer.flush())
        .and_then(|()| file.as_file().sync_all())
        .map_err(Error::io(path, "write"))?;
    drop(buffer);
    file.persist(path)
        .map(drop)
        .map_err(|e| Error::io(path, "write")(e.error))
}
