//! BERT, RoBERTa, XLM-R, DistilBERT and MiniLM for Burn, equal to transformers'.
//!
//! - Devlin et al. 2018, *BERT*, arXiv:1810.04805.
//! - Liu et al. 2019, *RoBERTa*, arXiv:1907.11692; Conneau et al. 2019 (XLM-R), arXiv:1911.02116.
//! - Sanh et al. 2019, *DistilBERT*, arXiv:1910.01108.
//! - Wang et al. 2020, *MiniLM*, arXiv:2002.10957.
//!
//! ```
//! use burn_zoo_bert::{Bert, BertConfig, Mode, ModelConfig, burn::backend::Flex};
//!
//! let device = Default::default();
//! let (_, mut config) = BertConfig::preset("all-MiniLM-L6-v2")?;
//! config.num_hidden_layers = 1;
//! let model = Bert::<Flex>::new(&config, 0, &device)?;
//! let tokens = model.encode(&[vec![101, 7592, 102]], None, None, &device);
//! let hidden = model.hidden_states(&tokens, Mode::Eval, &mut None);
//! assert_eq!(hidden.dims(), [1, 3, 384]);
//! # Ok::<(), burn_zoo_bert::Error>(())
//! ```

mod checkpoint;
mod config;
mod model;
mod presets;

pub use burn;
pub use burn_zoo_checkpoint::{LoadReport, ModelConfig, PretrainedModel};
pub use burn_zoo_core::{Error, Mode, Preset};
pub use burn_zoo_nn::TextHead;
pub use burn_zoo_ops::{Counts, count};
pub use config::{BertConfig, Variant};
pub use model::{Bert, Embeddings, Encoded, Layer, MaskedLmHead};
