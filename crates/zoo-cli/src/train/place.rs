//! Where a run goes.

use super::{Args, start::Start};
use crate::common::set_threads;
use burn_zoo_core::Result;
use burn_zoo_train::{Recipe, RunDir};
use std::path::{Path, PathBuf};

/// Where the run goes. A new folder is made only when model, data and device are known to be there.
pub enum Place {
    New {
        out: PathBuf,
        command: String,
        /// Where the run starts, if not at random.
        weights: Option<PathBuf>,
    },
    Resumed(RunDir),
}

impl Place {
    /// The new folder of a run, and the command that the user gave.
    pub fn new(args: &Args, recipe: &Recipe, start: Start, program: &str) -> Self {
        let given = std::env::args_os().skip(1);
        let given: Vec<String> = given.map(|arg| quoted(&arg.to_string_lossy())).collect();
        let given = given.strip_prefix(&["train".to_string()]).unwrap_or(&given);
        let command = format!("{program} {}", given.join(" "));
        Self::New {
            out: args.out.clone().unwrap_or_else(|| next_free(recipe)),
            command: command.trim().into(),
            weights: start.weights.map(|(_, path)| path),
        }
    }

    /// A run that goes on, which nobody else may continue meanwhile.
    pub fn resumed(mut run: RunDir) -> Result<Self> {
        run.lock()?;
        Ok(Self::Resumed(run))
    }

    /// Weights of another run or model to start from.
    pub fn weights(&self) -> Option<&Path> {
        match self {
            Self::New { weights, .. } => weights.as_deref(),
            Self::Resumed(_) => None,
        }
    }

    /// The run's folder, and whether the run goes on there.
    pub fn open(self, recipe: &Recipe) -> Result<(RunDir, bool)> {
        match self {
            Self::New { out, command, .. } => Ok((RunDir::create(&out, recipe, &command)?, false)),
            Self::Resumed(run) => Ok((run, true)),
        }
    }
}

/// The run in `folder` and its recipe, changed where the options may change it.
pub fn stopped_run(args: &Args, folder: &Path) -> Result<(RunDir, Recipe)> {
    let (run, mut recipe) = RunDir::open(folder)?;
    args.agree_with(&recipe)?;
    args.adjust(&mut recipe)?;
    recipe.threads = set_threads(args.threads.or(Some(recipe.threads)))?;
    recipe.validate()?;
    Ok((run, recipe))
}

/// An argument as a shell reads it.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        return arg.to_string();
    }
    format!("'{}'", arg.replace('\'', "'\\''"))
}

/// The first of `runs/MODEL-DATASET-1`, `-2`, … that is not there.
fn next_free(recipe: &Recipe) -> PathBuf {
    // Of `runs/digits` or `microsoft/resnet-50@main` the last name, as letters that any system takes.
    let model = recipe.model.trim_end_matches('/').rsplit('/').next();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let model = model.unwrap_or_default().replace(|c| !plain(c), "-");
    let name = |n: usize| PathBuf::from(format!("runs/{model}-{}-{n}", recipe.dataset));
    (1..)
        .map(name)
        .find(|path| !path.exists())
        .unwrap_or_else(|| name(0))
}
