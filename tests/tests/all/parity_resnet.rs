//! L0–L3 for ResNet against torchvision in f64.
//!
//! Limits: correct code measures at most 3e-15 (outputs), 2e-12 (gradients), 1e-12 (losses of ten
//! steps) and 5e-12 (weights after them) in f64, and 2e-6, 6e-6, 3e-6 and 5e-6 on flex in f32.

use burn::backend::Autodiff;
use burn::tensor::DType;
use burn::tensor::backend::AutodiffBackend;
use burn_flex::Flex;
use burn_ndarray::NdArray;
use burn_zoo_resnet::{ModelConfig, ResNet};
use burn_zoo_tests::golden::Fixture;
use burn_zoo_tests::parity::{Case, Lane};

const CASES: [&str; 6] = [
    "basic_imagenet",
    "bottleneck_imagenet",
    "resnext",
    "wide",
    "basic_cifar",
    "one_pixel",
];

fn case<B: AutodiffBackend>(name: &str) -> Case<ResNet<B>> {
    let fixture = Fixture::read("resnet", name);
    let config = fixture.resnet_config();
    Case {
        model: ResNet::new(&config, 1, &Default::default()).expect("a valid config"),
        maps: config.key_maps(),
        fixture,
    }
}

fn lane<B: AutodiffBackend>(dtype: DType, limits: [f64; 2]) -> Lane<B> {
    Lane {
        dtype,
        device: Default::default(),
        limits,
    }
}

#[test]
fn l0_l1_l2_in_f64() {
    let lane = lane::<Autodiff<NdArray<f64>>>(DType::F64, [1e-10, 1e-9]);
    for name in CASES {
        lane.check_eval(&case(name));
        lane.check_train(&case(name));
    }
}

#[test]
fn l1_l2_on_flex_in_f32() {
    let lane = lane::<Autodiff<Flex>>(DType::F32, [2e-5, 2e-4]);
    let ((), counts) = burn_zoo_ops::count(|| {
        for name in CASES {
            lane.check_eval(&case(name));
            // Two values per channel: gradients are differences of nearly equal numbers, in f64 only.
            if name != "one_pixel" {
                lane.check_train(&case(name));
            }
        }
    });
    assert!(counts.fast > 0, "the fast path must have been compared");
    assert_eq!(counts.generic, 0, "no layer of a ResNet may fall back");
}

#[test]
fn l1_l2_on_flex_in_f64_take_the_generic_path() {
    let lane = lane::<Autodiff<Flex>>(DType::F64, [1e-10, 1e-9]);
    let ((), counts) = burn_zoo_ops::count(|| {
        lane.check_eval(&case("bottleneck_imagenet"));
        lane.check_train(&case("bottleneck_imagenet"));
    });
    assert_eq!(counts.fast, 0);
}

fn steps<B: AutodiffBackend>(name: &str, lane: &Lane<B>, optimizers: &[&str]) {
    let steps = Fixture::read("resnet", &format!("{name}.steps"));
    lane.check_steps(&case(name), &steps, optimizers);
}

#[test]
fn l3_ten_steps_in_f64() {
    let lane = lane::<Autodiff<NdArray<f64>>>(DType::F64, [1e-9, 1e-9]);
    for name in ["basic_cifar", "bottleneck_imagenet"] {
        steps(name, &lane, &["adamw", "sgd", "sgd_clip"]);
    }
}

#[test]
fn l3_ten_steps_on_flex_in_f32() {
    let lane = lane::<Autodiff<Flex>>(DType::F32, [2e-5, 2e-4]);
    steps("basic_cifar", &lane, &["adamw", "sgd", "sgd_clip"]);
    steps("bottleneck_imagenet", &lane, &["sgd_clip"]);
}
