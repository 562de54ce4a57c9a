use crate::config::{MobileNetConfig, Version};
use crate::model::MobileNet;
use crate::presets::PRESETS;
use burn::tensor::backend::Backend;
use burn_zoo_checkpoint::{ClassifierConfig, KeyMap, Layout, ModelConfig, PretrainedModel};
use burn_zoo_core::{Preset, Result};
use burn_zoo_nn::{Init, timm_names};

const DROPPED: &[(&str, &str)] = &[(
    "num_batches_tracked",
    "counts batches for momentum=None, which no MobileNet uses",
)];

impl MobileNetConfig {
    /// Blocks number their layers.
    fn torchvision(&self) -> KeyMap {
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
        map
    }

    /// Blocks are grouped into stages of the same width. In V3 the last convolution is a stage, and the head's first layer is a
    /// 1×1 convolution.
    fn timm(&self) -> KeyMap {
        let outer = [("^stem.conv", "conv_stem"), ("^stem.norm", "bn1")];
        let mut map = KeyMap::new("timm", &outer, DROPPED);
        let (mut stage, mut at, mut width) = (0, 0, None);
        for (i, (block, input)) in self.blocks.iter().zip(self.inputs()).enumerate() {
            (stage, at) = match width {
                None => (0, 0),
                Some(width) if width == block.out_channels => (stage, at + 1),
                Some(_) => (stage + 1, 0),
            };
            width = Some(block.out_channels);
            let (ours, theirs) = (format!("^blocks.{i}"), format!("blocks.{stage}.{at}"));
            for (part, name) in timm_names(false, block.expanded_channels != input) {
                map.rename(format!("{ours}.{part}"), format!("{theirs}.{name}"));
            }
        }
        match self.version {
            Version::V2 => {
                map.rename("^last.conv", "conv_head");
                map.rename("^last.norm", "bn2");
            }
            Version::V3 => {
                map.rename("^last.conv", format!("blocks.{}.0.conv", stage + 1));
                map.rename("^last.norm", format!("blocks.{}.0.bn1", stage + 1));
                map.rename("^hidden", "conv_head");
                map.lay("hidden.weight", &[Layout::Pointwise]);
            }
        }
        map
    }
}

impl ModelConfig for MobileNetConfig {
    fn presets() -> &'static [(Preset, Self)] {
        &PRESETS
    }

    /// torchvision's spelling, which is written, and timm's.
    fn key_maps(&self) -> Vec<KeyMap> {
        vec![self.torchvision(), self.timm()]
    }
}

impl ClassifierConfig for MobileNetConfig {
    const HEAD: &'static str = "classifier.weight";

    fn set_num_classes(&mut self, num_classes: usize) {
        self.num_classes = num_classes;
    }
}

impl<B: Backend> PretrainedModel<B> for MobileNet<B> {
    type Config = MobileNetConfig;

    fn build(config: &MobileNetConfig, seed: Option<u64>, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    fn config(&self) -> &MobileNetConfig {
        &self.config
    }
}
