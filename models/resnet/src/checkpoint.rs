use crate::config::ResNetConfig;
use crate::model::ResNet;
use crate::presets::preset;
use burn::tensor::{DType, backend::Backend};
use burn_zoo_checkpoint::{KeyMap, load, save};
use burn_zoo_core::{Error, Result};
use std::path::Path;

/// torchvision's and timm's parameter names.
pub const KEY_MAP: KeyMap = KeyMap {
    renamed: &[
        ("layers.0", "layer1"),
        ("layers.1", "layer2"),
        ("layers.2", "layer3"),
        ("layers.3", "layer4"),
        ("layers.4", "layer5"),
        ("layers.5", "layer6"),
        ("layers.6", "layer7"),
        ("layers.7", "layer8"),
        ("downsample.conv", "downsample.0"),
        ("downsample.norm", "downsample.1"),
    ],
    dropped: &[(
        "num_batches_tracked",
        "counts batches for momentum=None, which no ResNet uses",
    )],
};

impl<B: Backend> ResNet<B> {
    /// A preset's network with random weights (seed 0).
    ///
    /// # Errors
    /// If no preset has this name; the nearest names are suggested.
    pub fn from_preset(name: &str, device: &B::Device) -> Result<Self> {
        Self::new(&preset(name)?.1, 0, device)
    }

    /// A preset's network with weights from a local safetensors file in torchvision's names.
    ///
    /// # Errors
    /// If the preset is unknown, or the file is absent, malformed or not this model's.
    pub fn from_pretrained(name: &str, file: impl AsRef<Path>, device: &B::Device) -> Result<Self> {
        let (info, config) = preset(name)?;
        let file = file.as_ref();
        if !file.is_file() {
            let hint = match &info.weights {
                Some(weights) => format!(
                    "{name}'s published weights are at {} (save its state_dict as safetensors)",
                    weights.url
                ),
                None => format!("{name} has no published weights; train it"),
            };
            return Err(Error::NotFound {
                path: file.to_path_buf(),
                hint,
            });
        }
        Self::from_file(&config, file, device)
    }

    /// A network of this configuration with weights from a safetensors file, as f32.
    ///
    /// # Errors
    /// If the file is absent, malformed or not this model's.
    pub fn from_file(config: &ResNetConfig, file: &Path, device: &B::Device) -> Result<Self> {
        load(Self::new(config, 0, device)?, file, &KEY_MAP, DType::F32)
    }

    /// Writes the weights as a safetensors file in torchvision's names.
    ///
    /// # Errors
    /// If the file cannot be written; nothing is left half-written.
    pub fn save(&self, file: &Path) -> Result<()> {
        save(self, file, &KEY_MAP)
    }
}
