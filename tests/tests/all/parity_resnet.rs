//! L0–L2 for ResNet: strict load, outputs, stages and every gradient against torchvision in f64.
//!
//! Limits: correct code measures at most 3e-15 (outputs) and 2e-12 (gradients) in f64, and 2e-6 and
//! 6e-6 on flex in f32.

use burn::backend::Autodiff;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_flex::Flex;
use burn_ndarray::NdArray;
use burn_zoo_checkpoint::{Tensors, collect, load_tensors};
use burn_zoo_core::{CollectStages, ImageClassifier, Mode};
use burn_zoo_resnet::ResNet;
use burn_zoo_tests::compare::Worst;
use burn_zoo_tests::golden::Fixture;
use burn_zoo_train::collect_gradients;

const CASES: [&str; 6] = [
    "basic_imagenet",
    "bottleneck_imagenet",
    "resnext",
    "wide",
    "basic_cifar",
    "one_pixel",
];

/// torchvision's key of a parameter.
fn key<B: AutodiffBackend>(model: &ResNet<B>, path: &str) -> String {
    model.config().key_maps()[0].key(path)
}

/// Gradients of every parameter by upstream's key, in the parameter's shape.
fn gradients<B: AutodiffBackend>(model: &ResNet<B>, grads: B::Gradients) -> Tensors {
    let mut shapes = collect(model);
    let shaped = |(path, grad): (String, Tensor<B::InnerBackend, 1>)| {
        let mut data = grad.into_data();
        data.shape = shapes.remove(&path).expect("a parameter").shape;
        (key(model, &path), data)
    };
    collect_gradients::<B, _>(model, grads)
        .into_iter()
        .map(shaped)
        .collect()
}

struct Lane<B: AutodiffBackend> {
    dtype: DType,
    device: B::Device,
    limits: [f64; 2],
}

impl<B: AutodiffBackend> Lane<B> {
    fn model(&self, fixture: &Fixture) -> ResNet<B> {
        let model = ResNet::new(&fixture.resnet_config(), 1, &self.device).expect("a valid config");
        load_tensors(
            model,
            &fixture.group("model."),
            &fixture.path,
            &fixture.resnet_config().key_maps(),
            self.dtype,
        )
        .expect("every key fits")
    }

    fn tensor<const D: usize>(&self, data: TensorData) -> Tensor<B, D> {
        Tensor::from_data(data.convert_dtype(self.dtype), (&self.device, self.dtype))
    }

    fn check(&self, case: &str) {
        let fixture = Fixture::read("resnet", case);
        self.check_eval(case, &fixture);
        // Two values per channel: gradients are differences of nearly equal numbers, in f64 only.
        if case != "one_pixel" || self.dtype == DType::F64 {
            self.check_train(case, &fixture);
        }
    }

    fn check_eval(&self, case: &str, fixture: &Fixture) {
        let [out_limit, grad_limit] = self.limits;
        let model = self.model(fixture);
        let input = self.tensor::<4>(fixture.get("input")).require_grad();
        let mut stages = CollectStages::new();
        let logits = model.logits(input.clone(), Mode::Eval, Some(&mut stages));
        let plain = model.logits(input.clone(), Mode::Eval, None);
        plain.into_data().assert_eq(&logits.to_data(), true);
        assert_eq!(logits.dtype(), self.dtype);

        let mut got = Tensors::new();
        for (name, flat, shape) in stages.0 {
            assert_eq!(flat.dtype(), self.dtype, "dtype of stage {name}");
            let mut data = flat.into_data();
            data.shape = shape.into();
            got.insert(name, data);
        }
        let worst = Worst::of(&got, &fixture.group("eval.stage."), 0.0);
        worst.assert_within(out_limit, &format!("{case} eval stages"));
        let mut worst = Worst::default();
        worst.add(
            "logits",
            &logits.to_data(),
            &fixture.get("eval.logits"),
            0.0,
        );
        worst.assert_within(out_limit, &format!("{case} eval logits"));

        let loss = (logits * self.tensor(fixture.get("grad_output"))).sum();
        let grads = loss.backward();
        let input_grad = input.grad(&grads).expect("the input takes part");
        assert_eq!(
            input_grad.dtype(),
            self.dtype,
            "dtype of the input's gradient"
        );
        let mut got = gradients(&model, grads);
        got.insert("input".into(), input_grad.into_data());
        let worst = Worst::of(&got, &fixture.group("eval.grad."), 1e-4);
        worst.assert_within(grad_limit, &format!("{case} eval gradients"));
    }

    fn check_train(&self, case: &str, fixture: &Fixture) {
        let [out_limit, grad_limit] = self.limits;
        let model = self.model(fixture);
        let logits = model.logits(self.tensor(fixture.get("input")), Mode::Train, None);
        let targets = Tensor::<B, 1, Int>::from_data(fixture.get("labels"), &self.device);
        let loss = burn_zoo_train::ops::cross_entropy(logits.clone(), targets, 0.1);
        let mut worst = Worst::default();
        worst.add(
            "logits",
            &logits.to_data(),
            &fixture.get("train.logits"),
            0.0,
        );
        worst.add("loss", &loss.to_data(), &fixture.get("train.loss"), 0.0);
        worst.assert_within(out_limit, &format!("{case} train outputs"));

        let grads = loss.backward();
        let worst = Worst::of(
            &gradients(&model, grads),
            &fixture.group("train.grad."),
            1e-4,
        );
        worst.assert_within(grad_limit, &format!("{case} train gradients"));

        let stats: Tensors = collect(&model)
            .into_iter()
            .map(|(path, data)| (key(&model, &path), data))
            .filter(|(key, _)| key.contains("running_"))
            .collect();
        let worst = Worst::of(&stats, &fixture.group("train.stats."), 0.0);
        worst.assert_within(out_limit, &format!("{case} running statistics"));
    }
}

#[test]
fn l0_l1_l2_against_torchvision_in_f64() {
    type B = Autodiff<NdArray<f64>>;
    let device = Default::default();
    let lane = Lane::<B> {
        dtype: DType::F64,
        device,
        limits: [1e-10, 1e-9],
    };
    CASES.iter().for_each(|case| lane.check(case));
}

#[test]
fn l1_l2_on_flex_in_f32() {
    let lane = Lane::<Autodiff<Flex>> {
        dtype: DType::F32,
        device: Default::default(),
        limits: [2e-5, 2e-4],
    };
    let ((), counts) =
        burn_zoo_train::ops::count(|| CASES.iter().for_each(|case| lane.check(case)));
    assert!(
        counts.fast > 0,
        "the fast path must have been what was compared"
    );
    assert_eq!(
        counts.generic, 0,
        "no layer of a ResNet may fall back on flex"
    );
}

#[test]
fn l1_l2_on_flex_in_f64_take_the_generic_path() {
    let lane = Lane::<Autodiff<Flex>> {
        dtype: DType::F64,
        device: Default::default(),
        limits: [1e-10, 1e-9],
    };
    let ((), counts) = burn_zoo_train::ops::count(|| lane.check("bottleneck_imagenet"));
    assert_eq!(counts.fast, 0);
}
