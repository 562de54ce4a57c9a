//! What training is made of: defaults, the schedule and the average of the weights.

use burn::tensor::{Distribution, Tensor};
use burn_flex::Flex;
use burn_zoo_checkpoint::collect;
use burn_zoo_core::{ImageClassifier, Mode};
use burn_zoo_optim::OptimizerSpec;
use burn_zoo_resnet::{ResNet, ResNetConfig};
use burn_zoo_tests::golden::folder;
use burn_zoo_train::{Ema, Recipe, learning_rate};

#[test]
fn symptom_16_adamw_has_torchs_defaults() {
    let OptimizerSpec::AdamW {
        beta1,
        beta2,
        eps,
        weight_decay,
    } = OptimizerSpec::adamw(burn_zoo_ops::AdamW::default().weight_decay)
    else {
        panic!("adamw makes AdamW");
    };
    assert_eq!((beta1, beta2, eps, weight_decay), (0.9, 0.999, 1e-8, 1e-2));
}

#[test]
fn warm_up_and_cosine_equal_torchs_schedule() {
    let path = folder("training").join("schedule.json");
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
    let device = Default::default();
    let config = ResNetConfig {
        num_channels: 1,
        ..ResNetConfig::cifar(1).with_width(4)
    };
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
