use crate::{ImageSource, InMemory};
use burn_zoo_core::{Error, Result};
use std::path::Path;

/// One record: a label and a 32×32 RGB image in planes (Krizhevsky 2009, binary version).
const RECORD: usize = 1 + 3 * PLANE;
const PLANE: usize = 32 * 32;
/// Records in each file of the published set; a file may hold fewer.
const MOST_RECORDS: u64 = 10_000;

/// Reads CIFAR-10 binary files, one after the other.
///
/// # Errors
/// If a file is not a whole number of records, is too long or has a label above 9.
pub fn read_cifar10(paths: &[impl AsRef<Path>]) -> Result<InMemory> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    let mut named: &Path = Path::new("");
    for path in paths {
        let path = path.as_ref();
        named = path;
        let size = std::fs::metadata(path)
            .map_err(Error::io(path, "open"))?
            .len();
        if size == 0 || size % RECORD as u64 != 0 || size > MOST_RECORDS * RECORD as u64 {
            let message = format!(
                "{size} bytes are not 1 to {MOST_RECORDS} CIFAR-10 records of {RECORD} bytes"
            );
            return Err(Error::malformed(path, message));
        }
        let bytes = std::fs::read(path).map_err(Error::io(path, "read"))?;
        for record in bytes.as_chunks::<RECORD>().0 {
            labels.push(record[0]);
            let (r, gb) = record[1..].split_at(PLANE);
            let (g, b) = gb.split_at(PLANE);
            pixels.extend((0..PLANE).flat_map(|i| [r[i], g[i], b[i]]));
        }
        check_labels(&labels, path)?;
    }
    let data = InMemory::new([32, 32, 3], pixels, labels, 10, named, named)?;
    debug_assert!(!data.is_empty());
    Ok(data)
}

fn check_labels(labels: &[u8], path: &Path) -> Result<()> {
    match labels.iter().find(|label| **label > 9) {
        Some(label) => Err(Error::malformed(
            path,
            format!("label {label} is out of range: there are 10 classes"),
        )),
        None => Ok(()),
    }
}
