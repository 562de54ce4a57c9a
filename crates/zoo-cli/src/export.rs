//! `zoo export`.

use crate::common::{dtype, print_json};
use crate::model::ModelArgs;
use crate::text::own_text_files;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn_zoo::{ExportOptions, Pretrained, WithBackend, with_backend};
use burn_zoo_checkpoint::LoadReport;
use burn_zoo_core::{Error, Result};
use std::path::PathBuf;

/// Write a trained model as its upstream has it, for Python and others.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo export runs/digits --out digits-for-torch\n  zoo export resnet50 --weights resnet50-11ad3fa6.pth --to transformers --out resnet50-hf\n  zoo export efficientnet-lite0 --weights lite0.pth --to timm --out lite0-timm --dtype bf16"
)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// New folder for config.json and the weights
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Whose names and config.json: torchvision, timm, transformers or efficientnet_pytorch, where the
    /// model is there [default: the family's first]
    #[arg(long, value_name = "UPSTREAM")]
    to: Option<String>,
    /// Split weights that are larger into files of at most this size
    #[arg(long, default_value_t = 5_000_000_000, value_name = "BYTES")]
    shard_size: usize,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    if args.shard_size == 0 {
        return Err(Error::usage("--shard-size", "must be at least 1"));
    }
    let pretrained = args.model.open()?;
    let spec = args.model.backend.spec()?;
    let job = Job {
        pretrained: &pretrained,
        args,
    };
    let report = with_backend(spec, job)??;
    let out = args.out.display().to_string();
    if args.json {
        print_json(&serde_json::json!({
            "model": pretrained.card.name,
            "out": out,
            "tensors": report.loaded,
            "read_as": report.spelling,
            "dropped": report.dropped,
        }));
    } else {
        burn_zoo_core::say!(
            "{}: {} tensors, read in {}'s names, are in {out}",
            pretrained.card.name,
            report.loaded,
            report.spelling
        );
    }
    Ok(())
}

struct Job<'a> {
    pretrained: &'a Pretrained,
    args: &'a Args,
}

impl WithBackend for Job<'_> {
    type Output = Result<LoadReport>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let options = ExportOptions {
            upstream: self.args.to.clone(),
            dtype: dtype::<B>(&self.args.model.dtype, &device)?,
            most_bytes: self.args.shard_size,
            beside: match self.pretrained.card.model.image_shape() {
                Ok(_) => Vec::new(),
                Err(_) => own_text_files(self.pretrained)?,
            },
        };
        burn_zoo::export::<B>(self.pretrained, &self.args.out, &options, &device)
    }
}
