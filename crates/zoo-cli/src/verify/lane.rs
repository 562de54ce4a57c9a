//! A lane's process, seen from inside and from outside.

use burn_zoo::{fixtures, run_lane};
use burn_zoo_core::{Error, Result};
use burn_zoo_parity::{CaseReport, Lane, LaneReport, Status};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What a lane's process writes, a line each.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Case(Box<CaseReport>),
    NotRun(String),
    Done,
}

/// The lane's own process: a line for every case, and how it ended.
pub fn run_here(lane: Lane, device: usize, families: &[String], work: &Path) -> Result<i32> {
    let print = |line: Line| {
        let text = serde_json::to_string(&line);
        burn_zoo_core::say!("{}", text.unwrap_or_default());
    };
    let mut each = |case: CaseReport| print(Line::Case(Box::new(case)));
    print(
        match run_lane(lane, device, &fixtures(families)?, work, &mut each) {
            Ok(()) => Line::Done,
            Err(error @ Error::Device { .. }) => Line::NotRun(error.to_string()),
            Err(error) => return Err(error),
        },
    );
    Ok(0)
}

/// A lane in a process of its own.
pub struct Apart<'a> {
    pub lane: Lane,
    pub device: usize,
    pub families: &'a [String],
    /// Where lanes leave what others are compared with.
    pub work: &'a Path,
    /// Cases that it must run.
    pub cases: usize,
    /// The longest that it may say nothing.
    pub timeout: Duration,
}

impl Apart<'_> {
    /// Runs it and collects what it says; `each` is called after every case.
    pub fn run(&self, each: &mut dyn FnMut()) -> Result<LaneReport> {
        let Self { lane, work, .. } = *self;
        let started = Instant::now();
        let program = std::env::current_exe().map_err(Error::io("/proc/self/exe", "find"))?;
        // A CPU is one device, whatever the number of the GPU that is meant.
        let device = match lane.backend {
            "flex" | "ndarray" => 0,
            _ => self.device,
        };
        let log = work.join("stderr");
        let stderr = std::fs::File::create(&log).map_err(Error::io(&log, "write"))?;
        let mut child = Command::new(&program)
            .arg("verify")
            .args(self.families)
            .args([
                "--run-lane",
                lane.name,
                "--device",
                &device.to_string(),
                "--work",
            ])
            .arg(work)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(Error::io(&program, "start"))?;
        let mut report = LaneReport::not_run(lane.name, "its process said nothing".into());
        report.status = Status::Failed;
        let (mut done, mut hung) = (false, false);
        let lines = lines(child.stdout.take());
        loop {
            let line = match lines.recv_timeout(self.timeout) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    hung = true;
                    // That it has just ended is as good.
                    let _ = child.kill();
                    break;
                }
            };
            match serde_json::from_str(&line) {
                Ok(Line::Case(case)) => {
                    report.cases.push(*case);
                    each();
                }
                Ok(Line::NotRun(reason)) => {
                    report.status = Status::NotRun;
                    report.reason = Some(reason);
                    done = true;
                }
                Ok(Line::Done) => {
                    let passed = report.cases.iter().all(CaseReport::passed);
                    let ran = report.cases.len();
                    if passed && ran == self.cases {
                        report.status = Status::Passed;
                    }
                    report.reason = (ran != self.cases)
                        .then(|| format!("only {ran} of {} cases were run", self.cases));
                    done = true;
                }
                // A backend's own words; a case that cannot be read is missed in the count.
                Err(_) => {}
            }
        }
        let status = child.wait().map_err(Error::io(&program, "wait for"))?;
        if hung {
            report.status = Status::Failed;
            let (seconds, ran) = (self.timeout.as_secs(), report.cases.len());
            let message = format!(
                "hung: it said nothing for {seconds} s after {ran} of {} cases",
                self.cases
            );
            report.reason = Some(message);
        } else if !done || !status.success() {
            report.status = Status::Failed;
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            let last = said
                .lines()
                .rfind(|line| !line.trim().is_empty())
                .unwrap_or("");
            report.reason = Some(format!("its process ended early ({status}): {last}"));
        }
        report.seconds = started.elapsed().as_secs_f64();
        Ok(report)
    }
}

/// Lines of a process as they come.
fn lines(out: Option<ChildStdout>) -> Receiver<String> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        let out = out.into_iter().flat_map(|out| BufReader::new(out).lines());
        for line in out.map_while(std::result::Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    lines
}
