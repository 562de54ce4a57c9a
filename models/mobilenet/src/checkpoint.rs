use crate::config::{MobileNetConfig, Version};
use crate::model::MobileNet;
use crate::presets::preset;
use burn::tensor::{DType, backend::Backend};
use burn_zoo_checkpoint::{KeyMap, load, save};
use burn_zoo_core::{Error, Result};
use burn_zoo_nn::Init;
use std::path::Path;

/// Path of the last layer's weight, `[num_classes, features]`.
pub const HEAD: &str = "classifier.weight";

const DROPPED: &[(&str, &str)] = &[(
    "num_batches_tracked",
    "counts batches for momentum=None, which no MobileNet uses",
)];

impl MobileNetConfig {
    /// The spellings of the parameters' names: torchvision's, whose blocks number their layers.
    pub fn key_maps(&self) -> Vec<KeyMap> {
        fn conv_norm(map: &mut KeyMap, ours: &str, conv: String, norm: String) {
            map.rename(format!("^{ours}.conv"), conv);
            map.rename(format!("^{ours}.norm"), norm);
        }
        let mut map = KeyMap::new("torchvision", &[], DROPPED);
        let pair = |at: String| (format!("{at}.0"), format!("{at}.1"));
        let (conv, norm) = pair("features.0".into());
        conv_norm(&mut map, "stem", conv, norm);
        let (conv, norm) = pair(format!("features.{}", self.blocks.len() + 1));
        conv_norm(&mut map, "last", conv, norm);
        for (i, (block, input)) in self.blocks.iter().zip(self.inputs()).enumerate() {
            let ours = |part: &str| format!("blocks.{i}.{part}");
            let theirs = match self.version {
                Version::V2 => format!("features.{}.conv", i + 1),
                Version::V3 => format!("features.{}.block", i + 1),
            };
            let mut at = 0;
            if block.expanded_channels != input {
                let (conv, norm) = pair(format!("{theirs}.{at}"));
                conv_norm(&mut map, &ours("expand"), conv, norm);
                at += 1;
            }
            let (conv, norm) = pair(format!("{theirs}.{at}"));
            conv_norm(&mut map, &ours("filter"), conv, norm);
            at += 1;
            if block.use_se {
                map.rename(format!("^{}", ours("se")), format!("{theirs}.{at}"));
                at += 1;
            }
            let (conv, norm) = match self.version {
                // Not wrapped there.
                Version::V2 => (format!("{theirs}.{at}"), format!("{theirs}.{}", at + 1)),
                Version::V3 => pair(format!("{theirs}.{at}")),
            };
            conv_norm(&mut map, &ours("project"), conv, norm);
        }
        map.rename(
            "^classifier",
            match self.version {
                Version::V2 => "classifier.1",
                Version::V3 => "classifier.3",
            },
        );
        map.rename("^hidden", "classifier.0");
        vec![map]
    }
}

impl<B: Backend> MobileNet<B> {
    /// A preset's network with random weights (seed 0).
    ///
    /// # Errors
    /// If no preset has this name; the nearest names are suggested.
    pub fn from_preset(name: &str, device: &B::Device) -> Result<Self> {
        Self::new(&preset(name)?.1, 0, device)
    }

    /// A preset's network with weights from a local file or folder, in torchvision's names.
    ///
    /// # Errors
    /// If the preset is unknown, or the file is absent, malformed or not this model's.
    pub fn from_pretrained(name: &str, path: impl AsRef<Path>, device: &B::Device) -> Result<Self> {
        let (info, config) = preset(name)?;
        let path = path.as_ref();
        if !path.exists() {
            let url = info.weights.map_or("nowhere", |weights| weights.url);
            return Err(Error::NotFound {
                path: path.to_path_buf(),
                hint: format!("{name}'s published weights are at {url}"),
            });
        }
        Self::from_file(&config, path, device)
    }

    /// A network of this configuration with weights from a file or folder, as f32.
    ///
    /// # Errors
    /// If the file is absent, malformed or not this model's.
    pub fn from_file(config: &MobileNetConfig, path: &Path, device: &B::Device) -> Result<Self> {
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
