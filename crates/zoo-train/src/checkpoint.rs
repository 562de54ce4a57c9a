use crate::run_dir::RunDir;
use burn_zoo_checkpoint::{Tensors, write_atomically, write_safetensors};
use burn_zoo_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where a run stood. Random numbers are functions of seed, epoch and position, so these numbers
/// are all there is to remember of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Optimizer steps made.
    pub step: usize,
    /// Epoch of the next batch, from 0.
    pub epoch: usize,
    /// Position of the next batch in that epoch.
    pub batch: usize,
    /// Seconds of training so far.
    pub seconds: f64,
    /// Validation score of the checkpoint that is kept as the best, and its step.
    pub best: Option<(f64, usize)>,
    /// Highest validation score of all.
    pub top_score: Option<f64>,
    /// Threads that computed.
    pub threads: usize,
}

/// A folder `checkpoints/step-N` with model, optimizer, average and state.
pub struct Checkpoint {
    /// The folder.
    pub path: PathBuf,
    /// Where the run stood.
    pub state: State,
}

impl Checkpoint {
    /// Writes a checkpoint beside its place, syncs it and renames it.
    pub(crate) fn save(
        run: &RunDir,
        state: &State,
        model: &Tensors,
        optimizer: &Tensors,
        ema: &Tensors,
    ) -> Result<PathBuf> {
        let folder = run.checkpoints();
        let target = folder.join(name(state.step));
        // A run that was stopped right after a checkpoint may come here twice.
        if target.is_dir() {
            return Ok(target);
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".part-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o777));
        }
        let part = builder
            .tempdir_in(&folder)
            .map_err(Error::io(&folder, "write"))?;
        write_safetensors(&part.path().join("model.safetensors"), model)?;
        write_safetensors(&part.path().join("optimizer.safetensors"), optimizer)?;
        if !ema.is_empty() {
            write_safetensors(&part.path().join("ema.safetensors"), ema)?;
        }
        let json = serde_json::to_string_pretty(state)
            .map_err(|e| Error::malformed(&target, e.to_string()))?;
        write_atomically(&part.path().join("state.json"), json.as_bytes())?;
        std::fs::rename(part.path(), &target).map_err(Error::io(&target, "rename"))?;
        sync_folder(&folder);
        Ok(target)
    }

    /// The checkpoint with the most steps.
    ///
    /// # Errors
    /// If there is none, or its state is malformed.
    pub fn last(run: &RunDir) -> Result<Self> {
        let folder = run.checkpoints();
        let path = match all(&folder)?.pop() {
            Some(step) => folder.join(name(step)),
            None => {
                let hint = "the run was stopped before its first checkpoint; start it anew".into();
                return Err(Error::NotFound { path: folder, hint });
            }
        };
        let file = path.join("state.json");
        let text = std::fs::read_to_string(&file).map_err(Error::io(&file, "read"))?;
        let state =
            serde_json::from_str(&text).map_err(|e| Error::malformed(&file, e.to_string()))?;
        Ok(Self { path, state })
    }

    /// The file of the weights that the run would evaluate at the checkpoint after `step`: the
    /// average where there is one.
    pub(crate) fn weights(run: &RunDir, step: usize) -> PathBuf {
        let folder = run.checkpoints().join(name(step));
        let ema = folder.join("ema.safetensors");
        if ema.is_file() {
            ema
        } else {
            folder.join("model.safetensors")
        }
    }

    /// Removes all but the last `keep` checkpoints and the best.
    pub(crate) fn prune(run: &RunDir, keep: usize, best: Option<usize>) -> Result<()> {
        let folder = run.checkpoints();
        for step in superfluous(&all(&folder)?, keep, best) {
            let path = folder.join(name(step));
            std::fs::remove_dir_all(&path).map_err(Error::io(&path, "remove"))?;
        }
        Ok(())
    }
}

/// Of checkpoints at these steps, in order, all but the last `keep` and the best.
fn superfluous(steps: &[usize], keep: usize, best: Option<usize>) -> Vec<usize> {
    let older = &steps[..steps.len().saturating_sub(keep)];
    let others = older.iter().filter(|step| Some(**step) != best);
    others.copied().collect()
}

fn name(step: usize) -> String {
    format!("step-{step:08}")
}

/// The step of a checkpoint's folder, if it is one.
fn step_of(path: &Path) -> Option<usize> {
    let found = path.file_name()?.to_str()?;
    let step = found.strip_prefix("step-")?.parse().ok()?;
    (found == name(step) && path.is_dir()).then_some(step)
}

/// Removes what a killed process left half-written; only the holder of the run's lock may.
pub(crate) fn sweep(run: &RunDir) -> Result<()> {
    let folder = run.checkpoints();
    let entries = std::fs::read_dir(&folder).map_err(Error::io(&folder, "list the folder"))?;
    for path in entries.filter_map(|e| Some(e.ok()?.path())) {
        let part = path
            .file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with(".part-"));
        if part && path.is_dir() {
            std::fs::remove_dir_all(&path).map_err(Error::io(&path, "remove"))?;
        }
    }
    Ok(())
}

/// Steps of the checkpoints in `folder`, ascending.
fn all(folder: &Path) -> Result<Vec<usize>> {
    let entries = std::fs::read_dir(folder).map_err(Error::io(folder, "list the folder"))?;
    let mut steps: Vec<usize> = entries.filter_map(|e| step_of(&e.ok()?.path())).collect();
    steps.sort_unstable();
    Ok(steps)
}

/// Makes a rename in `folder` survive a power cut, where the system can.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = std::fs::File::open(folder) {
        // Some file systems do not offer this; the data itself was synced before.
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::superfluous;

    #[test]
    fn the_best_checkpoint_and_the_last_ones_stay() {
        let steps = [10, 20, 30, 40, 50];
        assert_eq!(superfluous(&steps, 2, Some(20)), [10, 30]);
        assert_eq!(superfluous(&steps, 1, Some(50)), [10, 20, 30, 40]);
        assert!(superfluous(&steps, 9, None).is_empty());
    }
}
