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

#[test]
fn symptom_18_every_parameter_receives_a_finite_gradient() {
    for fixture in fixtures(&[]).expect("they are embedded") {
        let measured = measured::<B>(&fixture, DType::F64);
        let weights = fixture.group("model.").into_keys();
        let parameters: Vec<String> = weights.filter(|key| !key.contains("running_")).collect();
        for mode in ["eval", "train"] {
            let of = |key: &String| {
                let found = measured.tensors.get(&format!("{mode}.grad.{key}"));
                norm(found.unwrap_or_else(|| panic!("{} {key} has no gradient", fixture.name)))
            };
            let grads = measured
                .tensors
                .iter()
                .filter(|(name, _)| name.starts_with(mode));
            let grads = grads.filter(|(name, _)| name.contains(".grad."));
            let largest = grads.map(|(_, grad)| norm(grad)).fold(0.0, f64::max);
            for key in &parameters {
                // No part of the primary output: a pooler beside it, and the second of two biases.
                let aside = key.starts_with("pooler.") || key == "cls.predictions.bias";
                if aside && !measured.tensors.contains_key(&format!("{mode}.grad.{key}")) {
                    continue;
                }
                let size = of(key);
                // Zero by construction: in training, biases between two batch norms; a bias of keys adds the
                // same to every score of a query, unless positions rotate it.
                let idle = (mode == "train" && key.ends_with(".bias"))
                    || key.ends_with("self.key.bias")
                    || key.ends_with("k_lin.bias");
                let fine = size.is_finite() && (size > 1e-12 * largest || idle);
                assert!(fine, "{} {mode} {key}: {size}", fixture.name);
            }
        }
    }
}
