//! Which trained model a command uses.

use crate::common::{BackendArgs, dtype};
use crate::labels;
use burn::tensor::{DType, backend::Backend};
use burn_zoo::{AutoModel, ModelCard};
use burn_zoo_core::{Error, Result};
use std::path::{Path, PathBuf};

/// A trained model and where to compute with it.
#[derive(clap::Args)]
pub struct ModelArgs {
    /// A run or model folder, or a model of `zoo list` together with --weights
    pub model: String,
    /// Weights of a listed model, a safetensors file
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// f32, f64, bf16 or f16
    #[arg(long, default_value = "f32", value_name = "TYPE")]
    dtype: String,
    #[command(flatten)]
    pub backend: BackendArgs,
}

impl ModelArgs {
    /// The model on `device`, what is known about it, and the dtype it computes in.
    pub fn load<B: Backend>(&self, device: &B::Device) -> Result<(AutoModel<B>, ModelCard, DType)> {
        let dtype = dtype::<B>(&self.dtype, device)?;
        let (model, card) = load(&self.model, self.weights.as_deref(), dtype, device)?;
        Ok((model, card, dtype))
    }
}

/// A model folder, or a listed model with a weights file.
fn load<B: Backend>(
    model: &str,
    weights: Option<&Path>,
    dtype: DType,
    device: &B::Device,
) -> Result<(AutoModel<B>, ModelCard)> {
    let folder = Path::new(model);
    if folder.is_dir() {
        if weights.is_some() {
            return Err(Error::usage(
                "--weights",
                "is for a listed model; a folder has its own",
            ));
        }
        return AutoModel::from_folder(folder, dtype, device);
    }
    if model.contains(['/', '\\', '.']) {
        let hint =
            "not a folder; give a run or model folder, or a model of `zoo list` with --weights"
                .into();
        return Err(Error::NotFound {
            path: folder.to_path_buf(),
            hint,
        });
    }
    let entry = burn_zoo::find(model)?;
    let Some(weights) = weights else {
        let from = match &entry.preset.weights {
            Some(w) => format!("published ones are at {}", w.url),
            None => "none are published; train it with `zoo train`".into(),
        };
        return Err(Error::usage(
            "--weights",
            format!("a listed model needs a weights file: {from}"),
        ));
    };
    if !weights.is_file() {
        return Err(Error::NotFound {
            path: weights.to_path_buf(),
            hint: "give a safetensors file".into(),
        });
    }
    let model = AutoModel::new(&entry.config, Some(weights), dtype, device)?;
    let card = ModelCard {
        name: entry.preset.name.into(),
        class_names: labels::numbers(entry.config.num_classes()),
        model: entry.config,
        preprocessing: entry.preset.preprocessing,
    };
    Ok((model, card))
}
