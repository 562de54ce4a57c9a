//! The page about a run on texts.

use super::charts::{Series, line_chart};
use super::{median, smooth};
use crate::metrics::Row;
use crate::recipe::Recipe;
use askama::Template;
use burn_zoo_checkpoint::write_atomically;
use burn_zoo_core::{Error, Result, group_digits};
use std::path::Path;

/// What the page tells.
pub struct TextReportInput<'a> {
    /// The recipe.
    pub recipe: &'a Recipe,
    /// Where the text is from.
    pub attribution: &'a str,
    /// The command that made the run.
    pub command: &'a str,
    /// Rows of `metrics.csv`.
    pub rows: &'a [Row],
    /// What was measured, before what every run has.
    pub facts: Vec<(&'static str, String)>,
    /// The name and the loss of what the model is compared with.
    pub baseline: Option<(&'static str, f64)>,
    /// What is counted.
    pub unit: &'static str,
    /// Beginnings, and how the model goes on; or what it says of texts.
    pub samples: &'a [(String, String)],
    /// Seconds of training.
    pub seconds: f64,
    /// Trainable parameters.
    pub num_parameters: usize,
}

#[derive(Template)]
#[template(path = "text.html")]
struct Page<'a> {
    title: String,
    facts: Vec<(&'static str, String)>,
    loss: String,
    accuracy: String,
    rate: String,
    throughput: String,
    samples: &'a [(String, String)],
    recipe: String,
    command: &'a str,
    attribution: &'a str,
    version: &'static str,
}

/// Writes the page to `path`.
///
/// # Errors
/// If the file cannot be written.
pub fn write_text_report(path: &Path, input: &TextReportInput) -> Result<()> {
    let of = |split: &str, value: fn(&Row) -> f64| -> Vec<(f64, f64)> {
        let rows = input.rows.iter().filter(|r| r.split == split);
        rows.map(|r| (r.step as f64, value(r))).collect()
    };
    let train = |value: fn(&Row) -> f64| of("train", value);
    let percent = |r: &Row| 100.0 * r.accuracy;
    let rates: Vec<f64> = train(|r| r.items_per_second).iter().map(|p| p.1).collect();
    let last = input.rows.iter().map(|r| r.step).max().unwrap_or(1) as f64;
    let recipe = input.recipe;
    let mut losses = vec![
        Series::new("train (smoothed)", smooth(train(|r| r.loss))),
        Series::new("validation", of("valid", |r| r.loss)),
    ];
    let baseline = input.baseline;
    losses.extend(baseline.map(|(name, loss)| Series::new(name, vec![(0.0, loss), (last, loss)])));
    let mut facts = input.facts.clone();
    facts.extend([
        ("training time", format!("{:.1} s", input.seconds)),
        (
            "items a second",
            format!("{:.0} {}", median(rates), input.unit),
        ),
        ("parameters", group_digits(input.num_parameters as u64)),
        (
            "backend",
            format!("{}, {} threads", recipe.backend, recipe.threads),
        ),
    ]);
    let page = Page {
        title: format!("{} on {}", recipe.model, recipe.dataset),
        facts,
        loss: line_chart("loss", "", &losses)?,
        accuracy: line_chart(
            "accuracy",
            "%",
            &[
                Series::new("train (smoothed)", smooth(train(percent))),
                Series::new("validation", of("valid", percent)),
            ],
        )?,
        rate: line_chart(
            "learning rate",
            "",
            &[Series::new("learning rate", train(|r| r.lr))],
        )?,
        throughput: line_chart(
            "items a second",
            "",
            &[Series::new("items a second", train(|r| r.items_per_second))],
        )?,
        samples: input.samples,
        recipe: serde_json::to_string_pretty(recipe)
            .map_err(|e| Error::malformed(path, e.to_string()))?,
        command: input.command,
        attribution: input.attribution,
        version: env!("CARGO_PKG_VERSION"),
    };
    let html = page
        .render()
        .map_err(|e| Error::malformed(path, e.to_string()))?;
    write_atomically(path, html.as_bytes())
}
