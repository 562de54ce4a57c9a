//! One self-contained HTML page about a run.

mod charts;
mod curves;
mod images;
mod text;

pub use images::{ReportInput, write_report};
pub use text::{TextReportInput, write_text_report};

use askama::Template;
use burn_zoo_checkpoint::write_atomically;
use burn_zoo_core::{Error, Result};
use std::path::Path;

fn write(path: &Path, page: &impl Template) -> Result<()> {
    let html = page
        .render()
        .map_err(|e| Error::malformed(path, e.to_string()))?;
    write_atomically(path, html.as_bytes())
}
