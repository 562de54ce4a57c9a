//! `zoo train`, and the examples that train.

mod args;
mod images;
mod labelled;
mod launch;
mod place;
mod start;
mod text;

pub use args::Args;
pub(crate) use images::open_options;

use burn_zoo_core::Result;
use burn_zoo_texts::{CORPORA, LABELLED};
use burn_zoo_train::RunDir;

/// `zoo train`.
pub fn run(args: Args) -> Result<i32> {
    run_as(args, "zoo train")
}

/// Trains; `program` is how the user calls it. Gives the exit code.
pub(crate) fn run_as(args: Args, program: &str) -> Result<i32> {
    let dataset = match &args.resume {
        Some(folder) => RunDir::open(folder)?.1.dataset,
        None => args.dataset_name(),
    };
    match dataset.as_str() {
        name if CORPORA.contains(&name) => text::run_as(&args, program),
        name if LABELLED.contains(&name) => labelled::run_as(&args, program),
        _ => images::run_as(&args, program),
    }
}
