use crate::common::{BackendArgs, mebibytes, print_json};
use crate::source::{NetArgs, open};
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn::tensor::{DType, Tensor};
use burn_zoo::{AutoConfig, AutoModel, WithBackend, WithModel, find, with_backend};
use burn_zoo_checkpoint::KeyMap;
use burn_zoo_core::{Preprocessing, Preset, Result, group_digits};
use burn_zoo_optim::trainable;
use serde_json::json;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo info resnet50\n  zoo info resnet18 --json\n  zoo info microsoft/resnet-50"
)]
pub struct Args {
    /// A model of `zoo list`, a run or model folder, ORG/NAME[@REVISION] of a hub, or a weights file with --arch
    model: String,
    /// The model of `zoo list` that a weights file belongs to
    #[arg(long, value_name = "NAME")]
    arch: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    net: NetArgs,
    #[command(flatten)]
    backend: BackendArgs,
}

/// What is asked about: a listed model, which needs no weights, or one that is opened.
struct Subject {
    name: String,
    config: AutoConfig,
    /// Of images; a model of text has none.
    preprocessing: Option<Preprocessing>,
    preset: Option<Preset>,
}

impl Subject {
    fn of(args: &Args) -> Result<Self> {
        if !std::path::Path::new(&args.model).exists()
            && let Ok(entry) = find(&args.model)
        {
            return Ok(Self {
                name: entry.preset.name.into(),
                config: entry.config,
                preprocessing: entry.preset.preprocessing.clone(),
                preset: Some(entry.preset),
            });
        }
        let pretrained = open(&args.model, args.arch.as_deref(), &args.net)?;
        if pretrained.card.model.image_shape().is_ok() {
            let from = &pretrained.weights.path;
            pretrained.card.check_for_images(from)?;
        }
        Ok(Self {
            name: args.model.clone(),
            config: pretrained.card.model,
            preprocessing: pretrained.card.preprocessing,
            preset: None,
        })
    }
}

/// Counts one forward pass of the real model on one image, if it takes images, and its parameters.
struct Count<'a>(&'a Subject);

impl WithBackend for Count<'_> {
    type Output = Result<(Option<burn_zoo_ops::Counts>, usize)>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let counts = match &self.0.preprocessing {
            Some(input) => {
                let config = &self.0.config;
                let model = AutoModel::<B::InnerBackend>::new(config, None, DType::F32, &device)?;
                let shape = [1, input.num_channels, input.crop, input.crop];
                let pixel_values = Tensor::zeros(shape, (&device, DType::F32));
                Some(burn_zoo_ops::count(|| model.logits(pixel_values).into_data()).1)
            }
            None => None,
        };
        let parameters = match &self.0.preset {
            Some(preset) => preset.num_parameters,
            None => self
                .0
                .config
                .with_model::<B, _>(None, &device, Parameters)?,
        };
        Ok((counts, parameters))
    }
}

struct Parameters;

impl<B: AutodiffBackend> WithModel<B> for Parameters {
    type Output = usize;

    fn run<M>(self, model: M, _: Vec<KeyMap>) -> usize
    where
        M: burn::module::AutodiffModule<B>,
    {
        trainable::<B, M>(&model).iter().map(|(_, len)| len).sum()
    }
}

pub fn run(args: &Args) -> Result<()> {
    let subject = Subject::of(args)?;
    let (counts, parameters) = with_backend(args.backend.spec()?, Count(&subject))??;
    let weights = 4 * parameters as u64;
    if args.json {
        let mut json = json!({
            "name": subject.name,
            "config": subject.config,
            "num_parameters": parameters,
            "weight_bytes_f32": weights,
        });
        if let (Some(input), Some(counts)) = (&subject.preprocessing, counts) {
            let activations = 4 * counts.activations;
            json["preprocessing"] = json!(input);
            json["flops_forward"] = json!(counts.flops);
            json["activation_bytes_f32"] = json!(activations);
            json["training_bytes_adamw_f32"] = json!(4 * weights + activations);
        }
        if let Some(preset) = &subject.preset {
            json["preset"] = json!(preset);
        }
        print_json(&json);
        return Ok(());
    }
    let row = |name: &str, value: String| burn_zoo_core::say!("{name:<14} {value}");
    match &subject.preset {
        Some(p) => {
            burn_zoo_core::say!("{} ({})", p.name, p.task);
            row("paper", p.paper.into());
            row("equal to", p.upstream.into());
            row("crate", format!("burn-zoo-{}", p.family));
        }
        None => burn_zoo_core::say!("{}", subject.name),
    }
    row("parameters", group_digits(parameters as u64));
    if let (Some(input), Some(counts)) = (&subject.preprocessing, counts) {
        let activations = 4 * counts.activations;
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
    } else {
        row(
            "memory",
            format!(
                "{} of f32 weights, {} in half a type; {} to train with AdamW, beside the values of the forward pass",
                mebibytes(weights),
                mebibytes(weights / 2),
                mebibytes(4 * weights)
            ),
        );
        row("input", "token numbers of text".into());
    }
    let Some(p) = &subject.preset else {
        return Ok(());
    };
    row("licence", p.license.into());
    match &p.weights {
        Some(w) => {
            row(
                "weights",
                match w.sha256_prefix {
                    "" => format!("{}, {}", w.url, w.license),
                    hash => format!("{} (SHA-256 {hash}…), {}", w.url, w.license),
                },
            );
            if let Some(top1) = w.top1 {
                row("published", format!("{top1:.3} % top-1 on {}", w.dataset));
            }
        }
        None => row("weights", "none published; `zoo train` makes them".into()),
    }
    Ok(())
}
