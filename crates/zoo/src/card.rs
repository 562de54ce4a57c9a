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
    /// How its input is made from an image, where it takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preprocessing: Option<Preprocessing>,
    /// Names of its classes, by label.
    pub class_names: Vec<String>,
}

impl ModelCard {
    /// From the contents of `path`.
    ///
    /// # Errors
    /// If they are malformed.
    pub(crate) fn from_json(json: serde_json::Value, path: &Path) -> Result<Self> {
        let card: Self =
            serde_json::from_value(json).map_err(|e| Error::malformed(path, e.to_string()))?;
        match card.model.image_shape() {
            Ok(_) => drop(card.check_for_images(path)?),
            Err(_) => {
                let valid = card.model.validate();
                valid.map_err(|e| Error::malformed(path, e.to_string()))?;
            }
        }
        Ok(card)
    }

    /// Checks that image files can be made into its input; `path` is named where not. Gives how.
    ///
    /// # Errors
    /// What does not fit together.
    pub fn check_for_images(&self, path: &Path) -> Result<&Preprocessing> {
        let checked = self.check();
        checked.map_err(|message| Error::malformed(path, message))
    }

    /// Says what does not fit together.
    fn check(&self) -> std::result::Result<&Preprocessing, String> {
        self.model.validate().map_err(|e| format!("model: {e}"))?;
        let shape = self.model.image_shape().map_err(|e| e.to_string())?;
        let Some(p) = &self.preprocessing else {
            return Err("nothing says how an image becomes the model's input".into());
        };
        if p.num_channels != shape.num_channels {
            return Err(format!(
                "preprocessing gives {} channels, the model takes {}",
                p.num_channels, shape.num_channels
            ));
        }
        let fine =
            |v: &[f32], f: fn(f32) -> bool| v.len() == p.num_channels && v.iter().all(|v| f(*v));
        if !fine(&p.mean, f32::is_finite) || !fine(&p.std, |v| v.is_normal() && v > 0.0) {
            return Err("preprocessing wants one finite mean and one std above 0 a channel".into());
        }
        if !matches!(p.num_channels, 1 | 3) {
            return Err(format!(
                "images have 1 or 3 channels, not {}",
                p.num_channels
            ));
        }
        if [p.crop, p.resize]
            .iter()
            .any(|size| !(1..=2048).contains(size))
        {
            return Err("preprocessing wants crop and resize of 1 to 2048 pixels".into());
        }
        let (names, classes) = (self.class_names.len(), shape.num_classes);
        if names != classes {
            return Err(format!("{names} class names for {classes} classes"));
        }
        Ok(p)
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
