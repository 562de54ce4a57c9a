//! GPT-2 for Burn, equal to transformers'.
//!
//! Radford et al. 2019, *Language Models are Unsupervised Multitask Learners*.
//!
//! ```
//! use burn_zoo_gpt2::{Gpt2, PretrainedModel, TokenBatch, burn::backend::Flex, burn::tensor::Tensor};
//!
//! let device = Default::default();
//! let model = Gpt2::<Flex>::from_preset("gpt2_mini", &device)?;
//! let input_ids = Tensor::from_data([[20, 43, 50, 50, 53]], &device);
//! assert_eq!(model.forward(&TokenBatch::new(input_ids)).dims(), [1, 5, 65]);
//! # Ok::<(), burn_zoo_gpt2::Error>(())
//! ```

mod checkpoint;
mod config;
mod model;
mod presets;

pub use burn;
pub use burn_zoo_checkpoint::{LoadReport, ModelConfig, PretrainedModel};
pub use burn_zoo_core::{Error, Mode, Preset};
pub use burn_zoo_nn::{CausalLm, KeyValueCache, TextHead, TokenBatch};
pub use burn_zoo_ops::{Counts, count};
pub use config::Gpt2Config;
pub use model::{Block, Gpt2, Mlp};
