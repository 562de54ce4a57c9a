//! `zoo verify`: every lane in a process of its own, so that no backend's global state or crash reaches
//! another.

mod lane;

use crate::common::{bar, table};
use burn_zoo::{find, reference_cases};
use burn_zoo_checkpoint::write_atomically;
use burn_zoo_core::{Error, Result};
use burn_zoo_parity::{CaseReport, LANES, Lane, Report, Status};
use lane::{Apart, run_here};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo verify\n  zoo verify resnet --backend flex\n  zoo verify --lane wgpu-f32-unfused --require wgpu-f32-unfused --report verify/\n  zoo verify --baseline verify/verify.json\n\nExit codes: 0 all that ran passed, 1 something failed, 3 a lane of --require was not run."
)]
pub struct Args {
    /// Families, or models of `zoo list` whose family is meant [default: all]
    #[arg(value_name = "MODEL")]
    models: Vec<String>,
    /// Only the lanes of this backend
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Only the lanes of this type: f32, f64, bf16 or f16
    #[arg(long, value_name = "TYPE")]
    dtype: Option<String>,
    /// Only this lane; may be given several times
    #[arg(long, value_name = "LANE")]
    lane: Vec<String>,
    /// A lane that must be run; may be given several times
    #[arg(long, value_name = "LANE")]
    require: Vec<String>,
    /// Write verify.json, verify.html, verify.md and junit.xml into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// The verify.json of an earlier run: say what is worse
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Number of the backend's device
    #[arg(long, default_value_t = 0, value_name = "N")]
    device: usize,
    /// Seconds that a lane may take for a case before it counts as hung and is ended
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    timeout: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Run this lane in this process
    #[arg(long, hide = true, requires = "work")]
    run_lane: Option<String>,
    /// Where lanes leave what others are compared with
    #[arg(long, hide = true)]
    work: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<i32> {
    let families = families(&args.models)?;
    if let (Some(lane), Some(work)) = (&args.run_lane, &args.work) {
        return run_here(Lane::find(lane)?, args.device, &families, work);
    }
    let lanes = lanes(args)?;
    for name in &args.require {
        Lane::find(name)?;
    }
    let older = args.baseline.as_deref().map(read_report).transpose()?;
    let work = tempfile::tempdir().map_err(Error::io(std::env::temp_dir(), "write into"))?;
    if let Some(folder) = &args.report {
        // Before the work, so that it is not lost to a folder that cannot be written.
        std::fs::create_dir_all(folder).map_err(Error::io(folder, "create the folder"))?;
        tempfile::tempfile_in(folder).map_err(Error::io(folder, "write into"))?;
    }
    let cases = reference_cases(&families)?.len();
    let progress = bar(cases * lanes.len(), "comparing");
    let mut report = Report::new(machine());
    for lane in lanes {
        progress.set_message(lane.name);
        let mut each = || progress.inc(1);
        let apart = Apart {
            lane,
            device: args.device,
            families: &families,
            work: work.path(),
            cases,
            timeout: Duration::from_secs(args.timeout),
        };
        let done = apart.run(&mut each)?;
        let reason = done
            .reason
            .as_deref()
            .map_or(String::new(), |r| format!(": {r}"));
        let line = format!(
            "{} {} in {:.1} s{reason}",
            done.lane,
            done.status.words(),
            done.seconds
        );
        progress.suspend(|| burn_zoo_core::note!("{line}"));
        report.lanes.push(done);
    }
    progress.finish_and_clear();
    show(args, &report)?;
    if let Some(folder) = &args.report {
        write(&report, folder)?;
    }
    for line in older.map_or(Vec::new(), |older| report.worse_than(&older)) {
        match args.json {
            true => burn_zoo_core::note!("worse: {line}"),
            false => burn_zoo_core::say!("worse: {line}"),
        }
    }
    let missing = |name: &String| {
        !report.with(Status::NotRun).all(|lane| lane.lane != *name)
            || report.lanes.iter().all(|lane| lane.lane != *name)
    };
    Ok(if report.with(Status::Failed).next().is_some() {
        1
    } else if let Some(name) = args.require.iter().find(|name| missing(name)) {
        burn_zoo_core::note!("error: lane {name} was required and not run");
        3
    } else {
        0
    })
}

/// The families that names mean.
fn families(models: &[String]) -> Result<Vec<String>> {
    let family = |name: &String| match reference_cases(std::slice::from_ref(name)) {
        Ok(_) => Ok(name.clone()),
        Err(_) => find(name).map(|entry| entry.preset.family.to_string()),
    };
    models.iter().map(family).collect()
}

/// The lanes that are asked for, after the reference, which they need.
fn lanes(args: &Args) -> Result<Vec<Lane>> {
    const TYPES: [&str; 4] = ["f32", "f64", "bf16", "f16"];
    for name in &args.lane {
        Lane::find(name)?;
    }
    if let Some(backend) = &args.backend {
        backend.parse::<burn_zoo::BackendKind>()?;
    }
    if let Some(dtype) = args
        .dtype
        .as_ref()
        .filter(|name| !TYPES.contains(&name.as_str()))
    {
        return Err(Error::unknown("dtype", dtype, TYPES));
    }
    let asked = |lane: &&Lane| {
        let named = args.lane.is_empty() || args.lane.iter().any(|name| name == lane.name);
        let backend = args
            .backend
            .as_ref()
            .is_none_or(|name| name == lane.backend);
        let dtype = args.dtype.as_ref();
        let dtype = dtype.is_none_or(|name| lane.name.split('-').nth(1) == Some(name));
        lane.is_reference() || (named && backend && dtype)
    };
    let lanes: Vec<Lane> = LANES.iter().filter(asked).copied().collect();
    let only_reference = args.lane.iter().all(|name| Lane::reference().name == name);
    let reference = |name: &Option<String>, of: &str| name.as_ref().is_none_or(|name| name == of);
    let means_it = only_reference
        && reference(&args.backend, Lane::reference().backend)
        && reference(&args.dtype, "f64");
    if lanes.len() == 1 && !means_it {
        let message = format!(
            "and --backend and --dtype leave no lane; there are {}",
            LANES.map(|lane| lane.name).join(", ")
        );
        return Err(Error::usage("--lane", message));
    }
    Ok(lanes)
}

fn show(args: &Args, report: &Report) -> Result<()> {
    if args.json {
        let json = serde_json::to_string_pretty(report);
        burn_zoo_core::say!(
            "{}",
            json.map_err(|e| Error::usage("--json", e.to_string()))?
        );
        return Ok(());
    }
    let header = [
        "lane",
        "model",
        "keys",
        "outputs",
        "gradients",
        "ten steps",
        "fast / generic",
        "",
    ];
    let mut table = table(&header);
    for lane in report
        .lanes
        .iter()
        .filter(|lane| lane.status != Status::NotRun)
    {
        for (family, cells) in lane.families(1) {
            let passed = lane.of(family).all(CaseReport::passed);
            let fast: u64 = lane.of(family).map(|case| case.fast).sum();
            let generic: u64 = lane.of(family).map(|case| case.generic).sum();
            let mut row = vec![lane.lane.clone(), family.into()];
            row.extend(cells);
            row.push(format!("{fast} / {generic}"));
            row.push(if passed { "✓" } else { "✗ failed" }.into());
            table.add_row(row);
        }
    }
    burn_zoo_core::say!("{table}");
    for lane in report.with(Status::Failed) {
        for (case, check) in lane.failures() {
            burn_zoo_core::say!("{} {} {}", lane.lane, case.case, check.sentence());
        }
        if let Some(reason) = &lane.reason {
            burn_zoo_core::say!("{} {reason}", lane.lane);
        }
    }
    for lane in report.with(Status::NotRun) {
        let reason = lane.reason.as_deref().unwrap_or_default();
        burn_zoo_core::say!("not run: {}: {reason}", lane.lane);
    }
    burn_zoo_core::say!("{}", report.summary());
    if let Some(folder) = &args.report {
        burn_zoo_core::say!("report: {}", folder.join("verify.html").display());
    }
    Ok(())
}

fn write(report: &Report, folder: &Path) -> Result<()> {
    let json = serde_json::to_string_pretty(report);
    let json = json.map_err(|e| Error::malformed("verify.json", e.to_string()))?;
    for (name, text) in [
        ("verify.json", json),
        ("verify.html", report.html()?),
        ("verify.md", report.markdown()),
        ("junit.xml", report.junit()?),
    ] {
        write_atomically(&folder.join(name), text.as_bytes())?;
    }
    Ok(())
}

fn read_report(path: &Path) -> Result<Report> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
    serde_json::from_str(&text).map_err(|e| Error::malformed(path, e.to_string()))
}

/// The processor, where the system says it, and NVIDIA's devices with their driver.
fn machine() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map(|rest| rest.trim_start_matches([' ', '\t', ':']));
    let mut parts = vec![model.unwrap_or(std::env::consts::ARCH).to_string()];
    let query = ["--query-gpu=name,driver_version", "--format=csv,noheader"];
    let output = Command::new("nvidia-smi").args(query).output();
    if let Some(output) = output.ok().filter(|output| output.status.success()) {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        parts.extend(text.lines().map(|line| line.trim().to_string()));
    }
    parts.push(std::env::consts::OS.into());
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}
