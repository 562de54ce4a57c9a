//! The page about a run on texts.

use super::curves::Curves;
use super::write;
use crate::metrics::Row;
use crate::recipe::Recipe;
use askama::Template;
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
    curves: Curves,
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
    let curves = Curves::new(input.rows, "items a second", input.baseline)?;
    let recipe = input.recipe;
    let mut facts = input.facts.clone();
    facts.extend([
        ("training time", format!("{:.1} s", input.seconds)),
        (
            "items a second",
            format!("{:.0} {}", curves.items_per_second, input.unit),
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
        curves,
        samples: input.samples,
        recipe: serde_json::to_string_pretty(recipe)
            .map_err(|e| Error::malformed(path, e.to_string()))?,
        command: input.command,
        attribution: input.attribution,
        version: env!("CARGO_PKG_VERSION"),
    };
    write(path, &page)
}
