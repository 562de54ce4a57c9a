use crate::AutoConfig;
use burn_zoo_checkpoint::write_atomically;
use burn_zoo_core::{Error, Preprocessing, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The `config.json` of a folder with a trained model: all that is needed beside its weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCard {
    /// Preset or example it came from.
    pub name: String,
    /// The configuration.
    pub model: AutoConfig,
    /// How its input is made from an image.
    pub preprocessing: Preprocessing,
    /// Names of its classes, by label.
    pub class_names: Vec<String>,
}

impl ModelCard {
    /// Reads `config.json` of `folder`.
    ///
    /// # Errors
    /// If it is absent or malformed.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        if !path.is_file() {
            let hint = "a model folder holds config.json and model.safetensors; a run has them when it is done".into();
            return Err(Error::NotFound { path, hint });
        }
        let text = std::fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
        let card: Self =
            serde_json::from_str(&text).map_err(|e| Error::malformed(&path, e.to_string()))?;
        let p = &card.preprocessing;
        let sizes = [p.num_channels, p.mean.len(), p.std.len()];
        if sizes != [p.num_channels; 3]
            || p.num_channels == 0
            || p.crop == 0
            || p.resize == 0
            || p.crop > 8192
            || p.resize > 8192
        {
            return Err(Error::malformed(
                &path,
                "preprocessing: sizes, mean and std do not fit together",
            ));
        }
        if card.class_names.len() != card.model.num_classes() {
            let message = format!(
                "{} class names for {} classes",
                card.class_names.len(),
                card.model.num_classes()
            );
            return Err(Error::malformed(&path, message));
        }
        Ok(card)
    }

    /// Writes `config.json` into `folder`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join("config.json");
        let json = serde_json::to_string_pretty(self)
            .map_err(|e| Error::malformed(&path, e.to_string()))?;
        write_atomically(&path, json.as_bytes())
    }
}
