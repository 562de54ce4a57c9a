//! Activations and their derivatives against torch's, in f64 and on flex in f32.
//!
//! Correct code measures at most 2e-16 in f64 and 3e-7 in f32. A derivative that goes through f32 on
//! its way, as Burn's of a division by a number, measures 6e-9 in f64 and fails.

use burn::backend::Autodiff;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Tensor};
use burn_flex::Flex;
use burn_ndarray::NdArray;
use burn_zoo_checkpoint::Tensors;
use burn_zoo_ops::Activation;
use burn_zoo_tests::compare::Worst;
use burn_zoo_tests::golden::folder;

fn check<B: AutodiffBackend>(dtype: DType, limit: f64) {
    let path = folder("ops").join("activations.safetensors");
    let want: Tensors = burn_zoo_checkpoint::read_safetensors(&path).expect("a fixture");
    let names: Vec<&str> = want
        .keys()
        .filter_map(|key| key.strip_prefix("y."))
        .collect();
    assert_eq!(names.len(), 11);
    for name in names {
        let activation: Activation = name.parse().expect("upstream's name");
        let x = want["x"].clone().convert_dtype(dtype);
        let x = Tensor::<B, 1>::from_data(x, (&Default::default(), dtype)).require_grad();
        let y = activation.forward(x.clone());
        assert_eq!(y.dtype(), dtype);
        let mut worst = Worst::default();
        worst.add("y", &y.to_data(), &want[&format!("y.{name}")], 0.0);
        let grads = y.sum().backward();
        let dy = x.grad(&grads).expect("a leaf").into_data();
        worst.add("dy", &dy, &want[&format!("dy.{name}")], 0.0);
        worst.assert_within(limit, &format!("{name} in {dtype:?}"));
    }
}

#[test]
fn symptom_9_activations_equal_torchs_in_f64() {
    check::<Autodiff<NdArray<f64>>>(DType::F64, 1e-12);
}

#[test]
fn symptom_9_activations_equal_torchs_on_flex() {
    check::<Autodiff<Flex>>(DType::F32, 1e-6);
    check::<Autodiff<Flex>>(DType::F64, 1e-12);
}

#[test]
fn symptom_9_an_unknown_activation_is_an_error() {
    let error = "gelus"
        .parse::<Activation>()
        .expect_err("no such name")
        .to_string();
    assert!(
        error.contains("unknown activation `gelus`") && error.contains("`gelu`"),
        "{error}"
    );
}
