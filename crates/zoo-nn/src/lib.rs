//! Layers with PyTorch's definitions and an explicit mode.
//!
//! - Parameters have PyTorch's names and layouts, so that the path of a parameter in a model is its
//!   key in an upstream checkpoint.
//! - [`BatchNorm2d`] takes [`Mode`](burn_zoo_core::Mode) as an argument; Burn's own reads it from
//!   the backend type.
//! - Initial values are drawn on the CPU from a seed, so a seed gives the same model on every backend.

mod attention;
mod batch_norm;
mod cache;
mod conv;
mod conv_norm;
mod decoder_head;
mod dropout;
mod embedding;
mod head;
mod init;
mod inverted_residual;
mod linear;
mod matrix;
mod norm;
mod rotary;
mod rounding;
mod tokens;

pub use attention::{AttentionContext, SelfAttention, SelfAttentionOptions};
pub use batch_norm::BatchNorm2d;
pub use cache::{KeyValueCache, LayerCache};
pub use conv::Conv2d;
pub use conv_norm::{ConvNorm, ConvNormOptions, Padding};
pub use decoder_head::DecoderHead;
pub use dropout::{dropout, stochastic_depth};
pub use embedding::Embedding;
pub use head::{TextHead, classifier_dropout, num_labels};
pub use init::Init;
pub use inverted_residual::{
    InvertedResidual, InvertedResidualOptions, SqueezeExcite, SqueezeExciteOptions, timm_names,
};
pub use linear::Linear;
pub use matrix::Matrix;
pub use norm::{LayerNorm, RmsNorm};
pub use rotary::{Rope, RopeScaling};
pub use rounding::divisible_by_8;
pub use tokens::{CausalLm, TokenBatch, last_tokens, pad_right, position_ids, rows_at};
