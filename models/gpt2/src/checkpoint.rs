use crate::config::Gpt2Config;
use crate::model::Gpt2;
use crate::presets::PRESETS;
use burn::tensor::backend::Backend;
use burn_zoo_checkpoint::{KeyMap, Layout, ModelConfig, PretrainedModel};
use burn_zoo_core::{Preset, Result};
use burn_zoo_nn::{Init, TextHead};

const DROPPED: &[(&str, &str)] = &[
    ("masked_bias", "a constant of the mask"),
    ("h.*.attn.bias", "the causal mask"),
    ("transformer.h.*.attn.bias", "the causal mask"),
];

/// transformers' names; its `Conv1D` keeps matrices the other way round, and queries, keys and values in one.
fn transformers(config: &Gpt2Config, name: &'static str, prefix: &str) -> KeyMap {
    let renamed = [
        ("attn.q_proj", "attn.c_attn"),
        ("attn.k_proj", "attn.c_attn"),
        ("attn.v_proj", "attn.c_attn"),
        ("attn.o_proj", "attn.c_proj"),
    ];
    let mut map = KeyMap::new(name, &renamed, DROPPED);
    for part in ["wte", "wpe", "h", "ln_f"] {
        map.rename(format!("^{part}"), format!("{prefix}{part}"));
    }
    match config.head {
        TextHead::TokenClassification => map.rename("^score", "classifier"),
        TextHead::QuestionAnswering => map.rename("^score", "qa_outputs"),
        _ => {}
    }
    let hidden = config.n_embd;
    for (i, part) in ["q_proj", "k_proj", "v_proj"].into_iter().enumerate() {
        let rows = Layout::Rows {
            at: i * hidden,
            of: 3 * hidden,
        };
        map.lay(
            format!("h.*.attn.{part}.weight"),
            &[Layout::Transposed, rows],
        );
        map.lay(format!("h.*.attn.{part}.bias"), &[rows]);
    }
    for part in ["attn.o_proj", "mlp.c_fc", "mlp.c_proj"] {
        map.lay(format!("h.*.{part}.weight"), &[Layout::Transposed]);
    }
    map
}

impl ModelConfig for Gpt2Config {
    fn presets() -> &'static [(Preset, Self)] {
        &PRESETS
    }

    /// transformers' `GPT2LMHeadModel`; its `GPT2Model`, as OpenAI's checkpoints are published.
    fn key_maps(&self) -> Vec<KeyMap> {
        let mut whole = transformers(self, "transformers", "transformer.");
        let mut bare = transformers(self, "transformers, GPT2Model", "");
        if self.tie_word_embeddings {
            whole.tied = vec![("lm_head.weight", "transformer.wte.weight")];
            bare.tied = vec![("lm_head.weight", "wte.weight")];
        }
        match self.head {
            TextHead::None => vec![bare, whole],
            _ => vec![whole, bare],
        }
    }
}

impl<B: Backend> PretrainedModel<B> for Gpt2<B> {
    type Config = Gpt2Config;

    fn build(config: &Gpt2Config, seed: Option<u64>, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    fn config(&self) -> &Gpt2Config {
        &self.config
    }
}
