//! Which trained model a command uses.

use crate::common::{BackendArgs, dtype};
use crate::source::{self, NetArgs};
use burn::tensor::{DType, backend::Backend};
use burn_zoo::{AutoModel, ModelCard, Pretrained, find};
use burn_zoo_core::{Error, Preprocessing, Result};
use std::path::Path;

/// A trained model and where to compute with it.
#[derive(clap::Args)]
pub struct ModelArgs {
    /// A run or model folder, a model of `zoo list`, ORG/NAME[@REVISION] of a hub, or a weights file with --arch
    pub model: String,
    /// Weights of a listed model in place of the published ones: a file, the index of a sharded one, a folder or ORG/NAME
    #[arg(long, value_name = "PATH", conflicts_with = "arch")]
    weights: Option<String>,
    /// The model of `zoo list` that a weights file belongs to
    #[arg(long, value_name = "NAME")]
    arch: Option<String>,
    /// f32, f64, bf16 or f16
    #[arg(long, default_value = "f32", value_name = "TYPE")]
    pub dtype: String,
    #[command(flatten)]
    net: NetArgs,
    #[command(flatten)]
    pub backend: BackendArgs,
}

impl ModelArgs {
    /// The image classifier on `device`, what is known about it, how images become its input, and the dtype
    /// it computes in.
    pub fn load<B: Backend>(
        &self,
        device: &B::Device,
    ) -> Result<(AutoModel<B>, ModelCard, Preprocessing, DType)> {
        let dtype = dtype::<B>(&self.dtype, device)?;
        let pretrained = self.open()?;
        let from = &pretrained.weights.path;
        let preprocessing = pretrained.card.check_for_images(from)?.clone();
        let model = pretrained.model(dtype, device)?;
        Ok((model, pretrained.card, preprocessing, dtype))
    }

    /// The model's files, and what is known about it.
    pub fn open(&self) -> Result<Pretrained> {
        let Some(weights) = &self.weights else {
            return source::open(&self.model, self.arch.as_deref(), &self.net);
        };
        if Path::new(&self.model).is_dir() {
            return Err(Error::usage(
                "--weights",
                "is for a listed model; a folder has its own",
            ));
        }
        find(&self.model)?;
        let found = source::locate(weights, &self.net)?;
        Pretrained::open(&found.path, Some(&self.model))
    }
}
