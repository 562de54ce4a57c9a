use crate::{AutoConfig, ModelCard, Pretrained, WithModel, models};
use burn::module::AutodiffModule;
use burn::tensor::DType;
use burn::tensor::backend::AutodiffBackend;
use burn_zoo_checkpoint::{
    KeyMap, LoadOptions, LoadReport, load_with, save_folder, write_atomically,
};
use burn_zoo_core::{Error, Interpolation, Network, Result};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use tempfile::TempDir;

/// How a model is written.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// Whose names and `config.json`; none means the family's usual.
    pub upstream: Option<String>,
    /// The type of the numbers.
    pub dtype: DType,
    /// Files hold at most so many bytes; a larger model is split.
    pub most_bytes: usize,
    /// More files for the folder, by name: a tokenizer's.
    pub beside: Vec<(String, Vec<u8>)>,
}

/// Writes a model into a new folder as its upstream has it: weights as safetensors in upstream's names,
/// and upstream's `config.json`, where it has one. torchvision has none: there, and for every
/// other spelling of names alone, it is this project's.
///
/// # Errors
/// If the weights are not this model's, the upstream is unknown or cannot say this configuration, or
/// the folder exists or cannot be written; then there is none.
pub fn export<B: AutodiffBackend>(
    pretrained: &Pretrained,
    folder: &Path,
    options: &ExportOptions,
    device: &B::Device,
) -> Result<LoadReport> {
    let config = &pretrained.card.model;
    let upstream = upstream(config, options.upstream.as_deref())?;
    let files = config_files(pretrained, upstream)?;
    if folder.symlink_metadata().is_ok() {
        let message = format!("{} is there already; name a new folder", folder.display());
        return Err(Error::usage("--out", message));
    }
    let export = Export {
        pretrained,
        folder,
        files,
        spelling: spelling(config, upstream),
        options,
    };
    config.with_model::<B, _>(None, device, export)?
}

/// Every upstream that a model can be written for: its spellings, and timm where torchvision's names
/// are timm's too.
pub fn upstreams(config: &AutoConfig) -> Vec<&'static str> {
    let maps = config.key_maps();
    let mut names: Vec<_> = maps.iter().map(|map| map.name).collect();
    names.retain(|name| !name.contains(' '));
    if config.image_shape().is_ok() && !names.contains(&"timm") {
        names.push("timm");
    }
    names
}

fn upstream(config: &AutoConfig, name: Option<&str>) -> Result<&'static str> {
    let known = upstreams(config);
    match name {
        None => Ok(known[0]),
        Some(name) => known
            .iter()
            .find(|known| **known == name)
            .copied()
            .ok_or_else(|| Error::unknown("upstream", name, known.iter().copied())),
    }
}

/// The spelling that an upstream reads; a bare model may have one of its own.
fn spelling(config: &AutoConfig, upstream: &str) -> KeyMap {
    let maps = config.key_maps();
    let bare = config
        .image_shape()
        .is_ok_and(|shape| shape.num_classes == 0);
    let fits = |map: &&KeyMap| match map.name.split_once(',') {
        Some((name, _)) => bare && name == upstream,
        None => !(bare && upstream == "transformers") && map.name == upstream,
    };
    maps.iter().find(fits).unwrap_or(&maps[0]).clone()
}

/// Upstream's files beside the weights, by name.
fn config_files(pretrained: &Pretrained, upstream: &str) -> Result<Vec<(&'static str, Value)>> {
    let card = &pretrained.card;
    match upstream {
        "transformers" if card.model.image_shape().is_err() => {
            let config = match &pretrained.upstream_config {
                // What upstream wrote says more than is followed here.
                Some(config) => config.clone(),
                None => text_config(card)?,
            };
            Ok(vec![("config.json", config)])
        }
        "transformers" => transformers_files(card),
        "timm" => Ok(vec![("config.json", timm_config(card)?)]),
        _ => {
            let json = serde_json::to_value(card);
            let json = json.map_err(|e| Error::usage("config.json", e.to_string()))?;
            Ok(vec![("config.json", json)])
        }
    }
}

fn text_config(card: &ModelCard) -> Result<Value> {
    let mut config = card.model.to_transformers()?;
    if let Some(fields) = config.as_object_mut()
        && !card.class_names.is_empty()
    {
        // As many as have names.
        fields.remove("num_labels");
        fields.extend(labels(card));
    }
    Ok(config)
}

/// The names of classes as transformers' configurations have them.
fn labels(card: &ModelCard) -> [(String, Value); 2] {
    let names = card.class_names.iter().enumerate();
    let id2label = names
        .clone()
        .map(|(i, name)| (i.to_string(), json!(name)))
        .collect();
    let label2id = names.map(|(i, name)| (name.clone(), json!(i))).collect();
    [("id2label".into(), id2label), ("label2id".into(), label2id)]
}

fn transformers_files(card: &ModelCard) -> Result<Vec<(&'static str, Value)>> {
    let mut config = card.model.to_transformers()?;
    // Without a head there is nothing to name.
    if card.model.image_shape()?.num_classes > 0
        && let Some(fields) = config.as_object_mut()
    {
        fields.extend(labels(card));
    }
    let Some(p) = &card.preprocessing else {
        return Err(Error::usage(
            "--to",
            "nothing says how an image becomes the model's input",
        ));
    };
    if p.crop >= 384 && p.resize != p.crop {
        let message = format!(
            "transformers' image processor of ResNets cuts nothing off at 384 pixels and more, and this model resizes to {} and cuts {}",
            p.resize, p.crop
        );
        return Err(Error::usage("--to", message));
    }
    let preprocessor = json!({
        "image_processor_type": "ConvNextImageProcessor",
        "do_resize": true,
        "do_rescale": true,
        "do_normalize": true,
        "size": { "shortest_edge": p.crop },
        "crop_pct": crop_pct(p.crop, p.resize),
        "resample": match p.interpolation {
            Interpolation::Bilinear => 2,
            Interpolation::Bicubic => 3,
        },
        "rescale_factor": 1.0 / 255.0,
        "image_mean": p.mean,
        "image_std": p.std,
    });
    Ok(vec![
        ("config.json", config),
        ("preprocessor_config.json", preprocessor),
    ])
}

/// timm knows its networks by name.
fn timm_config(card: &ModelCard) -> Result<Value> {
    let shape = card.model.image_shape()?;
    let (channels, classes) = (shape.num_channels, shape.num_classes);
    let same = |config: &AutoConfig| {
        let adapted = config.clone().adapted(shape);
        adapted.is_ok_and(|config| config == card.model)
    };
    let models = models();
    let mut listed = models.iter().filter(|entry| {
        // torchvision's ResNets have timm's names too.
        let known = entry.preset.upstream == "timm" || entry.preset.family == "resnet";
        known && entry.preset.weights.is_some() && same(&entry.config)
    });
    let Some(entry) = listed.next() else {
        let message = format!(
            "timm has no network of {}'s sizes, padding and batch norm by a name that is known here",
            card.name
        );
        return Err(Error::usage("--to", message));
    };
    let Some(p) = &card.preprocessing else {
        return Err(Error::usage(
            "--to",
            "nothing says how an image becomes the model's input",
        ));
    };
    let interpolation = match p.interpolation {
        Interpolation::Bilinear => "bilinear",
        Interpolation::Bicubic => "bicubic",
    };
    Ok(json!({
        "architecture": entry.preset.name,
        "num_classes": classes,
        "model_args": { "in_chans": channels },
        "pretrained_cfg": {
            "num_classes": classes,
            "input_size": [channels, p.crop, p.crop],
            "interpolation": interpolation,
            "crop_pct": crop_pct(p.crop, p.resize),
            "crop_mode": "center",
            "mean": p.mean,
            "std": p.std,
            "label_names": card.class_names,
        },
    }))
}

/// The share for which `floor(crop / share)`, as upstream computes it, is `resize` again.
fn crop_pct(crop: usize, resize: usize) -> f64 {
    let share = crop as f64 / resize as f64;
    if (crop as f64 / share) as usize == resize {
        share
    } else {
        crop as f64 / (resize as f64 + 0.5)
    }
}

struct Export<'a> {
    pretrained: &'a Pretrained,
    folder: &'a Path,
    files: Vec<(&'static str, Value)>,
    spelling: KeyMap,
    options: &'a ExportOptions,
}

impl<B: AutodiffBackend> WithModel<B> for Export<'_> {
    type Output = Result<LoadReport>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + Network<B>,
        M::InnerModule: Network<B::InnerBackend>,
    {
        let strict = LoadOptions::strict(self.options.dtype);
        let (model, report) = load_with(model, &self.pretrained.weights, &key_maps, &strict)?;
        let parent = match self.folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // Made under another name, so that the folder is whole once it has its own.
        std::fs::create_dir_all(parent).map_err(Error::io(parent, "create the folder"))?;
        let (work, lock) = workshop(parent, self.folder)?;
        for (name, json) in &self.files {
            let text = format!("{json:#}\n");
            write_atomically(&work.path().join(name), text.as_bytes())?;
        }
        for (name, bytes) in &self.options.beside {
            write_atomically(&work.path().join(name), bytes)?;
        }
        save_folder(&model, work.path(), &self.spelling, self.options.most_bytes)?;
        // Without its lock file nobody takes the folder for a leftover.
        std::fs::remove_file(work.path().join(LOCK)).map_err(Error::io(&work, "write into"))?;
        drop(lock);
        let made = work.keep();
        std::fs::rename(&made, self.folder).map_err(|e| {
            // What could not be put in its place is not left behind.
            let _ = std::fs::remove_dir_all(&made);
            Error::io(self.folder, "create")(e)
        })?;
        Ok(report)
    }
}

/// Held by the process that fills a hidden folder.
const LOCK: &str = ".lock";

/// A hidden folder in `parent` to make `target` in, and its lock. Those of processes that were killed
/// while they made the same target are removed.
fn workshop(parent: &Path, target: &Path) -> Result<(TempDir, File)> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".part-{name}-");
    let entries = std::fs::read_dir(parent).map_err(Error::io(parent, "list the folder"))?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let lock = File::open(path.join(LOCK));
        if name.starts_with(&prefix) && lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            // Another process may be faster.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
    let mut builder = tempfile::Builder::new();
    let work = builder.prefix(&prefix).tempdir_in(parent);
    let work = work.map_err(Error::io(parent, "write into"))?;
    let path = work.path().join(LOCK);
    let lock = File::create(&path).map_err(Error::io(&path, "write"))?;
    lock.lock().map_err(Error::io(&path, "lock"))?;
    Ok((work, lock))
}

#[cfg(test)]
mod tests {
    use super::crop_pct;

    #[test]
    fn a_share_gives_its_side_again() {
        assert_eq!(crop_pct(224, 256), 0.875);
        for crop in 32..=512 {
            for resize in crop..=640 {
                let again = (crop as f64 / crop_pct(crop, resize)) as usize;
                assert_eq!(again, resize, "{crop} of {resize}");
            }
        }
    }
}
