use crate::config::ResNetConfig;
use crate::model::ResNet;
use crate::presets::preset;
use burn::tensor::{DType, backend::Backend};
use burn_zoo_checkpoint::{KeyMap, load, save};
use burn_zoo_core::{Error, Result};
use burn_zoo_nn::Init;
use std::path::Path;

/// Path of the head's weight, `[num_classes, num_features]`.
pub const HEAD: &str = "fc.weight";

const DROPPED: &[(&str, &str)] = &[(
    "num_batches_tracked",
    "counts batches for momentum=None, which no ResNet uses",
)];

impl ResNetConfig {
    /// The spellings of the parameters' names: torchvision's and timm's, which is written; transformers'
    /// `ResNetForImageClassification`, and its `ResNetModel`.
    pub fn key_maps(&self) -> Vec<KeyMap> {
        let torchvision = [
            ("^layers.*", "layer*+1"),
            ("downsample.conv", "downsample.0"),
            ("downsample.norm", "downsample.1"),
        ];
        let transformers = [
            ("^conv1", "embedder.embedder.convolution"),
            ("^bn1", "embedder.embedder.normalization"),
            ("^layers.*.*", "encoder.stages.*.layers.*"),
            ("conv1", "layer.0.convolution"),
            ("bn1", "layer.0.normalization"),
            ("conv2", "layer.1.convolution"),
            ("bn2", "layer.1.normalization"),
            ("conv3", "layer.2.convolution"),
            ("bn3", "layer.2.normalization"),
            ("downsample.conv", "shortcut.convolution"),
            ("downsample.norm", "shortcut.normalization"),
            ("^fc", "classifier.1"),
        ];
        let base = KeyMap::new("transformers, ResNetModel", &transformers, DROPPED);
        let mut classifier = KeyMap::new("transformers", &transformers, DROPPED);
        classifier.rename("^embedder", "resnet.embedder");
        classifier.rename("^encoder", "resnet.encoder");
        vec![
            KeyMap::new("torchvision", &torchvision, DROPPED),
            classifier,
            base,
        ]
    }
}

impl<B: Backend> ResNet<B> {
    /// A preset's network with random weights (seed 0).
    ///
    /// # Errors
    /// If no preset has this name; the nearest names are suggested.
    pub fn from_preset(name: &str, device: &B::Device) -> Result<Self> {
        Self::new(&preset(name)?.1, 0, device)
    }

    /// A preset's network with weights from a local file or folder, in torchvision's, timm's or
    /// transformers' names.
    ///
    /// # Errors
    /// If the preset is unknown, or the file is absent, malformed or not this model's.
    pub fn from_pretrained(name: &str, path: impl AsRef<Path>, device: &B::Device) -> Result<Self> {
        let (info, config) = preset(name)?;
        let path = path.as_ref();
        if !path.exists() {
            let hint = match &info.weights {
                Some(weights) => format!("{name}'s published weights are at {}", weights.url),
                None => format!("{name} has no published weights; train it"),
            };
            return Err(Error::NotFound {
                path: path.to_path_buf(),
                hint,
            });
        }
        Self::from_file(&config, path, device)
    }

    /// A network of this configuration with weights from a file or folder, as f32.
    ///
    /// # Errors
    /// If the file is absent, malformed or not this model's.
    pub fn from_file(config: &ResNetConfig, path: &Path, device: &B::Device) -> Result<Self> {
        let model = Self::init(config, &mut Init::unfilled(device))?;
        load(model, path, &config.key_maps(), DType::F32)
    }

    /// Writes the weights as a safetensors file in torchvision's names.
    ///
    /// # Errors
    /// If the file cannot be written; nothing is left half-written.
    pub fn save(&self, file: &Path) -> Result<()> {
        save(self, file, &self.config().key_maps()[0])
    }
}
