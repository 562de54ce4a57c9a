use crate::{counter, linear};
use burn::tensor::{DType, Int, Tensor, TensorData, backend::Backend};
use burn_zoo_core::PackedMatrix;

/// Vectors from which on it is faster to unpack the matrix in parts and let the backend multiply.
const MANY: usize = 16;
/// Numbers that are unpacked at once.
const PART: usize = 1 << 20;

/// [`linear`] with a matrix that is not unpacked as a whole. There is no gradient.
///
/// Few vectors of f32 are multiplied on the CPU, whatever the backend; many go to the backend with a part of
/// the matrix at a time.
///
/// # Shapes
/// - x: `[.., columns]`
/// - result: `[.., rows]`
pub fn packed_linear<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    matrix: &dyn PackedMatrix,
    bias: Option<Tensor<B, 1>>,
) -> Tensor<B, D> {
    let [rows, columns] = matrix.shape();
    let mut shape = x.dims();
    let vectors = shape[..D - 1].iter().product::<usize>();
    let (device, dtype) = (x.device(), x.dtype());
    let y: Tensor<B, 2> = if vectors < MANY && dtype == DType::F32 {
        counter::add_flops(2 * (rows * columns * vectors) as u64);
        let x: Vec<f32> = x.into_data().iter::<f32>().collect();
        let y = TensorData::new(matrix.multiply(&x), [vectors, rows]);
        Tensor::from_data(y, (&device, dtype))
    } else {
        let x = x.reshape([vectors, columns]);
        let step = (PART / columns.max(1)).max(1);
        let parts = (0..rows).step_by(step).map(|start| {
            let part = start..(start + step).min(rows);
            linear(x.clone(), unpacked(matrix, part, dtype, &device), None)
        });
        Tensor::cat(parts.collect(), 1)
    };
    let y = match bias {
        Some(bias) => y + bias.unsqueeze(),
        None => y,
    };
    shape[D - 1] = rows;
    y.reshape(shape)
}

/// Rows of a matrix by their numbers, each below the matrix's rows: `[numbers, columns]`.
pub fn packed_rows<B: Backend>(
    ids: Tensor<B, 1, Int>,
    matrix: &dyn PackedMatrix,
    dtype: DType,
) -> Tensor<B, 2> {
    let [_, columns] = matrix.shape();
    let device = ids.device();
    let ids: Vec<usize> = ids
        .into_data()
        .iter::<i64>()
        .map(|id| id as usize)
        .collect();
    let mut numbers = vec![0.0; ids.len() * columns];
    for (id, row) in ids.iter().zip(numbers.chunks_exact_mut(columns.max(1))) {
        matrix.unpack(*id..id + 1, row);
    }
    let data = TensorData::new(numbers, [ids.len(), columns]);
    Tensor::from_data(data, (&device, dtype))
}

fn unpacked<B: Backend>(
    matrix: &dyn PackedMatrix,
    rows: std::ops::Range<usize>,
    dtype: DType,
    device: &B::Device,
) -> Tensor<B, 2> {
    let shape = [rows.len(), matrix.shape()[1]];
    let mut numbers = vec![0.0; shape[0] * shape[1]];
    matrix.unpack(rows, &mut numbers);
    Tensor::from_data(TensorData::new(numbers, shape), (device, dtype))
}
