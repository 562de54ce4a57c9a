use burn::tensor::{DType, TensorData};
use burn_zoo_checkpoint::Tensors;
use burn_zoo_core::{Error, Result};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// A model with random weights, and what its upstream computed with them in f64.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// `FAMILY/CASE`.
    pub name: String,
    /// The model's configuration, with its `model_type`.
    pub config: Value,
    /// Whose names the weights have.
    pub spelling: String,
    /// Parts that are too ill-conditioned for anything below f64: `train`, or an optimizer's name.
    pub f64_only: Vec<String>,
    /// Upstream's own errors of outputs and of gradients in `bf16` and `f16`.
    pub half_errors: BTreeMap<String, [f64; 2]>,
    /// `model.KEY`, `input.NAME`, `labels`, `grad_output`, and upstream's results as [`measure`](crate::measure)
    /// calls them.
    pub tensors: Tensors,
    /// Inputs, labels and upstream's results of ten optimizer steps.
    pub steps: Option<Tensors>,
}

impl Fixture {
    /// From the bytes of its files.
    ///
    /// # Errors
    /// If they are not what `tools/golden` writes.
    pub fn parse(name: &str, bytes: &[u8], steps: Option<&[u8]>) -> Result<Self> {
        let path = PathBuf::from(name);
        let (tensors, header) = tensors(&path, bytes)?;
        let text = |key: &str| {
            let found = header.get(key).map(String::as_str);
            found.ok_or_else(|| Error::malformed(&path, format!("its header lacks `{key}`")))
        };
        fn json<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
            serde_json::from_str(text).map_err(|e| Error::malformed(path, e.to_string()))
        }
        Ok(Self {
            name: name.into(),
            config: json(&path, text("config")?)?,
            spelling: text("spelling")?.into(),
            f64_only: json(&path, text("f64_only")?)?,
            half_errors: json(&path, text("half_errors")?)?,
            steps: match steps {
                Some(bytes) => Some(self::tensors(&path, bytes)?.0),
                None => None,
            },
            tensors,
        })
    }

    /// The tensor called `name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn get(&self, name: &str) -> Result<&TensorData> {
        get(&self.name, &self.tensors, name)
    }

    /// Every tensor whose name starts with `prefix`, by the rest of its name.
    pub fn group(&self, prefix: &str) -> Tensors {
        group(&self.tensors, prefix)
    }
}

/// The tensor called `name` of the fixture `of`.
pub(crate) fn get<'a>(of: &str, tensors: &'a Tensors, name: &str) -> Result<&'a TensorData> {
    let found = tensors.get(name);
    found.ok_or_else(|| Error::malformed(of, format!("there is no tensor `{name}`")))
}

/// Every tensor whose name starts with `prefix`, by the rest of its name.
pub(crate) fn group(tensors: &Tensors, prefix: &str) -> Tensors {
    let rest = |(name, data): (&String, &TensorData)| {
        Some((name.strip_prefix(prefix)?.to_string(), data.clone()))
    };
    tensors.iter().filter_map(rest).collect()
}

fn tensors(path: &Path, bytes: &[u8]) -> Result<(Tensors, HashMap<String, String>)> {
    let malformed = |e: String| Error::malformed(path, e);
    let file = SafeTensors::deserialize(bytes).map_err(|e| malformed(e.to_string()))?;
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| malformed(e.to_string()))?;
    let mut tensors = Tensors::new();
    for (name, view) in file.tensors() {
        let dtype = match view.dtype() {
            Dtype::F64 => DType::F64,
            Dtype::F32 => DType::F32,
            Dtype::I64 => DType::I64,
            other => return Err(malformed(format!("`{name}` holds {other:?}"))),
        };
        let data = TensorData::from_bytes_vec(view.data().to_vec(), view.shape().to_vec(), dtype);
        tensors.insert(name, data);
    }
    Ok((tensors, header.metadata().clone().unwrap_or_default()))
}
