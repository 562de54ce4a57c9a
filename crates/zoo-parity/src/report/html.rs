use super::{CaseReport, LaneReport, Report, Status};
use crate::compare::{Check, Stage};
use askama::Template;
use burn_zoo_core::{Error, Result};

#[derive(Template)]
#[template(path = "verify.html")]
struct Page<'a> {
    report: &'a Report,
    summary: String,
    cases: Vec<&'a str>,
    lanes: Vec<&'a LaneReport>,
    not_run: Vec<&'a LaneReport>,
}

impl Report {
    /// One page: a heat map of cases by lanes, each of which leads to its comparisons.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn html(&self) -> Result<String> {
        let lanes = self
            .lanes
            .iter()
            .filter(|lane| lane.status != Status::NotRun);
        let lanes: Vec<&LaneReport> = lanes.collect();
        let mut cases: Vec<&str> = lanes
            .iter()
            .flat_map(|lane| lane.cases.iter().map(|case| case.case.as_str()))
            .collect();
        cases.sort_unstable();
        cases.dedup();
        let page = Page {
            report: self,
            summary: self.summary(),
            cases,
            lanes,
            not_run: self.with(Status::NotRun).collect(),
        };
        page.render()
            .map_err(|e| Error::malformed("verify.html", e.to_string()))
    }
}

impl LaneReport {
    fn case(&self, name: &str) -> Option<&CaseReport> {
        self.cases.iter().find(|case| case.case == name)
    }
}

/// How near an error comes to its limit, from 0 for four powers of ten below it and more to 1.
fn share(error: f64, limit: f64) -> f64 {
    ((error / limit).max(1e-4).log10() / 4.0 + 1.0).min(1.0)
}

impl CaseReport {
    /// Green far below the limit, yellow near it, red above.
    fn colour(&self) -> String {
        let Some(check) = self.worst().filter(|_| self.passed()) else {
            return "hsl(0 75% 68%)".into();
        };
        format!(
            "hsl({:.0} 65% 75%)",
            130.0 - 75.0 * share(check.error, check.limit)
        )
    }

    fn cell(&self) -> String {
        self.worst().map_or("–".into(), Check::size)
    }
}

impl Check {
    fn size(&self) -> String {
        super::size(self.error, 0)
    }

    /// What failed, in words.
    pub fn sentence(&self) -> String {
        if let Some(message) = &self.message {
            return format!("{}: {message}", self.what);
        }
        let first = match &self.first {
            Some(stage) => format!("; stage `{stage}` is the first that departs"),
            None => String::new(),
        };
        format!(
            "{}: error {:.1e} at `{}`, at most {:.0e}{first}",
            self.what, self.error, self.worst, self.limit
        )
    }
}

impl Stage {
    fn size(&self) -> String {
        super::size(self.error, 1)
    }

    /// A bar's width in percent: full at the limit.
    fn width(&self, limit: &f64) -> String {
        format!("{:.0}", 100.0 * share(self.error, *limit))
    }
}
