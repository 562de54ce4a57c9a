use crate::family::families;
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Tensor};
use burn_zoo_checkpoint::{
    ClassifierConfig, KeyMap, LazyTensors, LoadOptions, ModelConfig, PretrainedModel, load_with,
};
use burn_zoo_core::{Error, ImageClassifier, Mode, Network, Preset, Result};
use serde_json::Value;

families! {
    images {
    /// ResNet, ResNeXt and Wide ResNet.
    "resnet" => ResNet(burn_zoo_resnet, ResNetConfig, ResNet),
    /// EfficientNet, EfficientNet-Lite and EfficientNetV2.
    "efficientnet" => EfficientNet(burn_zoo_efficientnet, EfficientNetConfig, EfficientNet),
    /// MobileNetV2 and MobileNetV3.
    "mobilenet" => MobileNet(burn_zoo_mobilenet, MobileNetConfig, MobileNet),
    }
    text {
    /// BERT, RoBERTa, XLM-R, DistilBERT and MiniLM.
    "bert" => Bert(burn_zoo_bert, BertConfig, Bert),
    /// GPT-2.
    "gpt2" => Gpt2(burn_zoo_gpt2, Gpt2Config, Gpt2),
    /// Llama, Mistral, Qwen2 and Qwen3.
    "llama" => Llama(burn_zoo_llama, LlamaConfig, Llama),
    }
}

/// What an image classifier takes and tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageShape {
    /// Channels of its images.
    pub num_channels: usize,
    /// Classes of its head; 0: it has none.
    pub num_classes: usize,
}

impl AutoConfig {
    fn takes_no_images(&self) -> Error {
        Error::usage("the model", "reads text: this is for models of images")
    }

    /// As it stands in this project's files, or transformers' `config.json`, which names its class.
    ///
    /// # Errors
    /// If it is neither, or a field cannot be used.
    pub fn from_json(json: &Value) -> Result<Self> {
        if json.get("architectures").is_some() {
            return Self::from_transformers(json);
        }
        serde_json::from_value(json.clone()).map_err(|e| Error::usage("config", e.to_string()))
    }
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
        M: AutodiffModule<B> + Network<B>,
        M::InnerModule: Network<B::InnerBackend>;
}

/// Code that is generic over the image classifier.
pub trait WithClassifier<B: AutodiffBackend> {
    /// What it gives.
    type Output;

    /// As [`WithModel::run`].
    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
        M::InnerModule: ImageClassifier<B::InnerBackend>;
}

/// An image classifier of any family, for inference.
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
