use crate::config::{LlamaConfig, Variant};
use crate::model::Llama;
use crate::presets::PRESETS;
use burn::tensor::backend::Backend;
use burn_zoo_checkpoint::{KeyMap, Layout, ModelConfig, PretrainedModel};
use burn_zoo_core::{Preset, Result};
use burn_zoo_nn::{Init, TextHead};

const DROPPED: &[(&str, &str)] = &[(
    "inv_freq",
    "angles of rotary positions, which the configuration gives",
)];

const DROPPED_BY_LLAMA_CPP: &[(&str, &str)] = &[(
    "rope_freqs.weight",
    "factors of rotary positions, which the configuration gives",
)];

/// transformers' `…ForCausalLM` and classifiers; its `…ForQuestionAnswering`; its `…Model`, which is also
/// what older checkpoints have.
fn transformers(config: &LlamaConfig) -> Vec<KeyMap> {
    let mut bare = KeyMap::new("transformers, the bare model", &[], DROPPED);
    let prefix = match config.head {
        TextHead::QuestionAnswering => "transformer",
        _ => "model",
    };
    let mut whole = KeyMap::new("transformers", &[], DROPPED);
    for part in ["embed_tokens", "layers", "norm"] {
        whole.rename(format!("^{part}"), format!("{prefix}.{part}"));
    }
    if config.head == TextHead::QuestionAnswering {
        whole.rename("^score", "qa_outputs");
        bare.rename("^score", "qa_outputs");
    }
    if config.tie_word_embeddings {
        whole.tied = vec![("lm_head.weight", "model.embed_tokens.weight")];
        bare.tied = vec![("lm_head.weight", "embed_tokens.weight")];
    }
    match config.head {
        TextHead::None => vec![bare, whole],
        _ => vec![whole, bare],
    }
}

/// llama.cpp's, in GGUF files. It keeps the rows of a Llama's queries and keys as pairs of neighbours.
fn llama_cpp(config: &LlamaConfig) -> KeyMap {
    let renamed = [
        ("^embed_tokens", "token_embd"),
        ("^layers.*", "blk.*"),
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("^norm", "output_norm"),
        ("^lm_head", "output"),
    ];
    let mut map = KeyMap::new("llama.cpp", &renamed, DROPPED_BY_LLAMA_CPP);
    if matches!(config.variant, Variant::Llama | Variant::Mistral) {
        let heads = [
            ("q_proj", config.num_attention_heads),
            ("k_proj", config.num_key_value_heads),
        ];
        for (projection, heads) in heads {
            let pattern = format!("layers.*.self_attn.{projection}.*");
            map.lay(pattern, &[Layout::RotaryPairs { heads }]);
        }
    }
    map
}

impl ModelConfig for LlamaConfig {
    fn presets() -> &'static [(Preset, Self)] {
        &PRESETS
    }

    fn key_maps(&self) -> Vec<KeyMap> {
        let mut maps = transformers(self);
        if self.head == TextHead::CausalLm {
            maps.push(llama_cpp(self));
        }
        maps
    }
}

impl<B: Backend> PretrainedModel<B> for Llama<B> {
    type Config = LlamaConfig;

    fn build(config: &LlamaConfig, seed: Option<u64>, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    fn config(&self) -> &LlamaConfig {
        &self.config
    }
}
