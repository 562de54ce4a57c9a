//! The vocabulary of Burn Zoo: what every other crate of the workspace speaks.
//!
//! - [`Error`]: one typed error, with the file, key, option or shape it is about;
//! - [`Mode`]: training or evaluation, passed to layers explicitly;
//! - [`Stages`]: named intermediate values of a forward pass, for verification;
//! - [`Preset`]: a published configuration with its licence, source and preprocessing;
//! - [`Network`]: any model as its upstream's class sees it;
//! - [`ImageClassifier`]: what training, evaluation and prediction of images ask of a model.

mod cache;
mod classifier;
mod error;
mod links;
mod mode;
mod names;
mod network;
mod output;
mod packed;
mod preset;
mod seeded;
mod stages;
mod text_files;

pub use cache::cache_dir;
pub use classifier::ImageClassifier;
pub use error::{Error, Result};
pub use links::stays_inside;
pub use mode::Mode;
pub use names::{group_digits, nearest, similar};
pub use network::{Argument, ArgumentKind, Arguments, Flat, Network, UpstreamOutput};
pub use packed::PackedMatrix;
pub use preset::{Interpolation, Preprocessing, Preset, Task, Weights};
pub use seeded::seeded;
#[cfg(feature = "seeded-bugs")]
pub use seeded::with_seeded_bug;
pub use stages::{CollectStages, Stages, record};
pub use text_files::{TEXT_FILES, read_text_file, read_text_files};
