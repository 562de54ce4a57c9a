//! Training on texts: language models and classifiers, their folders, and how they go on.

use crate::common::*;
use burn::tensor::TensorData;
use std::path::Path;

/// Some verses of the bundled text.
fn verses(folder: &Path) -> String {
    let corpus = burn_zoo_texts::Corpus::open("kjv", None).expect("bundled");
    let path = folder.join("verses.txt");
    let part: String = corpus.text.chars().take(20_000).collect();
    std::fs::write(&path, part).expect("writable");
    text(&path)
}

/// A short run on them.
fn short(out: &str, file: &str, more: &[&str]) -> Ended {
    let args = [
        "train",
        "--dataset",
        "text-file",
        "--data-dir",
        file,
        "--out",
        out,
        "--batch-size",
        "4",
        "--sequence-length",
        "16",
        "--steps",
        "12",
        "--progress",
        "lines",
        "--threads",
        "1",
    ];
    run(&[&args, more].concat())
}

fn file(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn symptom_17_a_language_model_goes_on_bit_equal() {
    let work = temp();
    let path = |name: &str| work.path().join(name);
    let verses = verses(work.path());
    let whole = short(
        &text(&path("whole")),
        &verses,
        &[
            "--checkpoint-every",
            "5",
            "--keep-checkpoints",
            "9",
            "--ema-decay",
            "0.9",
        ],
    );
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert!(whole.stdout.contains("trigram"), "{}", whole.stdout);
    // As a process that was killed after step 5 leaves it.
    let copy = |from: &Path, to: &Path| {
        let status = std::process::Command::new("cp")
            .arg("-r")
            .args([from, to])
            .status();
        assert!(status.expect("cp is there").success());
    };
    copy(&path("whole"), &path("killed"));
    for name in [
        "model.safetensors",
        "config.json",
        "evaluation.json",
        "report.html",
    ] {
        std::fs::remove_file(path("killed").join(name)).expect("it is there");
    }
    for step in ["checkpoints/step-00000010", "checkpoints/step-00000012"] {
        std::fs::remove_dir_all(path("killed").join(step)).expect("it is there");
    }
    let killed = text(&path("killed"));
    let resumed = run(&[
        "train",
        "--resume",
        &killed,
        "--progress",
        "lines",
        "--threads",
        "1",
    ]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    for name in [
        "model.safetensors",
        "evaluation.json",
        "tokenizer.json",
        "config.json",
    ] {
        assert_eq!(
            file(&path("killed"), name),
            file(&path("whole"), name),
            "{name}"
        );
    }
    let last = "checkpoints/step-00000012/optimizer.safetensors";
    assert_eq!(file(&path("killed"), last), file(&path("whole"), last));
    // A run that is done is not changed.
    let again = run(&[
        "train",
        "--resume",
        &killed,
        "--progress",
        "lines",
        "--threads",
        "1",
    ]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(
        file(&path("killed"), "model.safetensors"),
        file(&path("whole"), "model.safetensors")
    );
}

#[test]
fn what_was_trained_writes_and_is_measured() {
    let work = temp();
    let verses = verses(work.path());
    for (model, vocabulary) in [("gpt2_mini", "bytes"), ("llama_mini", "bpe:300")] {
        let out = text(&work.path().join(model));
        let trained = short(
            &out,
            &verses,
            &["--model", model, "--vocabulary", vocabulary, "--json"],
        );
        assert_eq!(trained.code, 0, "{}", trained.stderr);
        let found = json(&trained.stdout);
        let loss = found["valid_loss"].as_f64().expect("a number");
        assert!(
            loss > 0.0 && found["trigram_loss"].as_f64().is_some(),
            "{found}"
        );
        // The same loss from the files.
        let measured = run(&["eval", &out, "--json", "--batch-size", "4"]);
        assert_eq!(measured.code, 0, "{}", measured.stderr);
        let again = json(&measured.stdout)["loss"].as_f64().expect("a number");
        assert!((again - loss).abs() < 1e-5, "{again} {loss}");
        let written = run(&["generate", &out, "And God", "-n", "5", "--json"]);
        assert_eq!(written.code, 0, "{}", written.stderr);
        let report = std::fs::read_to_string(Path::new(&out).join("report.html")).expect("a page");
        assert!(report.contains("<svg") && report.contains("trigram"));
        // And from there on, with its own tokens.
        let next = text(&work.path().join(format!("{model}-next")));
        let more = short(&next, &verses, &["--model", &out, "--sequence-length", "8"]);
        assert_eq!(more.code, 0, "{}", more.stderr);
        let other = short(&next, &verses, &["--model", &out, "--vocabulary", "chars"]);
        fails_as(other, &["train"], 2, &["--vocabulary"]);
    }
}

#[test]
fn texts_are_told_apart() {
    let work = temp();
    let csv = work.path().join("texts.csv");
    let mut lines = String::from("text,label\n");
    for i in 0..60 {
        let (words, label) = [("light and day", "good"), ("dark night", "bad")][i % 2];
        lines += &format!("\"the {words}, {i}\",{label}\n");
    }
    std::fs::write(&csv, lines).expect("writable");
    let out = text(&work.path().join("run"));
    let csv = text(&csv);
    let args = [
        "train",
        "--dataset",
        "labelled-file",
        "--data-dir",
        &csv,
        "--out",
        &out,
        "--epochs",
        "6",
        "--batch-size",
        "8",
        "--progress",
        "lines",
    ];
    let trained = run(&args);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    assert!(
        trained.stdout.contains("test accuracy 100.00 %"),
        "{}",
        trained.stdout
    );
    let ended = run(&[
        "classify",
        &out,
        "the light and day, 3",
        "dark night",
        "--json",
    ]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let found = json(&ended.stdout);
    assert_eq!(
        [&found[0]["top"][0]["class"], &found[1]["top"][0]["class"]],
        ["good", "bad"]
    );
    // As a start for other classes, with a new last layer.
    let more = text(&work.path().join("more"));
    let args = [
        &args[..6],
        &[
            &more,
            "--model",
            &out,
            "--batch-size",
            "8",
            "--progress",
            "lines",
        ],
    ]
    .concat();
    let again = run(&args);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let too_long = [&args[..], &["--sequence-length", "4096"]].concat();
    fails_as(
        run(&too_long),
        &["train"],
        2,
        &["--sequence-length", "places for"],
    );
}

#[test]
fn a_new_encoder_has_places_for_its_texts() {
    for name in ["bert_mini", "roberta-base"] {
        let config = burn_zoo::find(name).expect("listed").config;
        let new = config.classifying_texts(3, 5000, Some((99, 0)));
        assert_eq!(new.expect("an encoder").max_length(), Some(5000), "{name}");
    }
}

#[test]
fn a_text_that_cannot_be_learnt_from_is_named() {
    let work = temp();
    let path = work.path().join("x.txt");
    let (file, out) = (text(&path), text(&work.path().join("run")));
    for (bytes, code, words) in [
        (&b"\xff\xfe"[..], 1, "UTF-8"),
        (b"", 1, "no text"),
        (b"too short", 2, "too few"),
    ] {
        std::fs::write(&path, bytes).expect("writable");
        fails_as(short(&out, &file, &[]), &["train"], code, &[words]);
    }
    let verses = verses(work.path());
    for (more, words) in [
        (["--vocabulary", "words"], "bytes"),
        (["--sequence-length", "0"], "--sequence-length"),
        (["--steps", "0"], "--steps"),
        (["--model", "resnet20"], "the model"),
        (["--model", "bert_mini"], "the model"),
    ] {
        fails_as(short(&out, &verses, &more), &["train"], 2, &[words]);
    }
    assert!(!work.path().join("run").exists());
}

/// Of the bias of queries, keys and values, all but the keys' third: softmax takes the same from every
/// score of a row, so its gradient is zero but for rounding, of which AdamW makes whole steps.
fn without_keys(key: &str, data: &TensorData) -> TensorData {
    let mut values: Vec<f64> = data.iter().collect();
    if key.ends_with("attn.c_attn.bias") {
        let third = values.len() / 3;
        values.drain(third..2 * third);
    }
    let shape = [values.len()];
    TensorData::new(values, shape)
}

/// Four batches of two are one of eight. That clipping is by the global norm is a check of `zoo verify`.
#[test]
fn symptom_15_accumulated_batches_equal_one_large_one() {
    let work = temp();
    let verses = verses(work.path());
    let weights = |name: &str, batch: &str, accumulate: &str| {
        let out = text(&work.path().join(name));
        // The later size counts.
        let more = [
            "--batch-size",
            batch,
            "--accumulate",
            accumulate,
            "--clip-norm",
            "0.5",
        ];
        let ended = short(&out, &verses, &more);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let file = work.path().join(name).join("model.safetensors");
        burn_zoo_checkpoint::read_safetensors(&file).expect("weights")
    };
    let (one, four) = (weights("one", "8", "1"), weights("four", "2", "4"));
    let other = weights("other", "8", "2");
    let distance = |a: &burn_zoo_checkpoint::Tensors, b: &burn_zoo_checkpoint::Tensors| {
        let all = a.iter().map(|(key, data)| {
            let (other, data) = (without_keys(key, &b[key]), without_keys(key, data));
            let error = burn_zoo_parity::relative_error(&other, &data, 1e-3);
            (error, key.clone())
        });
        let larger = |a: (f64, String), b: (f64, String)| if b.0 > a.0 { b } else { a };
        all.reduce(larger).expect("weights")
    };
    let (same, not) = (distance(&one, &four), distance(&one, &other));
    assert!(same.0 < 1e-4, "{same:?}");
    assert!(not.0 > 1e-3, "{not:?}");
    let out = text(&work.path().join("many"));
    fails_as(
        short(&out, &verses, &["--accumulate", "5000"]),
        &["train"],
        2,
        &["--accumulate"],
    );
}

/// Memory that the process holds, in bytes.
#[cfg(target_os = "linux")]
fn resident(process: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? << 10)
}

#[test]
#[cfg(target_os = "linux")]
fn symptom_19_memory_is_flat_after_warm_up() {
    let work = temp();
    let (verses, out) = (verses(work.path()), work.path().join("run"));
    let path = text(&out);
    let args = [
        "train",
        "--dataset",
        "text-file",
        "--data-dir",
        &verses,
        "--out",
        &path,
        "--batch-size",
        "4",
        "--sequence-length",
        "32",
        "--steps",
        "1100",
        "--epochs",
        "100",
        "--progress",
        "lines",
        "--checkpoint-every",
        "100",
        "--keep-checkpoints",
        "100",
    ];
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_zoo-under-test"))
        .args(args)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let mut at = Vec::new();
    for step in [100, 1000] {
        let checkpoint = out.join(format!("checkpoints/step-{step:08}"));
        while !checkpoint.is_dir() {
            assert!(
                child.try_wait().expect("a process").is_none(),
                "it ended before step {step}"
            );
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        at.push(resident(child.id()).expect("it runs"));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    // Nine hundred steps that kept one activation of a layer, 64 kB, would hold 59 MB more.
    assert!(at[1] < at[0] + (24 << 20), "{at:?}");
}
