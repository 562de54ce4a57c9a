//! The header: how many tensors and metadata there are, the metadata, and where each tensor is.

use super::cursor::{Cursor, Parsed};
use super::metadata::{self, MetadataValue};
use super::types;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub(super) const MAGIC: &[u8] = b"GGUF";

/// ggml's `GGML_MAX_DIMS`.
const MOST_DIMS: u32 = 4;

/// Where `general.alignment` says nothing: `GGUF_DEFAULT_ALIGNMENT`.
const USUAL_ALIGNMENT: usize = 32;

/// A name may have as many bytes as the specification allows a key.
const LONGEST_NAME: usize = 65_535;

/// The least that the file must hold for a tensor: length of the name, count of dimensions, type, offset.
const SMALLEST_TENSOR: u64 = 8 + 4 + 4 + 8;

/// The least for an entry of metadata: length of the key, type, a value of one byte.
const SMALLEST_ENTRY: u64 = 8 + 4 + 1;

/// What a header says, checked against the file.
pub(super) struct Container {
    pub metadata: BTreeMap<String, MetadataValue>,
    pub tensors: Vec<TensorInfo>,
}

/// What a header says of one tensor.
pub(super) struct TensorInfo {
    pub name: String,
    /// As torch has it: the slowest dimension first, GGUF's `ne` reversed.
    pub shape: Vec<usize>,
    /// ggml's number of the type.
    pub ggml_type: u32,
    /// Its bytes in the file; before they are placed, after the beginning of the data.
    pub data: Range<usize>,
}

/// Reads the header of a file of which `bytes` is the whole.
pub(super) fn parse(bytes: &[u8]) -> Parsed<Container> {
    let mut file = Cursor::new(bytes);
    let (tensors, entries) = counts(&mut file).map_err(|e| format!("the GGUF header: {e}"))?;
    let mut metadata = BTreeMap::new();
    for i in 0..entries {
        let (key, value) = entry(&mut file, i)?;
        if metadata.contains_key(&key) {
            return Err(format!("metadata `{key}` is there twice"));
        }
        metadata.insert(key, value);
    }
    let alignment = alignment(&metadata)?;
    // Metadata took some of the room that the count was first checked against.
    let count = file.fits(tensors, SMALLEST_TENSOR);
    let count = count.map_err(|e| format!("the list of tensors: {e}"))?;
    let mut tensors = Vec::with_capacity(count);
    for i in 0..count {
        tensors.push(tensor(&mut file, i)?);
    }
    let start = file.at().checked_next_multiple_of(alignment);
    for tensor in &mut tensors {
        tensor.data = place(&tensor.data, start, alignment, bytes.len())
            .map_err(|e| format!("key `{}`: {e}", tensor.name))?;
    }
    refuse_twins(&tensors)?;
    refuse_overlaps(&tensors)?;
    Ok(Container { metadata, tensors })
}

/// The numbers of tensors and of metadata.
fn counts(file: &mut Cursor) -> Parsed<(u64, u64)> {
    file.take(MAGIC.len() as u64)?;
    match file.u32()? {
        2 | 3 => {}
        // A small number whose low half is empty was written the other way round.
        version if version & 0xffff == 0 && version != 0 => {
            return Err("big-endian, which is not read; \
                        convert the file with `gguf-convert-endian FILE little`"
                .into());
        }
        version => {
            return Err(format!(
                "version {version}, only 2 and 3 are read; convert the model anew"
            ));
        }
    }
    let (tensors, entries) = (file.u64()?, file.u64()?);
    file.fits(tensors, SMALLEST_TENSOR)
        .map_err(|e| format!("tensors: {e}"))?;
    file.fits(entries, SMALLEST_ENTRY)
        .map_err(|e| format!("metadata: {e}"))?;
    Ok((tensors, entries))
}

fn entry(file: &mut Cursor, i: u64) -> Parsed<(String, MetadataValue)> {
    let key = name(file).map_err(|e| format!("the key of metadata {i}: {e}"))?;
    let value = metadata::value(file).map_err(|e| format!("metadata `{key}`: {e}"))?;
    Ok((key, value))
}

fn name(file: &mut Cursor) -> Parsed<String> {
    let name = file.text()?;
    match name.len() {
        0..=LONGEST_NAME => Ok(name),
        bytes => Err(format!(
            "a name of {bytes} bytes, at most {LONGEST_NAME} are allowed"
        )),
    }
}

fn alignment(metadata: &BTreeMap<String, MetadataValue>) -> Parsed<usize> {
    let found = match metadata.get("general.alignment") {
        None => return Ok(USUAL_ALIGNMENT),
        Some(MetadataValue::Unsigned(n)) => match usize::try_from(*n) {
            Ok(n) if n.is_power_of_two() => return Ok(n),
            _ => n.to_string(),
        },
        Some(other) => other.kind().to_string(),
    };
    Err(format!(
        "metadata `general.alignment` is {found}, wanted a power of two"
    ))
}

/// One tensor, `data` counted from the beginning of the data.
fn tensor(file: &mut Cursor, i: usize) -> Parsed<TensorInfo> {
    let name = name(file).map_err(|e| format!("the key of tensor {i}: {e}"))?;
    let mut rest = || {
        let dims = file.u32()?;
        if dims > MOST_DIMS {
            return Err(format!(
                "{dims} dimensions, at most {MOST_DIMS} are allowed"
            ));
        }
        let extents = file.numbers(dims.into(), u64::from_le_bytes)?;
        let (ggml_type, offset) = (file.u32()?, file.u64()?);
        let (elements, mut shape) = shape(&extents)?;
        let bytes = types::bytes(ggml_type, elements, shape.first().copied().unwrap_or(1))?;
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(bytes));
        let data = start.zip(end);
        let (start, end) =
            data.ok_or_else(|| format!("the offset {offset} is outside of any file"))?;
        shape.reverse();
        Ok((shape, ggml_type, start..end))
    };
    match rest() {
        Err(e) => Err(format!("key `{name}`: {e}")),
        Ok((shape, ggml_type, data)) => Ok(TensorInfo {
            name,
            shape,
            ggml_type,
            data,
        }),
    }
}

/// How many elements a tensor has, and its extents. Their product must not overflow even without
/// those that are zero: others may multiply them in another order.
fn shape(extents: &[u64]) -> Parsed<(usize, Vec<usize>)> {
    let shape: Option<Vec<usize>> = extents.iter().map(|n| usize::try_from(*n).ok()).collect();
    let product = |shape: &Vec<usize>| {
        let sizes = shape.iter().map(|n| (*n).max(1));
        sizes.into_iter().try_fold(1, usize::checked_mul)
    };
    match shape {
        // As many bytes of f64 must be countable too.
        Some(shape) if product(&shape).is_some_and(|n| n <= isize::MAX as usize / 8) => {
            Ok((shape.iter().product(), shape))
        }
        _ => Err(format!("the extents {extents:?} overflow")),
    }
}

/// Where in the file of `length` bytes the `data` is, which was counted from `start`.
fn place(
    data: &Range<usize>,
    start: Option<usize>,
    alignment: usize,
    length: usize,
) -> Parsed<Range<usize>> {
    if !data.start.is_multiple_of(alignment) {
        return Err(format!(
            "the offset {} is no multiple of the alignment {alignment}",
            data.start
        ));
    }
    let in_file = |offset: usize| start.and_then(|start| start.checked_add(offset));
    match (in_file(data.start), in_file(data.end)) {
        (Some(from), Some(to)) if to <= length => Ok(from..to),
        _ => Err(format!(
            "bytes {} to {} of the data are outside of the file, which has {length} bytes",
            data.start, data.end
        )),
    }
}

fn refuse_twins(tensors: &[TensorInfo]) -> Parsed<()> {
    let mut names = BTreeSet::new();
    match tensors.iter().find(|t| !names.insert(t.name.as_str())) {
        Some(twin) => Err(format!("key `{}` is there twice", twin.name)),
        None => Ok(()),
    }
}

fn refuse_overlaps(tensors: &[TensorInfo]) -> Parsed<()> {
    let mut sorted: Vec<&TensorInfo> = tensors.iter().filter(|t| !t.data.is_empty()).collect();
    sorted.sort_by_key(|t| t.data.start);
    match sorted.windows(2).find(|t| t[0].data.end > t[1].data.start) {
        Some(pair) => Err(format!(
            "keys `{}` (bytes {:?}) and `{}` (bytes {:?}) overlap",
            pair[0].name, pair[0].data, pair[1].name, pair[1].data
        )),
        None => Ok(()),
    }
}
