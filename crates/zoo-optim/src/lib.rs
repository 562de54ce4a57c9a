//! AdamW and SGD with PyTorch's definitions over the parameters of a module, by their paths, and what
//! is done with all gradients at once.

mod gradients;
mod optimizer;
mod spec;

pub use burn_zoo_checkpoint::{FlatGradients, collect_gradients};
pub use gradients::{clip_global_norm, global_norm, number, trainable};
pub use optimizer::Optimizer;
pub use spec::OptimizerSpec;
