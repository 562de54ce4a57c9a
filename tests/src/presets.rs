//! L0 at full size: keys, shapes, parameters and FLOPs of presets against upstream's.

use crate::golden::folder;
use burn::module::AutodiffModule;
use burn::tensor::{DType, Tensor};
use burn_flex::Flex;
use burn_zoo_checkpoint::{KeyMap, file_shapes};
use burn_zoo_core::{ImageClassifier, Mode, Preset};
use burn_zoo_ops as ops;
use burn_zoo_optim::trainable;
use serde_json::Value;
use std::collections::BTreeMap;

/// The backend that presets are made on.
pub type B = burn::backend::Autodiff<Flex>;

/// `golden/FAMILY/presets.json.gz`.
///
/// # Panics
/// If it is absent or malformed.
pub fn manifest(family: &str) -> Value {
    let path = folder(family).join("presets.json.gz");
    let file = std::fs::File::open(&path).expect("the manifest is part of the repository");
    serde_json::from_reader(flate2::read::GzDecoder::new(file)).expect("the manifest is JSON")
}

/// Compares a preset's model with its entry in the manifest; without one, with its stated
/// parameters alone.
///
/// # Panics
/// If they differ, or a function of the forward pass had no fast path.
pub fn check<M>(info: &Preset, model: M, map: &KeyMap, want: Option<&Value>)
where
    M: AutodiffModule<B> + ImageClassifier<B>,
    M::InnerModule: ImageClassifier<Flex>,
{
    let name = info.name;
    let count: usize = trainable(&model).iter().map(|(_, len)| len).sum();
    assert_eq!(count, info.num_parameters, "parameters of {name}");
    let Some(want) = want else { return };
    assert_eq!(
        want["params"].as_u64(),
        Some(count as u64),
        "parameters of {name}"
    );
    let keys: BTreeMap<String, Vec<usize>> =
        serde_json::from_value(want["keys"].clone()).expect("keys are lists of sizes");
    assert_eq!(file_shapes(&model, map), keys, "keys and shapes of {name}");

    // One real forward pass; FLOPs grow with the image's area, so a small one need not be compared.
    let inner = model.valid();
    drop(model);
    let side = want["side"].as_u64().expect("a number") as usize;
    let image = Tensor::<Flex, 4>::zeros([1, 3, side, side], (&Default::default(), DType::F32));
    let (logits, counts) = ops::count(|| inner.logits(image, Mode::Eval, None));
    assert_eq!(logits.dims(), [1, 1000]);
    assert_eq!(
        want["flops"].as_u64(),
        Some(counts.flops),
        "FLOPs of {name}"
    );
    assert_eq!(counts.generic, 0, "{name} must run on fast paths alone");
}

/// Compares the probabilities of dropout and stochastic depth, in the order of upstream's modules.
///
/// # Panics
/// If they differ.
pub fn check_drops(name: &str, drops: &[f64], want: &Value) {
    let want: Vec<f64> = serde_json::from_value(want["drops"].clone()).expect("probabilities");
    assert_eq!(drops.len(), want.len(), "{name}");
    for (drop, want) in drops.iter().zip(&want) {
        // Reading JSON may change the last bit.
        assert!((drop - want).abs() < 1e-15, "{name}: {drops:?}");
    }
}

/// Checks what every published preset states about itself.
///
/// # Panics
/// If something is missing.
pub fn check_complete(info: &Preset, channels: usize) {
    assert!(!info.license.is_empty() && !info.paper.is_empty() && !info.upstream.is_empty());
    let p = info.images().expect("it takes images");
    assert_eq!((p.mean.len(), p.std.len()), (channels, channels));
    if let Some(weights) = &info.weights {
        // torchvision and timm put the first eight digits of the hash into the file's name.
        let hash = weights.sha256_prefix;
        assert!(
            weights.url.ends_with(&format!("-{hash}.pth")),
            "{}",
            info.name
        );
        let hexadecimal = hash.chars().all(|c| c.is_ascii_hexdigit());
        assert!(hash.len() == 8 && hexadecimal, "{}", info.name);
        assert!(weights.top1.is_none_or(|top1| top1 > 50.0), "{}", info.name);
    }
}
