//! PyTorch's own checkpoints (`.pth`, `.pt`, `.bin`): zip, legacy and tar. Nothing in them is
//! executed; strides, shared storages and nesting are `pytorch-reader`'s work.

use crate::lazy::LazyTensor;
use burn_zoo_core::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Whether a file that begins so is one. The length before a safetensors header may look like the
/// beginning of a pickle; the header's brace tells them apart.
pub(crate) fn is_one(bytes: &[u8]) -> bool {
    if crate::safetensors_file::is_one(bytes) {
        return false;
    }
    bytes.starts_with(b"PK\x03\x04")
        || matches!(bytes, [0x80, 1..=5, ..])
        || bytes.get(257..262) == Some(b"ustar")
}

/// Opens one.
#[cfg(not(feature = "pth"))]
pub(crate) fn open(path: &Path) -> Result<BTreeMap<String, LazyTensor>> {
    let message = "is a PyTorch checkpoint; build with the feature `pth` to read it";
    Err(Error::malformed(path, message))
}

/// Where training scripts keep the weights in a dictionary with other things.
#[cfg(feature = "pth")]
const NESTED: [&str; 7] = [
    "state_dict",
    "model_state_dict",
    "model_state",
    "model",
    "network",
    "net",
    "weights",
];

/// What wrappers of modules put before each key: DataParallel, `torch.compile`.
#[cfg(feature = "pth")]
const WRAPPERS: [&str; 2] = ["module.", "_orig_mod."];

/// Opens one. Weights in a nested dictionary of a usual name are found, and prefixes that wrappers
/// of modules put before every key are taken off.
#[cfg(feature = "pth")]
pub(crate) fn open(path: &Path) -> Result<BTreeMap<String, LazyTensor>> {
    use crate::lazy::Source;
    use pytorch_reader::{PickleValue, PytorchReader};

    let fail = |e: pytorch_reader::PytorchError| {
        Error::malformed(
            path,
            format!("not a PyTorch checkpoint that can be read: {e}"),
        )
    };
    let nested = match PytorchReader::read_pickle_data(path, None).map_err(fail)? {
        PickleValue::Dict(root) => NESTED
            .into_iter()
            .find(|name| matches!(root.get(*name), Some(PickleValue::Dict(_)))),
        _ => None,
    };
    let reader = match nested {
        Some(key) => PytorchReader::with_top_level_key(path, key),
        None => PytorchReader::new(path),
    };
    let mut tensors: Vec<_> = reader.map_err(fail)?.into_tensors().into_iter().collect();
    if tensors.is_empty() {
        return Err(Error::malformed(path, "holds no tensors"));
    }
    while let Some(wrapper) = WRAPPERS
        .iter()
        .find(|w| tensors.iter().all(|(key, _)| key.starts_with(**w)))
    {
        for (key, _) in &mut tensors {
            key.drain(..wrapper.len());
        }
    }
    let lazy = |(key, tensor): (String, pytorch_reader::Tensor)| {
        let dtype = burn_dtype(tensor.dtype());
        let shape = tensor.shape().to_vec();
        (
            key,
            LazyTensor::new(shape, dtype, path, Source::PyTorch(tensor)),
        )
    };
    Ok(tensors.into_iter().map(lazy).collect())
}

#[cfg(feature = "pth")]
fn burn_dtype(dtype: pytorch_reader::DType) -> std::result::Result<burn::tensor::DType, String> {
    use burn::tensor::DType;
    use pytorch_reader::DType as Stored;
    Ok(match dtype {
        Stored::F64 => DType::F64,
        Stored::F32 => DType::F32,
        Stored::F16 => DType::F16,
        Stored::BF16 => DType::BF16,
        Stored::I64 => DType::I64,
        Stored::I32 => DType::I32,
        Stored::I16 => DType::I16,
        Stored::I8 => DType::I8,
        Stored::U64 => DType::U64,
        Stored::U32 => DType::U32,
        Stored::U16 => DType::U16,
        Stored::U8 => DType::U8,
        Stored::Bool => return Err("bool".into()),
    })
}
