use crate::family::families;
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Tensor};
use burn_zoo_checkpoint::{
    KeyMap, LazyTensors, LoadOptions, ModelConfig, PretrainedModel, load_with,
};
use burn_zoo_core::{Error, ImageClassifier, Mode, Preset, Result};

families! {
    /// ResNet, ResNeXt and Wide ResNet.
    "resnet" => ResNet(burn_zoo_resnet, ResNetConfig, ResNet),
    /// EfficientNet, EfficientNet-Lite and EfficientNetV2.
    "efficientnet" => EfficientNet(burn_zoo_efficientnet, EfficientNetConfig, EfficientNet),
    /// MobileNetV2 and MobileNetV3.
    "mobilenet" => MobileNet(burn_zoo_mobilenet, MobileNetConfig, MobileNet),
}

/// A listed model.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What is published about it.
    pub preset: Preset,
    /// Its configuration.
    pub config: AutoConfig,
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

    /// Runs with a new model and the spellings of its weights in files; the first is written.
    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
        M::InnerModule: ImageClassifier<B::InnerBackend>;
}

/// A model of any family, for inference.
pub struct AutoModel<B: Backend>(Box<dyn Fn(Tensor<B, 4>) -> Tensor<B, 2>>);

impl<B: Backend> AutoModel<B> {
    fn of<M: ImageClassifier<B> + 'static>(model: M) -> Self {
        Self(Box::new(move |x| model.logits(x, Mode::Eval, None)))
    }

    /// `[batch, channels, height, width]` to `[batch, num_classes]`.
    pub fn logits(&self, pixel_values: Tensor<B, 4>) -> Tensor<B, 2> {
        (self.0)(pixel_values)
    }
}
