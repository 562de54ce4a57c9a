//! Which trained model a command uses.

use crate::common::{BackendArgs, dtype};
use burn::tensor::{DType, backend::Backend};
use burn_zoo::{AutoModel, ModelCard, Pretrained};
use burn_zoo_core::{Error, Result};
use std::path::{Path, PathBuf};

/// A trained model and where to compute with it.
#[derive(clap::Args)]
pub struct ModelArgs {
    /// A run or model folder, or a model of `zoo list` together with --weights
    pub model: String,
    /// Weights of a listed model: a safetensors or PyTorch file, the index of a sharded one, or a folder
    #[arg(long, value_name = "PATH")]
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
        let pretrained = open(&self.model, self.weights.as_deref())?;
        let from = &pretrained.weights.path;
        pretrained.card.check_for_images(from)?;
        let model = pretrained.model(dtype, device)?;
        Ok((model, pretrained.card, dtype))
    }
}

/// A model folder, or a listed model with its weights.
fn open(model: &str, weights: Option<&Path>) -> Result<Pretrained> {
    let folder = Path::new(model);
    if folder.is_dir() {
        if weights.is_some() {
            return Err(Error::usage(
                "--weights",
                "is for a listed model; a folder has its own",
            ));
        }
        return Pretrained::open(folder, None);
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
    Pretrained::open(weights, Some(model))
}
