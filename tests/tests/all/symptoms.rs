//! Symptoms that users of model zoos report, by their numbers, where no other file has them.

use crate::mutations::{exact, measured};
use burn::backend::Autodiff;
use burn::module::AutodiffModule;
use burn::tensor::{DType, Tensor, TensorData};
use burn_ndarray::NdArray;
use burn_zoo::{AutoConfig, WithClassifier, fixtures};
use burn_zoo_checkpoint::{KeyMap, Tensors, collect};
use burn_zoo_core::{ImageClassifier, Mode};
use burn_zoo_parity::norm;

type B = Autodiff<NdArray>;

/// Each scaling is upstream's, and seen: without it the first attention departs.
#[test]
fn symptom_8_every_rotary_scaling_equals_upstreams() {
    let mut tried = std::collections::BTreeSet::new();
    for mut fixture in fixtures(&["llama".into()]).expect("they are embedded") {
        let Some(kind) = fixture.config["rope_parameters"]["rope_type"].as_str() else {
            continue;
        };
        let kind = kind.to_string();
        let failed = |fixture: &_| {
            let checks = exact(fixture).into_iter();
            checks.filter(|check| !check.passed).collect::<Vec<_>>()
        };
        assert!(failed(&fixture).is_empty(), "{}", fixture.name);
        if kind != "default" {
            fixture.config["rope_parameters"]["rope_type"] = "default".into();
            let failed = failed(&fixture);
            let stages = failed.iter().find(|check| check.what == "stages");
            let first = stages.and_then(|check| check.first.as_deref());
            assert_eq!(first, Some("layers.0.attention"), "{}", fixture.name);
        }
        tried.insert(kind);
    }
    let all = ["default", "dynamic", "linear", "llama3", "yarn"];
    assert!(tried.iter().eq(all), "{tried:?}");
}

#[test]
fn symptom_10_norm_eps_is_the_configurations() {
    // The first stage behind a norm of each family.
    let keys = [
        ("batch_norm_eps", "features.0"),
        ("layer_norm_eps", "embeddings"),
        ("layer_norm_epsilon", "h.0.attn"),
        ("rms_norm_eps", "layers.0.attention"),
    ];
    let mut tried = std::collections::BTreeSet::new();
    for mut fixture in fixtures(&[]).expect("they are embedded") {
        for (key, stage) in keys {
            let Some(eps) = fixture.config[key].as_f64() else {
                continue;
            };
            let right = fixture.config[key].clone();
            // Upstream's are as small as 1e-12.
            fixture.config[key] = (eps + 1e-6).into();
            let checks = exact(&fixture);
            fixture.config[key] = right;
            let stages = checks.iter().find(|check| check.what == "stages");
            let stages = stages.expect("they are compared");
            let first = stages.first.as_deref();
            assert!(
                !stages.passed && first == Some(stage),
                "{} {key} {stages:?}",
                fixture.name
            );
            tried.insert(key);
        }
    }
    assert_eq!(tried.len(), keys.len(), "{tried:?}");
}

/// Running statistics before and after a pass in evaluation mode, and after one in training mode.
struct Statistics<'a>(&'a TensorData);

impl WithClassifier<B> for Statistics<'_> {
    type Output = [Tensors; 3];

    fn run<M>(self, model: M, _: Vec<KeyMap>) -> [Tensors; 3]
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
        M::InnerModule: ImageClassifier<NdArray>,
    {
        let statistics = || {
            let mut all = collect(&model);
            all.retain(|path, _| path.contains("running_"));
            all
        };
        let input = self.0.clone().convert_dtype(DType::F32);
        let input = Tensor::<B, 4>::from_data(input, (&Default::default(), DType::F32));
        let before = statistics();
        model.logits(input.clone(), Mode::Eval, None);
        let evaluated = statistics();
        model.logits(input, Mode::Train, None);
        [before, evaluated, statistics()]
    }
}

/// That they equal torch's after training is a check of `zoo verify`, "running statistics".
#[test]
fn symptom_11_evaluation_never_changes_statistics_and_training_does() {
    for fixture in fixtures(&[]).expect("they are embedded") {
        let config = AutoConfig::from_json(&fixture.config).expect("a configuration");
        let Ok(input) = fixture.get("input.pixel_values") else {
            continue;
        };
        let statistics =
            config.with_classifier::<B, _>(Some(3), &Default::default(), Statistics(input));
        let [before, evaluated, trained] = statistics.expect("a valid configuration");
        assert!(
            !before.is_empty() && before == evaluated,
            "{}",
            fixture.name
        );
        for (path, data) in &before {
            assert_ne!(*data, trained[path], "{} {path}", fixture.name);
        }
    }
}

/// Whether the gradient of a bias is zero by construction, and of no other parameter.
fn is_idle(mode: &str, key: &str, norms: &[&str], before_3x3: &[&str]) -> bool {
    // The same is added to every score of a query, which a softmax takes away; positions do not rotate here.
    let of_keys = key.ends_with("self.key.bias") || key.ends_with("k_lin.bias");
    // The last norm of an inverted residual has no activation behind it: the next batch norm takes away what it adds. Not if
    // a 3×3 convolution lies between, whose zeros at the edges it adds nothing to.
    let block = |name: &str| {
        let ends = [".block.", ".conv.", ".bn", "._bn"].into_iter();
        let end = ends.filter_map(|end| name.find(end)).min()?;
        let listed = name.contains("blocks.") || name.contains("features.");
        listed.then(|| name[..end].to_string())
    };
    let of_projection = || {
        let name = key.strip_suffix(".bias")?;
        let own = block(name).filter(|own| !before_3x3.contains(&own.as_str()))?;
        let beside = norms
            .iter()
            .filter(|norm| block(norm).as_ref() == Some(&own));
        let beside: Vec<_> = beside.collect();
        (beside.len() > 1).then(|| *beside[beside.len() - 1] == name)
    };
    of_keys || (mode == "train" && of_projection() == Some(true))
}

#[test]
fn symptom_18_every_parameter_receives_a_finite_gradient() {
    let mut biases = 0;
    for fixture in fixtures(&[]).expect("they are embedded") {
        let measured = measured::<B>(&fixture, DType::F64);
        let weights: Vec<String> = fixture.group("model.").into_keys().collect();
        let norms = weights
            .iter()
            .filter_map(|key| key.strip_suffix(".running_mean"));
        let norms: Vec<&str> = norms.collect();
        let parameters = weights.iter().filter(|key| !key.contains("running_"));
        let parameters: Vec<&String> = parameters.collect();
        let before_3x3: &[&str] = match fixture.name.as_str() {
            "efficientnet/torchvision_v2" => &["features.2.0"],
            _ => &[],
        };
        for mode in ["eval", "train"] {
            let grad = |key: &&String| measured.tensors.get(&format!("{mode}.grad.{key}"));
            let sizes: Vec<_> = parameters.iter().map(|key| grad(key).map(norm)).collect();
            let largest = sizes.iter().flatten().fold(0.0, |a: f64, b| a.max(*b));
            for (key, size) in parameters.iter().zip(sizes) {
                let Some(size) = size else {
                    // No part of the primary output: a pooler beside it, and the second of two biases.
                    let aside = key.starts_with("pooler.") || *key == "cls.predictions.bias";
                    assert!(aside, "{} {mode} {key} has no gradient", fixture.name);
                    continue;
                };
                let idle = is_idle(mode, key, &norms, before_3x3);
                biases += usize::from(idle);
                assert!(size.is_finite(), "{} {mode} {key}: {size}", fixture.name);
                assert_eq!(
                    size <= 1e-12 * largest,
                    idle,
                    "{} {mode} {key}: {size}",
                    fixture.name
                );
            }
        }
    }
    assert!(biases > 50, "{biases}");
}
