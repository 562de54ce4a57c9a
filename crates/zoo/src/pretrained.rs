use crate::{AutoConfig, AutoModel, ImageShape, ModelCard, find};
use burn::tensor::{DType, backend::Backend};
use burn_zoo_checkpoint::LazyTensors;
use burn_zoo_core::{Error, Interpolation, Preprocessing, Result};
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// A configuration is a page of text; none comes near this.
const MOST_CONFIG_BYTES: u64 = 16 << 20;

/// A model on disk: what is known about it, and its weights, not read yet.
#[derive(Debug)]
pub struct Pretrained {
    /// What is known about it.
    pub card: ModelCard,
    /// Its weights.
    pub weights: LazyTensors,
    /// transformers' `config.json`, where that is what was there.
    pub upstream_config: Option<Value>,
}

impl Pretrained {
    /// Opens a folder (this project's, transformers' or timm's), or a weights file of the listed
    /// model `arch`. A file's own head tells the number of classes.
    ///
    /// # Errors
    /// If nothing is there, it is malformed, or it does not say which model it is.
    pub fn open(path: &Path, arch: Option<&str>) -> Result<Self> {
        if !path.exists() {
            return Err(Error::NotFound {
                path: path.to_path_buf(),
                hint: "give a model folder or a weights file".into(),
            });
        }
        if path.is_dir() && arch.is_none() {
            return Self::open_folder(path);
        }
        let Some(arch) = arch else {
            #[cfg(feature = "llama")]
            {
                let weights = LazyTensors::open(path)?;
                if !weights.metadata.is_empty() {
                    return Self::open_gguf(path, weights);
                }
            }
            let message = format!(
                "is needed: {} does not say which model it is",
                path.display()
            );
            return Err(Error::usage("--arch", message));
        };
        let entry = find(arch)?;
        let weights = LazyTensors::open(path)?;
        let config = fitted(entry.config, &weights);
        let card = ModelCard {
            name: entry.preset.name.into(),
            class_names: numbers(config.image_shape().map_or(0, |shape| shape.num_classes)),
            model: config,
            preprocessing: entry.preset.preprocessing,
        };
        Ok(Self {
            card,
            weights,
            upstream_config: None,
        })
    }

    /// A GGUF file says itself which model it is.
    #[cfg(feature = "llama")]
    fn open_gguf(path: &Path, weights: LazyTensors) -> Result<Self> {
        let card = ModelCard {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
            model: AutoConfig::Llama(burn_zoo_llama::LlamaConfig::from_gguf(&weights)?),
            preprocessing: None,
            class_names: Vec::new(),
        };
        Ok(Self {
            card,
            weights,
            upstream_config: None,
        })
    }

    fn open_folder(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        if !path.is_file() {
            let hint = "a model folder holds config.json and model.safetensors; a run has them when it is done";
            return Err(Error::NotFound {
                path,
                hint: hint.into(),
            });
        }
        let json = read_json(&path)?;
        let malformed = |e: Error| Error::malformed(&path, e.to_string());
        let mut upstream_config = None;
        let card = if json.get("preprocessing").is_some() || json.get("model").is_some() {
            ModelCard::from_json(json, &path)?
        } else if let Some(architecture) = json["architecture"].as_str() {
            timm_card(architecture, &json).map_err(malformed)?
        } else {
            let card = transformers_card(&json, folder).map_err(malformed)?;
            upstream_config = Some(json);
            card
        };
        let weights = LazyTensors::open(folder)?;
        Ok(Self {
            card,
            weights,
            upstream_config,
        })
    }

    /// The model with its weights as `dtype`.
    ///
    /// # Errors
    /// If the weights are not this model's.
    pub fn model<B: Backend>(&self, dtype: DType, device: &B::Device) -> Result<AutoModel<B>> {
        AutoModel::new(&self.card.model, Some(&self.weights), dtype, device)
    }
}

/// Reads a JSON file of a limited size.
fn read_json(path: &Path) -> Result<Value> {
    let file = std::fs::File::open(path).map_err(Error::io(path, "read"))?;
    let mut text = String::new();
    file.take(MOST_CONFIG_BYTES)
        .read_to_string(&mut text)
        .map_err(Error::io(path, "read"))?;
    serde_json::from_str(&text).map_err(|e| Error::malformed(path, e.to_string()))
}

/// The configuration with as many classes as the weights' head has.
fn fitted(config: AutoConfig, weights: &LazyTensors) -> AutoConfig {
    let (keys, Some(head)) = (config.key_maps(), config.head()) else {
        return config;
    };
    let mut heads = keys.iter().map(|map| map.key(head));
    let head = heads.find_map(|key| weights.tensors.get(&key));
    let classes = head.and_then(|tensor| tensor.shape.first());
    match (classes, config.image_shape()) {
        (Some(classes), Ok(shape)) => {
            let num_classes = *classes;
            let shape = ImageShape {
                num_classes,
                ..shape
            };
            config.clone().adapted(shape).unwrap_or(config)
        }
        _ => config,
    }
}

fn numbers(classes: usize) -> Vec<String> {
    (0..classes).map(|i| i.to_string()).collect()
}

/// timm's `config.json`: the name of a listed model, and what differs from it. What is there and cannot
/// be followed is an error: it would be another network, or another image.
fn timm_card(architecture: &str, json: &Value) -> Result<ModelCard> {
    let entry = find(architecture)?;
    let listed = entry.config.image_shape()?;
    let preprocessing = entry.preset.images()?.clone();
    let args = &json["model_args"];
    let known = |key: &String| key == "in_chans";
    if let Some(other) = args.as_object().and_then(|a| a.keys().find(|k| !known(k))) {
        return Err(Error::unknown(
            "argument in model_args",
            other,
            ["in_chans"],
        ));
    }
    field(json, "model_args", Value::as_object)?;
    field(json, "global_pool", |v| {
        v.as_str().filter(|pool| *pool == "avg")
    })?;
    let classes = field(json, "num_classes", size)?.unwrap_or(listed.num_classes);
    let channels = field(args, "in_chans", size)?.unwrap_or(listed.num_channels);
    let shape = ImageShape {
        num_channels: channels,
        num_classes: classes,
    };
    let model = entry.config.adapted(shape)?;
    model.validate()?;
    field(json, "pretrained_cfg", Value::as_object)?;
    let cfg = &json["pretrained_cfg"];
    let names = |v: &Value| {
        let names = v.as_array().filter(|names| names.len() == classes)?;
        let name = |name: &Value| name.as_str().map(String::from);
        names.iter().map(name).collect::<Option<Vec<_>>>()
    };
    let class_names = field(cfg, "label_names", names)?;
    Ok(ModelCard {
        name: architecture.into(),
        model,
        preprocessing: Some(timm_preprocessing(cfg, channels, preprocessing)?),
        class_names: class_names.unwrap_or_else(|| numbers(classes)),
    })
}

/// timm's `pretrained_cfg`: the shorter side becomes `floor(side / crop_pct)` and the centre is cut.
fn timm_preprocessing(
    cfg: &Value,
    channels: usize,
    listed: Preprocessing,
) -> Result<Preprocessing> {
    let mut p = Preprocessing {
        num_channels: channels,
        ..listed
    };
    p.mean.resize(channels, 0.5);
    p.std.resize(channels, 0.5);
    let side = |v: &Value| match v.as_array()?.as_slice() {
        [c, h, w] if size(c)? == channels && size(h)? <= 2048 && h == w => size(h),
        _ => None,
    };
    let side = field(cfg, "input_size", side)?;
    let share = |v: &Value| v.as_f64().filter(|share| (0.1..=1.0).contains(share));
    let crop_pct = field(cfg, "crop_pct", share)?;
    if side.is_some() || crop_pct.is_some() {
        p.crop = side.unwrap_or(p.crop);
        p.resize = (p.crop as f64 / crop_pct.unwrap_or(0.875)) as usize;
    }
    field(cfg, "crop_mode", |v| {
        v.as_str().filter(|mode| *mode == "center")
    })?;
    let filter = |v: &Value| match v.as_str()? {
        "bilinear" => Some(Interpolation::Bilinear),
        "bicubic" => Some(Interpolation::Bicubic),
        _ => None,
    };
    p.interpolation = field(cfg, "interpolation", filter)?.unwrap_or(p.interpolation);
    p.mean = field(cfg, "mean", |v| floats(v, channels))?.unwrap_or(p.mean);
    let above_0 = |std: &Vec<f32>| std.iter().all(|v| *v > 0.0);
    let std = field(cfg, "std", |v| floats(v, channels).filter(above_0))?;
    p.std = std.unwrap_or(p.std);
    Ok(p)
}

/// A field that may be absent or null, but not anything that `read` does not take.
fn field<'a, T>(
    json: &'a Value,
    key: &str,
    read: impl FnOnce(&'a Value) -> Option<T>,
) -> Result<Option<T>> {
    match &json[key] {
        Value::Null => Ok(None),
        value => match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::usage(
                key,
                format!("{value} cannot be followed here"),
            )),
        },
    }
}

/// A count above 0.
fn size(value: &Value) -> Option<usize> {
    let n = value.as_u64().filter(|n| *n > 0)?;
    usize::try_from(n).ok()
}

/// A list of so many numbers.
fn floats(json: &Value, len: usize) -> Option<Vec<f32>> {
    let list = json.as_array().filter(|list| list.len() == len)?;
    list.iter().map(|v| v.as_f64().map(|v| v as f32)).collect()
}

/// transformers' `config.json`, with its `preprocessor_config.json` where there is one.
fn transformers_card(json: &Value, folder: &Path) -> Result<ModelCard> {
    let model = AutoConfig::from_transformers(json)?;
    let name = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into();
    let Ok(shape) = model.image_shape() else {
        return Ok(ModelCard {
            name,
            model,
            preprocessing: None,
            class_names: class_names(json, burn_zoo_nn::num_labels(json)),
        });
    };
    let mut preprocessing = Preprocessing::imagenet(256);
    preprocessing.num_channels = shape.num_channels;
    preprocessing.mean.resize(shape.num_channels, 0.5);
    preprocessing.std.resize(shape.num_channels, 0.5);
    let path = folder.join("preprocessor_config.json");
    if path.is_file() {
        transformers_preprocessing(&read_json(&path)?, &mut preprocessing);
    }
    Ok(ModelCard {
        name,
        model,
        preprocessing: Some(preprocessing),
        class_names: class_names(json, shape.num_classes),
    })
}

/// The names of so many classes, or their numbers.
fn class_names(json: &Value, classes: usize) -> Vec<String> {
    let names = (0..classes).map(|i| match json["id2label"][i.to_string()].as_str() {
        Some(name) => name.to_string(),
        None => i.to_string(),
    });
    names.collect()
}

/// The fields of `ConvNextImageProcessor`, which transformers' ResNets use: below 384 pixels the
/// shorter side becomes `shortest_edge / crop_pct` and the centre is cut.
fn transformers_preprocessing(json: &Value, p: &mut Preprocessing) {
    let size = &json["size"];
    let edge = size["shortest_edge"].as_u64().or_else(|| size.as_u64());
    if let Some(edge) = edge.filter(|edge| (1..=2048).contains(edge)) {
        let crop_pct = json["crop_pct"].as_f64().unwrap_or(224.0 / 256.0);
        p.crop = edge as usize;
        p.resize = if edge < 384 && crop_pct > 0.1 {
            (edge as f64 / crop_pct) as usize
        } else {
            p.crop
        };
    }
    let channels = p.num_channels;
    if let Some(mean) = floats(&json["image_mean"], channels) {
        p.mean = mean;
    }
    if let Some(std) = floats(&json["image_std"], channels) {
        p.std = std;
    }
    if json["resample"].as_u64() == Some(3) {
        p.interpolation = Interpolation::Bicubic;
    }
}
