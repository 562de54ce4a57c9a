//! Every listed model at full size: upstream's keys, shapes, parameters and FLOPs, and what it states.

use burn::module::AutodiffModule;
use burn::tensor::{DType, TensorData};
use burn_flex::Flex;
use burn_zoo::{AutoConfig, Entry, WithClassifier, WithModel, find, models};
use burn_zoo_checkpoint::{KeyMap, Tensors, file_shapes};
use burn_zoo_core::{Arguments, ImageClassifier, Mode, Network};
use burn_zoo_optim::trainable;
use burn_zoo_tests::presets::{B, check, check_complete, check_drops, manifest};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

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

/// The first layers of a language model of the manifest: its configuration is upstream's `config.json`.
fn with_layers(config: &Value, layers: usize) -> AutoConfig {
    let mut config = config.clone();
    for key in ["num_hidden_layers", "n_layer", "n_layers"] {
        if config.get(key).is_some() {
            config[key] = layers.into();
        }
    }
    if let Some(types) = config["layer_types"].as_array_mut() {
        types.truncate(layers);
    }
    AutoConfig::from_json(&config).expect("a configuration")
}

/// Counts parameters, and compares names, shapes and FLOPs where a manifest is given.
struct CheckLayers<'a>(&'a str, Option<&'a Value>);

impl WithModel<B> for CheckLayers<'_> {
    type Output = usize;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> usize
    where
        M: AutodiffModule<B> + Network<B>,
        M::InnerModule: Network<Flex>,
    {
        let count = trainable::<B, M>(&model).iter().map(|(_, len)| len).sum();
        let CheckLayers(name, Some(want)) = self else {
            return count;
        };
        let keys: BTreeMap<String, Vec<usize>> =
            serde_json::from_value(want["keys_of_two_layers"].clone()).expect("lists of sizes");
        assert_eq!(
            file_shapes(&model, &key_maps[0]),
            keys,
            "keys and shapes of {name}"
        );
        let ids = TensorData::new(vec![0i64; 16], [1, 16]);
        let inputs = Tensors::from([("input_ids".into(), ids)]);
        let inner = model.valid();
        let (from, device) = (Path::new("a test"), Default::default());
        let read = Arguments::read(&inner.arguments(), &inputs, from, DType::F32, &device);
        let arguments = read.expect("token numbers");
        let (ran, counts) = burn_zoo_ops::count(|| inner.run(&arguments, Mode::Eval, None));
        ran.expect("it runs");
        let flops = want["flops_of_two_layers"].as_u64();
        assert_eq!(flops, Some(counts.flops), "FLOPs of {name}");
        count
    }
}

/// Presets are upstream's `config.json`; names, shapes and FLOPs are compared of two layers, since the others
/// are like them, and the parameters of all.
fn check_texts(family: &str, in_manifest: usize, others: &[&str]) {
    let manifest = manifest(family);
    assert_eq!(manifest.as_object().map(|m| m.len()), Some(in_manifest));
    let mut alone = Vec::new();
    for entry in models()
        .iter()
        .filter(|entry| entry.preset.family == family)
    {
        let (preset, name) = (&entry.preset, entry.preset.name);
        assert!(
            !preset.license.is_empty() && !preset.paper.is_empty(),
            "{name}"
        );
        let device = Default::default();
        let Some(want) = manifest.get(name) else {
            let count = entry
                .config
                .with_model::<B, _>(None, &device, CheckLayers(name, None));
            assert_eq!(
                count.expect("valid"),
                preset.num_parameters,
                "parameters of {name}"
            );
            assert!(preset.weights.is_none(), "{name} lacks upstream's shapes");
            alone.push(name);
            continue;
        };
        let url = preset.weights.as_ref().map_or("", |weights| weights.url);
        assert!(url.starts_with("https://huggingface.co/"), "{name}");
        assert_eq!(
            AutoConfig::from_json(&want["config"]).expect("valid"),
            entry.config,
            "{name}"
        );
        let layers =
            ["num_hidden_layers", "n_layer", "n_layers"].map(|key| want["config"][key].as_u64());
        let layers = layers.into_iter().flatten().next().expect("a number") as usize;
        let count = |layers: usize, want| {
            let config = with_layers(&manifest[name]["config"], layers);
            let counted = config.with_model::<B, _>(None, &device, CheckLayers(name, want));
            counted.expect("valid")
        };
        let (one, two) = (count(1, None), count(2, Some(want)));
        let all = two + (layers - 2) * (two - one);
        assert_eq!(
            want["params"].as_u64(),
            Some(all as u64),
            "parameters of {name}"
        );
        assert_eq!(preset.num_parameters, all, "parameters of {name}");
    }
    assert_eq!(alone, others);
}

#[test]
fn berts() {
    check_texts("bert", 9, &["bert_mini"]);
}

#[test]
fn gpts() {
    check_texts("gpt2", 5, &["gpt2_mini", "gpt2_char"]);
}

#[test]
fn llamas() {
    check_texts("llama", 14, &["llama_mini"]);
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
