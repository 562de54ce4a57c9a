//! What training is made of: defaults, the schedule and the average of the weights.

use burn::tensor::{Distribution, Tensor};
use burn_flex::Flex;
use burn_zoo_checkpoint::{KeyMap, collect};
use burn_zoo_core::{ImageClassifier, Mode, Stages};
use burn_zoo_optim::OptimizerSpec;
use burn_zoo_resnet::{ResNet, ResNetConfig};
use burn_zoo_tests::golden::folder;
use burn_zoo_train::{
    Ema, Forward, ProgressKind, Recipe, RunDir, Score, Task, TrainInput, learning_rate, train,
};

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

/// A recipe of two epochs with these rates.
fn recipe(lr: f64, min_lr: f64, warmup_epochs: f64) -> Recipe {
    serde_json::from_value(serde_json::json!({
        "model": "resnet20", "model_config": {}, "dataset": "digits", "data_dir": null, "image_size": 224,
        "valid_fraction": 0.1, "augment": {}, "epochs": 2, "batch_size": 1,
        "optimizer": {"name": "sgd", "momentum": 0.9, "weight_decay": 0.0, "nesterov": false},
        "decay_norms_and_biases": true, "lr": lr, "min_lr": min_lr,
        "warmup_epochs": warmup_epochs, "schedule": "cosine", "label_smoothing": 0.0,
        "clip_norm": 0.0, "ema_decay": 0.0, "seed": 0, "workers": 1, "checkpoint_every": 1,
        "keep_checkpoints": 1, "backend": "flex", "threads": 1
    }))
    .expect("a recipe")
}

#[test]
fn warm_up_and_cosine_equal_torchs_schedule() {
    let path = folder("training").join("schedule.json");
    let text = std::fs::read_to_string(path).expect("the fixture is part of the repository");
    let want: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let number = |key: &str| want[key].as_f64().expect("a number");
    // Ten steps an epoch, two epochs, half an epoch of warm-up.
    let warm_up = number("warmup_steps") / 10.0;
    let recipe = recipe(number("base_lr"), number("min_lr"), warm_up);
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

/// A model of one number for each batch item, whose loss is fine and whose gradient is not.
#[derive(burn::module::Module, Debug)]
struct Rooted<B: burn::tensor::backend::Backend> {
    weight: burn::module::Param<Tensor<B, 1>>,
}

struct RootTask;

impl Task<Tracked, Rooted<Tracked>> for RootTask {
    type Batch = ();

    fn unit(&self) -> &'static str {
        "items"
    }

    fn batches(&self) -> usize {
        3
    }

    fn epoch(&self, _: usize, first: usize) -> Box<dyn Iterator<Item = burn_zoo_core::Result<()>>> {
        Box::new((first..3).map(|_| Ok(())))
    }

    fn count(&self, (): &()) -> usize {
        1
    }

    fn forward(
        &self,
        model: &Rooted<Tracked>,
        (): &(),
        _: Option<&mut dyn Stages<Tracked>>,
    ) -> burn_zoo_core::Result<Forward<Tracked>> {
        // The root of 0 is 0, and its slope is infinite.
        let loss = (model.weight.val() * 0.0).sqrt().sum();
        Ok(Forward {
            logits: loss.clone(),
            right: loss.clone().inner(),
            loss,
            targets: 1,
        })
    }

    fn validate(&self, _: &Rooted<Flex>) -> burn_zoo_core::Result<Option<Score>> {
        Ok(None)
    }
}

type Tracked = burn::backend::Autodiff<Flex>;

#[test]
fn a_gradient_that_is_no_number_stops_the_run_and_is_named() {
    let work = tempfile::tempdir().expect("a folder");
    let recipe = recipe(1.0, 0.0, 0.0);
    let run = RunDir::create(&work.path().join("run"), &recipe, "a test").expect("a new folder");
    let device = Default::default();
    let ones = Tensor::<Tracked, 1>::ones([4], &device).require_grad();
    let model = Rooted {
        weight: burn::module::Param::initialized(burn::module::ParamId::new(), ones),
    };
    let input = TrainInput {
        recipe: &recipe,
        run: &run,
        resume: false,
        key_map: &KeyMap::default(),
        device: &device,
        progress: ProgressKind::Lines,
        interrupt: Default::default(),
    };
    let error = match train(model, &RootTask, input) {
        Ok(_) => panic!("the gradient is no number"),
        Err(error) => error.to_string(),
    };
    for words in [
        "step 1",
        "1 of 1 gradients are not finite, such as that of `weight`",
        "there is no checkpoint yet",
        "--lr",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
}
