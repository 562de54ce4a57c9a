//! Divergence, full disks and bad downloads: an explanation, and nothing lost.
#![cfg(unix)]

use crate::common::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

#[test]
fn nan_stops_the_run_with_step_place_and_last_good_checkpoint() {
    let folder = temp();
    for (i, lr) in ["1e300", "1e30"].into_iter().enumerate() {
        let out = text(&folder.path().join(format!("run{i}")));
        let options = [
            "--lr",
            lr,
            "--warmup-epochs",
            "0",
            "--clip-norm",
            "0",
            "--ema-decay",
            "0",
            "--optimizer",
            "sgd",
            "--checkpoint-every",
            "1",
        ];
        let words = [
            "training stopped at step 2",
            "is the first with a value that is not finite",
            "last good checkpoint",
            "--lr",
        ];
        fails(&short_run(&out, &options), 1, &words);
    }
}

/// Runs the command with files limited to `kib` KiB: writing beyond that fails as on a full disk.
fn with_file_limit(kib: usize, args: &[&str]) -> Ended {
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", kib * 2);
    let mut command = assert_cmd::Command::new("sh");
    command
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_zoo-under-test")])
        .args(args);
    ended(&mut command)
}

#[test]
fn a_full_disk_stops_the_run_and_leaves_the_last_good_checkpoint() {
    let folder = temp();
    let run_folder = folder.path().join("run");
    let out = text(&run_folder);
    // The first epoch has room, then the disk is full: no file can grow beyond 100 KiB.
    let args = short_run(&out, &["--epochs", "3"]);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_zoo-under-test"))
        .args(&args)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the binary starts");
    let first = run_folder.join("checkpoints/step-00000020");
    let started = std::time::Instant::now();
    while !first.is_dir() {
        assert!(started.elapsed().as_secs() < 120, "no checkpoint");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let good = contents(&first);

    let resume = ["train", "--resume", &out];
    fails_as(
        with_file_limit(100, &resume),
        &resume,
        1,
        &["cannot write", "checkpoints"],
    );
    assert_eq!(contents(&first), good, "the good checkpoint is untouched");
    let left: Vec<String> = std::fs::read_dir(run_folder.join("checkpoints"))
        .expect("a folder")
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.starts_with(".part"))
        .collect();
    // What kill -9 interrupted may be left under a temporary name; the full disk leaves nothing.
    assert!(left.len() <= 1, "half-written: {left:?}");
    let resumed = run(&resume);
    assert_eq!(
        resumed.code, 0,
        "with room again it goes on: {}",
        resumed.stderr
    );
}

/// A server on this machine that answers every request with what `answer` makes of its path.
fn serve(requests: usize, answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().take(requests) {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 2048];
            let n = stream.read(&mut request).unwrap_or(0);
            let line = String::from_utf8_lossy(&request[..n]).into_owned();
            let path = line.split(' ').nth(1).unwrap_or("/").to_string();
            // A client that hangs up is its own matter.
            let _ = stream.write_all(&answer(&path));
        }
    });
    address
}

fn response(status: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
            .into_bytes();
    bytes.extend(body);
    bytes
}

fn download_from(address: &str, cache: &Path, words: &[&str]) {
    let args = [
        "train",
        "--dataset",
        "cifar10",
        "--epochs",
        "1",
        "--out",
        &text(&cache.join("never")),
    ];
    let mut command = zoo(&args);
    command
        .env("BURN_ZOO_CACHE", cache)
        .env("BURN_ZOO_MIRROR", address);
    fails_as(ended(&mut command), &args, 1, words);
    let left = if cache.exists() {
        contents(cache)
    } else {
        Vec::new()
    };
    assert!(
        left.is_empty(),
        "nothing may be left of a bad download: {left:?}"
    );
}

#[test]
fn symptom_21_a_bad_download_is_detected_and_never_used() {
    let cache = temp();
    let wrong = serve(1, |_| response("200 OK", 5, b"hello"));
    download_from(
        &wrong,
        cache.path(),
        &["wrong contents", "SHA-256", "--data-dir"],
    );
    let cut = serve(1, |_| response("200 OK", 500, b"hello"));
    download_from(
        &cut,
        cache.path(),
        &["cifar-10-binary.tar.gz", "--data-dir"],
    );
    let gone = serve(1, |_| response("404 Not Found", 0, b""));
    download_from(&gone, cache.path(), &["404"]);
    download_from(
        "http://127.0.0.1:9",
        cache.path(),
        &["127.0.0.1:9", "--data-dir"],
    );
}
