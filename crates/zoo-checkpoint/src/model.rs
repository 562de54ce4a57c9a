use crate::{KeyMap, LazyTensors, LoadOptions, LoadReport, load, load_with, save};
use burn::module::Module;
use burn::tensor::{DType, backend::Backend};
use burn_zoo_core::{Error, Preset, Result};
use std::path::Path;

/// A family's configuration: its listed models, and how their weights are called in files.
pub trait ModelConfig: Clone + Send + Sync + Sized + 'static {
    /// Every listed model of the family.
    fn presets() -> &'static [(Preset, Self)];

    /// The spellings of the parameters' names; the first is written.
    fn key_maps(&self) -> Vec<KeyMap>;

    /// The listed model called `name`.
    ///
    /// # Errors
    /// If there is none; the nearest names are suggested.
    fn preset(name: &str) -> Result<(Preset, Self)> {
        let presets = Self::presets();
        let found = presets.iter().find(|(preset, _)| preset.name == name);
        let names = presets.iter().map(|(preset, _)| preset.name);
        found
            .cloned()
            .ok_or_else(|| Error::unknown("model", name, names))
    }
}

/// The configuration of a model that tells classes of images apart.
pub trait ClassifierConfig: ModelConfig {
    /// Path of the last layer's weight, whose first size is the number of classes.
    const HEAD: &'static str;

    /// Changes the number of classes.
    fn set_num_classes(&mut self, num_classes: usize);
}

/// A model that is made from a preset and from published weights.
pub trait PretrainedModel<B: Backend>: Module<B> + Sized {
    /// What it is made from.
    type Config: ModelConfig;

    /// A model with weights drawn from `seed`, or unfilled where a file's will replace them.
    ///
    /// # Errors
    /// If the configuration makes no model.
    fn build(config: &Self::Config, seed: Option<u64>, device: &B::Device) -> Result<Self>;

    /// The configuration it was made from.
    fn config(&self) -> &Self::Config;

    /// A preset's model with random weights (seed 0).
    ///
    /// # Errors
    /// If no preset has this name; the nearest names are suggested.
    fn from_preset(name: &str, device: &B::Device) -> Result<Self> {
        Self::build(&Self::Config::preset(name)?.1, Some(0), device)
    }

    /// A preset's model with weights from a local file or folder, as f32.
    ///
    /// # Errors
    /// If the preset is unknown, or the file is absent, malformed or not this model's.
    fn from_pretrained(name: &str, path: impl AsRef<Path>, device: &B::Device) -> Result<Self> {
        let (preset, config) = Self::Config::preset(name)?;
        Self::from_file(&config, there(path.as_ref(), &preset)?, device)
    }

    /// As [`from_pretrained`](Self::from_pretrained), with a new, random last layer (seed 0) for
    /// `num_classes` classes; the report names what was not loaded.
    ///
    /// # Errors
    /// As there.
    fn from_pretrained_for(
        num_classes: usize,
        name: &str,
        path: impl AsRef<Path>,
        device: &B::Device,
    ) -> Result<(Self, LoadReport)>
    where
        Self::Config: ClassifierConfig,
    {
        let (preset, mut config) = Self::Config::preset(name)?;
        let path = there(path.as_ref(), &preset)?;
        config.set_num_classes(num_classes);
        let model = Self::build(&config, Some(0), device)?;
        let options = LoadOptions {
            dtype: DType::F32,
            allow_missing: new_head(&config),
        };
        let tensors = LazyTensors::open(path)?;
        load_with(model, &tensors, &config.key_maps(), &options)
    }

    /// A model of this configuration with weights from a file or folder, as f32.
    ///
    /// # Errors
    /// If the file is absent, malformed or not this model's.
    fn from_file(config: &Self::Config, path: &Path, device: &B::Device) -> Result<Self> {
        let model = Self::build(config, None, device)?;
        load(model, path, &config.key_maps(), DType::F32)
    }

    /// Writes the weights as a safetensors file in upstream's names.
    ///
    /// # Errors
    /// If the file cannot be written; nothing is left half-written.
    fn save(&self, file: &Path) -> Result<()> {
        save(self, file, &self.config().key_maps()[0])
    }
}

/// Patterns of the last layer's keys, in every spelling.
pub fn new_head<C: ClassifierConfig>(config: &C) -> Vec<String> {
    let layer = C::HEAD.trim_end_matches("weight");
    let maps = config.key_maps();
    let keys = |map: &KeyMap| ["weight", "bias"].map(|last| map.key(&format!("{layer}{last}")));
    maps.iter().flat_map(keys).collect()
}

fn there<'a>(path: &'a Path, preset: &Preset) -> Result<&'a Path> {
    if path.exists() {
        return Ok(path);
    }
    let name = preset.name;
    let hint = match &preset.weights {
        Some(weights) => format!("{name}'s published weights are at {}", weights.url),
        None => format!("{name} has no published weights; train it"),
    };
    Err(Error::NotFound {
        path: path.to_path_buf(),
        hint,
    })
}
