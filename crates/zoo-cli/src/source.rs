//! Where a model comes from: a path, a listed model's published weights, or a hub.

use crate::common::bytes_bar;
use burn_zoo::{Entry, Pretrained, find};
use burn_zoo_core::{Error, Result, cache_dir};
use burn_zoo_hub::{Hub, Progress, Published, RepoId, Timing, fetch_published, mirrored};
use indicatif::BinaryBytes;
use std::path::{Path, PathBuf};

/// Where listed models of text have their pages.
const HUB: &str = "https://huggingface.co/";

/// Whether a network may be used.
#[derive(clap::Args, Clone, Debug)]
pub struct NetArgs {
    /// Use only what is on this machine
    #[arg(long)]
    pub offline: bool,
}

/// Where a model is on this machine.
pub struct Found {
    /// Its folder or weights file.
    pub path: PathBuf,
    /// The listed model it is, if that is how it was named.
    pub listed: Option<String>,
}

/// Opens a model by a path, the name of a listed model, or `ORG/NAME` of a hub. `arch` names the
/// listed model that weights belong to, where they do not say it.
pub fn open(name: &str, arch: Option<&str>, net: &NetArgs) -> Result<Pretrained> {
    let found = locate(name, net)?;
    if found.listed.is_some() && arch.is_some() {
        let message = format!("is for weights that do not say what they are; {name} is listed");
        return Err(Error::usage("--arch", message));
    }
    let mut pretrained = Pretrained::open(&found.path, arch.or(found.listed.as_deref()))?;
    // A snapshot's folder is named by its commit.
    let folder = found.path.file_name().unwrap_or_default();
    if *pretrained.card.name == *folder.to_string_lossy() && !Path::new(name).exists() {
        pretrained.card.name = name.into();
    }
    Ok(pretrained)
}

/// Finds a model on this machine, and downloads it where it is not there.
pub fn locate(name: &str, net: &NetArgs) -> Result<Found> {
    let path = Path::new(name);
    if path.exists() {
        return Ok(Found {
            path: path.into(),
            listed: None,
        });
    }
    let hub = Hub::from_env()?;
    let hub = Hub {
        offline: hub.offline || net.offline,
        ..hub
    };
    if RepoId::is_meant(name) {
        return from_hub(name, &hub);
    }
    if name.contains(['/', '\\', '.']) {
        let hint = "give a folder, a file, a model of `zoo list`, or ORG/NAME of a hub".into();
        return Err(Error::NotFound {
            path: path.into(),
            hint,
        });
    }
    let entry = find(name)?;
    if let Some(repo) = entry
        .preset
        .weights
        .as_ref()
        .and_then(|w| w.url.strip_prefix(HUB))
    {
        // The hub's folder says itself what it is.
        return from_hub(&format!("hf:{repo}"), &hub);
    }
    Ok(Found {
        path: published(&entry, hub.offline)?,
        listed: Some(name.into()),
    })
}

fn from_hub(name: &str, hub: &Hub) -> Result<Found> {
    let found =
        RepoId::parse(name).and_then(|repo| hub.snapshot(&repo, &mut Shown::default().tell()));
    // `runs/digits` may as well be a folder with a typing error in it.
    let also = match name.starts_with("hf:") {
        true => String::new(),
        false => format!("; and {name} is not a folder here"),
    };
    let path = found.map_err(|error| match error {
        Error::Download { url, message } => Error::download(url, message + &also),
        Error::NotFound { path, hint } => Error::NotFound {
            path,
            hint: hint + &also,
        },
        other => other,
    })?;
    Ok(Found { path, listed: None })
}

/// The file with a listed model's published weights.
fn published(entry: &Entry, offline: bool) -> Result<PathBuf> {
    let name = entry.preset.name;
    let Some(weights) = &entry.preset.weights else {
        let message = "no weights are published for it; give a file with --weights, or train it with `zoo train`";
        return Err(Error::usage(name, message));
    };
    let file = weights.url.rsplit('/').next().unwrap_or(name);
    let target = cache_dir().join("weights").join(file);
    if offline && !target.is_file() {
        return Err(Error::NotFound {
            path: target,
            hint: format!("with a network, `zoo fetch {name}` downloads it"),
        });
    }
    let url = mirrored(weights.url, "weights");
    let file = Published {
        url: &url,
        sha256: weights.sha256_prefix,
        // Numbers of 64 bits, and room for names and running statistics.
        most_bytes: (16 << 20) + 8 * entry.preset.num_parameters as u64,
        target: &target,
        keeps_part: true,
    };
    let fetched = fetch_published(&file, &Timing::default(), &mut Shown::default().tell());
    fetched.map_err(|error| match error {
        Error::Download { url, message } => {
            Error::download(url, message + "; or give the path of a weights file")
        }
        other => other,
    })?;
    Ok(target)
}

/// Shows downloads: a line for each file, and a bar on a terminal.
#[derive(Default)]
struct Shown(Option<indicatif::ProgressBar>);

impl Shown {
    fn tell(mut self) -> impl FnMut(Progress) {
        move |progress| match progress {
            Progress::Begin {
                name,
                from,
                bytes,
                done,
            } => {
                let size = bytes.map_or(String::new(), |n| format!(" ({})", BinaryBytes(n)));
                let on = match done {
                    0 => String::new(),
                    done => format!(", going on after {}", BinaryBytes(done)),
                };
                burn_zoo_core::note!("downloading {name}{size} from {from}{on}");
                self.0 = Some(bytes_bar(bytes, done));
            }
            Progress::More(bytes) => self.0.iter().for_each(|bar| bar.inc(bytes)),
            Progress::End => {
                if let Some(bar) = self.0.take() {
                    bar.finish_and_clear();
                }
            }
            Progress::Note(line) => burn_zoo_core::note!("{line}"),
        }
    }
}
