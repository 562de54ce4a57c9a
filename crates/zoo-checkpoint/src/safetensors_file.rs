//! The safetensors format, in and out.

use crate::Tensors;
use crate::atomic::write_atomically_with;
use crate::lazy::{LazyTensor, LazyTensors, Source};
use burn::tensor::{DType, TensorData};
use burn_zoo_core::{Error, Result};
use memmap2::Mmap;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Whether a file that begins so is one: a length that fits into the file, then a JSON object.
pub(crate) fn is_one(bytes: &[u8]) -> bool {
    let Some((length, header)) = bytes.split_first_chunk::<8>() else {
        return false;
    };
    u64::from_le_bytes(*length) <= header.len() as u64 && header.first() == Some(&b'{')
}

/// Reads every tensor of a safetensors file.
///
/// # Errors
/// If the file is absent or damaged, or holds a type that Burn lacks.
pub fn read_safetensors(path: &Path) -> Result<Tensors> {
    LazyTensors::open(path)?.read_all()
}

/// The tensors of a mapped safetensors file. Names, sizes and offsets are checked by the
/// `safetensors` crate: they cover the file without holes or overlaps.
pub(crate) fn open(path: &Path, map: Arc<Mmap>) -> Result<BTreeMap<String, LazyTensor>> {
    let (header, metadata) = SafeTensors::read_metadata(&map)
        .map_err(|e| Error::malformed(path, format!("not a valid safetensors file: {e}")))?;
    let start = 8 + header;
    let tensors = metadata.tensors().into_iter().map(|(key, info)| {
        let dtype = burn_dtype(info.dtype).ok_or_else(|| format!("{:?}", info.dtype));
        let (from, to) = info.data_offsets;
        let source = Source::Mapped(map.clone(), start + from..start + to);
        (
            key,
            LazyTensor::new(info.shape.clone(), dtype, path, source),
        )
    });
    Ok(tensors.collect())
}

/// A tensor on its way into a file: what the header says of it now, its numbers when their turn comes.
pub(crate) struct Outgoing<'a> {
    pub key: String,
    pub shape: Vec<usize>,
    pub dtype: DType,
    pub data: Box<dyn FnOnce() -> TensorData + 'a>,
}

impl Outgoing<'_> {
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size()
    }
}

/// Writes tensors as a safetensors file that is complete or absent.
///
/// # Errors
/// If a type has no counterpart in the format or the file cannot be written.
pub fn write_safetensors<'a>(
    path: &Path,
    tensors: impl IntoIterator<Item = (&'a String, &'a TensorData)>,
) -> Result<()> {
    let outgoing = tensors.into_iter().map(|(key, data)| Outgoing {
        key: key.clone(),
        shape: data.shape.to_vec(),
        dtype: data.dtype,
        data: Box::new(|| data.clone()),
    });
    write(path, outgoing.collect())
}

/// Writes tensors one by one: only one is in memory at a time.
pub(crate) fn write(path: &Path, mut tensors: Vec<Outgoing>) -> Result<()> {
    // Wide types first, so that every tensor is aligned; then by name, as upstream's writer has it.
    tensors.sort_by(|a, b| (b.dtype.size(), &a.key).cmp(&(a.dtype.size(), &b.key)));
    let mut offset = 0;
    let mut infos = Vec::with_capacity(tensors.len());
    for tensor in &tensors {
        let dtype = safetensors_dtype(tensor.dtype).ok_or_else(|| {
            let Outgoing { key, dtype, .. } = tensor;
            Error::malformed(
                path,
                format!("`{key}` has type {dtype:?}, which the format lacks"),
            )
        })?;
        let info = TensorInfo {
            dtype,
            shape: tensor.shape.clone(),
            data_offsets: (offset, offset + tensor.bytes()),
        };
        offset += tensor.bytes();
        infos.push((tensor.key.clone(), info));
    }
    let about = HashMap::from([("format".to_string(), "pt".to_string())]);
    let header = Metadata::new(Some(about), infos)
        .map_err(|e| Error::malformed(path, e.to_string()))
        .and_then(|metadata| {
            serde_json::to_vec(&metadata).map_err(|e| Error::malformed(path, e.to_string()))
        })?;
    let padding = header.len().next_multiple_of(8) - header.len();
    write_atomically_with(path, |file| {
        file.write_all(&((header.len() + padding) as u64).to_le_bytes())?;
        file.write_all(&header)?;
        file.write_all(&b"       "[..padding])?;
        for tensor in tensors {
            let wanted = tensor.bytes();
            let data = (tensor.data)();
            if data.as_bytes().len() != wanted {
                let message = format!("`{}` changed while it was written", tensor.key);
                return Err(std::io::Error::other(message));
            }
            file.write_all(data.as_bytes())?;
        }
        Ok(())
    })
}

const DTYPES: [(Dtype, DType); 12] = [
    (Dtype::F64, DType::F64),
    (Dtype::F32, DType::F32),
    (Dtype::F16, DType::F16),
    (Dtype::BF16, DType::BF16),
    (Dtype::I64, DType::I64),
    (Dtype::I32, DType::I32),
    (Dtype::I16, DType::I16),
    (Dtype::I8, DType::I8),
    (Dtype::U64, DType::U64),
    (Dtype::U32, DType::U32),
    (Dtype::U16, DType::U16),
    (Dtype::U8, DType::U8),
];

fn burn_dtype(dtype: Dtype) -> Option<DType> {
    DTYPES
        .iter()
        .find(|(file, _)| *file == dtype)
        .map(|(_, burn)| *burn)
}

fn safetensors_dtype(dtype: DType) -> Option<Dtype> {
    DTYPES
        .iter()
        .find(|(_, burn)| *burn == dtype)
        .map(|(file, _)| *file)
}
