use crate::convert::{dequantized, floats};
use crate::gguf::{self, BlockType, MetadataValue};
use crate::{pytorch, safetensors_file};
use burn::tensor::{DType, TensorData};
use burn_zoo_core::{Error, Result};
use memmap2::Mmap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The tensors of a checkpoint, none of them read yet.
#[derive(Debug)]
pub struct LazyTensors {
    /// The file or folder that was opened.
    pub path: PathBuf,
    /// Each tensor by its key.
    pub tensors: BTreeMap<String, LazyTensor>,
    /// What a GGUF file says of itself, by key; empty for other formats.
    pub metadata: BTreeMap<String, MetadataValue>,
}

/// A tensor in a file.
#[derive(Debug)]
pub struct LazyTensor {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its type, or the name of a type that has no counterpart here.
    pub dtype: std::result::Result<DType, String>,
    /// The file it is in.
    pub file: PathBuf,
    source: Source,
}

/// Where the numbers are.
#[derive(Debug)]
pub(crate) enum Source {
    /// Little-endian bytes of a mapped file.
    Mapped(Arc<Mmap>, Range<usize>),
    /// Blocks of a mapped file that several numbers share, read as f32.
    Blocks(BlockType, Arc<Mmap>, Range<usize>),
    /// In a PyTorch checkpoint, possibly strided.
    #[cfg(feature = "pth")]
    PyTorch(pytorch_reader::Tensor),
}

impl LazyTensor {
    pub(crate) fn new(
        shape: Vec<usize>,
        dtype: std::result::Result<DType, String>,
        file: &Path,
        source: Source,
    ) -> Self {
        Self {
            shape,
            dtype,
            file: file.to_path_buf(),
            source,
        }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its type and its bytes, where they are blocks that several numbers share: for work that keeps
    /// weights quantised. Rows are whole blocks, the last dimension of the shape is the fastest.
    pub fn blocks(&self) -> Option<(BlockType, &[u8])> {
        match &self.source {
            Source::Blocks(kind, map, range) => Some((*kind, &map[range.clone()])),
            _ => None,
        }
    }

    /// [`blocks`](Self::blocks) with the file they are in.
    pub(crate) fn mapped_blocks(&self) -> Option<(BlockType, Arc<Mmap>, Range<usize>)> {
        match &self.source {
            Source::Blocks(kind, map, range) => Some((*kind, map.clone(), range.clone())),
            _ => None,
        }
    }

    /// Its little-endian bytes, where they lie in a mapped file as they are.
    pub fn mapped(&self) -> Option<&[u8]> {
        match &self.source {
            Source::Mapped(map, range) => Some(&map[range.clone()]),
            _ => None,
        }
    }

    /// Reads the tensor as it is in the file, blocks as f32. `key` is only named in errors.
    ///
    /// # Errors
    /// If its type has no counterpart here or the file is damaged.
    pub fn read(&self, key: &str) -> Result<TensorData> {
        let dtype = self.known_type(key)?;
        let bytes = match &self.source {
            Source::Mapped(map, range) => map[range.clone()].to_vec(),
            Source::Blocks(..) => return self.read_as(key, dtype),
            #[cfg(feature = "pth")]
            Source::PyTorch(tensor) => self.read_pytorch(tensor)?,
        };
        Ok(TensorData::from_bytes_vec(bytes, self.shape.clone(), dtype))
    }

    /// Reads the tensor as numbers of the floating-point type `dtype`.
    ///
    /// # Errors
    /// If the file's numbers are no floating-point numbers, or the file is damaged.
    pub fn read_as(&self, key: &str, dtype: DType) -> Result<TensorData> {
        let found = self.known_type(key)?;
        let shape = self.shape.clone();
        let data = match &self.source {
            Source::Mapped(map, range) => floats(&map[range.clone()], shape, found, dtype),
            Source::Blocks(kind, map, range) => {
                Some(dequantized(kind, &map[range.clone()], shape, dtype))
            }
            #[cfg(feature = "pth")]
            Source::PyTorch(tensor) => floats(&self.read_pytorch(tensor)?, shape, found, dtype),
        };
        let data = data.ok_or_else(|| crate::load::no_float(&self.file, key, found))?;
        let narrower = dtype == DType::F16 || dtype.size() < found.size();
        if narrower && found != dtype {
            self.none_too_large(key, &data)?;
        }
        Ok(data)
    }

    /// A finite number that became infinite would be another network.
    fn none_too_large(&self, key: &str, narrow: &TensorData) -> Result<()> {
        if narrow.iter::<f64>().all(|number| !number.is_infinite()) {
            return Ok(());
        }
        let wide = self.read_as(key, DType::F64)?;
        let mut pairs = wide.iter::<f64>().zip(narrow.iter::<f64>());
        match pairs.find(|(wide, narrow)| wide.is_finite() && narrow.is_infinite()) {
            Some((number, _)) => {
                let message = format!(
                    "key `{key}` holds {number:e}, which is too large for {:?}: ask for a wider type: bf16 or f32, or f64",
                    narrow.dtype
                );
                Err(Error::malformed(&self.file, message))
            }
            None => Ok(()),
        }
    }

    fn known_type(&self, key: &str) -> Result<DType> {
        self.dtype.clone().map_err(|name| {
            Error::malformed(
                &self.file,
                format!("key `{key}` has the unsupported type {name}"),
            )
        })
    }

    #[cfg(feature = "pth")]
    fn read_pytorch(&self, tensor: &pytorch_reader::Tensor) -> Result<Vec<u8>> {
        tensor
            .read()
            .map_err(|e| Error::malformed(&self.file, e.to_string()))
    }
}

/// What a folder's weights may be called, the first found is taken (transformers' order).
const IN_A_FOLDER: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

impl LazyTensors {
    /// Opens a weights file, the index of a sharded one, or a folder with either.
    ///
    /// The format is told by the file's contents, not by its name. Nothing but the header is read.
    ///
    /// # Errors
    /// If the file is absent, of no known format or damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let file = weights_in(path)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".index.json") {
            let tensors = crate::sharded::open(&file)?;
            return Ok(Self::without_metadata(file, tensors));
        }
        open_one(&file)
    }

    fn without_metadata(path: PathBuf, tensors: BTreeMap<String, LazyTensor>) -> Self {
        Self {
            path,
            tensors,
            metadata: BTreeMap::new(),
        }
    }

    /// Reads every tensor as it is in the file.
    ///
    /// # Errors
    /// The first tensor that cannot be read.
    pub fn read_all(&self) -> Result<crate::Tensors> {
        let read = |(key, tensor): (&String, &LazyTensor)| Ok((key.clone(), tensor.read(key)?));
        self.tensors.iter().map(read).collect()
    }
}

/// The weights file that a path means: itself, or the one in the folder.
fn weights_in(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let found = IN_A_FOLDER
        .iter()
        .map(|name| path.join(name))
        .find(|file| file.is_file());
    let Some(file) = found else {
        return Err(Error::NotFound {
            path: path.join(IN_A_FOLDER[0]),
            hint: format!("a model folder holds one of {}", IN_A_FOLDER.join(", ")),
        });
    };
    crate::sharded::stays_inside(&file, path)?;
    Ok(file)
}

/// The tensors of one file.
pub(crate) fn open_one(path: &Path) -> Result<LazyTensors> {
    let map = map(path)?;
    if gguf::is_one(&map) {
        return gguf::open(path, map);
    }
    let tensors = if pytorch::is_one(&map) {
        pytorch::open(path)?
    } else {
        safetensors_file::open(path, map)?
    };
    Ok(LazyTensors::without_metadata(path.to_path_buf(), tensors))
}

/// Maps a regular file into memory; its pages are read when they are looked at.
fn map(path: &Path) -> Result<Arc<Mmap>> {
    // The kind first: opening a pipe would wait for its writer.
    let metadata = std::fs::metadata(path).map_err(Error::io(path, "read"))?;
    if !metadata.is_file() {
        return Err(Error::malformed(path, "is no regular file"));
    }
    if metadata.len() == 0 {
        return Err(Error::malformed(path, "the file is empty"));
    }
    let file = std::fs::File::open(path).map_err(Error::io(path, "read"))?;
    // SAFETY: the map is only read, as bytes. Should another process cut the file while it is read,
    // the system ends this one; the zoo's own writers replace files and never change them in place.
    #[allow(unsafe_code)]
    let map = unsafe { Mmap::map(&file) };
    map.map(Arc::new).map_err(Error::io(path, "map"))
}
