//! The zoo command line, as a library so that examples share it.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a lane that `verify` must run was not, 130 stopped by Ctrl-C (a training run was saved).

mod bench;
mod common;
mod encode;
mod eval;
mod eval_text;
mod example;
mod export;
mod fetch;
mod forward;
mod generate;
mod info;
mod labels;
mod list;
mod model;
mod predict;
mod source;
mod text;
mod train;
#[cfg(feature = "verify")]
mod verify;

pub use example::{Demo, Example};

use burn_zoo_core::Result;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "zoo",
    version,
    about = "Burn Zoo: models for the Burn deep-learning framework, proved equal to their originals"
)]
#[command(
    after_help = "Examples:\n  zoo list\n  zoo info resnet50\n  zoo train --model resnet20 --dataset digits --out runs/digits\n  zoo eval runs/digits\n  zoo predict runs/digits photo.png --json\n  zoo predict mobilenet_v2 photo.jpg\n  zoo predict microsoft/resnet-50 photo.jpg\n  zoo generate SmolLM2-135M \"The capital of France is\"\n  zoo embed all-MiniLM-L6-v2 \"It is sunny.\" \"It rains.\""
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List every model
    List(list::Args),
    /// Parameters, FLOPs, memory, input, licence and source of one model
    Info(info::Args),
    /// Train a model on a data set, or continue a run
    Train(Box<train::Args>),
    /// Measure a trained model on a data set
    Eval(eval::Args),
    /// Classify images: a file, several, or a folder
    Predict(predict::Args),
    /// Go on with a text, or talk
    Generate(Box<generate::Args>),
    /// A vector for each text
    Embed(encode::EmbedArgs),
    /// The tokens that may stand at a masked place
    FillMask(encode::FillMaskArgs),
    /// Tell classes of texts apart
    Classify(encode::ClassifyArgs),
    /// Download a model to this machine and say where it is
    Fetch(fetch::Args),
    /// Write a trained model as its upstream has it, for Python and others
    Export(export::Args),
    /// Time the jobs that other programs are compared on
    Bench(bench::Args),
    /// Run a model on tensors from a file, with gradients where asked for
    Forward(forward::Args),
    /// Compare every model with its original on every backend
    #[cfg(feature = "verify")]
    Verify(verify::Args),
}

/// Tensors come and go by the megabyte: the system's allocator would give each back and ask for zeroed pages again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the command line of this process and gives its exit code.
pub fn main() -> i32 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(&error),
    };
    // These two have an option for it.
    if !matches!(cli.command, Command::Train(_) | Command::Bench(_)) {
        let _ = common::set_threads(None);
    }
    finish(match cli.command {
        Command::List(args) => list::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Train(args) => return finish_code(train::run(*args)),
        Command::Eval(args) => eval::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Embed(args) => encode::embed(&args),
        Command::FillMask(args) => encode::fill_mask(&args),
        Command::Classify(args) => encode::classify(&args),
        Command::Fetch(args) => fetch::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Forward(args) => forward::run(&args),
        #[cfg(feature = "verify")]
        Command::Verify(args) => return finish_code(verify::run(&args)),
    })
}

/// Wrong usage in one line, as every other error; help and version as clap prints them. Gives the exit
/// code.
pub(crate) fn wrong_usage(error: &clap::Error) -> i32 {
    let asks_for_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !error.use_stderr() || asks_for_help {
        // A reader that is gone wants no help.
        let _ = error.print();
        return error.exit_code();
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    let said = lines.take_while(|line| !line.starts_with("Usage:"));
    let said: Vec<&str> = said.filter(|line| !line.is_empty()).collect();
    burn_zoo_core::note!("{}; --help explains the options", said.join(" "));
    error.exit_code()
}

fn finish(result: Result<()>) -> i32 {
    finish_code(result.map(|()| 0))
}

fn finish_code(result: Result<i32>) -> i32 {
    match result {
        Ok(code) => code,
        Err(error) => {
            // One line, whatever a file's name or a decoder's message holds.
            let text = error.to_string();
            let line: String = text
                .trim()
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            burn_zoo_core::note!("error: {line}");
            error.exit_code()
        }
    }
}
