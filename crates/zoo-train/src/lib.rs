//! A recipe becomes a run.
//!
//! - [`Recipe`]: everything that decides a run, saved with it;
//! - [`train`]: the loop, with checkpoints that continue bit-equal on the CPU, for any [`Task`];
//! - [`evaluate`]: accuracy, confusion matrix and predictions;
//! - [`write_report`]: one HTML page with curves, matrix and pictures.

mod checkpoint;
mod ema;
mod evaluate;
mod images;
mod language;
mod metrics;
mod progress;
mod recipe;
mod report;
mod run_dir;
mod schedule;
mod task;
mod tensorboard;
mod terminal;
mod texts;
mod train;

pub use checkpoint::Checkpoint;
pub use ema::Ema;
pub use evaluate::{Evaluation, Logits, Prediction, evaluate, predict_batch, to_tensor};
pub use images::ImageTask;
pub use language::{LanguageTask, evaluate_text, parts};
pub use metrics::{History, Row};
pub use progress::{ProgressKind, interrupt_flag};
pub use recipe::{Recipe, Schedule, TextRecipe};
pub use report::{ReportInput, TextReportInput, write_report, write_text_report};
pub use run_dir::RunDir;
pub use schedule::learning_rate;
pub use task::{Forward, Score, Task};
pub use terminal::draw_images;
pub use texts::{LabelledTokens, TextTask, evaluate_texts};
pub use train::{Outcome, TrainInput, train};
