use crate::config::{LayerType, LlamaConfig, Variant};
use burn_zoo_checkpoint::{LazyTensors, MetadataValue};
use burn_zoo_core::{Error, Result};
use burn_zoo_nn::{Rope, RopeScaling, TextHead};
use burn_zoo_ops::Activation;

/// llama.cpp's names of the decoders.
const ARCHITECTURES: [(&str, Variant); 3] = [
    ("llama", Variant::Llama),
    ("qwen2", Variant::Qwen2),
    ("qwen3", Variant::Qwen3),
];

impl LlamaConfig {
    /// From what a GGUF file says of itself.
    ///
    /// # Errors
    /// Names what is missing, or cannot be followed here.
    pub fn from_gguf(file: &LazyTensors) -> Result<Self> {
        let bad = |message: String| Error::malformed(&file.path, message);
        let get = |key: &str| file.metadata.get(key);
        let architecture = get("general.architecture").and_then(MetadataValue::as_str);
        let architecture = architecture.unwrap_or_default();
        let found = ARCHITECTURES.iter().find(|(name, _)| *name == architecture);
        let Some((_, variant)) = found else {
            let known = ARCHITECTURES.map(|(name, _)| name);
            let error = Error::unknown("general.architecture", architecture, known);
            return Err(bad(error.to_string()));
        };
        let of = |name: &str| get(&format!("{architecture}.{name}"));
        let size = |name: &str| -> Result<Option<usize>> {
            let Some(value) = of(name) else {
                return Ok(None);
            };
            let size = value.as_u64().and_then(|n| usize::try_from(n).ok());
            let message = || bad(format!("metadata `{architecture}.{name}` is no size"));
            size.map(Some).ok_or_else(message)
        };
        let needed = |name: &str| -> Result<usize> {
            let message = || bad(format!("metadata `{architecture}.{name}` is missing"));
            size(name)?.ok_or_else(message)
        };
        let number = |name: &str| of(name).and_then(MetadataValue::as_f64);
        let hidden_size = needed("embedding_length")?;
        let heads = needed("attention.head_count")?;
        let layers = needed("block_count")?;
        let head_dim = match size("attention.key_length")? {
            Some(size) => size,
            None => hidden_size.checked_div(heads).unwrap_or_default(),
        };
        if size("rope.dimension_count")?.is_some_and(|size| size != head_dim) {
            return Err(bad(
                "rotates a part of each head, which is not supported".into()
            ));
        }
        if file.tensors.contains_key("rope_freqs.weight") {
            let message = "scales rotary positions by factors it holds: name the model with --arch";
            return Err(bad(message.into()));
        }
        let scaling = match of("rope.scaling.type").and_then(MetadataValue::as_str) {
            None | Some("none") => RopeScaling::Default,
            Some("linear") => RopeScaling::Linear {
                factor: number("rope.scaling.factor").unwrap_or(1.0),
            },
            Some(other) => {
                let message =
                    format!("scales rotary positions by `{other}`: name the model with --arch");
                return Err(bad(message));
            }
        };
        let Some(embedding) = file.tensors.get("token_embd.weight") else {
            return Err(bad("holds no `token_embd.weight`".into()));
        };
        let eps = number("attention.layer_norm_rms_epsilon");
        let sliding_window = size("attention.sliding_window")?;
        let layer_type = match sliding_window {
            Some(_) => LayerType::SlidingAttention,
            None => LayerType::FullAttention,
        };
        if layers > 1000 {
            return Err(bad(format!(
                "metadata `{architecture}.block_count` is {layers}"
            )));
        }
        let config = Self {
            variant: *variant,
            head: TextHead::CausalLm,
            vocab_size: embedding.shape.first().copied().unwrap_or_default(),
            hidden_size,
            intermediate_size: needed("feed_forward_length")?,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            num_key_value_heads: size("attention.head_count_kv")?.unwrap_or(heads),
            head_dim,
            hidden_act: Activation::Silu,
            max_position_embeddings: needed("context_length")?,
            rms_norm_eps: eps.ok_or_else(|| {
                let name = "attention.layer_norm_rms_epsilon";
                bad(format!("metadata `{architecture}.{name}` is missing"))
            })?,
            rope: Rope {
                rope_theta: number("rope.freq_base").unwrap_or(10_000.0),
                scaling,
            },
            tie_word_embeddings: !file.tensors.contains_key("output.weight"),
            attention_bias: file.tensors.contains_key("blk.0.attn_q.bias"),
            mlp_bias: false,
            attention_dropout: 0.0,
            sliding_window,
            layer_types: vec![layer_type; layers],
            pad_token_id: None,
            initializer_range: 0.02,
            classifier_dropout: 0.1,
            num_labels: 2,
        };
        config.validate().map_err(|e| bad(e.to_string()))?;
        Ok(config)
    }
}
