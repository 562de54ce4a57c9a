//! GGUF, the files of llama.cpp: versions 2 and 3, little-endian.
//!
//! Nothing that a file says is believed before it is checked against the bytes that are there. Opening
//! a file takes at most 32 times the bytes of its header, and for every tensor a copy of the file's
//! path; ordinary headers take about twice their bytes. Reading a tensor takes what its numbers take:
//! as f32 at most 12.2 times its bytes in the file (`Q2_K`, 84 bytes for 256 numbers), unless it stays packed.
//!
//! Layouts: `gguf.h` and `ggml-common.h` of ggml.

mod block;
mod blocks;
mod container;
mod cursor;
mod k_quants;
mod metadata;
mod tokenizer;
mod types;

pub(crate) use block::{Vector, VectorI8};
pub use metadata::{MetadataArray, MetadataValue};
pub use tokenizer::{GgufTokenType, GgufTokenizer};
pub use types::BlockType;

use crate::lazy::{LazyTensor, LazyTensors, Source};
use burn::tensor::DType;
use burn_zoo_core::{Error, Result};
use memmap2::Mmap;
use std::path::Path;
use std::sync::Arc;
use types::Layout;

/// Whether a file that begins so is one.
pub(crate) fn is_one(bytes: &[u8]) -> bool {
    bytes.starts_with(container::MAGIC)
}

/// Opens one.
pub(crate) fn open(path: &Path, map: Arc<Mmap>) -> Result<LazyTensors> {
    let container = container::parse(&map).map_err(|e| Error::malformed(path, e))?;
    let tensors = container.tensors.into_iter().map(|tensor| {
        let (map, data) = (map.clone(), tensor.data);
        let unsupported = |name: String| (Err(name), Source::Mapped(map.clone(), data.clone()));
        let (dtype, source) = match types::of(tensor.ggml_type) {
            None => unsupported(format!("ggml type {}", tensor.ggml_type)),
            Some(found) => match found.layout {
                Layout::Unsupported => unsupported(found.name.into()),
                Layout::Plain(dtype) => (Ok(dtype), Source::Mapped(map, data)),
                Layout::Blocks(_) => {
                    let source = Source::Blocks(BlockType(found), map, data);
                    (Ok(DType::F32), source)
                }
            },
        };
        (
            tensor.name,
            LazyTensor::new(tensor.shape, dtype, path, source),
        )
    });
    Ok(LazyTensors {
        path: path.to_path_buf(),
        tensors: tensors.collect(),
        metadata: container.metadata,
    })
}
