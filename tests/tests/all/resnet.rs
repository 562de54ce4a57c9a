//! What is ResNet's alone.

use burn::tensor::{Distribution, Tensor};
use burn_flex::Flex;
use burn_zoo_core::{CollectStages, ImageClassifier, Mode};
use burn_zoo_resnet::{BlockType, ResNet, ResNetConfig};

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
