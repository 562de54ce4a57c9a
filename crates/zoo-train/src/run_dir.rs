use crate::checkpoint::Checkpoint;
use crate::recipe::Recipe;
use burn_zoo_checkpoint::write_atomically;
use burn_zoo_core::{Error, Result, TEXT_FILES};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// The folder of one run.
///
/// `recipe.json`, `command.txt`, `metrics.csv`, `checkpoints/`, and when it is done `config.json`,
/// `model.safetensors`, `evaluation.json` and `report.html`.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Held while the run is trained.
    lock: Option<File>,
}

impl RunDir {
    /// Makes a new folder and writes the recipe into it.
    ///
    /// # Errors
    /// If the folder exists and is not empty, or cannot be written.
    pub fn create(path: &Path, recipe: &Recipe, command: &str) -> Result<Self> {
        let occupied = match std::fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_some(),
            Err(_) => path.exists(),
        };
        let mut run = Self {
            path: path.to_path_buf(),
            lock: None,
        };
        if occupied {
            let way_out = match Checkpoint::last(&run) {
                _ if !run.recipe_path().is_file() => "choose another folder",
                Err(Error::NotFound { .. }) => {
                    "its run was stopped before the first checkpoint; choose another folder, or delete it"
                }
                _ => "choose another folder, or continue it with --resume",
            };
            let message = format!(
                "{} is there already and is not overwritten: {way_out}",
                path.display()
            );
            return Err(Error::usage("--out", message));
        }
        let json = serde_json::to_string_pretty(recipe)
            .map_err(|e| Error::malformed(run.recipe_path(), e.to_string()))?;
        std::fs::create_dir_all(run.checkpoints()).map_err(Error::io(path, "create the folder"))?;
        run.lock()?;
        write_atomically(&run.recipe_path(), json.as_bytes())?;
        write_atomically(&run.file("command.txt"), format!("{command}\n").as_bytes())?;
        Ok(run)
    }

    /// Removes a new run that failed before its first checkpoint, so that its name is free again.
    pub fn abandon(self) {
        if matches!(Checkpoint::last(&self), Err(Error::NotFound { .. })) {
            // Nothing is lost if it stays; only what `create` and `train` write is removed.
            let files = ["recipe.json", "command.txt", "metrics.csv", ".lock"];
            let _ = std::fs::remove_dir(self.checkpoints());
            for file in files.into_iter().chain(TEXT_FILES) {
                let _ = std::fs::remove_file(self.file(file));
            }
            let _ = std::fs::remove_dir(&self.path);
        }
    }

    /// Keeps other processes from training the run until this value is gone.
    ///
    /// # Errors
    /// If another process trains it.
    pub fn lock(&mut self) -> Result<()> {
        let path = self.file(".lock");
        let file = File::create(&path).map_err(Error::io(&path, "write"))?;
        match file.try_lock() {
            Ok(()) => {
                self.lock = Some(file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(Error::usage(
                "--resume",
                format!(
                    "{} is being trained by another process",
                    self.path.display()
                ),
            )),
            Err(TryLockError::Error(source)) => Err(Error::io(&path, "lock")(source)),
        }
    }

    /// Opens a run that was started before, with its recipe.
    ///
    /// # Errors
    /// If it is no run folder or its recipe is malformed.
    pub fn open(path: &Path) -> Result<(Self, Recipe)> {
        let run = Self {
            path: path.to_path_buf(),
            lock: None,
        };
        let file = run.recipe_path();
        if !file.is_file() {
            return Err(Error::NotFound {
                path: file,
                hint: format!("{} is no run folder", path.display()),
            });
        }
        let text = std::fs::read_to_string(&file).map_err(Error::io(&file, "read"))?;
        let recipe =
            serde_json::from_str(&text).map_err(|e| Error::malformed(&file, e.to_string()))?;
        Ok((run, recipe))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The command that started the run.
    pub fn command(&self) -> String {
        let text = std::fs::read_to_string(self.file("command.txt")).unwrap_or_default();
        text.trim_end().to_string()
    }

    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.file("checkpoints")
    }

    fn recipe_path(&self) -> PathBuf {
        self.file("recipe.json")
    }
}
