use crate::recipe::Recipe;
use burn_zoo_checkpoint::write_atomically;
use burn_zoo_core::{Error, Result};
use std::path::{Path, PathBuf};

/// The folder of one run.
///
/// `recipe.json`, `command.txt`, `metrics.csv`, `checkpoints/`, and when it is done `config.json`,
/// `model.safetensors`, `evaluation.json` and `report.html`.
#[derive(Clone, Debug)]
pub struct RunDir(PathBuf);

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
        if occupied {
            return Err(Error::usage(
                "--out",
                format!(
                    "{} is there already and is not overwritten: choose another folder, or continue it with --resume",
                    path.display()
                ),
            ));
        }
        let run = Self(path.to_path_buf());
        std::fs::create_dir_all(run.checkpoints()).map_err(Error::io(path, "create the folder"))?;
        let json = serde_json::to_string_pretty(recipe)
            .map_err(|e| Error::malformed(run.recipe_path(), e.to_string()))?;
        write_atomically(&run.recipe_path(), json.as_bytes())?;
        write_atomically(
            &run.0.join("command.txt"),
            format!("{command}\n").as_bytes(),
        )?;
        Ok(run)
    }

    /// Opens a run that was started before, with its recipe.
    ///
    /// # Errors
    /// If it is no run folder or its recipe is malformed.
    pub fn open(path: &Path) -> Result<(Self, Recipe)> {
        let run = Self(path.to_path_buf());
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
        &self.0
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The command that started the run.
    pub fn command(&self) -> String {
        let text = std::fs::read_to_string(self.0.join("command.txt")).unwrap_or_default();
        text.trim_end().to_string()
    }

    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.0.join("checkpoints")
    }

    fn recipe_path(&self) -> PathBuf {
        self.0.join("recipe.json")
    }
}
