//! Names of classes for people.

use burn_zoo_core::{Error, Result};
use std::path::Path;

/// Class names from a file with one name a line.
pub fn read(path: &Path, num_classes: usize) -> Result<Vec<String>> {
    // A pipe would wait for its writer.
    if path.exists() && !path.is_file() {
        return Err(Error::malformed(path, "is no regular file"));
    }
    let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
    let names: Vec<String> = text
        .lines()
        .map(|l| l.trim().to_string())
        .filter(|l| !l.is_empty())
        .collect();
    if names.len() != num_classes {
        return Err(Error::malformed(
            path,
            format!("{} names for {num_classes} classes", names.len()),
        ));
    }
    Ok(names)
}
