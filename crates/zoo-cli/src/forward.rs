use crate::common::{BackendArgs, dtype};
use crate::source::{NetArgs, open};
use burn::tensor::DType;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn_zoo::{Pretrained, WithBackend, with_backend};
use burn_zoo_checkpoint::{Tensors, read_safetensors, write_safetensors};
use burn_zoo_core::{Error, Result};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo forward --checkpoint microsoft-resnet-50/ --input in.safetensors --output out.safetensors\n  zoo forward --checkpoint resnet18.pth --arch resnet18 --input in.safetensors --output out.safetensors --grad --dtype f64\n\nThe input holds tensors named as upstream's arguments (pixel_values; with --grad also grad_output, shaped as the primary output), the output those named as upstream's outputs (logits, hidden_states.0, ...) and grad.KEY for every parameter."
)]
pub struct Args {
    /// A model folder, a model of `zoo list`, ORG/NAME[@REVISION] of a hub, or a weights file with --arch
    #[arg(long, value_name = "MODEL")]
    checkpoint: String,
    /// The model of `zoo list` that a weights file belongs to
    #[arg(long, value_name = "NAME")]
    arch: Option<String>,
    /// Safetensors file with the inputs
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Safetensors file to write the outputs to
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Also give the gradient of sum(primary output · grad_output) by every parameter
    #[arg(long)]
    grad: bool,
    /// f32, f64, bf16 or f16; what is written is f32, or f64 with f64
    #[arg(long, default_value = "f32", value_name = "TYPE")]
    dtype: String,
    #[command(flatten)]
    net: NetArgs,
    #[command(flatten)]
    backend: BackendArgs,
}

struct Forward<'a> {
    args: &'a Args,
    pretrained: &'a Pretrained,
    inputs: &'a Tensors,
}

impl WithBackend for Forward<'_> {
    type Output = Result<Tensors>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let dtype = dtype::<B>(&self.args.dtype, &device)?;
        let from = &self.args.input;
        let outputs = burn_zoo::forward::<B>(self.pretrained, self.inputs, from, dtype, &device)?;
        let written = if dtype == DType::F64 {
            DType::F64
        } else {
            DType::F32
        };
        let write =
            |(name, data): (String, burn::tensor::TensorData)| (name, data.convert_dtype(written));
        Ok(outputs.into_iter().map(write).collect())
    }
}

pub fn run(args: &Args) -> Result<()> {
    let spec = args.backend.spec()?;
    let mut inputs = read_safetensors(&args.input)?;
    if !args.grad {
        inputs.remove("grad_output");
    } else if !inputs.contains_key("grad_output") {
        let message = format!("wants a tensor `grad_output` in {}", args.input.display());
        return Err(Error::usage("--grad", message));
    }
    let pretrained = open(&args.checkpoint, args.arch.as_deref(), &args.net)?;
    let files = pretrained.weights.tensors.values().map(|t| &t.file);
    if files
        .chain([&args.input])
        .any(|file| same(file, &args.output))
    {
        let message = format!("{} is read here; name another file", args.output.display());
        return Err(Error::usage("--output", message));
    }
    let forward = Forward {
        args,
        pretrained: &pretrained,
        inputs: &inputs,
    };
    let outputs = with_backend(spec, forward)??;
    write_safetensors(&args.output, &outputs)
}

/// Whether two paths are one file.
fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    real(a).is_some_and(|a| Some(a) == real(b))
}
