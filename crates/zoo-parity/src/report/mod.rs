//! What a run of lanes found, and its forms: JSON (by serde), HTML, Markdown and JUnit.

mod html;
mod junit;
mod markdown;

use crate::compare::{Check, Kind};
use chrono::DateTime;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

/// Every lane of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The zoo's version.
    pub version: String,
    /// When it ran: seconds since 1970, UTC.
    pub unix_time: u64,
    /// Processor or device, and system.
    pub machine: String,
    /// The lanes in the order in which they ran.
    pub lanes: Vec<LaneReport>,
}

/// How a lane ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every check passed.
    Passed,
    /// A check failed, or the process ended before its time.
    Failed,
    /// Nothing was compared.
    NotRun,
}

impl Status {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::NotRun => "not run",
        }
    }
}

/// One lane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaneReport {
    /// Its name.
    pub lane: String,
    /// How it ended.
    pub status: Status,
    /// Why it was not run, or ended early.
    pub reason: Option<String>,
    /// Seconds it took.
    pub seconds: f64,
    /// Its cases.
    pub cases: Vec<CaseReport>,
}

/// One case on one lane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseReport {
    /// `FAMILY/CASE`.
    pub case: String,
    /// Calls that took a fast path of zoo-ops.
    pub fast: u64,
    /// Calls that took the generic form.
    pub generic: u64,
    /// Seconds it took.
    pub seconds: f64,
    /// Its comparisons.
    pub checks: Vec<Check>,
}

impl CaseReport {
    /// The checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.passed)
    }

    /// Whether every check passed, and there was one.
    pub fn passed(&self) -> bool {
        !self.checks.is_empty() && self.failed().next().is_none()
    }

    /// The family.
    pub fn family(&self) -> &str {
        self.case.split('/').next().unwrap_or_default()
    }

    /// The check that comes nearest to its limit, or is furthest above it.
    pub fn worst(&self) -> Option<&Check> {
        let ratio = |check: &&Check| check.error / check.limit.max(f64::MIN_POSITIVE);
        let mut checks: Vec<&Check> = self.checks.iter().collect();
        checks.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        checks.pop()
    }
}

impl LaneReport {
    /// The cases of one family.
    pub fn of<'a>(&'a self, family: &'a str) -> impl Iterator<Item = &'a CaseReport> {
        self.cases
            .iter()
            .filter(move |case| case.family() == family)
    }

    /// Every check that failed, with its case.
    pub fn failures(&self) -> impl Iterator<Item = (&CaseReport, &Check)> {
        let cases = self.cases.iter();
        cases.flat_map(|case| case.failed().map(move |check| (case, check)))
    }

    /// The families that ran, each with its largest error of every kind of tensors as text with so many
    /// digits after the point: loading, outputs, gradients, steps.
    pub fn families(&self, digits: usize) -> BTreeMap<&str, [String; 4]> {
        const KINDS: [Kind; 4] = [Kind::Loading, Kind::Outputs, Kind::Gradients, Kind::Steps];
        let mut families: BTreeMap<&str, BTreeMap<Kind, f64>> = BTreeMap::new();
        for case in &self.cases {
            let kinds = families.entry(case.family()).or_default();
            for check in &case.checks {
                let error = kinds.entry(check.kind).or_default();
                *error = error.max(check.error);
            }
        }
        let cell = |kind, kinds: &BTreeMap<Kind, f64>| match kinds.get(&kind) {
            None => "–".to_string(),
            Some(0.0) if kind == Kind::Loading => "all".into(),
            Some(error) => size(*error, digits),
        };
        let cells = |kinds: BTreeMap<Kind, f64>| KINDS.map(|kind| cell(kind, &kinds));
        let families = families.into_iter();
        families
            .map(|(family, kinds)| (family, cells(kinds)))
            .collect()
    }

    /// Seconds that the cases of one family took.
    pub fn seconds_of(&self, family: &str) -> f64 {
        self.of(family).map(|case| case.seconds).sum()
    }

    /// A lane that was not run.
    pub fn not_run(lane: &str, reason: String) -> Self {
        Self {
            lane: lane.into(),
            status: Status::NotRun,
            reason: Some(reason),
            seconds: 0.0,
            cases: Vec::new(),
        }
    }
}

impl Report {
    /// Without a lane so far.
    pub fn new(machine: String) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            unix_time: now.map_or(0, |time| time.as_secs()),
            machine,
            lanes: Vec::new(),
        }
    }

    /// Version, machine and day.
    pub fn origin(&self) -> String {
        let time = DateTime::from_timestamp(self.unix_time as i64, 0);
        let day = time.map_or(String::new(), |time| time.format("%Y-%m-%d").to_string());
        let parts = [
            format!("Burn Zoo {}", self.version),
            self.machine.clone(),
            day,
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(" · ")
    }

    /// Fails unless every lane was run and passed.
    ///
    /// # Panics
    /// With a line for each comparison that failed, and for each lane that was not run.
    pub fn assert_passed(&self) {
        let passed = self.lanes.iter().all(|lane| lane.status == Status::Passed);
        assert!(passed && !self.lanes.is_empty(), "{}", self.markdown());
    }

    /// The lanes that ended so.
    pub fn with(&self, status: Status) -> impl Iterator<Item = &LaneReport> {
        self.lanes.iter().filter(move |lane| lane.status == status)
    }

    /// One line for the end.
    pub fn summary(&self) -> String {
        let count = |status| self.with(status).count();
        let cases = self.lanes.iter().flat_map(|lane| &lane.cases);
        let checks: usize = cases.map(|case| case.checks.len()).sum();
        format!(
            "{} lanes passed, {} failed, {} not run; {checks} comparisons",
            count(Status::Passed),
            count(Status::Failed),
            count(Status::NotRun)
        )
    }

    /// What this run did worse than an older one on the lanes and families of this run: a line for every check
    /// that no longer passes or is no longer made, and for every error that is more than twice what it was and
    /// above the type's rounding.
    pub fn worse_than(&self, older: &Report) -> Vec<String> {
        let checks = |report: &Report| {
            let mut all = BTreeMap::new();
            for lane in &report.lanes {
                for case in &lane.cases {
                    for check in &case.checks {
                        let name = format!("{} {} {}", lane.lane, case.case, check.what);
                        let of = (lane.lane.clone(), case.family().to_string());
                        all.insert(name, (of, check.clone()));
                    }
                }
            }
            all
        };
        let mut lines = Vec::new();
        let now = checks(self);
        let ran: BTreeSet<_> = now.values().map(|(of, _)| of).collect();
        for (name, (of, before)) in checks(older) {
            match now.get(&name) {
                Some((_, check)) => {
                    let larger = check.error > 2.0 * before.error && check.units > 1.0;
                    if larger || (before.passed && !check.passed) {
                        let errors = (before.error, check.error);
                        lines.push(format!(
                            "{name}: {:.1e} before, {:.1e} now",
                            errors.0, errors.1
                        ));
                    }
                }
                None if ran.contains(&of) => {
                    lines.push(format!("{name}: compared before, not now"))
                }
                None => {}
            }
        }
        lines
    }
}

/// An error as text with so many digits after the point.
fn size(error: f64, digits: usize) -> String {
    match error {
        f64::MAX => "∞".into(),
        error => format!("{error:.digits$e}"),
    }
}
