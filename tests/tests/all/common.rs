//! Running the command line and making data for it.
#![allow(dead_code)]

use assert_cmd::Command;
use burn_zoo_images::{Dataset, ImageSource, OpenOptions};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What the user who runs the tests may have set.
const OTHERS_SETTINGS: [&str; 11] = [
    "ALL_PROXY",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HF_TOKEN",
    "HF_TOKEN_PATH",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "HUGGINGFACE_HUB_CACHE",
    "HUGGING_FACE_HUB_TOKEN",
    "NO_PROXY",
    "TRANSFORMERS_OFFLINE",
];

/// The command with `args`, with no cache and no way to a network.
pub fn zoo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zoo-under-test"));
    command
        .args(args)
        .env("BURN_ZOO_CACHE", "/nonexistent/burn-zoo-cache")
        .env("BURN_ZOO_MIRROR", "http://127.0.0.1:9")
        .env("HF_HOME", "/nonexistent/hf-home")
        .env("HF_ENDPOINT", "http://127.0.0.1:9");
    for name in OTHERS_SETTINGS {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command
}

/// What a command printed and how it ended.
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

pub fn run(args: &[&str]) -> Ended {
    ended(&mut zoo(args))
}

pub fn ended(command: &mut Command) -> Ended {
    let output = command.output().expect("the binary starts");
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A failure that a user can act on: this exit code, one line of error with these words, no panic.
pub fn fails(args: &[&str], code: i32, words: &[&str]) {
    fails_as(run(args), args, code, words);
}

pub fn fails_as(ended: Ended, args: &[&str], code: i32, words: &[&str]) {
    let Ended {
        code: found,
        stderr,
        stdout,
    } = ended;
    assert_eq!(found, code, "{args:?}\n{stdout}\n{stderr}");
    assert!(!stderr.contains("panicked"), "{args:?} panicked: {stderr}");
    let errors = stderr
        .lines()
        .filter(|line| line.starts_with("error: "))
        .count();
    assert_eq!(errors, 1, "{args:?} wants one line of error: {stderr}");
    for word in words {
        assert!(
            stderr.contains(word),
            "{args:?} should say `{word}`: {stderr}"
        );
    }
}

pub fn temp() -> TempDir {
    TempDir::new().expect("a temporary folder")
}

pub fn text(path: &Path) -> String {
    path.to_str()
        .expect("temporary paths are UTF-8")
        .to_string()
}

pub fn digits() -> Dataset {
    burn_zoo_images::open("digits", &OpenOptions::default()).expect("the digits are bundled")
}

/// Writes image `i` of a source as PNG, `scale` times as large.
pub fn write_png(source: &dyn ImageSource, i: usize, scale: u32, path: &Path) {
    let image = source.image(i).expect("readable");
    let (width, height) = (image.width as u32, image.height as u32);
    let grey = image::GrayImage::from_raw(width, height, image.pixels).expect("the right size");
    let filter = image::imageops::FilterType::Nearest;
    image::imageops::resize(&grey, width * scale, height * scale, filter)
        .save(path)
        .expect("the folder is writable");
}

/// `root/CLASS/N.png` for the first classes of the digits, `each` images a class.
pub fn digit_folder(root: &Path, classes: usize, each: usize) {
    let data = digits();
    let mut counts = vec![0; classes];
    for i in 0..data.train.len() {
        let label = data.train.label(i);
        if label < classes && counts[label] < each {
            let folder = root.join(format!("digit {label}"));
            std::fs::create_dir_all(&folder).expect("a folder");
            write_png(
                data.train.as_ref(),
                i,
                4,
                &folder.join(format!("{}.png", counts[label])),
            );
            counts[label] += 1;
        }
    }
}

/// An idx file.
pub fn idx(path: &Path, magic: u32, sizes: &[u32], bytes: &[u8]) {
    let mut file = magic.to_be_bytes().to_vec();
    sizes
        .iter()
        .for_each(|size| file.extend(size.to_be_bytes()));
    file.extend(bytes);
    std::fs::write(path, file).expect("writable");
}

/// The four files of a small set in MNIST's form, with `count` images.
pub fn idx_set(folder: &Path, count: usize) {
    std::fs::create_dir_all(folder).expect("a folder");
    let n = count as u32;
    for prefix in ["train", "t10k"] {
        let pixels: Vec<u8> = (0..count * 784).map(|i| (i * 31 % 251) as u8).collect();
        let labels: Vec<u8> = (0..count).map(|i| (i % 10) as u8).collect();
        idx(
            &folder.join(format!("{prefix}-images-idx3-ubyte")),
            0x803,
            &[n, 28, 28],
            &pixels,
        );
        idx(
            &folder.join(format!("{prefix}-labels-idx1-ubyte")),
            0x801,
            &[n],
            &labels,
        );
    }
}

/// Options of a short run on the digits.
pub fn short_run<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec![
        "train",
        "--model",
        "resnet20",
        "--dataset",
        "digits",
        "--epochs",
        "2",
        "--batch-size",
        "64",
        "--threads",
        "2",
        "--out",
        out,
    ];
    args.extend(more);
    args
}

pub fn json(text: &str) -> serde_json::Value {
    let start = text.find(['{', '[']).expect("JSON in the output");
    serde_json::from_str(&text[start..]).expect("valid JSON")
}

/// Every file under a folder, with its contents.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.clone(), std::fs::read(&path).expect("a file")));
            }
        }
    }
    files.sort();
    files
}
