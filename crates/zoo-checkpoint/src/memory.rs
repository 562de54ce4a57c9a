//! How much memory there is, so that what cannot fit is refused before any is taken.

use burn_zoo_core::{Error, Result};
use std::path::Path;

/// Refuses `bytes` of weights of `path` where the system says that less is available.
pub(crate) fn refuse_too_much(path: &Path, bytes: u128) -> Result<()> {
    match available() {
        Some(available) if bytes > u128::from(available) => {
            let mebibytes = |n: u128| n >> 20;
            let message = format!(
                "the weights take {} MiB in memory, {} MiB are available",
                mebibytes(bytes),
                mebibytes(available.into())
            );
            Err(Error::malformed(path, message))
        }
        _ => Ok(()),
    }
}

/// Bytes that can be taken without swapping, where the system tells (Linux).
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes << 10)
}
