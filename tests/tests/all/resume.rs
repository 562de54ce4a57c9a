//! Interruption is normal: Ctrl-C saves, kill -9 loses little, and a resumed run is bit-equal to
//! one that was never stopped.
#![cfg(unix)]

use crate::common::*;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts a run of `model` with a checkpoint every five steps.
fn start(model: &str, out: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_zoo-under-test"))
        .args(short_run(
            out,
            &["--model", model, "--checkpoint-every", "5"],
        ))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

fn wait_for_checkpoint(run: &Path, step: usize) {
    let wanted = run.join(format!("checkpoints/step-{step:08}"));
    let started = Instant::now();
    while !wanted.is_dir() {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "no checkpoint at step {step}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .expect("kill is there");
    assert!(status.success());
}

/// `metrics.csv` without the columns of wall-clock time.
fn metrics(run: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(run.join("metrics.csv")).expect("metrics");
    text.lines()
        .map(|line| line.split(',').take(7).collect::<Vec<_>>().join(","))
        .collect()
}

fn assert_bit_equal(run: &Path, whole: &Path) {
    assert_eq!(metrics(run), metrics(whole));
    let file =
        |folder: &Path, name: &str| std::fs::read(folder.join(name)).expect("the run is done");
    assert_eq!(
        file(run, "model.safetensors"),
        file(whole, "model.safetensors")
    );
    assert_eq!(file(run, "evaluation.json"), file(whole, "evaluation.json"));
    let last = "checkpoints/step-00000040";
    for name in [
        "model.safetensors",
        "optimizer.safetensors",
        "ema.safetensors",
    ] {
        assert_eq!(
            file(&run.join(last), name),
            file(&whole.join(last), name),
            "{name}"
        );
    }
}

#[test]
fn symptom_17_a_resumed_run_is_bit_equal() {
    let folder = temp();
    let path = |name: &str| folder.path().join(name);
    let whole = run(&short_run(
        &text(&path("whole")),
        &["--checkpoint-every", "5"],
    ));
    assert_eq!(whole.code, 0, "{}", whole.stderr);

    // Ctrl-C in the middle of the first epoch.
    let child = start("resnet20", &text(&path("stopped")));
    wait_for_checkpoint(&path("stopped"), 5);
    signal(&child, "-INT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(
        output.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("--resume"));
    let resumed = run(&[
        "train",
        "--resume",
        &text(&path("stopped")),
        "--threads",
        "2",
    ]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_bit_equal(&path("stopped"), &path("whole"));

    // kill -9: nothing is told, the last checkpoint is whole.
    let mut child = start("resnet20", &text(&path("killed")));
    wait_for_checkpoint(&path("killed"), 25);
    signal(&child, "-KILL");
    child.wait().expect("it ends");
    let resumed = run(&[
        "train",
        "--resume",
        &text(&path("killed")),
        "--threads",
        "2",
    ]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_bit_equal(&path("killed"), &path("whole"));
}

#[test]
fn what_dropout_drops_is_resumed_too() {
    let folder = temp();
    let model = "mobilenet_v2_cifar";
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    let mut child = start(model, &text(&whole));
    assert!(child.wait().expect("it ends").success());
    let child = start(model, &text(&stopped));
    wait_for_checkpoint(&stopped, 5);
    signal(&child, "-INT");
    child.wait_with_output().expect("it ends");
    let resumed = run(&["train", "--resume", &text(&stopped), "--threads", "2"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_bit_equal(&stopped, &whole);
}

#[test]
fn another_number_of_threads_warns() {
    let folder = temp();
    let out = text(&folder.path().join("run"));
    let child = start("resnet20", &out);
    wait_for_checkpoint(&folder.path().join("run"), 5);
    signal(&child, "-INT");
    child.wait_with_output().expect("it ends");
    let resumed = run(&["train", "--resume", &out, "--threads", "1"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(
        resumed.stderr.contains("will not be bit-equal"),
        "{}",
        resumed.stderr
    );
}
