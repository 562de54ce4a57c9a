//! `zoo forward --grad` on checkpoints as transformers saves them: outputs, hidden states and every
//! gradient of the upstream class.
//!
//! Correct code measures at most 7e-16 (outputs) and 6e-15 (gradients) in f64, 4e-7 and 3e-6 in f32.

use crate::common::*;
use burn_zoo::fixtures;
use burn_zoo_checkpoint::{Tensors, read_safetensors, write_safetensors};
use burn_zoo_core::{ImageClassifier, Mode};
use burn_zoo_parity::Fixture;
use burn_zoo_resnet::{ModelConfig, PretrainedModel, ResNet, ResNetConfig};
use burn_zoo_tests::compare::Worst;
use burn_zoo_tests::golden::folder;
use std::path::Path;

fn forward(checkpoint: &str, input: &Path, more: &[&str]) -> Tensors {
    let work = temp();
    let out = text(&work.path().join("out.safetensors"));
    let input = text(input);
    let mut args = vec![
        "forward",
        "--checkpoint",
        checkpoint,
        "--input",
        &input,
        "--output",
        &out,
    ];
    args.extend(more);
    let ended = run(&args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    read_safetensors(Path::new(&out)).expect("just written")
}

#[test]
fn transformers_resnets_agree_in_outputs_and_gradients() {
    for case in ["resnet_bottleneck_v1", "resnet_basic", "resnet_model"] {
        let at = folder("forward").join(case);
        let want = read_safetensors(&at.join("expected.safetensors")).expect("a fixture");
        for (dtype, limits) in [("f64", [1e-10, 1e-9]), ("f32", [2e-5, 2e-4])] {
            for backend in ["flex", "ndarray"] {
                let options = ["--grad", "--dtype", dtype, "--backend", backend];
                let got = forward(&text(&at), &at.join("input.safetensors"), &options);
                let is_grad = |t: &Tensors, grad: bool| -> Tensors {
                    let part = t.iter().filter(|(k, _)| k.starts_with("grad.") == grad);
                    part.map(|(k, v)| (k.clone(), v.clone())).collect()
                };
                let what = format!("{case} {backend} {dtype}");
                Worst::of(&is_grad(&got, false), &is_grad(&want, false), 0.0)
                    .assert_within(limits[0], &format!("{what} outputs"));
                Worst::of(&is_grad(&got, true), &is_grad(&want, true), 1e-4)
                    .assert_within(limits[1], &format!("{what} gradients"));
            }
        }
    }
}

#[test]
fn a_folder_of_transformers_predicts_with_its_own_class_names() {
    let work = temp();
    let at = text(&folder("forward").join("resnet_bottleneck_v1"));
    let picture = work.path().join("picture.png");
    image::RgbImage::from_fn(300, 200, |x, y| image::Rgb([x as u8, y as u8, 9]))
        .save(&picture)
        .expect("writable");
    let ended = run(&["predict", &at, &text(&picture), "--json"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let top = &json(&ended.stdout)[0]["top"];
    assert_eq!(top.as_array().map(Vec::len), Some(5));
    for entry in top.as_array().expect("a list") {
        let name = format!("LABEL_{}", entry["label"]);
        assert_eq!(entry["class"].as_str(), Some(name.as_str()));
    }
    // A photo becomes grey for a model with one channel.
    let grey = text(&folder("forward").join("resnet_basic"));
    let ended = run(&["predict", &grey, &text(&picture), "--json"]);
    assert_eq!(ended.code, 0, "grey images are made: {}", ended.stderr);
}

/// A resnet20 with seven classes, as a weights file without a configuration.
#[test]
fn a_weights_file_runs_as_the_model_that_arch_names() {
    let work = temp();
    let path = work.path().join("weights.safetensors");
    let device = Default::default();
    let (_, config) = ResNetConfig::preset("resnet20").expect("listed");
    let model = ResNet::<burn_flex::Flex>::new(&config, 5, &device)
        .expect("a preset")
        .with_num_classes(7);
    model.save(&path).expect("writable");
    let input = folder("forward").join("resnet_model/input.safetensors");
    let got = forward(&text(&path), &input, &["--arch", "resnet20"]);
    assert!(got.keys().all(|key| !key.starts_with("grad.")));
    let data = read_safetensors(&input)
        .expect("a fixture")
        .remove("pixel_values");
    let pixel_values = burn::tensor::Tensor::from_data(data.expect("an input"), &device);
    let want = model.logits(pixel_values, Mode::Eval, None).into_data();
    assert_eq!(got["logits"], want);
    assert_eq!(want.shape[..], [2, 7]);
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    let at = folder("forward").join("resnet_basic");
    let checkpoint = text(&at);
    let work = temp();
    let out = text(&work.path().join("out.safetensors"));
    let fails_with = |input: &Path, more: &[&str], code: i32, words: &[&str]| {
        let input = text(input);
        let mut args = vec![
            "forward",
            "--checkpoint",
            &checkpoint,
            "--input",
            &input,
            "--output",
            &out,
        ];
        args.extend(more);
        fails(&args, code, words);
        assert!(!Path::new(&out).exists(), "nothing may be written");
    };
    let good = read_safetensors(&at.join("input.safetensors")).expect("a fixture");
    let changed = |change: &dyn Fn(&mut Tensors)| {
        let mut tensors = good.clone();
        change(&mut tensors);
        let path = work.path().join("in.safetensors");
        burn_zoo_checkpoint::write_safetensors(&path, &tensors).expect("writable");
        path
    };
    let path = changed(&|t| drop(t.remove("pixel_values")));
    fails_with(&path, &[], 1, &["in.safetensors", "`pixel_values`"]);
    let path = changed(&|t| {
        t.insert("pixels".into(), t["grad_output"].clone());
    });
    fails_with(&path, &[], 2, &["unknown input `pixels`", "pixel_values"]);
    let path = changed(&|t| {
        t.insert("pixel_values".into(), t["grad_output"].clone());
    });
    fails_with(&path, &[], 1, &["`pixel_values` has shape [3, 3]"]);
    let path = changed(&|t| {
        t.insert("grad_output".into(), t["pixel_values"].clone());
    });
    fails_with(
        &path,
        &["--grad"],
        1,
        &["`grad_output` has shape", "[3, 3]"],
    );
    let path = changed(&|t| drop(t.remove("grad_output")));
    fails_with(&path, &["--grad"], 2, &["--grad", "grad_output"]);
    let good = at.join("input.safetensors");
    fails_with(&good, &["--arch", "resnet5"], 2, &["resnet5", "resnet50"]);
    let weights = text(&at.join("model.safetensors"));
    let input = text(&good);
    let args = [
        "forward",
        "--checkpoint",
        &weights,
        "--input",
        &input,
        "--output",
        &out,
    ];
    fails(&args, 2, &["--arch", "model.safetensors"]);
}

/// A folder as a run leaves it, but with the fixture's weights in their upstream's spelling.
fn folder_of(fixture: &Fixture, at: &Path) -> Tensors {
    let model = &fixture.config;
    let channels = model["num_channels"].as_u64().expect("a number") as usize;
    let classes = model["num_classes"].as_u64().expect("a number");
    let names: Vec<String> = (0..classes).map(|i| i.to_string()).collect();
    let card = serde_json::json!({
        "name": fixture.name,
        "model": model,
        "preprocessing": {
            "num_channels": channels, "resize": 32, "crop": 32, "interpolation": "bilinear",
            "mean": vec![0.5; channels], "std": vec![0.5; channels],
        },
        "class_names": names,
    });
    std::fs::write(at.join("config.json"), card.to_string()).expect("writable");
    let weights = fixture.group("model.");
    write_safetensors(&at.join("model.safetensors"), &weights).expect("writable");
    let get = |name: &str| fixture.get(name).expect("a fixture has it").clone();
    let input = Tensors::from([
        ("pixel_values".to_string(), get("input.pixel_values")),
        ("grad_output".to_string(), get("grad_output")),
    ]);
    write_safetensors(&at.join("input.safetensors"), &input).expect("writable");
    let mut want = Tensors::from([("logits".to_string(), get("eval.logits"))]);
    for (key, grad) in fixture.group("eval.grad.") {
        want.insert(format!("grad.{key}"), grad);
    }
    want.remove("grad.input.pixel_values");
    want
}

/// Gradients come under the keys, and as they lie, in the checkpoint: a 1×1 convolution in timm's
/// MobileNetV3 is a linear layer here.
#[test]
fn every_family_runs_in_every_spelling() {
    // ResNets give hidden states too: above.
    let families = ["efficientnet", "mobilenet"].map(String::from);
    for fixture in fixtures(&families).expect("they are embedded") {
        let work = temp();
        let want = folder_of(&fixture, work.path());
        for (dtype, limit) in [("f64", 1e-9), ("f32", 2e-4)] {
            let options = ["--grad", "--dtype", dtype];
            let input = work.path().join("input.safetensors");
            let got = forward(&text(work.path()), &input, &options);
            Worst::of(&got, &want, 1e-4)
                .assert_within(limit, &format!("{} {dtype} forward --grad", fixture.name));
        }
    }
}

#[test]
fn what_is_read_is_not_written_over() {
    let work = temp();
    let fixtures = fixtures(&["mobilenet".into()]).expect("they are embedded");
    let want = folder_of(&fixtures[0], work.path());
    assert!(!want.is_empty());
    let model = text(work.path());
    let before = contents(work.path());
    let input = text(&work.path().join("input.safetensors"));
    for output in ["input.safetensors", "model.safetensors"] {
        let output = text(&work.path().join(output));
        let args = [
            "forward",
            "--checkpoint",
            &model,
            "--input",
            &input,
            "--output",
            &output,
        ];
        fails(&args, 2, &["--output", "is read here"]);
    }
    assert_eq!(contents(work.path()), before);
    // A link is followed; what is no file stays what it is.
    #[cfg(unix)]
    {
        let (link, real) = (work.path().join("link"), work.path().join("real"));
        std::fs::write(&real, "old").expect("writable");
        std::os::unix::fs::symlink(&real, &link).expect("writable");
        let args = |output| {
            [
                "forward",
                "--checkpoint",
                &model,
                "--input",
                &input,
                "--output",
                output,
            ]
            .map(String::from)
        };
        let (link, null) = (text(&link), args("/dev/null"));
        let null: Vec<&str> = null.iter().map(String::as_str).collect();
        fails(&null, 1, &["/dev/null", "no regular file"]);
        let linked = args(&link);
        let linked: Vec<&str> = linked.iter().map(String::as_str).collect();
        assert_eq!(run(&linked).code, 0);
        assert!(Path::new(&link).is_symlink());
        assert!(
            read_safetensors(&real).is_ok(),
            "the link's file is written"
        );
    }
}
