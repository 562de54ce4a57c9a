//! Language models of this project's own folders, written as transformers has them. That Python loads them is
//! shown by tools/roundtrip.py.

use crate::common::*;
use crate::language::small_decoder;
use burn_zoo::{AutoConfig, fixtures, models};
use burn_zoo_checkpoint::LazyTensors;
use burn_zoo_core::TEXT_FILES;
use burn_zoo_tests::golden::folder;
use burn_zoo_text::Tokenizer;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn configurations_of_texts_come_back_as_they_were() {
    let families = ["bert", "gpt2", "llama"].map(String::from);
    let golden = fixtures(&families).expect("embedded");
    let read = |json: &Value| AutoConfig::from_json(json).expect("valid");
    let cases = golden.iter().map(|f| (f.name.clone(), read(&f.config)));
    let listed = models().into_iter();
    let listed = listed.filter(|entry| families.contains(&entry.preset.family.to_string()));
    let presets = listed.map(|entry| (entry.preset.name.to_string(), entry.config));
    let mut seen = 0;
    for (name, config) in cases.chain(presets) {
        let written = config.to_transformers().expect("transformers has it");
        assert_eq!(read(&written), config, "{name}: {written:#}");
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
}

fn exported(from: &Path, to: &Path) -> Value {
    let (from, to) = (text(from), text(to));
    let ended = run(&["export", &from, "--to", "transformers", "--out", &to]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let config = std::fs::read_to_string(Path::new(&to).join("config.json"));
    crate::common::json(&config.expect("a configuration"))
}

/// Trains on for two steps.
fn train(args: &[&str]) {
    let short = ["--steps", "2", "--batch-size", "2", "--progress", "lines"];
    let ended = run(&[&["train"], args, &short].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn a_decoder_that_learnt_on_keeps_its_tokenizer_and_template_in_and_out() {
    let (before, work) = (small_decoder(), temp());
    let template = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}";
    let beside = [
        ("chat_template.jinja", template.to_string()),
        (
            "generation_config.json",
            json!({ "eos_token_id": [1, 7] }).to_string(),
        ),
    ];
    for (name, text) in &beside {
        std::fs::write(before.path().join(name), text).expect("writable");
    }
    let letters = work.path().join("text.txt");
    std::fs::write(
        &letters,
        "In the beginning God created the heaven.\n".repeat(200),
    )
    .expect("writable");
    let (run_folder, out) = (work.path().join("run"), work.path().join("out"));
    train(&[
        "--model",
        &text(before.path()),
        "--dataset",
        "text-file",
        "--data-dir",
        &text(&letters),
        "--sequence-length",
        "16",
        "--out",
        &text(&run_folder),
    ]);
    let config = exported(&run_folder, &out);
    assert_eq!(config["architectures"], json!(["LlamaForCausalLM"]));
    assert_eq!(config["model_type"], "llama");
    let mut kept = 0;
    for name in TEXT_FILES {
        let Ok(first) = std::fs::read(before.path().join(name)) else {
            continue;
        };
        for folder in [&run_folder, &out] {
            assert_eq!(
                std::fs::read(folder.join(name)).expect(name),
                first,
                "{name}"
            );
        }
        kept += 1;
    }
    assert_eq!(kept, 4);
    let said = |folder: &Path| {
        let folder = text(folder);
        let ended = run(&[
            "generate", &folder, "--chat", "--json", "-n", "4", "And God",
        ]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        crate::common::json(&ended.stdout)["texts"].clone()
    };
    assert_eq!(said(&out), said(&run_folder));
    // Its weights moved.
    let weights = |folder: &Path| std::fs::read(folder.join("model.safetensors")).expect("there");
    assert_ne!(weights(&out), weights(before.path()));
}

#[test]
fn an_encoder_keeps_the_names_of_its_classes() {
    let work = temp();
    let csv = work.path().join("texts.csv");
    let lines: String = (0..40)
        .map(|i| {
            format!(
                "the light and dark {i},{}\n",
                ["good", "bad", "so so"][i % 3]
            )
        })
        .collect();
    std::fs::write(&csv, format!("text,label\n{lines}")).expect("writable");
    let (run_folder, out) = (work.path().join("run"), work.path().join("out"));
    train(&[
        "--dataset",
        "labelled-file",
        "--data-dir",
        &text(&csv),
        "--out",
        &text(&run_folder),
    ]);
    let config = exported(&run_folder, &out);
    assert_eq!(
        config["architectures"],
        json!(["BertForSequenceClassification"])
    );
    assert_eq!(
        config["id2label"],
        json!({ "0": "bad", "1": "good", "2": "so so" })
    );
    assert_eq!(
        config["label2id"],
        json!({ "bad": 0, "good": 1, "so so": 2 })
    );
    let classes = |folder: &Path| {
        let ended = run(&["classify", &text(folder), "the light", "--json"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        crate::common::json(&ended.stdout)[0]["top"].clone()
    };
    assert_eq!(classes(&out), classes(&run_folder));
}

#[test]
fn a_tokenizer_in_gguf_says_the_same_in_transformers_files() {
    let kinds = ["gpt2", "roberta", "bert", "fast", "sentence_piece"];
    let files = kinds.map(|kind| folder("tokenizers").join(kind).join("tokenizer.gguf"));
    let mut seen = 0;
    for path in files.iter().filter(|path| path.is_file()) {
        let file = LazyTensors::open(path).expect("a fixture");
        let before = Tokenizer::from_gguf(&file).expect("it holds one");
        let work = temp();
        for (name, bytes) in before.files().expect("it can be written") {
            std::fs::write(work.path().join(name), bytes).expect("writable");
        }
        let after = Tokenizer::from_folder(work.path()).expect("valid");
        assert_eq!(after.special.bos, before.special.bos);
        assert_eq!(after.special.eos, before.special.eos);
        for text in ["", " In the  beginning\n", "日本語 🙂 مرحبا", "it's 2,026"] {
            let ids = |t: &Tokenizer| t.encode(text, true).expect("it has");
            assert_eq!(ids(&after), ids(&before), "{text:?}");
        }
        let generation = std::fs::read_to_string(work.path().join("generation_config.json"));
        let eos = crate::common::json(&generation.expect("written"))["eos_token_id"].clone();
        assert_eq!(
            eos,
            json!(before.special.eos.as_ref().map(|eos| before.id(eos)))
        );
        seen += 1;
    }
    assert!(seen > 0);
}
