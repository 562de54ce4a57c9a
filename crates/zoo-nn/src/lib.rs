//! Layers with PyTorch's definitions and an explicit mode.
//!
//! - Parameters have PyTorch's names and layouts, so that the path of a parameter in a model is its
//!   key in an upstream checkpoint.
//! - [`BatchNorm2d`] takes [`Mode`](burn_zoo_core::Mode) as an argument; Burn's own reads it from
//!   the backend type.
//! - Initial values are drawn on the CPU from a seed, so a seed gives the same model on every backend.

mod batch_norm;
mod conv;
mod conv_norm;
mod dropout;
mod init;
mod inverted_residual;
mod linear;
mod rounding;

pub use batch_norm::BatchNorm2d;
pub use conv::Conv2d;
pub use conv_norm::{ConvNorm, ConvNormOptions, Padding};
pub use dropout::{dropout, stochastic_depth};
pub use init::Init;
pub use inverted_residual::{
    InvertedResidual, InvertedResidualOptions, SqueezeExcite, SqueezeExciteOptions, timm_names,
};
pub use linear::Linear;
pub use rounding::divisible_by_8;
