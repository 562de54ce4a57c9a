//! L0–L3 for EfficientNet against torchvision, timm and efficientnet_pytorch in f64, each in its own
//! spelling, and its presets at full size.
//!
//! Correct code measures at most 2e-15 (outputs), 1e-14 (gradients) and 2e-15 (ten steps) in f64, and
//! 7e-7, 4e-6 and 7e-7 on flex in f32.

use burn::backend::Autodiff;
use burn::tensor::DType;
use burn::tensor::backend::AutodiffBackend;
use burn_flex::Flex;
use burn_ndarray::NdArray;
use burn_zoo_efficientnet::{EfficientNet, EfficientNetConfig, ModelConfig, PretrainedModel};
use burn_zoo_tests::golden::Fixture;
use burn_zoo_tests::parity::{Case, Lane, spelling};
use burn_zoo_tests::presets;

/// Fixtures and the spelling of their weights.
const CASES: [(&str, &str); 6] = [
    ("torchvision", "torchvision"),
    ("torchvision_v2", "torchvision"),
    ("timm", "timm"),
    ("timm_v2", "timm"),
    ("lite", "timm"),
    ("efficientnet_pytorch", "efficientnet_pytorch"),
];

fn case<B: AutodiffBackend>(name: &str, upstream: &str) -> Case<EfficientNet<B>> {
    let fixture = Fixture::read("efficientnet", name);
    let config: EfficientNetConfig =
        serde_json::from_value(fixture.config.clone()).expect("a configuration");
    Case {
        model: EfficientNet::new(&config, 1, &Default::default()).expect("a valid config"),
        maps: vec![spelling(&config, upstream)],
        fixture,
    }
}

fn check<B: AutodiffBackend>(dtype: DType, limits: [f64; 2]) {
    let lane = Lane::<B> {
        dtype,
        device: Default::default(),
        limits,
    };
    for (name, upstream) in CASES {
        lane.check_eval(&case(name, upstream));
        lane.check_train(&case(name, upstream));
    }
    let steps = Fixture::read("efficientnet", "torchvision_v2.steps");
    let case = case("torchvision_v2", "torchvision");
    lane.check_steps(&case, &steps, &["adamw", "sgd", "sgd_clip"]);
}

#[test]
fn l0_to_l3_in_f64() {
    check::<Autodiff<NdArray<f64>>>(DType::F64, [1e-10, 1e-9]);
}

#[test]
fn l1_to_l3_on_flex_in_f32() {
    let ((), counts) = burn_zoo_ops::count(|| check::<Autodiff<Flex>>(DType::F32, [2e-5, 2e-4]));
    assert!(counts.fast > 0, "the fast path must have been compared");
    assert_eq!(
        counts.generic, 0,
        "no layer of an EfficientNet may fall back"
    );
}

#[test]
fn every_spelling_is_told_apart() {
    for (name, upstream) in CASES {
        let Case {
            model,
            fixture,
            maps: _,
        } = case::<Autodiff<NdArray<f64>>>(name, upstream);
        let path = tempfile::tempdir().expect("a temporary folder");
        let file = path.path().join("weights.safetensors");
        burn_zoo_checkpoint::write_safetensors(&file, &fixture.group("model."))
            .expect("it is written");
        let tensors = burn_zoo_checkpoint::LazyTensors::open(&file).expect("it is read");
        let options = burn_zoo_checkpoint::LoadOptions::strict(DType::F64);
        let maps = model.config().key_maps();
        let (_, report) =
            burn_zoo_checkpoint::load_with(model, &tensors, &maps, &options).expect("it fits");
        assert_eq!(report.spelling, upstream, "{name}");
        assert!(report.initialised.is_empty(), "{name}");
    }
}

#[test]
fn every_preset_has_upstreams_keys_parameters_and_flops() {
    let manifest = presets::manifest("efficientnet");
    let names = manifest.as_object().expect("an object");
    assert_eq!(names.len(), 27);
    for (name, want) in names {
        let (info, config) =
            EfficientNetConfig::preset(name).expect("every upstream preset is listed");
        // Zeros will do for names, shapes and counts.
        let model =
            EfficientNet::build(&config, None, &Default::default()).expect("a preset is valid");
        presets::check(&info, model, &spelling(&config, info.upstream), Some(want));
        presets::check_complete(&info, config.num_channels);
        // timm's networks are made without; training scripts set it.
        if info.upstream == "torchvision" {
            let mut drops = config.stochastic_depth_probs();
            drops.push(config.dropout);
            presets::check_drops(name, &drops, want);
        }
    }
}

#[test]
fn every_other_preset_has_the_parameters_it_states() {
    let others = EfficientNetConfig::presets().iter();
    let others = others.filter(|(info, _)| info.weights.is_none());
    let names: Vec<&str> = others
        .map(|(info, config)| {
            let model =
                EfficientNet::build(config, None, &Default::default()).expect("a preset is valid");
            presets::check(info, model, &config.key_maps()[0], None);
            info.name
        })
        .collect();
    assert_eq!(names, ["efficientnet-lite0", "efficientnet_cifar"]);
}
