//! L0 at full size: keys, shapes, parameters and FLOPs of every preset against torchvision's.

use burn::backend::Autodiff;
use burn::module::Param;
use burn::tensor::{DType, Distribution, Tensor};
use burn_flex::Flex;
use burn_zoo_checkpoint::{KeyMap, ParamVisitor, visit_params};
use burn_zoo_core::{CollectStages, ImageClassifier, Mode};
use burn_zoo_resnet::{BlockType, PRESETS, Preset, ResNet, ResNetConfig, preset};
use burn_zoo_tests::golden::folder;
use burn_zoo_train::trainable;
use serde_json::Value;
use std::collections::BTreeMap;

type B = Autodiff<Flex>;

fn manifest() -> Value {
    let path = folder("resnet").join("presets.json.gz");
    let file = std::fs::File::open(&path).expect("the manifest is part of the repository");
    serde_json::from_reader(flate2::read::GzDecoder::new(file)).expect("the manifest is JSON")
}

/// Shapes by upstream's key, and the number of trainable parameters.
fn shapes(model: &ResNet<B>) -> (BTreeMap<String, Vec<usize>>, usize) {
    struct Visitor(BTreeMap<String, Vec<usize>>, KeyMap);
    impl ParamVisitor<B> for Visitor {
        fn visit<const D: usize>(&mut self, path: String, param: &Param<Tensor<B, D>>) {
            self.0.insert(self.1.key(&path), param.shape().to_vec());
        }
    }
    let torchvision = model.config().key_maps().swap_remove(0);
    let mut visitor = Visitor(BTreeMap::new(), torchvision);
    visit_params(model, &mut visitor);
    (visitor.0, trainable(model).iter().map(|(_, len)| len).sum())
}

fn check((info, config): &(Preset, ResNetConfig), want: Option<&Value>) {
    let device = Default::default();
    let model = ResNet::<B>::new(config, 0, &device).expect("a preset is valid");
    let (shapes, trainable) = shapes(&model);
    assert_eq!(
        trainable, info.num_parameters,
        "parameters of {}",
        info.name
    );
    let Some(want) = want else { return };
    assert_eq!(
        want["params"].as_u64(),
        Some(trainable as u64),
        "parameters of {}",
        info.name
    );
    let keys: BTreeMap<String, Vec<usize>> =
        serde_json::from_value(want["keys"].clone()).expect("keys are lists of sizes");
    assert_eq!(shapes, keys, "keys and shapes of {}", info.name);

    // One real forward pass; FLOPs grow with the image's area, so a small one need not be compared.
    let inner = burn::module::AutodiffModule::valid(&model);
    drop(model);
    let crop = info.preprocessing.crop;
    let image = Tensor::<Flex, 4>::zeros([1, 3, crop, crop], (&device, DType::F32));
    let (logits, counts) = burn_zoo_train::ops::count(|| inner.forward(image));
    assert_eq!(logits.dims(), [1, 1000]);
    assert_eq!(
        want["flops"].as_u64(),
        Some(counts.flops),
        "FLOPs of {}",
        info.name
    );
    assert_eq!(
        counts.generic, 0,
        "{} must run on fast paths alone",
        info.name
    );
}

#[test]
fn every_torchvision_preset_has_torchvisions_keys_parameters_and_flops() {
    let manifest = manifest();
    let names = manifest.as_object().expect("an object");
    assert_eq!(names.len(), 10);
    for (name, want) in names {
        check(
            &preset(name).expect("every upstream preset is listed"),
            Some(want),
        );
    }
}

#[test]
fn every_other_preset_has_the_parameters_it_states() {
    let manifest = manifest();
    let others = PRESETS
        .iter()
        .filter(|(info, _)| manifest.get(info.name).is_none());
    let mut count = 0;
    for entry in others {
        check(entry, None);
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
fn presets_are_complete() {
    for (info, config) in PRESETS.iter() {
        assert!(!info.license.is_empty() && !info.paper.is_empty() && !info.upstream.is_empty());
        let p = &info.preprocessing;
        assert_eq!(
            (p.mean.len(), p.std.len()),
            (config.num_channels, config.num_channels)
        );
        if let Some(weights) = &info.weights {
            // torchvision puts the first eight digits of the hash into the file's name.
            assert!(
                weights
                    .url
                    .ends_with(&format!("-{}.pth", weights.sha256_prefix))
            );
        }
    }
}

#[test]
fn zero_init_residual_starts_every_block_as_its_shortcut() {
    for block in [BlockType::Basic, BlockType::Bottleneck] {
        let config = ResNetConfig {
            num_classes: 3,
            zero_init_residual: true,
            ..ResNetConfig::new(block, [3, 2]).with_width(16)
        };
        let device = Default::default();
        let model = ResNet::<Flex>::new(&config, 0, &device).expect("a valid config");
        let last = match block {
            BlockType::Basic => "bn2.weight",
            BlockType::Bottleneck => "bn3.weight",
        };
        for (path, data) in burn_zoo_checkpoint::collect(&model) {
            if path.contains("bn") && path.ends_with(".weight") {
                let want = if path.starts_with("layers") && path.ends_with(last) {
                    0.0
                } else {
                    1.0
                };
                assert!(
                    data.iter::<f32>().all(|w| w == want),
                    "{path} is not {want}"
                );
            }
        }
        // A block without a projection then passes its input on: it was rectified before.
        let image = Tensor::random([2, 3, 32, 32], Distribution::Default, &device);
        let mut stages = CollectStages::new();
        model.logits(image, Mode::Train, Some(&mut stages));
        let stage = |name: &str| {
            let found = stages.0.iter().find(|s| s.0 == name);
            found.expect("a stage").1.to_data()
        };
        for (before, after) in [
            ("layer1.0", "layer1.1"),
            ("layer1.1", "layer1.2"),
            ("layer2.0", "layer2.1"),
        ] {
            assert_eq!(stage(before), stage(after), "{before} and {after}");
        }
    }
}
