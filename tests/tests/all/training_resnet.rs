//! L3 for ResNet: ten optimizer steps against torch from the same start, in f64 and f32.
//!
//! In f64 correct code measures at most 1e-12 (losses) and 5e-12 (final weights), in f32 3e-6 and 5e-6.

use burn::backend::Autodiff;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Distribution, Int, Tensor, TensorData};
use burn_flex::Flex;
use burn_ndarray::NdArray;
use burn_zoo_checkpoint::{Tensors, collect, load_tensors};
use burn_zoo_core::{ImageClassifier, Mode};
use burn_zoo_resnet::ResNet;
use burn_zoo_tests::compare::Worst;
use burn_zoo_tests::golden::{Fixture, folder};
use burn_zoo_train::ops::cross_entropy;
use burn_zoo_train::{
    Ema, Optimizer, OptimizerSpec, clip_global_norm, collect_gradients, global_norm,
};
use burn_zoo_train::{Recipe, learning_rate};

/// Name in the fixture, optimizer, learning rate, largest gradient norm.
const RUNS: [(&str, OptimizerSpec, f64, Option<f64>); 3] = [
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

/// Item `i` of a tensor whose first dimension counts items.
fn item(all: &TensorData, i: usize) -> TensorData {
    let shape = all.shape[1..].to_vec();
    let len: usize = shape.iter().product();
    match all.dtype {
        DType::I64 => TensorData::new(
            all.iter::<i64>()
                .skip(i * len)
                .take(len)
                .collect::<Vec<_>>(),
            shape,
        ),
        _ => TensorData::new(
            all.iter::<f64>()
                .skip(i * len)
                .take(len)
                .collect::<Vec<_>>(),
            shape,
        ),
    }
}

/// Losses of ten steps and the final weights under upstream's keys.
fn ten_steps<B: AutodiffBackend>(
    case: &str,
    (_, spec, lr, clip): (&str, OptimizerSpec, f64, Option<f64>),
    dtype: DType,
) -> (TensorData, Tensors) {
    let device = B::Device::default();
    let start = Fixture::read("resnet", case);
    let steps = Fixture::read("resnet", &format!("{case}.steps"));
    let config = start.resnet_config();
    let model = ResNet::<B>::new(&config, 1, &device).expect("a valid config");
    let mut model = load_tensors(
        model,
        &start.group("model."),
        &start.path,
        &config.key_maps(),
        dtype,
    )
    .expect("every key fits");
    let mut optimizer = Optimizer::<B>::new(spec, true);
    let (inputs, labels) = (steps.get("batch.inputs"), steps.get("batch.labels"));
    let mut losses = Vec::new();
    for i in 0..10 {
        let x = Tensor::from_data(item(&inputs, i).convert_dtype(dtype), (&device, dtype));
        let targets = Tensor::<B, 1, Int>::from_data(item(&labels, i), &device);
        let loss = cross_entropy(model.logits(x, Mode::Train, None), targets, 0.0);
        losses.extend(loss.to_data().iter::<f64>());
        let mut grads = collect_gradients::<B, _>(&model, loss.backward());
        if let Some(max_norm) = clip {
            let norm = global_norm::<B>(&grads);
            clip_global_norm::<B>(&mut grads, norm, max_norm);
        }
        model = optimizer.step(model, grads, lr);
    }
    let tensors = collect(&model)
        .into_iter()
        .map(|(path, data)| (config.key_maps()[0].key(&path), data));
    (TensorData::new(losses, [10]), tensors.collect())
}

fn check<B: AutodiffBackend>(case: &str, names: &[&str], dtype: DType, limits: [f64; 2]) {
    let steps = Fixture::read("resnet", &format!("{case}.steps"));
    for run in RUNS.into_iter().filter(|run| names.contains(&run.0)) {
        let (losses, weights) = ten_steps::<B>(case, run, dtype);
        let mut worst = Worst::default();
        worst.add(
            "losses",
            &losses,
            &steps.get(&format!("{}.losses", run.0)),
            0.0,
        );
        worst.assert_within(limits[0], &format!("{case} {} losses", run.0));
        let want = steps.group(&format!("{}.model.", run.0));
        Worst::of(&weights, &want, 1e-3)
            .assert_within(limits[1], &format!("{case} {} weights", run.0));
    }
}

const ALL: [&str; 3] = ["adamw", "sgd", "sgd_clip"];

#[test]
fn l3_ten_steps_equal_torch_in_f64() {
    check::<Autodiff<NdArray<f64>>>("basic_cifar", &ALL, DType::F64, [1e-9, 1e-9]);
    check::<Autodiff<NdArray<f64>>>("bottleneck_imagenet", &ALL, DType::F64, [1e-9, 1e-9]);
}

#[test]
fn l3_ten_steps_equal_torch_on_flex_in_f32() {
    check::<Autodiff<Flex>>("basic_cifar", &ALL, DType::F32, [2e-5, 2e-4]);
    check::<Autodiff<Flex>>(
        "bottleneck_imagenet",
        &["sgd_clip"],
        DType::F32,
        [2e-5, 2e-4],
    );
}

#[test]
fn symptom_16_adamw_has_torchs_defaults() {
    let OptimizerSpec::AdamW {
        beta1,
        beta2,
        eps,
        weight_decay,
    } = OptimizerSpec::adamw(burn_zoo_train::ops::AdamW::default().weight_decay)
    else {
        panic!("adamw makes AdamW");
    };
    assert_eq!((beta1, beta2, eps, weight_decay), (0.9, 0.999, 1e-8, 1e-2));
}

#[test]
fn warm_up_and_cosine_equal_torchs_schedule() {
    let path = folder("resnet").join("schedule.json");
    let text = std::fs::read_to_string(path).expect("the fixture is part of the repository");
    let want: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let number = |key: &str| want[key].as_f64().expect("a number");
    // Ten steps an epoch, two epochs, half an epoch of warm-up.
    let recipe: Recipe = serde_json::from_value(serde_json::json!({
        "model": "resnet20", "model_config": {}, "dataset": "digits", "data_dir": null, "image_size": 224,
        "valid_fraction": 0.1, "augment": {}, "epochs": 2, "batch_size": 1,
        "optimizer": {"name": "sgd", "momentum": 0.9, "weight_decay": 0.0, "nesterov": false},
        "decay_norms_and_biases": true, "lr": number("base_lr"), "min_lr": number("min_lr"),
        "warmup_epochs": number("warmup_steps") / 10.0, "schedule": "cosine", "label_smoothing": 0.0,
        "clip_norm": 0.0, "ema_decay": 0.0, "seed": 0, "workers": 1, "checkpoint_every": 1,
        "keep_checkpoints": 1, "backend": "flex", "threads": 1
    }))
    .expect("a recipe");
    let lrs = want["lrs"].as_array().expect("a list");
    assert_eq!(lrs.len(), 20);
    for (step, lr) in lrs.iter().enumerate() {
        let got = learning_rate(&recipe, step, 20, 10);
        let want = lr.as_f64().expect("a number");
        assert!((got - want).abs() <= 1e-15, "step {step}: {got} for {want}");
    }
}

#[test]
fn ema_is_the_warmed_up_average_of_weights_and_statistics() {
    let fixture = Fixture::read("resnet", "basic_cifar");
    let device = Default::default();
    let config = fixture.resnet_config();
    let models: Vec<ResNet<Flex>> = (0..4)
        .map(|seed| ResNet::new(&config, seed, &device).expect("a valid config"))
        .collect();
    let mut ema = Ema::new(0.3);
    // Written out from the definition, in f64; the first value is taken as it is.
    let value =
        |model: &ResNet<Flex>| -> Vec<f64> { collect(model)["fc.weight"].iter::<f64>().collect() };
    let mut want = value(&models[0]);
    for (i, model) in models.iter().enumerate() {
        let step = i + 1;
        ema.update(model, step);
        let decay = [2.0 / 11.0, 3.0 / 12.0, 0.3, 0.3][i];
        if i > 0 {
            for (w, v) in want.iter_mut().zip(value(model)) {
                *w = decay * *w + (1.0 - decay) * v;
            }
        }
    }
    let averaged = ema.apply(models[3].clone());
    let got = value(&averaged);
    let worst = got
        .iter()
        .zip(&want)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);
    assert!(worst < 1e-7, "off by {worst}");
    assert_ne!(got, value(&models[3]));

    // Running statistics are averaged too, and a restored average goes on where it was.
    let input = Tensor::<Flex, 4>::random([4, 1, 8, 8], Distribution::Default, &device);
    models[0].logits(input, Mode::Train, None);
    ema.restore(&models[1]);
    ema.update(&models[0], 100);
    let key = "bn1.running_mean";
    let mean = |model: &ResNet<Flex>| collect(model)[key].iter::<f64>().collect::<Vec<_>>();
    let (before, after) = (mean(&models[1]), mean(&models[0]));
    let found = mean(&ema.apply(models[2].clone()));
    for ((b, a), f) in before.iter().zip(&after).zip(&found) {
        assert!((0.3 * b + 0.7 * a - f).abs() < 1e-7 && a != b);
    }
}
