use crate::Timing;
use crate::cache::temporary;
use crate::check::{Check, is_hex};
use crate::client::Client;
use crate::lock::Lock;
use crate::progress::{Progress, Tell};
use crate::transfer::Transfer;
use burn_zoo_core::{Error, Result};
use std::path::{Path, PathBuf};

/// A file that somebody published, with its hash.
#[derive(Clone, Debug)]
pub struct Published<'a> {
    /// Its address.
    pub url: &'a str,
    /// Its SHA-256 in hexadecimal digits, or the first eight or more of them.
    pub sha256: &'a str,
    /// No more is ever written.
    pub most_bytes: u64,
    /// Where it belongs.
    pub target: &'a Path,
    /// Whether a part stays beside it, for the next run to go on with.
    pub keeps_part: bool,
}

/// Downloads a file unless it is there. It gets its name only when it is whole and its hash is
/// right.
///
/// # Errors
/// If the server does not give it, or gives another.
pub fn fetch_published(
    file: &Published,
    timing: &Timing,
    tell: &mut dyn FnMut(Progress),
) -> Result<()> {
    if file.target.is_file() {
        return Ok(());
    }
    let hash = file.sha256.to_ascii_lowercase();
    if hash.len() < 8 || !is_hex(&hash) {
        let message = "no hash is known for it, so it could not be checked";
        return Err(Error::download(file.url, message));
    }
    let folder = match file.target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(Error::io(folder, "create the folder"))?;
    if !file.keeps_part {
        let part = temporary(folder).map_err(Error::io(file.target, "write"))?;
        let part = part.into_temp_path();
        return transfer(file, &part, timing, tell);
    }
    let _lock = Lock::take(&beside(file.target, "lock"), tell)?;
    // Another process may just have brought it.
    if file.target.is_file() {
        return Ok(());
    }
    transfer(file, &beside(file.target, "incomplete"), timing, tell)
}

fn transfer(file: &Published, part: &Path, timing: &Timing, tell: &mut Tell) -> Result<()> {
    let name = file
        .target
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let end = file.url.find("://").map_or(0, |i| i + 3);
    let end = file.url[end..]
        .find('/')
        .map_or(file.url.len(), |i| end + i);
    let transfer = Transfer {
        url: file.url,
        name: &name,
        from: &file.url[..end],
        size: None,
        most: file.most_bytes,
        check: &Check::Sha256(file.sha256.to_ascii_lowercase()),
        part,
        keeps_part: file.keeps_part,
        target: file.target,
    };
    Client::new(timing).download(&transfer, tell)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Where a published file is to be asked for: with `BURN_ZOO_MIRROR`, at `MIRROR/GROUP/FILE`.
pub fn mirrored(url: &str, group: &str) -> String {
    match std::env::var("BURN_ZOO_MIRROR") {
        Ok(base) if !base.is_empty() => {
            let name = url.rsplit('/').next().unwrap_or(url);
            format!("{}/{group}/{name}", base.trim_end_matches('/'))
        }
        _ => url.to_string(),
    }
}
