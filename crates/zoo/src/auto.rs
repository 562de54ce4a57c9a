use crate::family::families;
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Tensor};
use burn_zoo_checkpoint::{KeyMap, LazyTensors, LoadOptions, LoadReport, load_with};
use burn_zoo_core::{Error, ImageClassifier, Mode, Preset, Result};
use burn_zoo_nn::Init;

families! {
    /// ResNet, ResNeXt and Wide ResNet.
    "resnet" => ResNet(burn_zoo_resnet, ResNetConfig, ResNet),
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
pub struct AutoModel<B: Backend> {
    logits: Box<dyn Fn(Tensor<B, 4>) -> Tensor<B, 2>>,
    report: LoadReport,
}

impl<B: Backend> AutoModel<B> {
    pub(crate) fn loaded<M: ImageClassifier<B> + 'static>(
        model: M,
        weights: &LazyTensors,
        key_maps: &[KeyMap],
        dtype: DType,
    ) -> Result<Self> {
        let options = LoadOptions::strict(dtype);
        let (model, report) = load_with(model, weights, key_maps, &options)?;
        Ok(Self {
            logits: Box::new(move |x| model.logits(x, Mode::Eval, None)),
            report,
        })
    }

    pub(crate) fn random<M: ImageClassifier<B> + 'static>(model: M) -> Self {
        Self {
            logits: Box::new(move |x| model.logits(x, Mode::Eval, None)),
            report: LoadReport::default(),
        }
    }

    /// `[batch, channels, height, width]` to `[batch, num_classes]`.
    pub fn logits(&self, pixel_values: Tensor<B, 4>) -> Tensor<B, 2> {
        (self.logits)(pixel_values)
    }

    /// How its weights were found in their file.
    pub fn report(&self) -> &LoadReport {
        &self.report
    }
}
