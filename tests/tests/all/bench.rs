//! `zoo bench`: what it prints, and that its results do not depend on how they are computed.

use crate::common::*;
use serde_json::Value;

fn bench(args: &[&str]) -> Value {
    let ended = run(&[&["bench", "--json", "--runs", "1"], args].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

#[test]
fn one_job_is_one_object() {
    let found = bench(&["--job", "matmul-1024", "--threads", "2"]);
    assert_eq!(found["job"], "matmul-1024");
    assert_eq!(found["runs"], 1);
    assert_eq!(found["threads"], 2);
    assert_eq!(found["generic_calls"], 0);
    for key in ["median_ms", "fastest_ms", "slowest_ms", "peak_rss_mb"] {
        assert!(found[key].as_f64().is_some_and(|v| v > 0.0), "{found}");
    }
}

#[test]
fn jobs_give_the_same_on_any_backend_and_take_no_generic_form_on_flex() {
    let jobs = ["attention-causal-4x6x256x64", "gpt-4x128-train-b12"];
    let jobs = ["--job", jobs[0], "--job", jobs[1]];
    let (flex, ndarray) = (
        bench(&jobs),
        bench(&[&jobs[..], &["--backend", "ndarray"]].concat()),
    );
    for (a, b) in [0, 1].map(|i| (&flex[i], &ndarray[i])) {
        assert_eq!((&a["job"], &a["generic_calls"]), (&b["job"], &0.into()));
        assert!(b["generic_calls"].as_u64() > Some(0), "{b}");
        let numbers = |one: &Value| -> Vec<f64> {
            let all = one["result"].as_array().expect("a list").iter();
            all.filter_map(Value::as_f64).collect()
        };
        let (a, b) = (numbers(a), numbers(b));
        assert!(a.len() >= 2 && a.len() == b.len());
        let largest = b.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        for (a, b) in a.iter().zip(&b) {
            assert!((a - b).abs() < 1e-4 * largest, "{a} {b}");
        }
    }
}

#[test]
fn wrong_options_are_one_line() {
    fails(
        &["bench", "--job", "resnet18"],
        2,
        &["unknown job `resnet18`", "resnet18-infer-b1"],
    );
    fails(&["bench", "--runs", "0"], 2, &["--runs"]);
    fails(
        &["bench", "--threads", "0", "--job", "matmul-1024"],
        2,
        &["--threads"],
    );
}
