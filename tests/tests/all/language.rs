//! Language models beyond the ladder: spellings, padding, caches, tokenizers, templates and generation.

use crate::common::*;
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_flex::Flex;
use burn_ndarray::NdArray;
use burn_zoo::{Pretrained, fixtures, forward};
use burn_zoo_checkpoint::{BlockProducts, LazyTensors, Tensors, load_tensors, write_safetensors};
use burn_zoo_core::{Mode, cache_dir};
use burn_zoo_gpt2::{Gpt2, Gpt2Config};
use burn_zoo_llama::{CausalLm, Llama, LlamaConfig, ModelConfig, TokenBatch};
use burn_zoo_nn::position_ids;
use burn_zoo_parity::{Fixture, relative_error};
use burn_zoo_text::{
    ChatTemplate, GenerateOptions, Message, Sampling, StopReason, Tokenizer, generate,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

type B = burn::backend::Autodiff<Flex>;

fn fixture(name: &str) -> Fixture {
    let family = name.split('/').next().expect("a family").to_string();
    let all = fixtures(&[family]).expect("embedded");
    all.into_iter()
        .find(|f| f.name == name)
        .expect("the case is there")
}

/// A folder as transformers saves it, with the weights under other names.
fn folder(fixture: &Fixture, rename: impl Fn(&str) -> String) -> tempfile::TempDir {
    let work = temp();
    let weights = fixture.group("model.").into_iter();
    let renamed: Tensors = weights.map(|(key, data)| (rename(&key), data)).collect();
    write_safetensors(&work.path().join("model.safetensors"), &renamed).expect("writable");
    let config = serde_json::to_string(&fixture.config).expect("JSON");
    std::fs::write(work.path().join("config.json"), config).expect("writable");
    work
}

/// The logits of the case's inputs by the model in `path`.
fn logits(path: &Path, fixture: &Fixture) -> TensorData {
    let pretrained = Pretrained::open(path, None).expect("a model");
    let inputs = fixture.group("input.");
    let outputs = forward::<B>(&pretrained, &inputs, path, DType::F32, &Default::default());
    outputs.expect("it runs")["logits"].clone()
}

#[test]
fn symptom_05_gamma_and_beta_with_and_without_a_prefix_are_the_same() {
    let fixture = fixture("bert/sequence");
    let gamma = |key: &str| {
        let key = key.replace("LayerNorm.weight", "LayerNorm.gamma");
        key.replace("LayerNorm.bias", "LayerNorm.beta")
    };
    let bare = |key: &str| key.replace("bert.", "");
    let plain = folder(&fixture, |key| key.into());
    let want = logits(plain.path(), &fixture);
    let error = relative_error(&want, &fixture.tensors["eval.logits"], 0.0);
    assert!(error < 1e-5, "{error}");
    let others: [&dyn Fn(&str) -> String; 3] = [&gamma, &bare, &|key| gamma(&bare(key))];
    for rename in others {
        let other = folder(&fixture, rename);
        assert_eq!(logits(other.path(), &fixture), want);
    }
    // A misspelt one is still an error.
    let wrong = folder(&fixture, |key| {
        key.replace("LayerNorm.weight", "LayerNorm.gama")
    });
    let pretrained = Pretrained::open(wrong.path(), None).expect("a folder");
    let inputs = fixture.group("input.");
    let failed = forward::<B>(
        &pretrained,
        &inputs,
        wrong.path(),
        DType::F32,
        &Default::default(),
    );
    let message = failed.expect_err("the key is unknown").to_string();
    assert!(message.contains("LayerNorm"), "{message}");
}

/// llama.cpp keeps the rows of each head of queries and keys as `0, n/2, 1, n/2 + 1…`.
#[test]
fn symptom_08_rotary_heads_in_halves_and_in_pairs_are_the_same() {
    let fixture = fixture("llama/grouped");
    let config = LlamaConfig::from_transformers(&fixture.config).expect("valid");
    let maps = config.key_maps();
    let device = Default::default();
    let weights = fixture.group("model.");
    let model = |weights: &Tensors| {
        let model = Llama::<NdArray>::new(&config, 0, &device).expect("valid");
        load_tensors(model, weights, Path::new("a test"), &maps, DType::F64).expect("fits")
    };
    let names = [
        ("model.embed_tokens", "token_embd"),
        ("model.layers.", "blk."),
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
    ];
    let mut paired = Tensors::new();
    for (key, data) in &weights {
        let theirs = names
            .iter()
            .fold(key.clone(), |key, (a, b)| key.replace(a, b));
        let mut data = data.clone();
        if theirs.contains("attn_q") || theirs.contains("attn_k") {
            let (rows, columns) = (data.shape[0], data.shape[1]);
            let (size, all) = (config.head_dim, data.iter::<f64>().collect::<Vec<f64>>());
            let mut moved = vec![0.0; all.len()];
            for row in 0..rows {
                let (head, i) = (row / size, row % size);
                let (pair, second) = (i % (size / 2), i / (size / 2));
                let to = head * size + 2 * pair + second;
                moved[to * columns..][..columns].copy_from_slice(&all[row * columns..][..columns]);
            }
            assert_ne!(moved, all);
            data = TensorData::new(moved, data.shape.clone());
        }
        paired.insert(theirs, data);
    }
    let ids = ids_of(&fixture);
    let batch = || TokenBatch::<NdArray>::new(position_ids(&ids, &device));
    let [a, b] = [&weights, &paired].map(|w| model(w).logits(&batch(), Mode::Eval).into_data());
    assert_eq!(a, b);
    let error = relative_error(&a, &fixture.tensors["eval.logits"], 0.0);
    assert!(error < 1e-10, "{error}");
}

fn ids_of(fixture: &Fixture) -> Vec<Vec<usize>> {
    let data = fixture.get("input.input_ids").expect("token numbers");
    let all: Vec<usize> = data.iter::<i64>().map(|id| id as usize).collect();
    all.chunks(data.shape[1]).map(<[usize]>::to_vec).collect()
}

/// Every decoder of the fixtures with its upstream's weights, in f64.
fn decoders(check: impl Fn(&str, &dyn Fn(&[Steps]) -> Vec<TensorData>, usize)) {
    let device = Default::default();
    for fixture in fixtures(&["gpt2".into(), "llama".into()]).expect("embedded") {
        let class = fixture.config["architectures"][0]
            .as_str()
            .expect("a class");
        if !class.ends_with("ForCausalLM") && !class.ends_with("LMHeadModel") {
            continue;
        }
        let weights = fixture.group("model.");
        let from = Path::new("a test");
        if class.starts_with("GPT2") {
            let config = Gpt2Config::from_transformers(&fixture.config).expect("valid");
            let model = Gpt2::<NdArray>::new(&config, 0, &device).expect("valid");
            let model = load_tensors(model, &weights, from, &config.key_maps(), DType::F64);
            let model = model.expect("fits");
            check(
                &fixture.name,
                &|steps| run_steps(&model, steps),
                config.n_positions,
            );
        } else {
            let config = LlamaConfig::from_transformers(&fixture.config).expect("valid");
            let model = Llama::<NdArray>::new(&config, 0, &device).expect("valid");
            let model = load_tensors(model, &weights, from, &config.key_maps(), DType::F64);
            let model = model.expect("fits");
            check(&fixture.name, &|steps| run_steps(&model, steps), 13);
        }
    }
}

/// Tokens of a batch that are given at once, what is padding of all so far, and their positions.
struct Steps {
    ids: Vec<Vec<usize>>,
    mask: Option<Vec<Vec<usize>>>,
    positions: Option<Vec<Vec<usize>>>,
}

/// Logits of each group of tokens, with a cache where there are several.
fn run_steps<M: CausalLm<NdArray>>(model: &M, steps: &[Steps]) -> Vec<TensorData> {
    let device = Default::default();
    let mut cache = model.cache(64);
    let several = steps.len() > 1;
    let run = |step: &Steps| {
        let batch = TokenBatch::<NdArray> {
            input_ids: position_ids(&step.ids, &device),
            attention_mask: step.mask.as_ref().map(|mask| position_ids(mask, &device)),
            positions: step.positions.clone(),
        };
        let cache = several.then_some(&mut cache);
        let hidden = model.hidden_states(&batch, cache, Mode::Eval, &mut None);
        model.head(hidden).into_data()
    };
    steps.iter().map(run).collect()
}

fn plain(ids: &[&[usize]]) -> Steps {
    Steps {
        ids: ids.iter().map(|row| row.to_vec()).collect(),
        mask: None,
        positions: None,
    }
}

const TOKENS: [usize; 11] = [3, 7, 4, 18, 9, 5, 11, 6, 12, 8, 10];

#[test]
fn symptom_22_decoding_with_a_cache_equals_the_whole_prefix() {
    decoders(|name, run, most| {
        let tokens = &TOKENS[..most.min(TOKENS.len())];
        let whole = &run(&[plain(&[tokens])])[0];
        let vocab = whole.shape[2];
        let whole: Vec<f64> = whole.iter::<f64>().collect();
        for parts in [vec![1; tokens.len()], vec![4, 1, 1, 3, tokens.len() - 9]] {
            let mut at = 0;
            let steps: Vec<Steps> = parts
                .iter()
                .map(|n| {
                    at += n;
                    plain(&[&tokens[at - n..at]])
                })
                .collect();
            let found: Vec<f64> = run(&steps)
                .iter()
                .flat_map(|data| data.iter::<f64>().collect::<Vec<_>>())
                .collect();
            assert_eq!(found.len(), tokens.len() * vocab, "{name}");
            let largest = found
                .iter()
                .zip(&whole)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            // Dynamic positions change all angles with the length, upstream's too.
            assert!(largest < 1e-12, "{name} {parts:?}: {largest}");
        }
    });
}

#[test]
fn symptom_13_a_sentence_in_a_padded_batch_gives_what_it_gives_alone() {
    decoders(|name, run, _| {
        let (short, long) = (&TOKENS[..4], &TOKENS[2..9]);
        let alone = &run(&[plain(&[short])])[0];
        let vocab = alone.shape[2];
        let alone: Vec<f64> = alone.iter::<f64>().collect();
        for left in [true, false] {
            let there = |i: usize| if left { i >= 3 } else { i < 4 };
            let mut padded = vec![0; 7];
            let at = if left { 3 } else { 0 };
            padded[at..at + 4].copy_from_slice(short);
            let positions = (0..7)
                .map(|i| if left { i.max(3) - 3 } else { i })
                .collect();
            let both = Steps {
                ids: vec![padded, long.to_vec()],
                mask: Some(vec![
                    (0..7).map(|i| usize::from(there(i))).collect(),
                    vec![1; 7],
                ]),
                positions: Some(vec![positions, (0..7).collect()]),
            };
            let found: Vec<f64> = run(&[both])[0].iter::<f64>().collect();
            let found = &found[at * vocab..(at + 4) * vocab];
            let largest = found
                .iter()
                .zip(&alone)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            assert!(largest < 1e-12, "{name} left {left}: {largest}");
        }
    });
}

#[test]
fn symptom_13_encoders_see_no_padding() {
    for name in [
        "bert/masked_lm",
        "bert/roberta_masked_lm",
        "bert/distilbert_masked_lm",
    ] {
        let fixture = fixture(name);
        let work = folder(&fixture, |key| key.into());
        let pretrained = Pretrained::open(work.path(), None).expect("a model");
        let pad = fixture.config["pad_token_id"].as_u64().expect("a token") as i64;
        let run = |ids: Vec<i64>, mask: Vec<i64>, shape: [usize; 2]| {
            let inputs = Tensors::from([
                ("input_ids".into(), TensorData::new(ids, shape)),
                ("attention_mask".into(), TensorData::new(mask, shape)),
            ]);
            let outputs = forward::<B>(
                &pretrained,
                &inputs,
                work.path(),
                DType::F64,
                &Default::default(),
            );
            outputs.expect("it runs")["logits"]
                .iter::<f64>()
                .collect::<Vec<f64>>()
        };
        let alone = run(vec![3, 7, 4, 9], vec![1; 4], [1, 4]);
        let ids = vec![3, 7, 4, 9, pad, pad, 5, 6, 8, 10, 11, 12];
        let mask = vec![1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1];
        let both = run(ids, mask, [2, 6]);
        let largest = alone
            .iter()
            .zip(&both)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        assert!(largest < 1e-12, "{name}: {largest}");
    }
}

fn golden(name: &str) -> PathBuf {
    burn_zoo_tests::golden::folder("tokenizers").join(name)
}

fn golden_json(name: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(golden(name)).expect("part of the repository");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn symptom_14_tokenizers_equal_upstreams() {
    for kind in ["gpt2", "roberta", "bert", "fast", "sentence_piece"] {
        let gguf = golden(kind).join("tokenizer.gguf");
        let tokenizer = match gguf.is_file() {
            true => Tokenizer::from_gguf(&LazyTensors::open(&gguf).expect("a fixture")),
            false => Tokenizer::from_folder(&golden(kind)),
        };
        let tokenizer = tokenizer.unwrap_or_else(|e| panic!("{kind}: {e}"));
        let expected = golden_json(&format!("{kind}/expected.json"));
        let ids = |value: &serde_json::Value| -> Vec<usize> {
            serde_json::from_value(value.clone()).expect("numbers")
        };
        for case in expected["texts"].as_array().expect("texts") {
            let text = case["text"].as_str().expect("a text");
            assert_eq!(
                tokenizer.encode(text, true).expect("it has"),
                ids(&case["ids"]),
                "{kind} {text:?}"
            );
            let plain = tokenizer.encode(text, false).expect("it has");
            assert_eq!(plain, ids(&case["plain"]), "{kind} {text:?}");
            let decoded = tokenizer.decode(&plain, false).expect("its own");
            if kind != "bert" {
                assert_eq!(decoded, case["decoded"].as_str().expect("a text"), "{kind}");
                let mut pieces = tokenizer.pieces(false);
                let streamed: String = plain
                    .iter()
                    .map(|id| pieces.next(*id).expect("its own"))
                    .collect();
                let rest = pieces.rest(&streamed).expect("its own");
                assert_eq!(streamed + &rest, decoded, "{kind}");
                // What is not a whole letter at the end comes when no token follows.
                for end in 0..plain.len().min(24) {
                    let mut pieces = tokenizer.pieces(false);
                    let part = &plain[..end];
                    let came: String = part
                        .iter()
                        .map(|id| pieces.next(*id).expect("its own"))
                        .collect();
                    let rest = pieces.rest(&came).expect("its own");
                    let whole = tokenizer.decode(part, false).expect("its own");
                    // SentencePiece's decoder spoils a whole run of bytes for one unfinished letter.
                    match whole.strip_prefix(&came) {
                        Some(left) => assert_eq!(rest, left, "{kind} {text:?} {end}"),
                        None => assert!(
                            kind == "sentence_piece" && rest.is_empty(),
                            "{kind} {text:?} {end}"
                        ),
                    }
                }
            }
        }
        let long = &expected["long"];
        let unit = long["text"].as_str().expect("a text");
        let whole = unit.repeat(100_000 / unit.len() + 1);
        let found = tokenizer.encode(&whole, false).expect("it has");
        assert_eq!(
            found.len() as u64,
            long["tokens"].as_u64().expect("a number"),
            "{kind}"
        );
        let mut crc = flate2::Crc::new();
        found
            .iter()
            .for_each(|id| crc.update(&(*id as u32).to_le_bytes()));
        assert_eq!(
            u64::from(crc.sum()),
            long["crc32"].as_u64().expect("a number"),
            "{kind}"
        );
    }
}

#[test]
fn symptom_14_chat_templates_equal_upstreams() {
    let cases = golden_json("chat.json");
    for case in cases.as_array().expect("cases") {
        let template = case["template"].as_str().expect("a template");
        let template = ChatTemplate::new(template, Path::new("chat.json"));
        let messages: Vec<Message> =
            serde_json::from_value(case["messages"].clone()).expect("a conversation");
        let prompt = case["prompt"].as_bool().expect("a truth value");
        let text = template
            .render(&messages, prompt, "<s>", "</s>")
            .expect("it renders");
        assert_eq!(text, case["text"].as_str().expect("a text"));
    }
}

#[test]
fn templates_can_do_nothing_but_write() {
    let render = |source: &str| {
        let template = ChatTemplate::new(source, Path::new("chat_template.jinja"));
        template.render(&[Message::new("user", "x")], true, "", "")
    };
    for (source, words) in [
        ("{% include 'secret' %}", "chat_template.jinja"),
        ("{{ open('secret').read() }}", "open"),
        ("{{ messages.__class__.__mro__ }}", ""),
        ("{{ raise_exception('only users') }}", "only users"),
        (
            "{% for i in range(100000) %}{% for j in range(100000) %}{{ i }}{% endfor %}{% endfor %}",
            "",
        ),
        ("{% for", "chat template"),
    ] {
        match render(source) {
            Err(error) => assert!(error.to_string().contains(words), "{source}: {error}"),
            Ok(text) => assert!(text.is_empty(), "{source}: {text}"),
        }
    }
}

fn tiny() -> Llama<Flex> {
    let config = LlamaConfig::preset("llama_mini").expect("listed").1;
    Llama::new(&config, 5, &Default::default()).expect("valid")
}

fn options(max_new_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        max_new_tokens,
        sampling: Sampling::default(),
        stop_tokens: Vec::new(),
        slide: false,
    }
}

fn go_on(
    prompts: &[Vec<usize>],
    options: &GenerateOptions,
) -> burn_zoo_core::Result<Vec<Vec<usize>>> {
    let each = |_, _| Ok(ControlFlow::Continue(()));
    let all = generate(&tiny(), prompts, options, &Default::default(), each)?;
    Ok(all.into_iter().map(|generated| generated.tokens).collect())
}

#[test]
fn prompts_of_different_lengths_go_on_together_as_alone() {
    let prompts = [vec![1, 2, 3], vec![40, 50, 60, 70, 80, 90], vec![200]];
    let together = go_on(&prompts, &options(12)).expect("they fit");
    for (prompt, tokens) in prompts.iter().zip(&together) {
        assert_eq!(
            go_on(std::slice::from_ref(prompt), &options(12)).expect("it fits")[0],
            *tokens
        );
        // And as without a cache.
        let mut text = prompt.clone();
        for token in tokens {
            let batch = TokenBatch::new(position_ids(&[text.clone()], &Default::default()));
            let logits = tiny().forward(&batch);
            let [_, sequence, vocab] = logits.dims();
            let last = logits.slice([0..1, sequence - 1..sequence, 0..vocab]);
            let best: Tensor<Flex, 3, Int> = last.argmax(2);
            assert_eq!(best.into_data().iter::<i64>().next(), Some(*token as i64));
            text.push(*token);
        }
    }
}

#[test]
fn a_stop_token_ends_a_text_and_is_not_part_of_it() {
    let free = go_on(&[vec![1, 2, 3], vec![9]], &options(8)).expect("they fit");
    let stop = free[0][3];
    let at = free[0]
        .iter()
        .position(|t| *t == stop)
        .expect("it is there");
    let ends = GenerateOptions {
        stop_tokens: vec![stop],
        ..options(8)
    };
    let device = Default::default();
    let mut seen = 0;
    let each = |row: usize, _| {
        seen += usize::from(row == 0);
        Ok(ControlFlow::Continue(()))
    };
    let all = generate(&tiny(), &[vec![1, 2, 3], vec![9]], &ends, &device, each).expect("they fit");
    assert_eq!(
        (all[0].tokens.as_slice(), all[0].reason),
        (&free[0][..at], StopReason::StopToken)
    );
    assert_eq!(seen, at);
    let cut = free[1].iter().position(|t| *t == stop).unwrap_or(8);
    assert_eq!(all[1].tokens, free[1][..cut]);
}

#[test]
fn a_full_context_is_an_error_or_slides() {
    let prompt = vec![3; 120];
    let error = go_on(std::slice::from_ref(&prompt), &options(20))
        .expect_err("128 is the most")
        .to_string();
    assert!(
        error.contains("120") && error.contains("128") && error.contains("--slide"),
        "{error}"
    );
    let slides = GenerateOptions {
        slide: true,
        ..options(150)
    };
    let tokens = go_on(&[prompt, vec![1]], &slides).expect("it slides");
    assert_eq!([tokens[0].len(), tokens[1].len()], [150, 150]);
    let error = go_on(&[vec![]], &options(1))
        .expect_err("empty")
        .to_string();
    assert!(error.contains("empty"), "{error}");
    let error = go_on(&[vec![256]], &options(1))
        .expect_err("unknown")
        .to_string();
    assert!(error.contains("256"), "{error}");
}

/// A folder of a small decoder with the vocabulary of `tokenizers/fast`.
pub fn small_decoder() -> tempfile::TempDir {
    let work = temp();
    let config = serde_json::json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 340,
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 64, "tie_word_embeddings": true,
        "eos_token_id": 1,
    });
    std::fs::write(work.path().join("config.json"), config.to_string()).expect("writable");
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(golden("fast").join(name), work.path().join(name)).expect("writable");
    }
    let config = LlamaConfig::from_transformers(&config).expect("valid");
    let model = Llama::<NdArray>::new(&config, 3, &Default::default()).expect("valid");
    let map = &config.key_maps()[0];
    burn_zoo_checkpoint::save(&model, &work.path().join("model.safetensors"), map)
        .expect("writable");
    work
}

#[test]
fn zoo_generate_goes_on_with_texts() {
    let work = small_decoder();
    let path = text(work.path());
    let args = [
        "generate",
        &path,
        "And God said",
        "light",
        "-n",
        "6",
        "--json",
    ];
    let ended = run(&args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let both = json(&ended.stdout);
    let tokens = |json: &serde_json::Value, i: usize| json["texts"][i]["tokens"].clone();
    assert!(tokens(&both, 0).as_array().is_some_and(|t| t.len() <= 6));
    let alone = json(&run(&["generate", &path, "light", "-n", "6", "--json"]).stdout);
    assert_eq!(tokens(&both, 1), tokens(&alone, 0));
    // Streamed, it is the same text; and a seed decides what is left to chance.
    let streamed = run(&["generate", &path, "light", "-n", "6"]);
    assert_eq!(
        streamed.stdout.trim_end_matches('\n'),
        alone["texts"][0]["text"].as_str().expect("a text")
    );
    assert!(streamed.stderr.contains("tokens/s"), "{}", streamed.stderr);
    let warm = |seed: &str| {
        let args = [
            "generate",
            &path,
            "light",
            "-n",
            "12",
            "--json",
            "--temperature",
            "5",
            "--seed",
            seed,
        ];
        tokens(&json(&run(&args).stdout), 0)
    };
    assert_eq!(warm("1"), warm("1"));
    assert_ne!(warm("1"), warm("2"));
}

#[test]
fn wrong_use_of_language_models_is_one_clear_line() {
    let work = small_decoder();
    let path = text(work.path());
    let photo = text(&work.path().join("x.png"));
    write_png(digits().test.as_ref(), 0, 1, Path::new(&photo));
    for (args, words) in [
        (vec!["generate", &path], "--chat"),
        (vec!["generate", &path, "x", "-n", "0"], "--max-new-tokens"),
        (vec!["generate", &path, "x", "-n", "100"], "64"),
        (vec!["generate", &path, "x", "--top-p", "2"], "--top-p"),
        (vec!["generate", &path, "x", "--chat"], "no chat template"),
        (vec!["generate", &path, "x", "--stop", ""], "--stop"),
        (vec!["embed", &path, "x"], "no encoder"),
        (vec!["predict", &path, &photo], "reads text"),
    ] {
        fails_with(&args, words);
    }
    let other = temp();
    std::fs::copy(
        golden("bert").join("vocab.txt"),
        other.path().join("vocab.txt"),
    )
    .expect("writable");
    let config = std::fs::read_to_string(work.path().join("config.json")).expect("it is there");
    let small = config.replace("340", "40");
    let unknown = config.replace("\"llama\"", "\"mamba\"");
    std::fs::write(work.path().join("config.json"), unknown).expect("writable");
    for known in [
        "bert", "gpt2", "llama", "mistral", "qwen2", "qwen3", "roberta",
    ] {
        fails_with(&["generate", &path, "x"], known);
    }
    std::fs::write(work.path().join("config.json"), small).expect("writable");
    fails_with(&["generate", &path, "x"], "model.embed_tokens.weight");
    std::fs::write(work.path().join("config.json"), config).expect("writable");
    std::fs::remove_file(work.path().join("tokenizer.json")).expect("it is there");
    fails_with(&["generate", &path, "x"], "tokenizer.json");
    let config = LlamaConfig::preset("llama_mini").expect("listed").1;
    let mut larger = config.clone();
    larger.vocab_size = 40;
    let model = Llama::<NdArray>::new(&larger, 3, &Default::default()).expect("valid");
    assert_eq!(model.vocab_size(), 40);
    let broken = work.path().join("tokenizer.json");
    std::fs::write(&broken, b"\xff\xfe{").expect("writable");
    fails_with(&["generate", &path, "x"], "tokenizer.json");
}

/// Fails, with 1 or 2, in one line with these words.
fn fails_with(args: &[&str], words: &str) {
    let ended = run(args);
    let code = ended.code;
    assert!(matches!(code, 1 | 2), "{args:?}: {code} {}", ended.stderr);
    fails_as(ended, args, code, &[words]);
}

/// A folder of a small encoder with the vocabulary of `tokenizers/bert`.
fn small_encoder(class: &str) -> tempfile::TempDir {
    let work = temp();
    let vocab = std::fs::read_to_string(golden("bert").join("vocab.txt")).expect("it is there");
    std::fs::write(work.path().join("vocab.txt"), &vocab).expect("writable");
    let config = serde_json::json!({
        "architectures": [class], "model_type": "bert", "vocab_size": vocab.lines().count(),
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 24, "id2label": {"0": "bad", "1": "good", "2": "so-so"},
    });
    std::fs::write(work.path().join("config.json"), config.to_string()).expect("writable");
    let config = burn_zoo_bert::BertConfig::from_transformers(&config).expect("valid");
    let model =
        burn_zoo_bert::Bert::<NdArray>::new(&config, 3, &Default::default()).expect("valid");
    let map = &config.key_maps()[0];
    burn_zoo_checkpoint::save(&model, &work.path().join("model.safetensors"), map)
        .expect("writable");
    work
}

#[test]
fn encoders_embed_classify_and_fill_masks() {
    let work = small_encoder("BertModel");
    let path = text(work.path());
    let vectors = |args: &[&str]| -> Vec<Vec<f64>> {
        let ended = run(&[&["embed", &path, "--json"], args].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let found = json(&ended.stdout);
        let texts = found["texts"].as_array().expect("texts").iter();
        texts
            .map(|t| serde_json::from_value(t["vector"].clone()).expect("numbers"))
            .collect()
    };
    let both = vectors(&["and god said", "hello world light light light"]);
    let alone = vectors(&["and god said"]);
    for (a, b) in both[0].iter().zip(&alone[0]) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    let length: f64 = alone[0].iter().map(|v| v * v).sum();
    assert!(
        (length - 1.0).abs() < 1e-6 && alone[0].len() == 32,
        "{length}"
    );
    let cls = vectors(&["and god said", "--pooling", "cls"]);
    let last = vectors(&["and god said", "--pooling", "last"]);
    assert!(cls != last && cls[0] != alone[0]);
    // Longer than the model takes: cut off, and said.
    let ended = run(&["embed", &path, &"light ".repeat(40)]);
    assert!(
        ended.code == 0 && ended.stderr.contains("cut off"),
        "{}",
        ended.stderr
    );
    fails_with(&["embed", &path, "x", "--pooling", "max"], "mean");
    fails_with(&["classify", &path, "x"], "no such head");

    let work = small_encoder("BertForSequenceClassification");
    let path = text(work.path());
    let ended = run(&["classify", &path, "god said", "light", "--json"]);
    let found = json(&ended.stdout);
    let top = found[1]["top"].as_array().expect("classes");
    let sum: f64 = top
        .iter()
        .map(|c| c["probability"].as_f64().expect("a number"))
        .sum();
    assert!((sum - 1.0).abs() < 1e-5 && top.len() == 3, "{found}");
    assert!(["bad", "good", "so-so"].contains(&top[0]["class"].as_str().expect("a name")));
    // Where several may be true of a text, each has a probability of its own: sigmoids of what softmax was of.
    let config = work.path().join("config.json");
    let mut upstream = json(&std::fs::read_to_string(&config).expect("there"));
    upstream["problem_type"] = "multi_label_classification".into();
    std::fs::write(&config, upstream.to_string()).expect("writable");
    let each = json(&run(&["classify", &path, "god said", "light", "--json"]).stdout);
    let probability = |found: &serde_json::Value, label: u64| {
        let top = found[1]["top"].as_array().expect("classes").iter();
        let class = top.into_iter().find(|c| c["label"] == label);
        class
            .and_then(|c| c["probability"].as_f64())
            .expect("a number")
    };
    let odds = |label| {
        let p = probability(&each, label);
        p / (1.0 - p)
    };
    for (a, b) in [(0, 1), (1, 2)] {
        let want = probability(&found, a) / probability(&found, b);
        assert!(
            (odds(a) / odds(b) / want - 1.0).abs() < 1e-4,
            "{each} {found}"
        );
    }

    let work = small_encoder("BertForMaskedLM");
    let path = text(work.path());
    let ended = run(&[
        "fill-mask",
        &path,
        "and [MASK] said",
        "--top",
        "4",
        "--json",
    ]);
    let found = json(&ended.stdout);
    assert!(
        found[0]["top"].as_array().is_some_and(|top| top.len() == 4),
        "{}",
        ended.stderr
    );
    fails_with(&["fill-mask", &path, "and god said"], "[MASK]");
}

/// L5: published weights, where `tools/fetch-assets.sh` brought them.
fn asset(name: &str) -> Option<String> {
    let path = cache_dir().join("weights").join(name);
    if path.exists() {
        return Some(text(&path));
    }
    let required = std::env::var("BURN_ZOO_REQUIRE").is_ok_and(|v| v == "assets");
    assert!(!required, "{name} is required and absent");
    println!("not run: {name} is absent; tools/fetch-assets.sh brings it");
    None
}

const SMOLLM2: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

#[test]
fn smollm2_gives_the_tokens_that_llama_cpp_gives() {
    let Some(model) = asset(SMOLLM2) else { return };
    for blocks in ["auto", "exact", "fast", "unpacked"] {
        let prompt = "The capital of France is";
        let args = [
            "generate", &model, prompt, "-n", "5", "--json", "--blocks", blocks,
        ];
        let ended = run(&args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let found = json(&ended.stdout);
        assert_eq!(
            found["texts"][0]["prompt_tokens"],
            serde_json::json!([504, 3575, 282, 4649, 314])
        );
        assert_eq!(
            found["texts"][0]["tokens"],
            serde_json::json!([7042, 30, 198, 198, 504]),
            "{blocks}"
        );
    }
}

/// Logits of the next token after each of some tokens, one after the other as in generation.
struct TokenByToken<'a>(&'a [usize]);

impl<B: burn::tensor::backend::Backend> burn_zoo::WithCausalLm<B> for TokenByToken<'_> {
    type Output = Vec<Vec<f32>>;

    fn run<M: burn_zoo_nn::CausalLm<B>>(self, model: M) -> Self::Output {
        let device = Default::default();
        let mut cache = model.cache(self.0.len());
        let each = self.0.iter().map(|id| {
            let batch = TokenBatch::new(Tensor::from_data([[*id as i64]], &device));
            let hidden = model.hidden_states(&batch, Some(&mut cache), Mode::Eval, &mut None);
            model.head(hidden).into_data().iter::<f32>().collect()
        });
        each.collect()
    }
}

/// How far the probabilities of the next token are from those with the same weights as f32 numbers: the figures
/// in docs/src/language.md, and that a mode does what it says.
#[test]
fn products_of_blocks_diverge_no_more_than_stated() {
    let Some(model) = asset(SMOLLM2) else { return };
    let pretrained = burn_zoo::Pretrained::open(Path::new(&model), None).expect("a model");
    let tokenizer = Tokenizer::from_gguf(&pretrained.weights).expect("it holds one");
    let text = "In the beginning God created the heaven and the earth. Photosynthesis turns light into \
        sugar; a compiler turns text into instructions. The train to Lisbon leaves at a quarter past nine, \
        and nobody on the platform has slept. What is 17 times 23? It is 391.";
    let tokens = tokenizer.encode(text, true).expect("tokens");
    let logits = |products| {
        let device = Default::default();
        let run = TokenByToken(&tokens);
        let found = pretrained.with_causal_lm::<Flex, _>(DType::F32, products, &device, run);
        found.expect("it runs")
    };
    let probabilities = |logits: &[f32]| {
        let most = logits.iter().fold(f32::MIN, |most, x| most.max(*x));
        let all: Vec<f64> = logits.iter().map(|x| f64::from(x - most).exp()).collect();
        let sum: f64 = all.iter().sum();
        all.into_iter().map(|x| x / sum).collect::<Vec<f64>>()
    };
    let best = |p: &[f64]| (0..p.len()).max_by(|a, b| p[*a].total_cmp(&p[*b]));
    let unpacked = logits(None);
    for (products, most, same) in [
        (BlockProducts::Exact, 1e-8, 1.0),
        (BlockProducts::Fast, 0.02, 0.9),
    ] {
        let (mut sum, mut largest, mut agree) = (0.0, 0.0_f64, 0);
        for (want, got) in unpacked.iter().zip(logits(Some(products))) {
            let (p, q) = (probabilities(want), probabilities(&got));
            let terms = p.iter().zip(&q).filter(|(p, _)| **p > 0.0);
            let divergence: f64 = terms.map(|(p, q)| p * (p / q.max(1e-300)).ln()).sum();
            sum += divergence;
            largest = largest.max(divergence);
            agree += usize::from(best(&p) == best(&q));
        }
        let (mean, share) = (
            sum / tokens.len() as f64,
            agree as f64 / tokens.len() as f64,
        );
        println!(
            "{products:?}: {} tokens, mean divergence {mean:.2e}, largest {largest:.2e}, the same likeliest token {:.1} %",
            tokens.len(),
            100.0 * share
        );
        assert!(
            mean <= most && share >= same,
            "{products:?}: {mean} {share}"
        );
    }
}

#[test]
fn smollm2_knows_the_capital_of_france_in_chat() {
    let Some(model) = asset(SMOLLM2) else { return };
    let args = [
        "generate",
        &model,
        "--chat",
        "What is the capital of France?",
        "-n",
        "24",
    ];
    let ended = run(&args);
    assert!(
        ended.code == 0 && ended.stdout.contains("Paris"),
        "{} {}",
        ended.stdout,
        ended.stderr
    );
    let tokenizer = Tokenizer::from_gguf(&LazyTensors::open(Path::new(&model)).expect("a file"));
    let said = [Message::new("user", "What is the capital of France?")];
    let text = tokenizer
        .expect("it holds one")
        .chat(&said, true)
        .expect("it has a template");
    let upstream = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(text, upstream);
}

#[test]
fn minilm_gives_the_cosines_of_sentence_transformers() {
    let Some(model) = asset("all-MiniLM-L6-v2") else {
        return;
    };
    let args = [
        "embed",
        &model,
        "The weather is lovely today.",
        "It's so sunny outside!",
        "He drove to the stadium.",
        "--json",
    ];
    let ended = run(&args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let found = json(&ended.stdout);
    let vector = |i: usize| -> Vec<f64> {
        serde_json::from_value(found["texts"][i]["vector"].clone()).expect("numbers")
    };
    for (i, j, want) in [(0, 1, 0.6660), (0, 2, 0.1046), (1, 2, 0.1411)] {
        let cosine: f64 = vector(i).iter().zip(vector(j)).map(|(a, b)| a * b).sum();
        assert!((cosine - want).abs() < 5e-5, "{i} {j}: {cosine}");
    }
}

/// The file's own tokenizer, on difficult texts: the numbers are transformers' for the same vocabulary.
#[test]
fn smollm2s_tokenizer_equals_upstreams() {
    let Some(model) = asset(SMOLLM2) else { return };
    let tokenizer = Tokenizer::from_gguf(&LazyTensors::open(Path::new(&model)).expect("a file"));
    let tokenizer = tokenizer.expect("it holds one");
    for (text, want) in SMOLLM2_TOKENS {
        assert_eq!(
            tokenizer.encode(text, true).expect("it has"),
            want,
            "{text:?}"
        );
    }
}

#[rustfmt::skip]
const SMOLLM2_TOKENS: [(&str, &[usize]); 9] = [
    ("", &[]),
    ("Hello, world!", &[19556, 28, 905, 17]),
    ("  two  spaces  and a tab\t.", &[216, 827, 216, 5600, 216, 284, 253, 10147, 197, 30]),
    ("line\nbreak\r\n\r\nagain\n", &[1311, 198, 17653, 7209, 198, 24775, 198]),
    ("12345 and 67, 3.14159", &[33, 34, 35, 36, 37, 284, 216, 38, 39, 28, 216, 35, 30, 33, 36, 33, 37, 41]),
    ("emoji 😀👩\u{200d}👩\u{200d}👧 and 🇫🇷 flags", &[391, 33777, 40303, 218, 10813, 235, 119, 321, 231, 10813, 235, 119, 321, 231, 10813, 235, 117, 284, 15107, 225, 121, 10813, 225, 132, 13198]),
    ("日本語の文章です。中文也有。", &[23274, 115, 40993, 179, 120, 248, 26453, 29184, 47287, 250, 7365, 117, 39958, 19076, 28589, 29184, 27948, 249, 30746, 19076]),
    ("العربية لغة جميلة", &[22208, 34966, 20602, 31462, 23339, 43463, 216, 12667, 163, 135, 43463, 14787, 122, 21706, 23339, 12667, 43463]),
    ("<|endoftext|> in the text", &[0, 281, 260, 1694]),
];

/// An untied head that a file lacks is an error, and a tied one is one matrix with one gradient.
#[test]
fn symptom_2_an_untied_head_must_be_there_and_a_tied_one_is_one_matrix() {
    let (mut tied, mut untied) = (0, 0);
    for fixture in fixtures(&["llama".into()]).expect("embedded") {
        let config = LlamaConfig::from_transformers(&fixture.config).expect("valid");
        let device = Default::default();
        let load = |tensors: &Tensors| {
            let model = Llama::<Flex>::new(&config, 0, &device).expect("valid");
            let from = Path::new("model.safetensors");
            load_tensors(model, tensors, from, &config.key_maps(), DType::F32)
        };
        let mut tensors = fixture.group("model.");
        load(&tensors).unwrap_or_else(|e| panic!("{}: {e}", fixture.name));
        let gradient = |key: &str| fixture.get(&format!("eval.grad.{key}")).is_ok();
        if tensors.remove("lm_head.weight").is_some() {
            let error = load(&tensors).map(drop).expect_err("no head").to_string();
            assert!(error.contains("lm_head.weight"), "{error}");
            assert!(gradient("lm_head.weight") && gradient("model.embed_tokens.weight"));
            untied += 1;
        } else if config.tie_word_embeddings && tensors.contains_key("model.embed_tokens.weight") {
            assert!(!gradient("lm_head.weight") && gradient("model.embed_tokens.weight"));
            tied += 1;
        }
    }
    assert!(tied > 0 && untied > 0, "{tied} {untied}");
}

#[test]
fn a_letter_that_a_vocabulary_of_characters_lacks_is_named() {
    let vocabulary: burn_zoo_texts::Vocabulary = "chars".parse().expect("known");
    let json = vocabulary.tokenizer_json("abc \n").expect("made");
    let tokenizer = Tokenizer::parse(&json, Path::new("tokenizer.json")).expect("valid");
    for (text, letter) in [("abéc", "'é'"), ("ab c?", "'?'"), ("\tabc", "'\\t'")] {
        let error = tokenizer
            .encode(text, false)
            .expect_err("no token")
            .to_string();
        assert!(error.contains(letter), "{error}");
    }
    assert_eq!(tokenizer.encode("cab\n", true).expect("all known").len(), 4);
    assert!(tokenizer.encode("", true).expect("none").is_empty());
}
