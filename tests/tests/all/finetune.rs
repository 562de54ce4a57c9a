//! Training from published weights with a new last layer.

use crate::common::*;
use burn_flex::Flex;
use burn_zoo_checkpoint::read_safetensors;
use burn_zoo_resnet::{ModelConfig, PretrainedModel, ResNet, ResNetConfig};
use std::path::{Path, PathBuf};

/// Weights of a resnet20 for grey images of four classes.
fn weights(folder: &Path) -> PathBuf {
    let (_, config) = ResNetConfig::preset("resnet20").expect("it is listed");
    let config = ResNetConfig {
        num_channels: 1,
        num_classes: 4,
        ..config
    };
    let path = folder.join("four.safetensors");
    let model = ResNet::<Flex>::new(&config, 7, &Default::default()).expect("it is valid");
    model.save(&path).expect("writable");
    path
}

#[test]
fn another_number_of_classes_is_refused_with_the_way_out() {
    let folder = temp();
    let (out, weights) = (folder.path().join("run"), text(&weights(folder.path())));
    let words = ["--weights", "`fc.", "[10", "[4", "--allow-missing 'fc.*'"];
    fails(&short_run(&text(&out), &["--weights", &weights]), 2, &words);
    let wrong = ["--weights", &weights, "--allow-missing", "head.*"];
    fails(&short_run(&text(&out), &wrong), 2, &words);
    assert!(!out.exists(), "nothing is begun");
}

#[test]
fn all_but_the_new_layer_starts_from_the_file() {
    let folder = temp();
    let (out, weights) = (folder.path().join("run"), weights(folder.path()));
    let file = text(&weights);
    let options = [
        "--weights",
        &file,
        "--allow-missing",
        "fc.*",
        "--epochs",
        "1",
        "--lr",
        "1e-12",
        "--weight-decay",
        "0",
        "--ema-decay",
        "0",
    ];
    let ended = run(&short_run(&text(&out), &options));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for words in [
        "in torchvision's names",
        "fc.weight [10, 64] (the file has [4, 64])",
        "fc.bias [10] (the file has [4])",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    // Steps of 1e-12 leave the numbers where they were.
    let (before, after) = (
        read_safetensors(&weights).expect("readable"),
        read_safetensors(&out.join("model.safetensors")).expect("readable"),
    );
    for key in ["conv1.weight", "layer3.2.conv2.weight"] {
        let pairs = before[key].iter::<f64>().zip(after[key].iter::<f64>());
        let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-8, "{key} moved by {off}");
    }
    assert_eq!(&after["fc.weight"].shape[..], [10, 64]);
    let recipe = std::fs::read_to_string(out.join("recipe.json")).expect("a recipe");
    assert!(recipe.contains("four.safetensors") && recipe.contains("fc.*"));
}

#[test]
fn a_library_user_gets_the_report_too() {
    let folder = temp();
    let (_, config) = ResNetConfig::preset("resnet20").expect("it is listed");
    let device = Default::default();
    let published = ResNet::<Flex>::new(&config, 3, &device).expect("it is valid");
    let path = folder.path().join("published.safetensors");
    published.save(&path).expect("writable");
    let (model, report) = ResNet::<Flex>::from_pretrained_for(7, "resnet20", &path, &device)
        .expect("all but the last layer is there");
    assert_eq!(model.config().num_classes, 7);
    assert_eq!(report.initialised.len(), 2, "{:?}", report.initialised);
    assert!(report.initialised.iter().all(|key| key.starts_with("fc.")));
    let image = burn::tensor::Tensor::<Flex, 4>::ones([1, 3, 32, 32], &device);
    let features = published.forward_features(image.clone()).into_data();
    model
        .forward_features(image.clone())
        .into_data()
        .assert_eq(&features, true);
    assert_eq!(model.forward(image).dims(), [1, 7]);
}
