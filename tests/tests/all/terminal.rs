//! What a person sees on a terminal: burn-train's dashboard, in a terminal that `script` makes.
#![cfg(target_os = "linux")]

use crate::common::*;
use std::process::{Command, Stdio};

#[test]
fn the_dashboard_is_drawn_on_a_terminal_and_gives_it_back() {
    let there = Command::new("script")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if !there.is_ok_and(|status| status.success()) {
        println!("not run: util-linux's `script`, which makes a terminal, is not here");
        return;
    }
    let work = temp();
    let (out, seen) = (
        text(&work.path().join("run")),
        text(&work.path().join("seen")),
    );
    let zoo = env!("CARGO_BIN_EXE_zoo-under-test");
    let train = short_run(&out, &["--progress", "dashboard"]).join(" ");
    let command = format!("stty rows 40 cols 120; {zoo} {train}");
    let status = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, &seen])
        .env("TERM", "xterm-256color")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    let drawn = std::fs::read(&seen).expect("what was drawn");
    let drawn = String::from_utf8_lossy(&drawn);
    assert!(status.expect("it starts").success(), "{drawn}");
    // The other screen is entered and left again, and the words of the dashboard were there between.
    let (entered, left) = (drawn.find("\x1b[?1049h"), drawn.rfind("\x1b[?1049l"));
    assert!(entered.is_some() && entered < left, "{drawn}");
    for word in ["Loss", "Accuracy", "Epoch"] {
        assert!(drawn.contains(word), "{word}");
    }
    let after = &drawn[left.unwrap_or_default()..];
    for words in ["▀", "test accuracy", "everything is in", "next:"] {
        assert!(after.contains(words), "{words}: {after}");
    }
}
