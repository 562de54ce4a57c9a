//! Decoders of the Llama class for Burn, equal to transformers': Llama 2 and 3, TinyLlama, SmolLM2, Mistral,
//! Qwen2 and Qwen3.
//!
//! - Touvron et al. 2023, *Llama 2*, arXiv:2307.09288; Grattafiori et al. 2024, *The Llama 3 Herd of Models*,
//!   arXiv:2407.21783.
//! - Jiang et al. 2023, *Mistral 7B*, arXiv:2310.06825: a sliding window.
//! - Yang et al. 2024, *Qwen2.5*, arXiv:2412.15115: biases; 2025, *Qwen3*, arXiv:2505.09388: norms over heads.
//!
//! ```
//! use burn_zoo_llama::{Llama, PretrainedModel, TokenBatch, burn::backend::Flex, burn::tensor::Tensor};
//!
//! let device = Default::default();
//! let model = Llama::<Flex>::from_preset("llama_mini", &device)?;
//! let input_ids = Tensor::from_data([[72, 101, 108, 108, 111]], &device);
//! assert_eq!(model.forward(&TokenBatch::new(input_ids)).dims(), [1, 5, 256]);
//! # Ok::<(), burn_zoo_llama::Error>(())
//! ```

mod checkpoint;
mod config;
mod gguf;
mod model;
mod presets;

pub use burn;
pub use burn_zoo_checkpoint::{LoadReport, ModelConfig, PretrainedModel};
pub use burn_zoo_core::{Error, Mode, Preset};
pub use burn_zoo_nn::{CausalLm, KeyValueCache, Rope, RopeScaling, TextHead, TokenBatch};
pub use burn_zoo_ops::{Counts, count};
pub use config::{LayerType, LlamaConfig, Variant};
pub use model::{Layer, Llama, Mlp};
