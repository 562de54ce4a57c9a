use crate::config::{EfficientNetConfig, StageConfig};
use crate::model::EfficientNet;
use crate::presets::PRESETS;
use burn::tensor::backend::Backend;
use burn_zoo_checkpoint::{ClassifierConfig, KeyMap, ModelConfig, PretrainedModel};
use burn_zoo_core::{Preset, Result};
use burn_zoo_nn::{Init, timm_names};

const DROPPED: &[(&str, &str)] = &[(
    "num_batches_tracked",
    "counts batches for momentum=None, which no EfficientNet uses",
)];

/// A block of the network: its stage and place there, its number in the whole, its parts.
struct Block {
    stage: usize,
    at: usize,
    number: usize,
    fused: bool,
    expands: bool,
    se: bool,
}

impl EfficientNetConfig {
    fn blocks(&self) -> Vec<Block> {
        let mut input = self.stem_channels;
        let mut blocks = Vec::new();
        for (stage, config) in self.stages.iter().enumerate() {
            for at in 0..config.num_layers {
                blocks.push(self.block(config, stage, at, blocks.len(), input));
                input = config.out_channels;
            }
        }
        blocks
    }

    fn block(
        &self,
        config: &StageConfig,
        stage: usize,
        at: usize,
        n: usize,
        input: usize,
    ) -> Block {
        Block {
            stage,
            at,
            number: n,
            fused: config.fused,
            expands: config.expanded(input) != input,
            se: self.has_se(config),
        }
    }

    /// Layers are numbered within a block; each is a convolution and a norm, or squeeze and excitation.
    fn torchvision(&self) -> KeyMap {
        let mut map = KeyMap::new("torchvision", &[("^classifier", "classifier.1")], DROPPED);
        let mut layer = |ours: &str, theirs: String| {
            map.rename(format!("^{ours}.conv"), format!("{theirs}.0"));
            map.rename(format!("^{ours}.norm"), format!("{theirs}.1"));
        };
        layer("stem", "features.0".into());
        layer("last", format!("features.{}", self.stages.len() + 1));
        let mut se = Vec::new();
        for block in self.blocks() {
            let ours = format!("stages.{}.{}", block.stage, block.at);
            let theirs = format!("features.{}.{}.block", block.stage + 1, block.at);
            let mut number = 0;
            let mut next = || {
                number += 1;
                format!("{theirs}.{}", number - 1)
            };
            if block.expands && !block.fused {
                layer(&format!("{ours}.expand"), next());
            }
            layer(&format!("{ours}.filter"), next());
            if block.se {
                se.push((format!("^{ours}.se"), next()));
            }
            if block.expands || !block.fused {
                layer(&format!("{ours}.project"), next());
            }
        }
        for (ours, theirs) in se {
            map.rename(ours, theirs);
        }
        map
    }

    fn timm(&self) -> KeyMap {
        let outer = [
            ("^stem.conv", "conv_stem"),
            ("^stem.norm", "bn1"),
            ("^last.conv", "conv_head"),
            ("^last.norm", "bn2"),
        ];
        let mut map = KeyMap::new("timm", &outer, DROPPED);
        for block in self.blocks() {
            let ours = format!("^stages.{}.{}", block.stage, block.at);
            let theirs = format!("blocks.{}.{}", block.stage, block.at);
            for (part, name) in timm_names(block.fused, block.expands) {
                map.rename(format!("{ours}.{part}"), format!("{theirs}.{name}"));
            }
        }
        map
    }

    /// Blocks are numbered through; there are no fused ones.
    fn efficientnet_pytorch(&self) -> KeyMap {
        let outer = [
            ("^stem.conv", "_conv_stem"),
            ("^stem.norm", "_bn0"),
            ("^last.conv", "_conv_head"),
            ("^last.norm", "_bn1"),
            ("^classifier", "_fc"),
        ];
        let mut map = KeyMap::new("efficientnet_pytorch", &outer, DROPPED);
        for block in self.blocks() {
            let ours = format!("^stages.{}.{}", block.stage, block.at);
            let theirs = format!("_blocks.{}", block.number);
            for (part, name) in [
                ("expand.conv", "_expand_conv"),
                ("expand.norm", "_bn0"),
                ("filter.conv", "_depthwise_conv"),
                ("filter.norm", "_bn1"),
                ("se.fc1", "_se_reduce"),
                ("se.fc2", "_se_expand"),
                ("project.conv", "_project_conv"),
                ("project.norm", "_bn2"),
            ] {
                map.rename(format!("{ours}.{part}"), format!("{theirs}.{name}"));
            }
        }
        map
    }
}

impl ModelConfig for EfficientNetConfig {
    fn presets() -> &'static [(Preset, Self)] {
        &PRESETS
    }

    /// torchvision's, timm's and, without fused blocks, efficientnet_pytorch's spelling.
    fn key_maps(&self) -> Vec<KeyMap> {
        let mut maps = vec![self.torchvision(), self.timm()];
        if !self.stages.iter().any(|stage| stage.fused) {
            maps.push(self.efficientnet_pytorch());
        }
        maps
    }
}

impl ClassifierConfig for EfficientNetConfig {
    const HEAD: &'static str = "classifier.weight";

    fn set_num_classes(&mut self, num_classes: usize) {
        self.num_classes = num_classes;
    }
}

impl<B: Backend> PretrainedModel<B> for EfficientNet<B> {
    type Config = EfficientNetConfig;

    fn build(config: &EfficientNetConfig, seed: Option<u64>, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    fn config(&self) -> &EfficientNetConfig {
        &self.config
    }
}
