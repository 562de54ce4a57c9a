//! `zoo bench`: times of the jobs that other programs are compared on.

mod formula;
mod jobs;

use crate::common::{BackendArgs, print_json, set_threads, table};
use burn_zoo::with_backend;
use burn_zoo_core::{Error, Result, say};
use jobs::{JOBS, Job, Timed, find_job};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo bench\n  zoo bench --job gpt-6x384-train-b4 --threads 2 --json\n\nEach job runs in a process of its own, with inputs and weights from a formula: tools/bench/compare.py runs the same in PyTorch, in turn, and compares results and times."
)]
pub struct Args {
    /// The job, or several [default: all]
    #[arg(long, value_name = "NAME")]
    job: Vec<String>,
    /// Threads that compute [default: one a core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Runs that are measured, after three that are not [default: as many as five seconds hold, at least 5]
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    #[command(flatten)]
    backend: BackendArgs,
    /// Print JSON: an object for one job, a list for several
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    if args.runs.is_some_and(|runs| runs == 0 || runs > 1_000_000) {
        return Err(Error::usage("--runs", "wants 1 to 1000000"));
    }
    if let [name] = args.job.as_slice() {
        let measured = one(args, find_job(name)?)?;
        match args.json {
            true => print_json(&measured),
            false => show(&[measured]),
        }
        return Ok(());
    }
    let wanted: Vec<&Job> = match args.job.is_empty() {
        true => JOBS.iter().collect(),
        false => args
            .job
            .iter()
            .map(|name| find_job(name))
            .collect::<Result<_>>()?,
    };
    let all = wanted.into_iter().map(|job| elsewhere(args, job));
    let all = all.collect::<Result<Vec<Value>>>()?;
    match args.json {
        true => print_json(&all.into()),
        false => show(&all),
    }
    Ok(())
}

/// One job in this process.
fn one(args: &Args, job: &'static Job) -> Result<Value> {
    let spec = args.backend.spec()?;
    let threads = set_threads(args.threads)?;
    let timed = Timed {
        job,
        runs: args.runs,
    };
    let measured = with_backend(spec, timed)??;
    let milliseconds = |seconds: f64| (seconds * 1e6).round() / 1e3;
    let seconds = &measured.seconds;
    let at = |share: f64| milliseconds(seconds[((seconds.len() - 1) as f64 * share) as usize]);
    Ok(json!({
        "job": job.name,
        "about": job.about,
        "backend": spec.backend.name(),
        "median_ms": at(0.5),
        "fastest_ms": at(0.0),
        "slowest_ms": at(1.0),
        "runs": seconds.len(),
        "threads": threads,
        "peak_rss_mb": peak_memory(),
        "result": measured.result,
        "generic_calls": measured.generic,
    }))
}

/// One job in a process of its own, so that its memory is its own.
fn elsewhere(args: &Args, job: &Job) -> Result<Value> {
    let program = std::env::current_exe().map_err(Error::io("zoo", "find"))?;
    let mut command = Command::new(&program);
    command.args(["bench", "--json", "--job", job.name]);
    command.args(["--device", &args.backend.device.to_string()]);
    for (option, value) in [
        ("--threads", args.threads.map(|n| n.to_string())),
        ("--runs", args.runs.map(|n| n.to_string())),
        ("--backend", args.backend.backend.clone()),
    ] {
        command.args(
            value
                .map(|value| [option.to_string(), value])
                .into_iter()
                .flatten(),
        );
    }
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(Error::io(&program, "start"))?;
    let read = serde_json::from_slice(&output.stdout).ok();
    read.filter(|_| output.status.success()).ok_or_else(|| {
        Error::malformed(
            job.name,
            format!("its process ended with {}", output.status),
        )
    })
}

fn show(all: &[Value]) {
    let mut rows = table(&["job", "median ms", "fastest", "slowest", "runs", "peak MiB"]);
    for one in all {
        let number = |key: &str| one[key].as_f64().map_or("–".into(), |v| format!("{v:.2}"));
        rows.add_row([
            one["job"].as_str().unwrap_or_default().to_string(),
            number("median_ms"),
            number("fastest_ms"),
            number("slowest_ms"),
            one["runs"].to_string(),
            number("peak_rss_mb"),
        ]);
    }
    let threads = all
        .first()
        .map_or(0, |one| one["threads"].as_u64().unwrap_or(0));
    say!("{rows}\n{threads} threads");
}

/// The most memory that this process held, in MiB, where the system says so.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes / 1024.0)
}
