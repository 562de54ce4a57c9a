use burn::tensor::{DType, TensorData};
use burn_zoo_core::{Error, Result};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Named tensors of a file.
pub type Tensors = BTreeMap<String, TensorData>;

/// Reads every tensor of a safetensors file.
///
/// Offsets, sizes and names are checked by the `safetensors` crate before anything is built, and
/// no more memory is taken than twice the file's own size.
pub fn read_safetensors(path: &Path) -> Result<Tensors> {
    let metadata = std::fs::metadata(path).map_err(Error::io(path, "read"))?;
    if !metadata.is_file() {
        return Err(Error::malformed(path, "is no regular file"));
    }
    let bytes = std::fs::read(path).map_err(Error::io(path, "read"))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|e| Error::malformed(path, format!("not a valid safetensors file: {e}")))?;
    file.iter()
        .map(|(name, view)| {
            let dtype = burn_dtype(view.dtype()).ok_or_else(|| {
                let found = view.dtype();
                Error::malformed(
                    path,
                    format!("key `{name}` has the unsupported type {found:?}"),
                )
            })?;
            let data =
                TensorData::from_bytes_vec(view.data().to_vec(), view.shape().to_vec(), dtype);
            Ok((name.to_string(), data))
        })
        .collect()
}

/// Writes tensors as a safetensors file that is complete or absent, see [`write_atomically`].
pub fn write_safetensors<'a>(
    path: &Path,
    tensors: impl IntoIterator<Item = (&'a String, &'a TensorData)>,
) -> Result<()> {
    let views = tensors
        .into_iter()
        .map(|(name, data)| {
            let dtype = safetensors_dtype(data.dtype).ok_or_else(|| {
                Error::malformed(
                    path,
                    format!("`{name}` has type {:?}, which the format lacks", data.dtype),
                )
            })?;
            let view = TensorView::new(dtype, data.shape.to_vec(), data.as_bytes())
                .map_err(|e| Error::malformed(path, format!("`{name}`: {e}")))?;
            Ok((name, view))
        })
        .collect::<Result<Vec<_>>>()?;
    let metadata = [("format".to_string(), "pt".to_string())]
        .into_iter()
        .collect();
    let bytes = safetensors::serialize(views, Some(metadata))
        .map_err(|e| Error::malformed(path, e.to_string()))?;
    write_atomically(path, &bytes)
}

/// Writes `bytes` beside `path`, syncs them to disk and renames them into place.
///
/// Whatever interrupts this, `path` holds either its old or its new contents, whole.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".part-");
    #[cfg(unix)]
    {
        // Temporary files are private; what gets a name has the permissions that the umask gives.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder
        .tempfile_in(folder)
        .map_err(Error::io(path, "write"))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(Error::io(path, "write"))?;
    file.persist(path)
        .map(drop)
        .map_err(|e| Error::io(path, "write")(e.error))
}

const DTYPES: [(Dtype, DType); 9] = [
    (Dtype::F64, DType::F64),
    (Dtype::F32, DType::F32),
    (Dtype::F16, DType::F16),
    (Dtype::BF16, DType::BF16),
    (Dtype::I64, DType::I64),
    (Dtype::I32, DType::I32),
    (Dtype::I16, DType::I16),
    (Dtype::I8, DType::I8),
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
