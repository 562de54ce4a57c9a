use super::charts::{Series, line_chart};
use crate::metrics::Row;
use burn_zoo_core::Result;

/// What a run measured along its way, as SVG elements.
pub(super) struct Curves {
    pub loss: String,
    pub accuracy: String,
    pub rate: String,
    pub throughput: String,
    /// Median of the training steps.
    pub items_per_second: f64,
}

impl Curves {
    /// Of the rows of `metrics.csv`; `speed` names what a step does in a second, `baseline` is the name and
    /// the loss of what the model is compared with.
    pub fn new(
        rows: &[Row],
        speed: &'static str,
        baseline: Option<(&'static str, f64)>,
    ) -> Result<Self> {
        let of = |split: &str, value: fn(&Row) -> f64| -> Vec<(f64, f64)> {
            let rows = rows.iter().filter(|r| r.split == split);
            rows.map(|r| (r.step as f64, value(r))).collect()
        };
        let both = |value: fn(&Row) -> f64| {
            vec![
                Series::new("train (smoothed)", smooth(of("train", value))),
                Series::new("validation", of("valid", value)),
            ]
        };
        let one = |name, value: fn(&Row) -> f64| {
            line_chart(name, "", &[Series::new(name, of("train", value))])
        };
        let last = rows.iter().map(|r| r.step).max().unwrap_or(1) as f64;
        let baseline =
            baseline.map(|(name, loss)| Series::new(name, vec![(0.0, loss), (last, loss)]));
        let losses: Vec<Series> = both(|r| r.loss).into_iter().chain(baseline).collect();
        let speeds = of("train", |r| r.items_per_second);
        Ok(Self {
            loss: line_chart("loss", "", &losses)?,
            accuracy: line_chart("accuracy", "%", &both(|r| 100.0 * r.accuracy))?,
            rate: one("learning rate", |r| r.lr)?,
            throughput: one(speed, |r| r.items_per_second)?,
            items_per_second: median(speeds.into_iter().map(|p| p.1).collect()),
        })
    }
}

/// The mean of each point and up to seven before it.
fn smooth(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    (0..points.len())
        .map(|i| {
            let window = &points[i.saturating_sub(7)..=i];
            let mean = window.iter().map(|p| p.1).sum::<f64>() / window.len() as f64;
            (points[i].0, mean)
        })
        .collect()
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
