use burn_zoo_core::{Error, Result};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// The most bytes one idx file may claim to hold.
const MOST_BYTES: u64 = 1 << 29;
/// Deflate cannot compress better than this.
const GZIP_BEST_RATIO: u64 = 1032;

/// Reads an idx file of unsigned bytes with three dimensions (LeCun's MNIST format), gzip'd or not:
/// `([count, height, width], pixels)`.
///
/// # Errors
/// If the magic number, the sizes or the length do not agree.
pub fn read_idx_images(path: &Path) -> Result<([usize; 3], Vec<u8>)> {
    read_file(path)
}

/// Reads an idx file of unsigned bytes with one dimension, gzip'd or not.
///
/// # Errors
/// As [`read_idx_images`].
pub fn read_idx_labels(path: &Path) -> Result<Vec<u8>> {
    read_file::<1>(path).map(|(_, labels)| labels)
}

fn read_file<const D: usize>(path: &Path) -> Result<([usize; D], Vec<u8>)> {
    let file = File::open(path).map_err(Error::io(path, "open"))?;
    let size = file.metadata().map_err(Error::io(path, "read"))?.len();
    let mut reader = BufReader::new(file);
    let gzipped = {
        use std::io::BufRead;
        let head = reader.fill_buf().map_err(Error::io(path, "read"))?;
        head.starts_with(&[0x1f, 0x8b])
    };
    if gzipped {
        read(
            GzDecoder::new(reader),
            size.saturating_mul(GZIP_BEST_RATIO),
            path,
        )
    } else {
        read(reader, size, path)
    }
}

/// Reads an idx stream that cannot be longer than `most` bytes.
pub(crate) fn read<const D: usize>(
    mut reader: impl Read,
    most: u64,
    path: &Path,
) -> Result<([usize; D], Vec<u8>)> {
    let mut word = || {
        let mut bytes = [0; 4];
        match reader.read_exact(&mut bytes) {
            Ok(()) => Ok(u32::from_be_bytes(bytes)),
            Err(e) => Err(truncated(path, &e)),
        }
    };
    let magic = word()?;
    let wanted = 0x0800 + D as u32;
    if magic != wanted {
        let message = format!(
            "not an idx file of {D}-d bytes: magic number {magic:#010x}, wanted {wanted:#010x}"
        );
        return Err(Error::malformed(path, message));
    }
    let mut sizes = [0; D];
    for size in &mut sizes {
        *size = word()? as usize;
    }
    let length = sizes
        .iter()
        .try_fold(1u64, |n, size| n.checked_mul(*size as u64));
    let length = match length {
        Some(length) if length <= MOST_BYTES.min(most) => length,
        _ => {
            let message = format!("claims sizes {sizes:?}, more than the file can hold");
            return Err(Error::malformed(path, message));
        }
    };
    // The buffer grows with what arrives, not with what the header claims.
    let mut data = Vec::new();
    reader
        .take(length + 1)
        .read_to_end(&mut data)
        .map_err(|e| truncated(path, &e))?;
    if data.len() as u64 != length {
        let found = if data.len() as u64 > length {
            "more"
        } else {
            "fewer"
        };
        let message = format!("sizes {sizes:?} want {length} bytes, there are {found}");
        return Err(Error::malformed(path, message));
    }
    Ok((sizes, data))
}

fn truncated(path: &Path, error: &std::io::Error) -> Error {
    Error::malformed(path, format!("truncated or damaged: {error}"))
}
