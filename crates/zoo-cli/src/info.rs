use crate::common::{BackendArgs, mebibytes, print_json};
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn::tensor::{DType, Tensor};
use burn_zoo::{AutoModel, Entry, WithBackend, with_backend};
use burn_zoo_core::{Result, group_digits};
use serde_json::json;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  zoo info resnet50\n  zoo info resnet18 --json")]
pub struct Args {
    /// A model of `zoo list`
    model: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    backend: BackendArgs,
}

/// Counts one forward pass of the real model on one image.
struct Count<'a>(&'a Entry);

impl WithBackend for Count<'_> {
    type Output = Result<burn_zoo_ops::Counts>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let input = &self.0.preset.preprocessing;
        let model = AutoModel::<B::InnerBackend>::new(&self.0.config, None, DType::F32, &device)?;
        let shape = [1, input.num_channels, input.crop, input.crop];
        let pixel_values = Tensor::zeros(shape, (&device, DType::F32));
        Ok(burn_zoo_ops::count(|| model.logits(pixel_values).into_data()).1)
    }
}

pub fn run(args: &Args) -> Result<()> {
    let entry = burn_zoo::find(&args.model)?;
    if !args.json {
        burn_zoo_core::note!("counting one forward pass of {} …", args.model);
    }
    let counts = with_backend(args.backend.spec()?, Count(&entry))??;
    let p = &entry.preset;
    let input = &p.preprocessing;
    let weights = 4 * p.num_parameters as u64;
    let activations = 4 * counts.activations;
    if args.json {
        print_json(&json!({
            "preset": p,
            "config": entry.config,
            "flops_forward": counts.flops,
            "weight_bytes_f32": weights,
            "activation_bytes_f32": activations,
            "training_bytes_adamw_f32": 4 * weights + activations,
        }));
        return Ok(());
    }
    let row = |name: &str, value: String| burn_zoo_core::say!("{name:<14} {value}");
    burn_zoo_core::say!("{} ({})", p.name, p.task);
    row("paper", p.paper.into());
    row("equal to", p.upstream.into());
    row("crate", format!("burn-zoo-{}", p.family));
    row("parameters", group_digits(p.num_parameters as u64));
    row(
        "FLOPs",
        format!(
            "{:.2} G for one image, a multiply-add counted as two",
            counts.flops as f64 / 1e9
        ),
    );
    row(
        "memory",
        format!(
            "{} of f32 weights; {} of values an image in the forward pass; {} to train with AdamW on one image",
            mebibytes(weights),
            mebibytes(activations),
            mebibytes(4 * weights + activations)
        ),
    );
    row(
        "input",
        format!(
            "{}×{}×{}: shorter side to {} ({:?}), centre cut, mean {:?}, std {:?}",
            input.num_channels,
            input.crop,
            input.crop,
            input.resize,
            input.interpolation,
            input.mean,
            input.std
        ),
    );
    row("licence", p.license.into());
    match &p.weights {
        Some(w) => {
            row(
                "weights",
                format!("{} (SHA-256 {}…), {}", w.url, w.sha256_prefix, w.license),
            );
            if let Some(top1) = w.top1 {
                row("published", format!("{top1:.3} % top-1 on {}", w.dataset));
            }
        }
        None => row("weights", "none published; `zoo train` makes them".into()),
    }
    Ok(())
}
