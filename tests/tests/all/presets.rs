//! Every listed model at full size: upstream's keys, shapes, parameters and FLOPs, and what it states.

use burn::module::AutodiffModule;
use burn_flex::Flex;
use burn_zoo::{AutoConfig, Entry, WithClassifier, find, models};
use burn_zoo_checkpoint::KeyMap;
use burn_zoo_core::ImageClassifier;
use burn_zoo_tests::presets::{B, check, check_complete, check_drops, manifest};
use serde_json::Value;

struct CheckPreset<'a>(&'a Entry, Option<&'a Value>);

impl WithClassifier<B> for CheckPreset<'_> {
    type Output = ();

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>)
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
        M::InnerModule: ImageClassifier<Flex>,
    {
        let CheckPreset(entry, want) = self;
        let upstream = key_maps
            .iter()
            .find(|map| map.name == entry.preset.upstream);
        check(&entry.preset, model, upstream.unwrap_or(&key_maps[0]), want);
    }
}

/// Probabilities of dropout and stochastic depth in the order of torchvision's modules.
fn drops(config: &AutoConfig) -> Vec<f64> {
    match config {
        AutoConfig::ResNet(_) => Vec::new(),
        AutoConfig::MobileNet(config) => vec![config.dropout],
        AutoConfig::EfficientNet(config) => {
            let mut drops = config.stochastic_depth_probs();
            drops.push(config.dropout);
            drops
        }
        _ => unreachable!("only models of images are asked for"),
    }
}

fn check_family(family: &str, in_manifest: usize, others: &[&str]) {
    let manifest = manifest(family);
    let names = manifest.as_object().expect("an object");
    assert_eq!(names.len(), in_manifest);
    for name in names.keys() {
        find(name).expect("every upstream preset is listed");
    }
    let entries = models()
        .into_iter()
        .filter(|entry| entry.preset.family == family);
    let mut alone = Vec::new();
    for entry in entries {
        let (name, want) = (entry.preset.name, manifest.get(entry.preset.name));
        // Zeros will do for names, shapes and counts.
        let run = CheckPreset(&entry, want);
        let built = entry
            .config
            .with_classifier::<B, _>(None, &Default::default(), run);
        built.expect("a preset is valid");
        let shape = entry.config.image_shape().expect("images");
        check_complete(&entry.preset, shape.num_channels);
        match want {
            // timm's networks are made without; training scripts set it.
            Some(want) if entry.preset.upstream == "torchvision" => {
                check_drops(name, &drops(&entry.config), want);
            }
            Some(_) => {}
            None => {
                assert!(
                    entry.preset.weights.is_none(),
                    "{name} lacks upstream's shapes"
                );
                alone.push(name);
            }
        }
    }
    assert_eq!(alone, others);
}

#[test]
fn resnets() {
    let others = [
        "resnet20",
        "resnet32",
        "resnet44",
        "resnet56",
        "resnet110",
        "resnet18_cifar",
    ];
    check_family("resnet", 10, &others);
}

#[test]
fn mobilenets() {
    check_family("mobilenet", 6, &["mobilenet_v2_cifar"]);
}

#[test]
fn efficientnets() {
    check_family(
        "efficientnet",
        27,
        &["efficientnet-lite0", "efficientnet_cifar"],
    );
}
