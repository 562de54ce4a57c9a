//! L0–L3 for MobileNet against torchvision and timm in f64, each in its own spelling, and its presets
//! at full size.
//!
//! Correct code measures at most 6e-16 (outputs), 7e-15 (gradients) and 2e-15 (ten steps) in f64, and
//! 4e-7, 3e-6 and 7e-7 on flex in f32.

use burn::backend::Autodiff;
use burn::tensor::DType;
use burn::tensor::backend::AutodiffBackend;
use burn_flex::Flex;
use burn_ndarray::NdArray;
use burn_zoo_mobilenet::{MobileNet, MobileNetConfig, ModelConfig};
use burn_zoo_tests::golden::Fixture;
use burn_zoo_tests::parity::{Case, Lane, spelling};
use burn_zoo_tests::presets;

fn case<B: AutodiffBackend>(name: &str, upstream: &str) -> Case<MobileNet<B>> {
    let fixture = Fixture::read("mobilenet", name);
    let config: MobileNetConfig =
        serde_json::from_value(fixture.config.clone()).expect("a configuration");
    Case {
        model: MobileNet::new(&config, 1, &Default::default()).expect("a valid config"),
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
    for (name, upstream) in [
        ("v2", "torchvision"),
        ("v3", "torchvision"),
        ("timm_v2", "timm"),
        ("timm_v3", "timm"),
    ] {
        lane.check_eval(&case(name, upstream));
        lane.check_train(&case(name, upstream));
    }
    for name in ["v2", "v3"] {
        let steps = Fixture::read("mobilenet", &format!("{name}.steps"));
        let optimizers = ["adamw", "sgd", "sgd_clip"];
        lane.check_steps(&case(name, "torchvision"), &steps, &optimizers);
    }
}

#[test]
fn l0_to_l3_in_f64() {
    check::<Autodiff<NdArray<f64>>>(DType::F64, [1e-10, 1e-9]);
}

#[test]
fn l1_to_l3_on_flex_in_f32() {
    let ((), counts) = burn_zoo_ops::count(|| check::<Autodiff<Flex>>(DType::F32, [2e-5, 2e-4]));
    assert!(counts.fast > 0, "the fast path must have been compared");
    assert_eq!(counts.generic, 0, "no layer of a MobileNet may fall back");
}

#[test]
fn every_preset_has_upstreams_keys_parameters_and_flops() {
    let manifest = presets::manifest("mobilenet");
    let names = manifest.as_object().expect("an object");
    assert_eq!(names.len(), 6);
    for (name, want) in names {
        let (info, config) =
            MobileNetConfig::preset(name).expect("every upstream preset is listed");
        let model = MobileNet::new(&config, 0, &Default::default()).expect("a preset is valid");
        presets::check(&info, model, &spelling(&config, info.upstream), Some(want));
        presets::check_complete(&info, config.num_channels);
        if info.upstream == "torchvision" {
            presets::check_drops(name, &[config.dropout], want);
        }
    }
}

#[test]
fn every_other_preset_has_the_parameters_it_states() {
    let others = MobileNetConfig::presets()
        .iter()
        .filter(|(info, _)| info.weights.is_none());
    let names: Vec<&str> = others
        .map(|(info, config)| {
            let model = MobileNet::new(config, 0, &Default::default()).expect("a preset is valid");
            presets::check(info, model, &config.key_maps()[0], None);
            info.name
        })
        .collect();
    assert_eq!(names, ["mobilenet_v2_cifar"]);
}
