use crate::OpenOptions;
use burn_zoo_core::{Error, Result, cache_dir};
use std::path::{Path, PathBuf};

/// The files of a data set and where they may be.
pub(crate) struct Wanted<'a> {
    pub dataset: &'static str,
    pub files: &'a [&'static str],
    /// A file may also be there with this ending.
    pub alternative: &'static str,
    /// Where a distribution's package puts them.
    pub system: Option<&'a Path>,
    /// One address a file, or one of an archive with all of them.
    #[cfg_attr(not(feature = "download"), allow(dead_code))]
    pub urls: &'a [String],
    /// SHA-256 of what is at each address.
    #[cfg_attr(not(feature = "download"), allow(dead_code))]
    pub hashes: &'a [&'a str],
}

/// Finds all files in `--data-dir`, or else in the system's folder or the cache, or else downloads
/// them into the cache.
pub(crate) fn locate(wanted: &Wanted, options: &OpenOptions) -> Result<Vec<PathBuf>> {
    if let Some(folder) = &options.data_dir {
        return find(wanted, folder).map_err(|missing| Error::NotFound {
            path: folder.join(missing),
            hint: format!(
                "--data-dir must hold the {} files of {}",
                wanted.files.len(),
                wanted.dataset
            ),
        });
    }
    let cache = cache_dir().join(wanted.dataset);
    for folder in wanted.system.into_iter().chain([cache.as_path()]) {
        if let Ok(found) = find(wanted, folder) {
            return Ok(found);
        }
    }
    #[cfg(feature = "download")]
    if options.download {
        crate::download::fetch(wanted, &cache)?;
        return find(wanted, &cache).map_err(|missing| Error::NotFound {
            path: cache.join(missing),
            hint: "the download did not bring it".into(),
        });
    }
    Err(Error::NotFound {
        path: cache.join(wanted.files[0]),
        hint: format!(
            "give the folder with {}'s files with --data-dir",
            wanted.dataset
        ),
    })
}

/// The files in `folder` or one of the folders archives make in it, or the first that is missing.
fn find(wanted: &Wanted, folder: &Path) -> std::result::Result<Vec<PathBuf>, &'static str> {
    let mut first_missing = wanted.files[0];
    for folder in [folder.to_path_buf(), folder.join("cifar-10-batches-bin")] {
        let mut found = Vec::new();
        for file in wanted.files {
            let plain = folder.join(file);
            let other = folder.join(format!("{file}{}", wanted.alternative));
            match [plain, other].into_iter().find(|path| path.is_file()) {
                Some(path) => found.push(path),
                None => break,
            }
        }
        if found.len() == wanted.files.len() {
            return Ok(found);
        }
        if !found.is_empty() {
            first_missing = wanted.files[found.len()];
        }
    }
    Err(first_missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distributions_files_are_found_and_data_dir_comes_before_them() {
        let (system, given) = (tempfile::tempdir(), tempfile::tempdir());
        let (system, given) = (system.expect("a folder"), given.expect("a folder"));
        for folder in [&system, &given] {
            std::fs::write(folder.path().join("images.gz"), b"x").expect("writable");
        }
        let wanted = Wanted {
            dataset: "no such set",
            files: &["images"],
            alternative: ".gz",
            system: Some(system.path()),
            urls: &[],
            hashes: &[],
        };
        let mut options = OpenOptions {
            download: false,
            ..OpenOptions::default()
        };
        let found = locate(&wanted, &options).expect("in the system's folder");
        assert_eq!(found, [system.path().join("images.gz")]);
        options.data_dir = Some(given.path().to_path_buf());
        let found = locate(&wanted, &options).expect("where the user says");
        assert_eq!(found, [given.path().join("images.gz")]);
        options.data_dir = Some(given.path().join("elsewhere"));
        assert!(locate(&wanted, &options).is_err(), "nowhere else is looked");
    }
}
