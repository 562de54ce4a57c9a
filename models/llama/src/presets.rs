use crate::config::{LayerType, LlamaConfig, Variant};
use burn_zoo_core::{Preset, Task, Weights};
use burn_zoo_nn::{Rope, RopeScaling, TextHead};
use burn_zoo_ops::Activation;
use std::sync::LazyLock;

const LLAMA2: &str =
    "Llama 2: Open Foundation and Fine-Tuned Chat Models, Touvron et al. 2023, arXiv:2307.09288";
const LLAMA3: &str = "The Llama 3 Herd of Models, Grattafiori et al. 2024, arXiv:2407.21783";
const TINY: &str =
    "TinyLlama: An Open-Source Small Language Model, Zhang et al. 2024, arXiv:2401.02385";
const SMOL: &str = "SmolLM2: When Smol Goes Big, Ben Allal et al. 2025, arXiv:2502.02737";
const MISTRAL: &str = "Mistral 7B, Jiang et al. 2023, arXiv:2310.06825";
const QWEN2: &str = "Qwen2.5 Technical Report, Yang et al. 2024, arXiv:2412.15115";
const QWEN3: &str = "Qwen3 Technical Report, Yang et al. 2025, arXiv:2505.09388";

/// A row of the published configurations.
struct Row {
    name: &'static str,
    paper: &'static str,
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    layers: usize,
    /// Of the queries, and of keys and values.
    heads: [usize; 2],
    head_dim: usize,
    context: usize,
    eps: f64,
    theta: f64,
    tied: bool,
    num_parameters: usize,
    /// The hub's address begins with `https://huggingface.co/`.
    url: &'static str,
    license: &'static str,
}

#[rustfmt::skip]
const PUBLISHED: [Row; 14] = [
    Row { name: "SmolLM2-135M", paper: SMOL, vocab_size: 49_152, hidden_size: 576, intermediate_size: 1536, layers: 30, heads: [9, 3], head_dim: 64, context: 8192, eps: 1e-5, theta: 1e5, tied: true, num_parameters: 134_515_008, url: "https://huggingface.co/HuggingFaceTB/SmolLM2-135M", license: "Apache-2.0" },
    Row { name: "SmolLM2-360M", paper: SMOL, vocab_size: 49_152, hidden_size: 960, intermediate_size: 2560, layers: 32, heads: [15, 5], head_dim: 64, context: 8192, eps: 1e-5, theta: 1e5, tied: true, num_parameters: 361_821_120, url: "https://huggingface.co/HuggingFaceTB/SmolLM2-360M", license: "Apache-2.0" },
    Row { name: "SmolLM2-1.7B", paper: SMOL, vocab_size: 49_152, hidden_size: 2048, intermediate_size: 8192, layers: 24, heads: [32, 32], head_dim: 64, context: 8192, eps: 1e-5, theta: 130_000.0, tied: true, num_parameters: 1_711_376_384, url: "https://huggingface.co/HuggingFaceTB/SmolLM2-1.7B", license: "Apache-2.0" },
    Row { name: "TinyLlama-1.1B", paper: TINY, vocab_size: 32_000, hidden_size: 2048, intermediate_size: 5632, layers: 22, heads: [32, 4], head_dim: 64, context: 2048, eps: 1e-5, theta: 1e4, tied: false, num_parameters: 1_100_048_384, url: "https://huggingface.co/TinyLlama/TinyLlama-1.1B-Chat-v1.0", license: "Apache-2.0" },
    Row { name: "Llama-2-7b", paper: LLAMA2, vocab_size: 32_000, hidden_size: 4096, intermediate_size: 11_008, layers: 32, heads: [32, 32], head_dim: 128, context: 4096, eps: 1e-5, theta: 1e4, tied: false, num_parameters: 6_738_415_616, url: "https://huggingface.co/meta-llama/Llama-2-7b-hf", license: "Llama 2 Community License" },
    Row { name: "Llama-3.1-8B", paper: LLAMA3, vocab_size: 128_256, hidden_size: 4096, intermediate_size: 14_336, layers: 32, heads: [32, 8], head_dim: 128, context: 131_072, eps: 1e-5, theta: 5e5, tied: false, num_parameters: 8_030_261_248, url: "https://huggingface.co/meta-llama/Llama-3.1-8B", license: "Llama 3.1 Community License" },
    Row { name: "Llama-3.2-1B", paper: LLAMA3, vocab_size: 128_256, hidden_size: 2048, intermediate_size: 8192, layers: 16, heads: [32, 8], head_dim: 64, context: 131_072, eps: 1e-5, theta: 5e5, tied: true, num_parameters: 1_235_814_400, url: "https://huggingface.co/meta-llama/Llama-3.2-1B", license: "Llama 3.2 Community License" },
    Row { name: "Llama-3.2-3B", paper: LLAMA3, vocab_size: 128_256, hidden_size: 3072, intermediate_size: 8192, layers: 28, heads: [24, 8], head_dim: 128, context: 131_072, eps: 1e-5, theta: 5e5, tied: true, num_parameters: 3_212_749_824, url: "https://huggingface.co/meta-llama/Llama-3.2-3B", license: "Llama 3.2 Community License" },
    Row { name: "Mistral-7B-v0.1", paper: MISTRAL, vocab_size: 32_000, hidden_size: 4096, intermediate_size: 14_336, layers: 32, heads: [32, 8], head_dim: 128, context: 32_768, eps: 1e-5, theta: 1e4, tied: false, num_parameters: 7_241_732_096, url: "https://huggingface.co/mistralai/Mistral-7B-v0.1", license: "Apache-2.0" },
    Row { name: "Qwen2.5-0.5B", paper: QWEN2, vocab_size: 151_936, hidden_size: 896, intermediate_size: 4864, layers: 24, heads: [14, 2], head_dim: 64, context: 32_768, eps: 1e-6, theta: 1e6, tied: true, num_parameters: 494_032_768, url: "https://huggingface.co/Qwen/Qwen2.5-0.5B", license: "Apache-2.0" },
    Row { name: "Qwen2.5-1.5B", paper: QWEN2, vocab_size: 151_936, hidden_size: 1536, intermediate_size: 8960, layers: 28, heads: [12, 2], head_dim: 128, context: 131_072, eps: 1e-6, theta: 1e6, tied: true, num_parameters: 1_543_714_304, url: "https://huggingface.co/Qwen/Qwen2.5-1.5B", license: "Apache-2.0" },
    Row { name: "Qwen3-0.6B", paper: QWEN3, vocab_size: 151_936, hidden_size: 1024, intermediate_size: 3072, layers: 28, heads: [16, 8], head_dim: 128, context: 40_960, eps: 1e-6, theta: 1e6, tied: true, num_parameters: 596_049_920, url: "https://huggingface.co/Qwen/Qwen3-0.6B", license: "Apache-2.0" },
    Row { name: "Qwen3-1.7B", paper: QWEN3, vocab_size: 151_936, hidden_size: 2048, intermediate_size: 6144, layers: 28, heads: [16, 8], head_dim: 128, context: 40_960, eps: 1e-6, theta: 1e6, tied: true, num_parameters: 1_720_574_976, url: "https://huggingface.co/Qwen/Qwen3-1.7B", license: "Apache-2.0" },
    Row { name: "Qwen3-8B", paper: QWEN3, vocab_size: 151_936, hidden_size: 4096, intermediate_size: 12_288, layers: 36, heads: [32, 8], head_dim: 128, context: 40_960, eps: 1e-6, theta: 1e6, tied: false, num_parameters: 8_190_735_360, url: "https://huggingface.co/Qwen/Qwen3-8B", license: "Apache-2.0" },
];

/// Every preset of the family with its configuration.
pub(crate) static PRESETS: LazyLock<Vec<(Preset, LlamaConfig)>> = LazyLock::new(|| {
    let mut presets: Vec<_> = PUBLISHED.iter().map(published).collect();
    let (preset, config) = published(&PUBLISHED[0]);
    let small = LlamaConfig {
        vocab_size: 256,
        hidden_size: 128,
        intermediate_size: 344,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 32,
        max_position_embeddings: 128,
        layer_types: vec![LayerType::FullAttention; 4],
        ..config
    };
    let preset = Preset {
        name: "llama_mini",
        num_parameters: 758_912,
        weights: None,
        ..preset
    };
    presets.push((preset, small));
    presets
});

fn published(row: &Row) -> (Preset, LlamaConfig) {
    let (variant, sliding_window) = match row.paper {
        MISTRAL => (Variant::Mistral, Some(4096)),
        QWEN2 => (Variant::Qwen2, None),
        QWEN3 => (Variant::Qwen3, None),
        _ => (Variant::Llama, None),
    };
    let scaling = match row.paper {
        LLAMA3 => RopeScaling::Llama3 {
            factor: if row.tied { 32.0 } else { 8.0 },
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 8192,
        },
        _ => RopeScaling::Default,
    };
    let layer_type = match sliding_window {
        Some(_) => LayerType::SlidingAttention,
        None => LayerType::FullAttention,
    };
    let config = LlamaConfig {
        variant,
        head: TextHead::CausalLm,
        vocab_size: row.vocab_size,
        hidden_size: row.hidden_size,
        intermediate_size: row.intermediate_size,
        num_hidden_layers: row.layers,
        num_attention_heads: row.heads[0],
        num_key_value_heads: row.heads[1],
        head_dim: row.head_dim,
        hidden_act: Activation::Silu,
        max_position_embeddings: row.context,
        rms_norm_eps: row.eps,
        rope: Rope {
            rope_theta: row.theta,
            scaling,
        },
        tie_word_embeddings: row.tied,
        attention_bias: variant == Variant::Qwen2,
        mlp_bias: false,
        attention_dropout: 0.0,
        sliding_window,
        layer_types: vec![layer_type; row.layers],
        pad_token_id: None,
        initializer_range: 0.02,
        classifier_dropout: 0.1,
        num_labels: 2,
    };
    let preset = Preset {
        name: row.name,
        family: "llama",
        task: Task::TextGeneration,
        paper: row.paper,
        upstream: "transformers",
        license: "Apache-2.0",
        num_parameters: row.num_parameters,
        preprocessing: None,
        weights: Some(Weights::hub(row.url, row.license, "text of the web")),
    };
    (preset, config)
}
