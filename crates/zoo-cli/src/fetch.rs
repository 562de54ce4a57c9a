use crate::common::print_json;
use crate::source::{NetArgs, locate};
use burn_zoo_core::{Error, Result};
use burn_zoo_hub::RepoId;
use indicatif::BinaryBytes;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  zoo fetch mobilenet_v2\n  zoo fetch microsoft/resnet-50\n  zoo fetch timm/resnet18.a1_in1k --revision main --json\n  HF_TOKEN=... zoo fetch org/private-model"
)]
pub struct Args {
    /// A model of `zoo list`, or ORG/NAME[@REVISION] of a hub
    name: String,
    /// Branch, tag or commit of a hub's model
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    net: NetArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let name = match &args.revision {
        None => args.name.clone(),
        Some(_) if !RepoId::is_meant(&args.name) => {
            return Err(Error::usage("--revision", "is for ORG/NAME of a hub"));
        }
        Some(_) if args.name.contains('@') => {
            let message = format!("{} names one already", args.name);
            return Err(Error::usage("--revision", message));
        }
        Some(revision) => format!("hf:{}@{revision}", RepoId::parse(&args.name)?.name()),
    };
    let path = locate(&name, &args.net)?.path;
    let files = files(&path)?;
    let total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    if args.json {
        let file = |(file, bytes): &(PathBuf, u64)| json!({"file": file, "bytes": bytes});
        let list: Vec<_> = files.iter().map(file).collect();
        print_json(&json!({"name": args.name, "path": path, "bytes": total, "files": list}));
        return Ok(());
    }
    burn_zoo_core::say!("{}", path.display());
    if path.is_dir() {
        for (file, bytes) in &files {
            burn_zoo_core::say!(
                "  {:>12}  {}",
                BinaryBytes(*bytes).to_string(),
                file.display()
            );
        }
    }
    burn_zoo_core::say!("  {:>12}  in all", BinaryBytes(total).to_string());
    Ok(())
}

/// The files at `path`, relative to it, with their lengths.
fn files(path: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let length = |path: &Path| {
        let metadata = std::fs::metadata(path);
        metadata.map(|m| m.len()).map_err(Error::io(path, "read"))
    };
    if !path.is_dir() {
        let name = path.file_name().unwrap_or_default();
        return Ok(vec![(name.into(), length(path)?)]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(Error::io(path, "read"))? {
        let entry = entry.map_err(Error::io(path, "read"))?;
        if entry.path().is_file() {
            files.push((entry.file_name().into(), length(&entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}
