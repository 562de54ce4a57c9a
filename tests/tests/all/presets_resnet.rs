//! The presets of ResNet at full size against torchvision's, and what they state.

use burn::tensor::{Distribution, Tensor};
use burn_flex::Flex;
use burn_zoo_core::{CollectStages, ImageClassifier, Mode};
use burn_zoo_resnet::{BlockType, ModelConfig, Preset, ResNet, ResNetConfig};
use burn_zoo_tests::presets::{B, check, check_complete, manifest};
use serde_json::Value;

fn check_preset((info, config): &(Preset, ResNetConfig), want: Option<&Value>) {
    let model = ResNet::<B>::new(config, 0, &Default::default()).expect("a preset is valid");
    check(info, model, &config.key_maps()[0], want);
}

#[test]
fn every_torchvision_preset_has_torchvisions_keys_parameters_and_flops() {
    let manifest = manifest("resnet");
    let names = manifest.as_object().expect("an object");
    assert_eq!(names.len(), 10);
    for (name, want) in names {
        let entry = ResNetConfig::preset(name).expect("every upstream preset is listed");
        check_preset(&entry, Some(want));
    }
}

#[test]
fn every_other_preset_has_the_parameters_it_states() {
    let manifest = manifest("resnet");
    let others = ResNetConfig::presets()
        .iter()
        .filter(|(info, _)| manifest.get(info.name).is_none());
    let mut count = 0;
    for entry in others {
        check_preset(entry, None);
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
fn presets_are_complete() {
    for (info, config) in ResNetConfig::presets().iter() {
        check_complete(info, config.num_channels);
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
