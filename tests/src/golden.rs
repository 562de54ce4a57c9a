//! The files under `tests/golden/`; those of a family's cases are embedded too, see `burn_zoo::fixtures`.

use std::path::PathBuf;

/// The folder of this name.
pub fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name)
}
