use crate::gguf::BlockType;
use burn::tensor::{DType, TensorData};
use half::{bf16, f16};
use rayon::prelude::*;

/// Numbers of `dtype` in little-endian `bytes` as a tensor of floating-point type `to`, in one pass
/// and without a copy in between. `None` if the file's type is no floating-point type.
pub(crate) fn floats(
    bytes: &[u8],
    shape: Vec<usize>,
    dtype: DType,
    to: DType,
) -> Option<TensorData> {
    fn of<const N: usize, T: Copy>(
        bytes: &[u8],
        shape: Vec<usize>,
        to: DType,
        read: impl Fn([u8; N]) -> T + Sync,
        narrow: impl Fn(T) -> f32 + Sync,
        wide: impl Fn(T) -> f64 + Sync,
    ) -> TensorData {
        let narrow = |b| narrow(read(b));
        match to {
            DType::F64 => TensorData::new(each(bytes, |b| wide(read(b))), shape),
            // By way of f32, as torch does it.
            DType::F16 => TensorData::new(each(bytes, |b| f16::from_f32(narrow(b))), shape),
            DType::BF16 => TensorData::new(each(bytes, |b| bf16::from_f32(narrow(b))), shape),
            _ => TensorData::new(each(bytes, narrow), shape),
        }
    }
    let data = match dtype {
        DType::F64 => of(bytes, shape, to, f64::from_le_bytes, |n| n as f32, |n| n),
        DType::F32 => of(bytes, shape, to, f32::from_le_bytes, |n| n, f64::from),
        DType::F16 => of(
            bytes,
            shape,
            to,
            f16::from_le_bytes,
            f16::to_f32,
            f16::to_f64,
        ),
        DType::BF16 => of(
            bytes,
            shape,
            to,
            u16::from_le_bytes,
            // A shift, without the branch for NaN that `half` has: all bits stay, as in torch.
            |bits| f32::from_bits(u32::from(bits) << 16),
            |bits| f64::from(f32::from_bits(u32::from(bits) << 16)),
        ),
        _ => return None,
    };
    Some(data)
}

/// One number from every `N` bytes. Most of the time goes into pages that are touched for the first
/// time, so threads share them.
fn each<const N: usize, T: Copy + Default + Send>(
    bytes: &[u8],
    convert: impl Fn([u8; N]) -> T + Sync,
) -> Vec<T> {
    const PART: usize = 1 << 16;
    let numbers = bytes.as_chunks::<N>().0;
    let mut converted = vec![T::default(); numbers.len()];
    let parts = converted.par_chunks_mut(PART);
    parts.zip(numbers.par_chunks(PART)).for_each(|(to, from)| {
        for (to, from) in to.iter_mut().zip(from) {
            *to = convert(*from);
        }
    });
    converted
}

/// Numbers of `blocks` as a tensor of floating-point type `to`.
pub(crate) fn dequantized(
    kind: &BlockType,
    blocks: &[u8],
    shape: Vec<usize>,
    to: DType,
) -> TensorData {
    match to {
        DType::F64 => TensorData::new(kind.numbers(blocks, f64::from), shape),
        DType::F16 => TensorData::new(kind.numbers(blocks, f16::from_f32), shape),
        DType::BF16 => TensorData::new(kind.numbers(blocks, bf16::from_f32), shape),
        _ => TensorData::new(kind.numbers(blocks, |n| n), shape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_types_agrees_with_burns_own_conversion() {
        let values = [0.0, -0.0, 1.0, -2.5, 1e-3, 65504.0, 3.0e-8, f64::INFINITY];
        let types = [DType::F64, DType::F32, DType::F16, DType::BF16];
        for from in types {
            let data = TensorData::new(values.to_vec(), [2, 4]).convert_dtype(from);
            for to in types {
                let got = floats(data.as_bytes(), vec![2, 4], from, to).expect("floats");
                assert_eq!(got, data.clone().convert_dtype(to), "{from:?} to {to:?}");
            }
        }
        assert!(floats(&[1, 2], vec![2], DType::U8, DType::F32).is_none());
    }
}
