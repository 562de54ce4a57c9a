//! Decoding takes no memory that grows with what was decoded.

use burn::tensor::Tensor;
use burn_flex::Flex;
use burn_zoo_core::Mode;
use burn_zoo_llama::{CausalLm, Llama, LlamaConfig, TokenBatch};
use burn_zoo_nn::{KeyValueCache, position_ids};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CAPACITY: usize = 2048;

fn model(window: Option<usize>) -> Llama<Flex> {
    let config = json!({
        "model_type": "mistral", "architectures": ["MistralForCausalLM"], "vocab_size": 64, "hidden_size": 128,
        "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "hidden_act": "silu", "max_position_embeddings": CAPACITY, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": false, "sliding_window": window,
    });
    let config = LlamaConfig::from_transformers(&config).expect("valid");
    Llama::new(&config, 0, &Default::default()).expect("valid")
}

/// The model sees some more tokens, and says what comes after the last.
fn decode(model: &Llama<Flex>, cache: &mut KeyValueCache<Flex>, tokens: usize) -> Vec<f32> {
    let device = Default::default();
    let ids: Vec<usize> = (0..tokens).map(|i| (cache.seen + 7 * i) % 64).collect();
    let batch = TokenBatch::new(position_ids(&[ids], &device));
    let hidden = model.hidden_states(&batch, Some(cache), Mode::Eval, &mut None);
    let logits: Tensor<Flex, 3> = model.head(hidden.narrow(1, tokens - 1, 1));
    logits.into_data().to_vec().expect("f32")
}

/// Bytes that are held after some tokens, and all that one more token allocates, however soon it is free again.
fn memory(model: &Llama<Flex>, cache: &mut KeyValueCache<Flex>) -> [usize; 2] {
    for _ in 0..4 {
        decode(model, cache, 1);
    }
    let step = Region::new(MEMORY);
    assert!(decode(model, cache, 1).iter().all(|v| v.is_finite()));
    let (step, all) = (step.change(), MEMORY.stats());
    [
        all.bytes_allocated - all.bytes_deallocated,
        step.bytes_allocated,
    ]
}

#[test]
fn a_token_takes_no_more_memory_after_many_than_after_few() {
    for window in [None, Some(64)] {
        let model = model(window);
        let mut cache = model.cache(CAPACITY);
        decode(&model, &mut cache, 100);
        let few = memory(&model, &mut cache);
        // One by one, as a long text is.
        for _ in 0..1500 {
            decode(&model, &mut cache, 1);
        }
        let many = memory(&model, &mut cache);
        println!("window {window:?}: {few:?} bytes after 105 tokens, {many:?} after 1610");
        // A copy of what one layer has seen of the keys would be 256 bytes a token, 385,000 in all.
        for (few, many) in few.into_iter().zip(many) {
            assert!(many <= few + 4096, "window {window:?}: {few} then {many}");
        }
    }
}
