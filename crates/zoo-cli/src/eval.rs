use crate::common::{BlockArgs, bar, print_json, table};
use crate::eval_text::{self, Asked};
use crate::model::ModelArgs;
use crate::train::open_options;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn_zoo::{ModelCard, WithBackend, with_backend};
use burn_zoo_core::{Error, Result};
use burn_zoo_images::{Dataset, Loader, LoaderOptions, OpenOptions, Transform, open};
use burn_zoo_train::{Evaluation, RunDir, evaluate};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo eval runs/digits\n  zoo eval runs/digits --part valid --json\n  zoo eval runs/gpt2_mini-kjv-1\n  zoo eval HuggingFaceTB/SmolLM2-135M --dataset text-file --data-dir book.txt\n  zoo eval resnet18 --weights resnet18.safetensors --dataset image-folder --data-dir imagenet/"
)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    blocks: BlockArgs,
    /// digits, mnist, fashion-mnist, cifar10 or image-folder; for language models kjv or text-file [default: the
    /// run's]
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// Folder of the data, or the file of text-file
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// train, valid or test
    #[arg(long, default_value = "test", value_name = "PART")]
    part: String,
    /// Images or sequences computed at a time
    #[arg(long, default_value_t = 64, value_name = "N")]
    batch_size: usize,
    /// Threads that read images
    #[arg(long, default_value_t = 2, value_name = "N")]
    workers: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

struct Eval<'a> {
    args: &'a Args,
    dataset: &'a Dataset,
}

impl WithBackend for Eval<'_> {
    type Output = Result<(ModelCard, Evaluation)>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let (args, data) = (self.args, self.dataset);
        let (model, card, preprocessing, dtype) = args.model.load::<B::InnerBackend>(&device)?;
        let classes = card.class_names.len();
        if data.class_names.len() != classes {
            let message = format!(
                "{} has {} classes, the model {classes}",
                data.name,
                data.class_names.len()
            );
            return Err(Error::usage("--dataset", message));
        }
        let part = match args.part.as_str() {
            "train" => &data.train,
            "valid" => &data.valid,
            "test" => &data.test,
            other => return Err(Error::unknown("part", other, ["train", "valid", "test"])),
        };
        let options = LoaderOptions {
            batch_size: args.batch_size,
            seed: None,
            workers: args.workers,
        };
        // The model's own preprocessing counts, not the data set's.
        let loader = Loader::new(Arc::clone(part), Transform::eval(preprocessing), options)?;
        let bar = bar(loader.len(), "evaluating");
        let logits = |x| model.logits(x);
        let result = evaluate(&logits, &loader, classes, dtype, &device, |done, _| {
            bar.set_position(done as u64)
        })?;
        bar.finish_and_clear();
        Ok((card, result))
    }
}

pub fn run(args: &Args) -> Result<()> {
    // A folder or a file says whether it reads text, a listed model without weights does not.
    if let Ok(pretrained) = args.model.open()
        && pretrained.card.model.image_shape().is_err()
    {
        let asked = Asked {
            model: &args.model,
            blocks: &args.blocks,
            dataset: args.dataset.as_deref(),
            data_dir: args.data_dir.as_deref(),
            batch_size: args.batch_size,
            json: args.json,
        };
        return eval_text::run(&pretrained, &asked);
    }
    let dataset = dataset(args)?;
    let (card, result) = with_backend(
        args.model.backend.spec()?,
        Eval {
            args,
            dataset: &dataset,
        },
    )??;
    if args.json {
        print_json(&json!({
            "model": card.name,
            "dataset": dataset.name,
            "part": args.part,
            "count": result.count,
            "loss": result.loss,
            "accuracy": result.accuracy,
            "top5_accuracy": result.top5_accuracy,
            "confusion": result.confusion,
        }));
        return Ok(());
    }
    burn_zoo_core::say!(
        "{} on {} ({} {} images)",
        card.name,
        dataset.name,
        result.count,
        args.part
    );
    burn_zoo_core::say!(
        "accuracy {:.2} %   top-5 {:.2} %   loss {:.4}",
        100.0 * result.accuracy,
        100.0 * result.top5_accuracy,
        result.loss
    );
    let mut table = table(&["class", "images", "right"]);
    for (i, (name, row)) in card.class_names.iter().zip(&result.confusion).enumerate() {
        let total: usize = row.iter().sum();
        let right = 100.0 * row[i] as f64 / total.max(1) as f64;
        table.add_row([name.clone(), total.to_string(), format!("{right:.1} %")]);
    }
    burn_zoo_core::say!("{table}");
    Ok(())
}

/// The data set that was asked for, or the one the run was trained on.
fn dataset(args: &Args) -> Result<Dataset> {
    let (name, mut options) = match &args.dataset {
        Some(name) => (name.clone(), OpenOptions::default()),
        None => match RunDir::open(Path::new(&args.model.model)) {
            Ok((_, recipe)) => {
                let options = open_options(&recipe);
                (recipe.dataset, options)
            }
            Err(Error::NotFound { .. }) => {
                let message = format!("is needed, since {} is no run folder", args.model.model);
                return Err(Error::usage("--dataset", message));
            }
            Err(error) => return Err(error),
        },
    };
    options.data_dir = args.data_dir.clone().or(options.data_dir);
    open(&name, &options)
}
