//! L0–L3: strict load, outputs, stages, every gradient and ten optimizer steps against upstream.

use crate::compare::Worst;
use crate::golden::Fixture;
use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_zoo_checkpoint::{KeyMap, ModelConfig, Tensors, collect, load_tensors, to_file};
use burn_zoo_core::{CollectStages, ImageClassifier, Mode};
use burn_zoo_ops::cross_entropy;
use burn_zoo_optim::{Optimizer, OptimizerSpec, clip_global_norm, collect_gradients, global_norm};

/// What a model is compared on.
pub struct Lane<B: AutodiffBackend> {
    /// The dtype of everything.
    pub dtype: DType,
    /// The device.
    pub device: B::Device,
    /// The largest relative errors of outputs and of gradients.
    pub limits: [f64; 2],
}

/// A fixture, and how its model is made.
pub struct Case<M> {
    /// The fixture.
    pub fixture: Fixture,
    /// A model of its configuration, with any weights.
    pub model: M,
    /// The spellings of its weights; the fixture has the first.
    pub maps: Vec<KeyMap>,
}

/// Optimizers of the fixtures: name, definition, learning rate, largest gradient norm.
pub const OPTIMIZERS: [(&str, OptimizerSpec, f64, Option<f64>); 3] = [
    (
        "adamw",
        OptimizerSpec::AdamW {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 5e-2,
        },
        1e-2,
        None,
    ),
    (
        "sgd",
        OptimizerSpec::Sgd {
            momentum: 0.9,
            weight_decay: 1e-2,
            nesterov: false,
        },
        5e-2,
        None,
    ),
    (
        "sgd_clip",
        OptimizerSpec::Sgd {
            momentum: 0.9,
            weight_decay: 0.0,
            nesterov: true,
        },
        5e-2,
        Some(0.5),
    ),
];

impl<B: AutodiffBackend> Lane<B> {
    /// The model with the fixture's weights.
    ///
    /// # Panics
    /// If a key does not fit.
    fn load<M: AutodiffModule<B>>(&self, case: &Case<M>) -> M {
        let Case {
            fixture,
            model,
            maps,
        } = case;
        let weights = fixture.group("model.");
        load_tensors(model.clone(), &weights, &fixture.path, maps, self.dtype)
            .expect("every key fits")
    }

    fn tensor<const D: usize>(&self, data: TensorData) -> Tensor<B, D> {
        Tensor::from_data(data.convert_dtype(self.dtype), (&self.device, self.dtype))
    }

    /// Stages, logits and gradients in evaluation mode.
    ///
    /// # Panics
    /// If an error is above its limit, a dtype is another, or stages change the result.
    pub fn check_eval<M>(&self, case: &Case<M>)
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
    {
        let ([out_limit, grad_limit], fixture) = (self.limits, &case.fixture);
        let model = self.load(case);
        let input = self.tensor::<4>(fixture.get("input")).require_grad();
        let mut stages = CollectStages::new();
        let logits = model.logits(input.clone(), Mode::Eval, Some(&mut stages));
        let plain = model.logits(input.clone(), Mode::Eval, None);
        plain.into_data().assert_eq(&logits.to_data(), true);
        assert_eq!(logits.dtype(), self.dtype);

        let want = fixture.group("eval.stage.");
        let mut got = Tensors::new();
        for (name, flat, shape) in stages.0 {
            assert_eq!(flat.dtype(), self.dtype, "dtype of stage {name}");
            let mut data = flat.into_data();
            data.shape = shape.into();
            got.insert(name, data);
        }
        let name = &fixture.name;
        Worst::of(&got, &want, 0.0).assert_within(out_limit, &format!("{name} eval stages"));
        let mut worst = Worst::default();
        worst.add(
            "logits",
            &logits.to_data(),
            &fixture.get("eval.logits"),
            0.0,
        );
        worst.assert_within(out_limit, &format!("{name} eval logits"));

        let grads = (logits * self.tensor(fixture.get("grad_output")))
            .sum()
            .backward();
        let input_grad = input.grad(&grads).expect("the input takes part");
        assert_eq!(
            input_grad.dtype(),
            self.dtype,
            "dtype of the input's gradient"
        );
        let mut got = gradients::<B, M>(&model, &case.maps[0], grads);
        got.insert("input".into(), input_grad.into_data());
        Worst::of(&got, &fixture.group("eval.grad."), 1e-4)
            .assert_within(grad_limit, &format!("{name} eval gradients"));
    }

    /// Logits, loss, gradients and running statistics of a pass in training mode.
    ///
    /// # Panics
    /// If an error is above its limit.
    pub fn check_train<M>(&self, case: &Case<M>)
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
    {
        let ([out_limit, grad_limit], fixture) = (self.limits, &case.fixture);
        let (model, name) = (self.load(case), &fixture.name);
        let logits = model.logits(self.tensor(fixture.get("input")), Mode::Train, None);
        let targets = Tensor::<B, 1, Int>::from_data(fixture.get("labels"), &self.device);
        let loss = cross_entropy(logits.clone(), targets, 0.1);
        let mut worst = Worst::default();
        worst.add(
            "logits",
            &logits.to_data(),
            &fixture.get("train.logits"),
            0.0,
        );
        worst.add("loss", &loss.to_data(), &fixture.get("train.loss"), 0.0);
        worst.assert_within(out_limit, &format!("{name} train outputs"));

        let mut got = gradients::<B, M>(&model, &case.maps[0], loss.backward());
        let mut want = fixture.group("train.grad.");
        // Without effect in training, a gradient is rounding: as small beside the largest as that.
        let largest = want.values().map(norm).fold(0.0, f64::max);
        for key in without_effect(&want) {
            want.remove(&key);
            let rounding = got.remove(&key).as_ref().map(norm).expect("a gradient") / largest;
            println!("{name}: {key} has no effect, its gradient is {rounding:.1e} of the largest");
            assert!(
                rounding <= grad_limit / 200.0,
                "{name}: {key}: {rounding:.1e}"
            );
        }
        Worst::of(&got, &want, 1e-4).assert_within(grad_limit, &format!("{name} train gradients"));

        let mut stats = named(collect(&model), &case.maps[0]);
        stats.retain(|key, _| key.contains("running_"));
        Worst::of(&stats, &fixture.group("train.stats."), 0.0)
            .assert_within(out_limit, &format!("{name} running statistics"));
    }

    /// Ten steps of these optimizers: the losses, and the final weights but for those that have no
    /// effect in training (a bias between two batch norms with nothing but a 1×1 convolution in
    /// between): their gradients are rounding, which AdamW makes as large as any step, and the
    /// running means of the norms after them take up where they went.
    ///
    /// # Panics
    /// If an error is above its limit.
    pub fn check_steps<M>(&self, case: &Case<M>, steps: &Fixture, optimizers: &[&str])
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
    {
        let idle = without_effect(&case.fixture.group("train.grad."));
        for run in OPTIMIZERS.iter().filter(|run| optimizers.contains(&run.0)) {
            let (losses, mut weights) = self.ten_steps(case, steps, run);
            let drifts = run.0 == "adamw" && !idle.is_empty();
            let left_out =
                |key: &String| idle.contains(key) || (drifts && key.ends_with("running_mean"));
            weights.retain(|key, _| !left_out(key));
            let what = format!("{} {}", steps.name, run.0);
            let mut worst = Worst::default();
            worst.add(
                "losses",
                &losses,
                &steps.get(&format!("{}.losses", run.0)),
                0.0,
            );
            worst.assert_within(self.limits[0], &format!("{what} losses"));
            let mut want = steps.group(&format!("{}.model.", run.0));
            want.retain(|key, _| !left_out(key));
            Worst::of(&weights, &want, 1e-3)
                .assert_within(self.limits[1], &format!("{what} weights"));
        }
    }

    fn ten_steps<M>(
        &self,
        case: &Case<M>,
        steps: &Fixture,
        (_, spec, lr, clip): &(&str, OptimizerSpec, f64, Option<f64>),
    ) -> (TensorData, Tensors)
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
    {
        let mut model = self.load(case);
        let mut optimizer = Optimizer::<B>::new(*spec, true);
        let (inputs, labels) = (steps.get("batch.inputs"), steps.get("batch.labels"));
        let mut losses = Vec::new();
        for i in 0..10 {
            let targets = Tensor::<B, 1, Int>::from_data(item(&labels, i), &self.device);
            let logits = model.logits(self.tensor(item(&inputs, i)), Mode::Train, None);
            let loss = cross_entropy(logits, targets, 0.0);
            losses.extend(loss.to_data().iter::<f64>());
            let mut grads = collect_gradients::<B, _>(&model, loss.backward());
            if let Some(max_norm) = clip {
                let norm = global_norm::<B>(&grads);
                clip_global_norm::<B>(&mut grads, norm, *max_norm);
            }
            model = optimizer.step(model, grads, *lr);
        }
        let weights = named(collect(&model), &case.maps[0]);
        (TensorData::new(losses, [10]), weights)
    }
}

/// The map of one spelling alone.
///
/// # Panics
/// If there is none of this name.
pub fn spelling<C: ModelConfig>(config: &C, name: &str) -> KeyMap {
    let maps = config.key_maps();
    let map = maps.into_iter().find(|map| map.name == name);
    map.expect("a spelling of the family")
}

fn norm(data: &TensorData) -> f64 {
    data.iter::<f64>().map(|v| v * v).sum::<f64>().sqrt()
}

/// The biases whose gradients in f64 are nothing but rounding beside the others.
fn without_effect(grads: &Tensors) -> Vec<String> {
    let largest = grads.values().map(norm).fold(0.0, f64::max);
    let idle = grads
        .iter()
        .filter(|(_, grad)| norm(grad) < 1e-12 * largest);
    let idle: Vec<String> = idle.map(|(key, _)| key.clone()).collect();
    assert!(idle.iter().all(|key| key.ends_with(".bias")), "{idle:?}");
    idle
}

/// Tensors by path as tensors by upstream's key.
fn named(tensors: Tensors, map: &KeyMap) -> Tensors {
    to_file(&tensors, map)
}

/// Gradients of every parameter by upstream's key, in the parameter's shape.
fn gradients<B: AutodiffBackend, M: AutodiffModule<B>>(
    model: &M,
    map: &KeyMap,
    grads: B::Gradients,
) -> Tensors {
    let shapes = collect(model);
    let shaped = |(path, grad): (String, Tensor<B::InnerBackend, 1>)| {
        let mut data = grad.into_data();
        data.shape = shapes[&path].shape.clone();
        (path, data)
    };
    let grads = collect_gradients::<B, M>(model, grads);
    named(grads.into_iter().map(shaped).collect(), map)
}

/// Item `i` of a tensor whose first dimension counts items.
fn item(all: &TensorData, i: usize) -> TensorData {
    let shape = all.shape[1..].to_vec();
    let len: usize = shape.iter().product();
    let size = all.dtype.size();
    let bytes = all.as_bytes()[i * len * size..(i + 1) * len * size].to_vec();
    TensorData::from_bytes_vec(bytes, shape, all.dtype)
}
