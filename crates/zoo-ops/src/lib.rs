//! Tensor functions that models are built from.
//!
//! Each function has one signature generic over `B: Backend` and a generic form in plain tensor
//! operations. With the feature `flex`, functions recognise burn-flex at run time (also under
//! autodiff) and take a fast path with a hand-written gradient; [`count`] says how often.
//!
//! Activations are computed here in the tensor's own dtype: some of Burn's defaults go through f32.

mod activation;
mod attention;
mod conv;
mod counter;
#[cfg(feature = "flex")]
mod flex;
mod linear;
mod loss;
mod norm;
mod optim;
mod packed;
mod pool;
mod quotient;

pub use activation::Activation;
pub use attention::{AttentionMask, MaskOptions, attention, rotate};
pub use conv::{Conv2dOptions, conv2d};
pub use counter::{Counts, count};
pub use linear::linear;
pub use loss::cross_entropy;
pub use norm::{batch_norm_eval, batch_norm_train, layer_norm, rms_norm};
pub use optim::{AdamW, Sgd, adamw_step, sgd_step};
pub use packed::{packed_linear, packed_rows};
pub use pool::{global_avg_pool2d, max_pool2d, pad2d};
