use crate::config::ResNetConfig;
use crate::model::ResNet;
use crate::presets::PRESETS;
use burn::tensor::backend::Backend;
use burn_zoo_checkpoint::{ClassifierConfig, KeyMap, ModelConfig, PretrainedModel};
use burn_zoo_core::{Preset, Result};
use burn_zoo_nn::Init;

const DROPPED: &[(&str, &str)] = &[(
    "num_batches_tracked",
    "counts batches for momentum=None, which no ResNet uses",
)];

impl ModelConfig for ResNetConfig {
    fn presets() -> &'static [(Preset, Self)] {
        &PRESETS
    }

    /// torchvision's and timm's spelling, which is written; transformers'
    /// `ResNetForImageClassification`, and its `ResNetModel`.
    fn key_maps(&self) -> Vec<KeyMap> {
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

impl ClassifierConfig for ResNetConfig {
    const HEAD: &'static str = "fc.weight";

    fn set_num_classes(&mut self, num_classes: usize) {
        self.num_classes = num_classes;
    }
}

impl<B: Backend> PretrainedModel<B> for ResNet<B> {
    type Config = ResNetConfig;

    fn build(config: &ResNetConfig, seed: Option<u64>, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    fn config(&self) -> &ResNetConfig {
        &self.config
    }
}
