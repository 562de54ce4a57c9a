//! The page about a run on images.

use super::curves::{Curves, median};
use super::write;
use crate::evaluate::Evaluation;
use crate::metrics::Row;
use crate::recipe::Recipe;
use askama::Template;
use base64::Engine;
use burn_zoo_core::{Error, Result, group_digits};
use burn_zoo_image::Image;
use burn_zoo_images::Dataset;
use image::ImageEncoder;
use std::path::Path;

/// What a report tells.
pub struct ReportInput<'a> {
    /// The recipe.
    pub recipe: &'a Recipe,
    /// The data.
    pub dataset: &'a Dataset,
    /// The command that made the run.
    pub command: &'a str,
    /// Rows of `metrics.csv`.
    pub rows: &'a [Row],
    /// The evaluation on the test part.
    pub evaluation: &'a Evaluation,
    /// Seconds of training.
    pub seconds: f64,
    /// Step of the evaluated checkpoint.
    pub best_step: usize,
    /// Trainable parameters.
    pub num_parameters: usize,
    /// Floating-point operations of one image's forward pass.
    pub flops: u64,
}

struct Cell {
    count: usize,
    /// Share of its row, for the shade.
    share: f64,
    diagonal: bool,
}

struct Picture {
    png: String,
    truth: String,
    guess: String,
    probability: f32,
    right: bool,
}

#[derive(Template)]
#[template(path = "images.html")]
struct Page<'a> {
    title: String,
    facts: Vec<(&'static str, String)>,
    curves: Curves,
    classes: &'a [String],
    confusion: Vec<(&'a str, Vec<Cell>, f64)>,
    large: bool,
    wrong: Vec<Picture>,
    some: Vec<Picture>,
    wrong_count: usize,
    recipe: String,
    command: &'a str,
    attribution: &'a str,
    version: &'static str,
}

/// Writes the report to `path`.
///
/// # Errors
/// If an image cannot be read again or the file cannot be written.
pub fn write_report(path: &Path, input: &ReportInput) -> Result<()> {
    write(path, &page(path, input)?)
}

fn page<'a>(path: &Path, input: &'a ReportInput) -> Result<Page<'a>> {
    let (eval, data) = (input.evaluation, input.dataset);
    let labels: Vec<usize> = (0..data.test.len()).map(|i| data.test.label(i)).collect();
    let is_wrong = |i: &usize| eval.predictions[*i].0 != labels[*i];
    let all = 0..eval.predictions.len().min(labels.len());
    let mut wrong: Vec<usize> = all.clone().filter(is_wrong).collect();
    let wrong_count = wrong.len();
    // The most confident mistakes tell most.
    wrong.sort_by(|a, b| eval.predictions[*b].1.total_cmp(&eval.predictions[*a].1));
    wrong.truncate(24);
    let step = (all.len() / 24).max(1);
    let some: Vec<usize> = all.step_by(step).take(24).collect();
    let picture = |i: &usize| -> Result<Picture> {
        let (guess, probability) = eval.predictions[*i];
        Ok(Picture {
            png: data_url(&data.test.image(*i)?, path)?,
            truth: data.class_names[labels[*i]].clone(),
            guess: data.class_names[guess].clone(),
            probability: 100.0 * probability,
            right: guess == labels[*i],
        })
    };
    let curves = Curves::new(input.rows, "images per second", None)?;
    let train = input.rows.iter().filter(|r| r.split == "train");
    let waits = train.map(|r| r.input_wait).collect();
    Ok(Page {
        title: format!("{} on {}", input.recipe.model, data.name),
        facts: vec![
            ("test accuracy", format!("{:.2} %", 100.0 * eval.accuracy)),
            ("test images", eval.count.to_string()),
            ("test loss", format!("{:.4}", eval.loss)),
            ("training time", format!("{:.1} s", input.seconds)),
            (
                "images per second",
                format!("{:.0}", curves.items_per_second),
            ),
            (
                "waiting for input",
                format!("{:.1} %", 100.0 * median(waits)),
            ),
            ("parameters", group_digits(input.num_parameters as u64)),
            (
                "MFLOPs an image",
                format!("{:.1}", input.flops as f64 / 1e6),
            ),
            (
                "backend",
                format!("{}, {} threads", input.recipe.backend, input.recipe.threads),
            ),
            ("best step", input.best_step.to_string()),
        ],
        curves,
        classes: &data.class_names,
        confusion: confusion(eval, &data.class_names),
        large: data.class_names.len() > 30,
        wrong: wrong.iter().map(picture).collect::<Result<_>>()?,
        some: some.iter().map(picture).collect::<Result<_>>()?,
        wrong_count,
        recipe: serde_json::to_string_pretty(input.recipe)
            .map_err(|e| Error::malformed(path, e.to_string()))?,
        command: input.command,
        attribution: &data.attribution,
        version: env!("CARGO_PKG_VERSION"),
    })
}

fn confusion<'a>(eval: &Evaluation, names: &'a [String]) -> Vec<(&'a str, Vec<Cell>, f64)> {
    let rows = eval.confusion.iter().zip(names).enumerate();
    rows.map(|(i, (row, name))| {
        let total: usize = row.iter().sum();
        let share = |count: usize| count as f64 / total.max(1) as f64;
        let cells = row.iter().enumerate().map(|(j, count)| Cell {
            count: *count,
            share: share(*count),
            diagonal: i == j,
        });
        (name.as_str(), cells.collect(), 100.0 * share(row[i]))
    })
    .collect()
}

/// The image as PNG in an address that holds its own data; large ones are made smaller.
fn data_url(picture: &Image, path: &Path) -> Result<String> {
    let fail =
        |e: image::ImageError| Error::malformed(path, format!("a picture cannot be drawn: {e}"));
    let mut png = Vec::new();
    let (width, height) = (picture.width as u32, picture.height as u32);
    let buffer = match picture.channels {
        1 => image::GrayImage::from_raw(width, height, picture.pixels.clone())
            .map(image::DynamicImage::from),
        _ => image::RgbImage::from_raw(width, height, picture.pixels.clone())
            .map(image::DynamicImage::from),
    };
    let Some(mut buffer) = buffer else {
        return Err(Error::malformed(
            path,
            "a picture has fewer pixels than its size says",
        ));
    };
    if width.max(height) > 128 {
        buffer = buffer.thumbnail(128, 128);
    }
    image::codecs::png::PngEncoder::new(&mut png)
        .write_image(
            buffer.as_bytes(),
            buffer.width(),
            buffer.height(),
            buffer.color().into(),
        )
        .map_err(fail)?;
    let text = base64::engine::general_purpose::STANDARD.encode(png);
    Ok(format!("data:image/png;base64,{text}"))
}
