//! `zoo export`: a model as its upstream has it. That Python loads it is shown by tools/roundtrip.py.

use crate::common::*;
use burn_flex::Flex;
use burn_zoo_checkpoint::{LazyTensors, Tensors, read_safetensors};
use burn_zoo_resnet::{ClassifierConfig, ModelConfig, PretrainedModel, ResNet, ResNetConfig};
use burn_zoo_tests::golden::folder;
use serde_json::Value;
use std::path::Path;

fn export(model: &str, out: &Path, more: &[&str]) -> Value {
    let out = text(out);
    let mut args = vec!["export", model, "--out", &out, "--json"];
    args.extend(more);
    let ended = run(&args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    json(&ended.stdout)
}

/// The outputs of `zoo forward` on a fixture's input.
fn forward(checkpoint: &Path, case: &str) -> Tensors {
    let work = temp();
    let out = work.path().join("out.safetensors");
    let input = folder("forward").join(case).join("input.safetensors");
    let (checkpoint, input, output) = (text(checkpoint), text(&input), text(&out));
    let ended = run(&[
        "forward",
        "--checkpoint",
        &checkpoint,
        "--input",
        &input,
        "--output",
        &output,
    ]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    read_safetensors(&out).expect("just written")
}

fn config(folder: &Path) -> Value {
    json(&std::fs::read_to_string(folder.join("config.json")).expect("a configuration"))
}

#[test]
fn symptom_23_in_and_out_is_bit_equal_in_either_spelling() {
    let work = temp();
    for case in ["resnet_bottleneck_v1", "resnet_basic", "resnet_model"] {
        let before = folder("forward").join(case);
        let (there, back) = (
            work.path().join(case),
            work.path().join(format!("{case}-back")),
        );
        export(&text(&before), &there, &["--to", "torchvision"]);
        let moved = export(&text(&there), &back, &["--to", "transformers"]);
        assert_eq!(moved["read_as"], "torchvision");
        let dropped = moved["dropped"].as_array().expect("a list");
        let counter = |key: &Value| {
            key.as_str()
                .is_some_and(|k| k.ends_with("num_batches_tracked"))
        };
        assert!(dropped.iter().all(counter), "{dropped:?}");
        // With the counters of batch norms, 0 there too.
        let want = read_safetensors(&before.join("model.safetensors")).expect("a fixture");
        let got = read_safetensors(&back.join("model.safetensors")).expect("written");
        assert_eq!(got, want, "{case}");
        let theirs = config(&back);
        for (key, value) in config(&before).as_object().expect("an object") {
            if let Some(ours) = theirs.get(key) {
                assert_eq!(ours, value, "{case} {key}");
            }
        }
        assert_eq!(theirs["model_type"], "resnet");
        assert_eq!(forward(&back, case), forward(&before, case), "{case}");
    }
}

#[test]
fn a_large_model_is_split_and_halves_are_halves() {
    let work = temp();
    let before = folder("forward").join("resnet_basic");
    let split = work.path().join("split");
    let options = ["--to", "transformers", "--shard-size", "2000"];
    export(&text(&before), &split, &options);
    assert!(split.join("model.safetensors.index.json").is_file());
    assert!(!split.join("model.safetensors").exists());
    assert_eq!(
        forward(&split, "resnet_basic"),
        forward(&before, "resnet_basic")
    );
    let half = work.path().join("half");
    export(&text(&before), &half, &["--dtype", "bf16"]);
    let tensors = LazyTensors::open(&half).expect("written");
    // But for the counters of batch norms.
    let mut halves = tensors.tensors.values().filter(|t| !t.shape.is_empty());
    assert!(halves.all(|t| t.dtype == Ok(burn::tensor::DType::BF16)));
}

#[test]
fn timm_gets_its_name_for_the_network() {
    let work = temp();
    let (_, mut resnet18) = ResNetConfig::preset("resnet18").expect("it is listed");
    resnet18.set_num_classes(3);
    let weights = work.path().join("three.safetensors");
    let model = ResNet::<Flex>::new(&resnet18, 5, &Default::default()).expect("it is valid");
    model.save(&weights).expect("writable");
    let out = work.path().join("timm");
    export(
        "resnet18",
        &out,
        &["--weights", &text(&weights), "--to", "timm"],
    );
    let config = config(&out);
    assert_eq!(config["architecture"], "resnet18");
    assert_eq!(config["num_classes"], 3);
    assert_eq!(
        config["pretrained_cfg"]["input_size"],
        serde_json::json!([3, 224, 224])
    );
    assert_eq!(config["pretrained_cfg"]["crop_pct"], 0.875);
    assert_eq!(
        read_safetensors(&out.join("model.safetensors")).expect("written"),
        read_safetensors(&weights).expect("written")
    );
    // And it is read as such, but not where it says what cannot be followed.
    let info = run(&["info", &text(&out), "--json"]);
    assert_eq!(info.code, 0, "{}", info.stderr);
    for (pointer, lie) in [
        ("/num_classes", serde_json::json!(-1)),
        ("/num_classes", serde_json::json!("5")),
        ("/model_args", serde_json::json!({"output_stride": 8})),
        ("/model_args", serde_json::json!([1])),
        ("/model_args/in_chans", serde_json::json!(-3)),
        ("/pretrained_cfg", serde_json::json!("none")),
        ("/pretrained_cfg/input_size", serde_json::json!([3, 64, 32])),
        ("/pretrained_cfg/input_size", serde_json::json!([1, 64, 64])),
        (
            "/pretrained_cfg/input_size",
            serde_json::json!([3, 1_000_000, 1_000_000]),
        ),
        ("/pretrained_cfg/crop_pct", serde_json::json!(0)),
        ("/pretrained_cfg/crop_pct", serde_json::json!(1e30)),
        (
            "/pretrained_cfg/interpolation",
            serde_json::json!("lanczos"),
        ),
        ("/pretrained_cfg/mean", serde_json::json!([0.5])),
        ("/pretrained_cfg/std", serde_json::json!([0.5, 0.0, 0.5])),
        (
            "/pretrained_cfg/label_names",
            serde_json::json!(["too", "few"]),
        ),
    ] {
        let mut lying = config.clone();
        *lying.pointer_mut(pointer).expect("it is there") = lie;
        std::fs::write(out.join("config.json"), lying.to_string()).expect("writable");
        let key = pointer.rsplit('/').next().expect("a key");
        fails(&["info", &text(&out)], 1, &["config.json", key]);
    }
}

#[test]
fn what_a_killed_export_left_is_swept() {
    let work = temp();
    let model = text(&folder("forward").join("resnet_basic"));
    let make = |name: &str, locked: bool| {
        let path = work.path().join(name);
        std::fs::create_dir(&path).expect("writable");
        let lock = std::fs::File::create(path.join(".lock")).expect("writable");
        if locked {
            lock.lock().expect("nobody has it");
        }
        (path, lock)
    };
    let (left, _) = make(".part-out-killed", false);
    let (busy, _held) = make(".part-out-busy", true);
    let (other, _) = make(".part-another-killed", false);
    let out = work.path().join("out");
    export(&model, &out, &[]);
    assert!(!left.exists(), "its maker is gone");
    assert!(busy.exists(), "it is being made");
    assert!(other.exists(), "it is of another target");
    assert!(!out.join(".lock").exists());
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_nothing() {
    let work = temp();
    let there = work.path().join("there");
    std::fs::create_dir(&there).expect("writable");
    let model = text(&folder("forward").join("resnet_basic"));
    let fails_with = |out: &Path, more: &[&str], code: i32, words: &[&str]| {
        let out = text(out);
        let mut args = vec!["export", &model, "--out", &out];
        args.extend(more);
        fails(&args, code, words);
    };
    fails_with(&there, &[], 2, &["--out", "there already"]);
    let new = work.path().join("new");
    fails_with(
        &new,
        &["--to", "timmm"],
        2,
        &["unknown upstream `timmm`", "timm"],
    );
    fails_with(&new, &["--to", "timm"], 2, &["--to", "timm has no network"]);
    fails_with(&new, &["--shard-size", "0"], 2, &["--shard-size"]);
    let below_a_file = work.path().join("file/new");
    std::fs::write(work.path().join("file"), "text").expect("writable");
    fails_with(&below_a_file, &[], 1, &["file"]);
    let mut left: Vec<_> = std::fs::read_dir(work.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["file", "there"]);
}
