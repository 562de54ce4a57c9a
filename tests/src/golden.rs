//! Reading the fixtures under `tests/golden/`.

use burn::tensor::TensorData;
use burn_zoo_checkpoint::{Tensors, read_safetensors};
use serde_json::Value;
use std::path::PathBuf;

/// The folder of the fixtures of one family.
pub fn folder(family: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(family)
}

/// One fixture file.
pub struct Fixture {
    /// Its name, as `FAMILY/NAME`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Every tensor in it.
    pub tensors: Tensors,
    /// The configuration in its header.
    pub config: Value,
}

impl Fixture {
    /// Reads `golden/FAMILY/NAME.safetensors`.
    ///
    /// # Panics
    /// If it is absent or malformed: a test without its fixture fails.
    pub fn read(family: &str, name: &str) -> Self {
        let path = folder(family).join(format!("{name}.safetensors"));
        let tensors = read_safetensors(&path).expect("the fixture is part of the repository");
        let bytes = std::fs::read(&path).expect("it was just read");
        let (_, metadata) =
            safetensors::SafeTensors::read_metadata(&bytes).expect("it was just parsed");
        let metadata = metadata
            .metadata()
            .clone()
            .expect("fixtures carry their configuration");
        let config = serde_json::from_str(&metadata["config"]).expect("the configuration is JSON");
        Self {
            name: format!("{family}/{name}"),
            path,
            tensors,
            config,
        }
    }

    /// The tensor called `name`.
    ///
    /// # Panics
    /// If there is none.
    pub fn get(&self, name: &str) -> TensorData {
        let found = self.tensors.get(name);
        found
            .unwrap_or_else(|| panic!("{} has no `{name}`", self.path.display()))
            .clone()
    }

    /// Every tensor whose name starts with `prefix`, by the rest of its name.
    pub fn group(&self, prefix: &str) -> Tensors {
        let entries = self.tensors.iter();
        entries
            .filter_map(|(name, data)| Some((name.strip_prefix(prefix)?.to_string(), data.clone())))
            .collect()
    }
}
