use crate::common::{bar, print_json, table};
use crate::labels;
use crate::model::ModelArgs;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn_zoo::{ModelCard, WithBackend, with_backend};
use burn_zoo_core::{Error, Result};
use burn_zoo_image::decode;
use burn_zoo_images::{Batch, Transform};
use burn_zoo_train::{Prediction, predict_batch, to_tensor};
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo predict runs/digits three.png\n  zoo predict runs/digits photos/ --top 3 --json\n  zoo predict mobilenet_v2 cat.jpg --labels imagenet.txt\n  zoo predict resnet18 cat.jpg --weights resnet18.safetensors\n  zoo predict microsoft/resnet-50 cat.jpg"
)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Image files, or folders of them
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<PathBuf>,
    /// File with one class name a line
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Classes to show for each image
    #[arg(long, default_value_t = 5, value_name = "K")]
    top: usize,
    /// Images computed at a time
    #[arg(long, default_value_t = 16, value_name = "N")]
    batch_size: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

struct Predict<'a> {
    args: &'a Args,
    files: &'a [PathBuf],
}

impl WithBackend for Predict<'_> {
    type Output = Result<(ModelCard, Vec<Prediction>)>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let args = self.args;
        let (model, card, preprocessing, dtype) = args.model.load::<B::InnerBackend>(&device)?;
        let transform = Transform::eval(preprocessing);
        let [channels, height, width] = transform.shape();
        let bar = bar(self.files.len(), "predicting");
        let mut predictions = Vec::new();
        for files in self.files.chunks(args.batch_size) {
            let mut pixel_values = Vec::new();
            for file in files {
                let image = decode(file, channels)?;
                transform.apply(&image, None, &mut pixel_values)?;
            }
            let batch = Batch {
                pixel_values,
                shape: [files.len(), channels, height, width],
                labels: vec![0; files.len()],
            };
            let pixel_values = to_tensor(&batch, dtype, &device);
            predictions.extend(predict_batch(&|x| model.logits(x), pixel_values, args.top)?);
            bar.inc(files.len() as u64);
        }
        bar.finish_and_clear();
        Ok((card, predictions))
    }
}

pub fn run(args: &Args) -> Result<()> {
    if args.top == 0 || args.batch_size == 0 {
        return Err(Error::usage("--top and --batch-size", "must be at least 1"));
    }
    let files = files(&args.images)?;
    let predict = Predict {
        args,
        files: &files,
    };
    let (card, predictions) = with_backend(args.model.backend.spec()?, predict)??;
    let names = match &args.labels {
        Some(path) => labels::read(path, card.class_names.len())?,
        None => card.class_names,
    };
    let entries = files.iter().zip(&predictions);
    if args.json {
        let all = entries.map(|(file, prediction)| {
            let top = prediction.top.iter().map(|(label, probability)| {
                json!({"label": label, "class": names[*label], "probability": probability})
            });
            json!({"file": file.display().to_string(), "top": top.collect::<Vec<_>>()})
        });
        print_json(&json!(all.collect::<Vec<_>>()));
        return Ok(());
    }
    let mut table = table(&["file", "class", "probability"]);
    for (file, prediction) in entries {
        for (i, (label, probability)) in prediction.top.iter().enumerate() {
            let file = if i == 0 {
                file.display().to_string()
            } else {
                String::new()
            };
            table.add_row([
                file,
                names[*label].clone(),
                format!("{:.2} %", 100.0 * probability),
            ]);
        }
    }
    burn_zoo_core::say!("{table}");
    Ok(())
}

/// The files named, and the images of the folders named, sorted.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let images = burn_zoo_images::images_in(path)?;
            if images.is_empty() {
                return Err(Error::malformed(path, "the folder has no images"));
            }
            files.extend(images);
        } else if path.is_file() {
            files.push(path.clone());
        } else {
            return Err(Error::NotFound {
                path: path.clone(),
                hint: "no such image file or folder".into(),
            });
        }
    }
    Ok(files)
}
