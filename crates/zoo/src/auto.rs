use crate::ModelCard;
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Tensor};
use burn_zoo_checkpoint::{KeyMap, load};
use burn_zoo_core::{Error, ImageClassifier, Mode, Preset, Result};
#[cfg(feature = "resnet")]
use burn_zoo_resnet::{ResNet, ResNetConfig};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The configuration of a model of any family; in JSON `model_type` says which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "model_type", rename_all = "lowercase")]
pub enum AutoConfig {
    /// ResNet, ResNeXt and Wide ResNet.
    #[cfg(feature = "resnet")]
    ResNet(ResNetConfig),
}

/// A listed model.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What is published about it.
    pub preset: Preset,
    /// Its configuration.
    pub config: AutoConfig,
}

/// Every listed model that is compiled in.
pub fn models() -> Vec<Entry> {
    #[allow(unused_mut)]
    let mut entries = Vec::new();
    #[cfg(feature = "resnet")]
    entries.extend(
        burn_zoo_resnet::PRESETS
            .iter()
            .map(|(preset, config)| Entry {
                preset: preset.clone(),
                config: AutoConfig::ResNet(config.clone()),
            }),
    );
    entries
}

/// The listed model called `name`.
///
/// # Errors
/// If there is none; the nearest names are suggested.
pub fn find(name: &str) -> Result<Entry> {
    let models = models();
    let found = models.iter().find(|entry| entry.preset.name == name);
    found
        .cloned()
        .ok_or_else(|| Error::unknown("model", name, models.iter().map(|e| e.preset.name)))
}

/// Code that is generic over the model.
pub trait WithModel<B: AutodiffBackend> {
    /// What it gives.
    type Output;

    /// Runs with a new model and the names of its weights in files.
    fn run<M>(self, model: M, key_map: &'static KeyMap) -> Self::Output
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
        M::InnerModule: ImageClassifier<B::InnerBackend>;
}

impl AutoConfig {
    /// The same network for other images and classes.
    pub fn adapted(self, channels: usize, classes: usize) -> Self {
        match self {
            #[cfg(feature = "resnet")]
            AutoConfig::ResNet(config) => AutoConfig::ResNet(ResNetConfig {
                num_channels: channels,
                num_classes: classes,
                ..config
            }),
        }
    }

    /// Classes of its head.
    pub fn num_classes(&self) -> usize {
        match self {
            #[cfg(feature = "resnet")]
            AutoConfig::ResNet(config) => config.num_classes,
        }
    }

    /// Channels of its input.
    pub fn num_channels(&self) -> usize {
        match self {
            #[cfg(feature = "resnet")]
            AutoConfig::ResNet(config) => config.num_channels,
        }
    }

    /// Checks that the sizes make a model.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn validate(&self) -> Result<()> {
        match self {
            #[cfg(feature = "resnet")]
            AutoConfig::ResNet(config) => config.validate(),
        }
    }

    /// Runs `f` with a model of this configuration whose weights are drawn from `seed`.
    ///
    /// # Errors
    /// If the configuration makes no model.
    pub fn with_model<B: AutodiffBackend, F: WithModel<B>>(
        &self,
        seed: u64,
        device: &B::Device,
        f: F,
    ) -> Result<F::Output> {
        match self {
            #[cfg(feature = "resnet")]
            AutoConfig::ResNet(config) => Ok(f.run(
                ResNet::<B>::new(config, seed, device)?,
                &burn_zoo_resnet::KEY_MAP,
            )),
        }
    }
}

/// A model of any family, for inference.
pub struct AutoModel<B: Backend> {
    logits: Box<dyn Fn(Tensor<B, 4>) -> Tensor<B, 2>>,
}

impl<B: Backend> AutoModel<B> {
    /// A model of this configuration with weights from a safetensors file, or random ones.
    ///
    /// # Errors
    /// If the configuration makes no model, or the file is absent, malformed or not this model's.
    pub fn new(
        config: &AutoConfig,
        weights: Option<&Path>,
        dtype: DType,
        device: &B::Device,
    ) -> Result<Self> {
        match config {
            #[cfg(feature = "resnet")]
            AutoConfig::ResNet(config) => {
                let model = ResNet::<B>::new(config, 0, device)?;
                Self::with_weights(model, weights, &burn_zoo_resnet::KEY_MAP, dtype)
            }
        }
    }

    /// The model of a folder with `config.json` and `model.safetensors`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_folder(
        folder: &Path,
        dtype: DType,
        device: &B::Device,
    ) -> Result<(Self, ModelCard)> {
        let card = ModelCard::read(folder)?;
        let weights = folder.join("model.safetensors");
        Ok((Self::new(&card.model, Some(&weights), dtype, device)?, card))
    }

    fn with_weights<M: ImageClassifier<B> + 'static>(
        model: M,
        weights: Option<&Path>,
        key_map: &KeyMap,
        dtype: DType,
    ) -> Result<Self> {
        let model = match weights {
            Some(path) => load(model, path, key_map, dtype)?,
            None => model,
        };
        Ok(Self {
            logits: Box::new(move |x| model.logits(x, Mode::Eval, None)),
        })
    }

    /// `[batch, channels, height, width]` to `[batch, num_classes]`.
    pub fn logits(&self, pixel_values: Tensor<B, 4>) -> Tensor<B, 2> {
        (self.logits)(pixel_values)
    }
}
