//! Bad input gets one clear line that names the file or option, an exit code, and loses nothing.

use crate::common::*;
use std::io::Write;
use std::path::Path;

const CAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/photos/cat.jpg");

#[test]
fn unknown_names_suggest_the_nearest() {
    let folder = temp();
    let never = text(&folder.path().join("never"));
    fails(
        &["info", "resnt50"],
        2,
        &["unknown model `resnt50`", "resnet50"],
    );
    fails(
        &["train", "--model", "resnet19", "--out", &never],
        2,
        &["unknown model `resnet19`", "resnet18"],
    );
    fails(
        &["train", "--dataset", "digit"],
        2,
        &["unknown data set `digit`", "digits"],
    );
    fails(
        &["train", "--optimizer", "adam"],
        2,
        &["unknown optimizer `adam`", "adamw"],
    );
    fails(
        &["info", "resnet18", "--backend", "flux"],
        2,
        &["unknown backend `flux`", "flex"],
    );
    assert!(!folder.path().join("never").exists());
}

#[test]
fn a_backend_that_is_not_in_the_program_says_how_to_get_it() {
    fails(
        &["info", "resnet20", "--backend", "cuda"],
        1,
        &["backend cuda", "--features cuda"],
    );
}

#[test]
fn numbers_that_cannot_be_used_name_their_option() {
    let folder = temp();
    let out = text(&folder.path().join("run"));
    for (option, value) in [
        ("--batch-size", "0"),
        ("--batch-size", "5000"),
        ("--epochs", "0"),
        ("--lr", "NaN"),
        ("--lr", "-1"),
        ("--lr", "inf"),
        ("--weight-decay", "NaN"),
        ("--label-smoothing", "1.5"),
        ("--ema-decay", "1"),
        ("--warmup-epochs", "inf"),
        ("--valid-fraction", "1"),
        ("--threads", "0"),
        ("--workers", "0"),
        ("--device", "3"),
    ] {
        // Joined, so that a value with a minus sign is no option of its own.
        let joined = format!("{option}={value}");
        fails(&short_run(&out, &[&joined]), 2, &[option]);
    }
    assert!(!folder.path().join("run").exists(), "nothing was started");
}

#[test]
fn a_run_folder_that_is_there_is_never_overwritten() {
    let folder = temp();
    let run_folder = folder.path().join("run");
    std::fs::create_dir(&run_folder).expect("a folder");
    std::fs::write(run_folder.join("thesis.txt"), "four years of work").expect("writable");
    let before = contents(&run_folder);
    fails(
        &short_run(&text(&run_folder), &[]),
        2,
        &["--out", "is there already"],
    );
    assert_eq!(contents(&run_folder), before);

    // A run without a checkpoint cannot be continued, and is not said to be.
    std::fs::write(run_folder.join("recipe.json"), "{}").expect("writable");
    std::fs::create_dir(run_folder.join("checkpoints")).expect("writable");
    let words = ["--out", "stopped before the first checkpoint", "delete it"];
    fails(&short_run(&text(&run_folder), &[]), 2, &words);
}

#[test]
fn a_run_folder_that_cannot_be_made_is_named() {
    let folder = temp();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").expect("writable");
    let out = text(&file.join("run"));
    fails(
        &short_run(&out, &[]),
        1,
        &[&out, "cannot create the folder"],
    );
}

#[test]
fn resuming_what_is_no_run_or_another_run_is_refused() {
    let folder = temp();
    fails(
        &["train", "--resume", &text(folder.path())],
        1,
        &["recipe.json", "is no run folder"],
    );
    let out = text(&folder.path().join("run"));
    assert_eq!(run(&short_run(&out, &["--epochs", "1"])).code, 0);
    let before = contents(&folder.path().join("run"));
    fails(
        &["train", "--resume", &out, "--model", "resnet32"],
        2,
        &["--model", "resnet20"],
    );
    fails(
        &["train", "--resume", &out, "--lr", "0.5"],
        2,
        &["--lr", "started with"],
    );
    fails(
        &["train", "--resume", &out, "--optimizer", "sgd"],
        2,
        &["--optimizer"],
    );
    assert_eq!(contents(&folder.path().join("run")), before);

    // The checkpoints of another model under this run's recipe.
    let other = text(&folder.path().join("other"));
    assert_eq!(
        run(&short_run(
            &other,
            &["--epochs", "1", "--model", "resnet32"]
        ))
        .code,
        0
    );
    let recipe = std::fs::read(folder.path().join("run/recipe.json")).expect("a recipe");
    std::fs::write(folder.path().join("other/recipe.json"), recipe).expect("writable");
    fails(
        &["train", "--resume", &other],
        1,
        &["model.safetensors", "layer1.3", "not part of this model"],
    );
}

#[test]
fn data_files_that_are_not_what_they_must_be_are_named() {
    let folder = temp();
    let train = |data: &std::path::Path, dataset: &str, words: &[&str]| {
        let out = text(&folder.path().join("never"));
        let args = [
            "train",
            "--dataset",
            dataset,
            "--data-dir",
            &text(data),
            "--out",
            &out,
        ];
        fails(&args, 1, words);
        assert!(
            !folder.path().join("never").exists(),
            "no run folder for data that cannot be read"
        );
    };
    let set = |name: &str| {
        let data = folder.path().join(name);
        idx_set(&data, 20);
        data
    };
    let images = "train-images-idx3-ubyte";
    let labels = "train-labels-idx1-ubyte";

    let missing = set("missing");
    std::fs::remove_file(missing.join(labels)).expect("there");
    train(&missing, "mnist", &[labels, "not found", "--data-dir"]);

    let truncated = set("truncated");
    let bytes = std::fs::read(truncated.join(images)).expect("there");
    std::fs::write(truncated.join(images), &bytes[..bytes.len() - 1]).expect("writable");
    train(&truncated, "mnist", &[images, "fewer"]);
    std::fs::write(truncated.join(images), &bytes[..7]).expect("writable");
    train(&truncated, "mnist", &[images, "truncated"]);

    let longer = set("longer");
    let mut more = bytes.clone();
    more.push(0);
    std::fs::write(longer.join(images), more).expect("writable");
    train(&longer, "mnist", &[images, "more"]);

    let magic = set("magic");
    std::fs::copy(magic.join(labels), magic.join(images)).expect("writable");
    train(
        &magic,
        "mnist",
        &[images, "magic number 0x00000801, wanted 0x00000803"],
    );

    let range = set("range");
    idx(&range.join(labels), 0x801, &[20], &[12; 20]);
    train(&range, "mnist", &[labels, "label 12", "out of range"]);

    let counts = set("counts");
    idx(&counts.join(labels), 0x801, &[19], &[1; 19]);
    train(&counts, "mnist", &[images, "20 images but 19 labels"]);

    let huge = set("huge");
    idx(
        &huge.join(images),
        0x803,
        &[u32::MAX, u32::MAX, u32::MAX],
        &[0; 10],
    );
    train(&huge, "mnist", &[images, "more than the file can hold"]);

    let gz = set("gz");
    std::fs::remove_file(gz.join(images)).expect("there");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&bytes).expect("in memory");
    let packed = encoder.finish().expect("in memory");
    std::fs::write(gz.join(format!("{images}.gz")), &packed[..packed.len() / 2]).expect("writable");
    train(&gz, "mnist", &[images, "truncated or damaged"]);

    let cifar = folder.path().join("cifar");
    std::fs::create_dir(&cifar).expect("a folder");
    for i in 1..=5 {
        std::fs::write(cifar.join(format!("data_batch_{i}.bin")), vec![1; 3073 * 2])
            .expect("writable");
    }
    std::fs::write(cifar.join("test_batch.bin"), vec![1; 3073]).expect("writable");
    std::fs::write(cifar.join("data_batch_3.bin"), vec![1; 3000]).expect("writable");
    train(&cifar, "cifar10", &["data_batch_3.bin", "3000 bytes"]);
    std::fs::write(cifar.join("data_batch_3.bin"), vec![77; 3073]).expect("writable");
    train(
        &cifar,
        "cifar10",
        &["data_batch_3.bin", "label 77", "out of range"],
    );
}

#[test]
fn image_folders_that_cannot_be_used_are_named() {
    let folder = temp();
    let data = folder.path().join("data");
    digit_folder(&data, 2, 12);
    let out = text(&folder.path().join("run"));
    let data_text = text(&data);
    let args = [
        "train",
        "--model",
        "resnet20",
        "--dataset",
        "image-folder",
        "--data-dir",
        &data_text,
        "--image-size",
        "16",
        "--epochs",
        "1",
        "--batch-size",
        "4",
        "--out",
        &out,
    ];
    std::fs::create_dir(data.join("empty")).expect("a folder");
    fails(&args, 1, &["empty", "no images"]);
    std::fs::remove_dir(data.join("empty")).expect("there");

    let liar = data.join("digit 1/zz.png");
    std::fs::write(&liar, "this is a text file").expect("writable");
    fails(&args, 1, &["zz.png"]);
    std::fs::remove_file(&liar).expect("there");
    let photo = std::fs::read(CAT).expect("bundled");
    let cut = data.join("digit 1/cut.jpg");
    std::fs::write(&cut, &photo[..photo.len() / 2]).expect("writable");
    fails(&args, 1, &["cut.jpg", "truncated"]);
    std::fs::remove_file(&cut).expect("there");
    assert!(
        !Path::new(&out).exists(),
        "a run that could not begin leaves its name free"
    );

    let out = text(&folder.path().join("run2"));
    let args = ["train", "--dataset", "image-folder", "--out", &out];
    fails(&args, 2, &["--data-dir", "is needed"]);
    let nowhere = text(&folder.path().join("nowhere"));
    fails(
        &["train", "--dataset", "image-folder", "--data-dir", &nowhere],
        1,
        &["nowhere", "not found"],
    );
}

#[test]
fn images_and_models_that_cannot_be_used_for_prediction_are_named() {
    let folder = temp();
    let out = text(&folder.path().join("run"));
    assert_eq!(run(&short_run(&out, &["--epochs", "1"])).code, 0);
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("writable");
        text(&path)
    };
    let note = file("note.png", b"a shopping list");
    fails(&["predict", &out, &note], 1, &["note.png"]);
    let mut png = Vec::new();
    image::GrayImage::new(8, 8)
        .write_to(&mut std::io::Cursor::new(&mut png), image::ImageFormat::Png)
        .expect("in memory");
    let cut = file("cut.png", &png[..png.len() / 2]);
    fails(
        &["predict", &out, &cut],
        1,
        &["cut.png", "cannot be decoded"],
    );
    let photo = std::fs::read(CAT).expect("bundled");
    let whole = file("whole.jpg", &photo);
    assert_eq!(run(&["predict", &out, &whole]).code, 0);
    let half = file("half.jpg", &photo[..photo.len() / 2]);
    fails(&["predict", &out, &half], 1, &["half.jpg", "truncated"]);
    std::fs::remove_file(&half).expect("there");
    let good = file("good.png", &png);
    assert_eq!(run(&["predict", &out, &good]).code, 0);
    fails(
        &["predict", &out, "no-such.png"],
        1,
        &["no-such.png", "not found"],
    );
    fails(&["predict", &out, &text(folder.path())], 1, &["cut.png"]);
    fails(&["predict", "resnet20", &good], 2, &["--weights"]);
    fails(
        &["predict", "resnet18", &good, "--offline"],
        1,
        &["resnet18-", "zoo fetch resnet18"],
    );
    fails(
        &["predict", "runs/nowhere", &good],
        1,
        &["runs/nowhere", "not a folder"],
    );
    fails(
        &["predict", &out, &good, "--dtype", "f31"],
        2,
        &["unknown dtype"],
    );

    // Weights of another model, and weights that are cut off.
    let weights = text(&folder.path().join("run/model.safetensors"));
    fails(
        &["predict", "resnet20", &good, "--weights", &weights],
        1,
        &["conv1.weight", "[16, 1, 3, 3]", "[16, 3, 3, 3]"],
    );
    let bytes = std::fs::read(&weights).expect("there");
    std::fs::write(&weights, &bytes[..bytes.len() - 10]).expect("writable");
    fails(
        &["predict", &out, &good],
        1,
        &["model.safetensors", "not a valid safetensors file"],
    );
    std::fs::write(folder.path().join("run/config.json"), "{\"name\": 3}").expect("writable");
    fails(&["predict", &out, &good], 1, &["config.json"]);
    fails(&["eval", &text(folder.path())], 2, &["--dataset"]);
}

#[test]
fn wrong_usage_is_one_line_and_help_is_not() {
    for (args, words) in [
        (&["train", "--epoch", "3"][..], "--epochs"),
        (&["train", "--epochs", "three"], "three"),
        (&["trian"], "train"),
        (&["predict", "resnet18"], "<IMAGE>"),
        (&["train", "--resume", "runs/a", "--out", "runs/b"], "--out"),
    ] {
        fails(args, 2, &[words, "--help"]);
        let lines = run(args).stderr.lines().count();
        assert_eq!(lines, 1, "{args:?}");
    }
    let help = run(&["train", "--help"]);
    assert_eq!(help.code, 0);
    assert!(help.stdout.lines().count() > 20 && help.stderr.is_empty());
    let nothing = run(&[]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("Usage:"), "{}", nothing.stderr);
}
