use burn_zoo_gemm::{Matrix, product};

/// A matrix inside a slice: element (i, j) is at `i · row + j · column`.
#[derive(Clone, Copy)]
pub(super) struct Strides {
    pub row: usize,
    pub column: usize,
}

impl Strides {
    /// Row-major with `row` elements from one row to the next.
    pub fn rows(row: usize) -> Self {
        Self { row, column: 1 }
    }

    /// The transpose of a row-major matrix.
    pub fn transposed(row: usize) -> Self {
        Self {
            row: 1,
            column: row,
        }
    }
}

/// `dst = lhs · rhs`, or `dst += lhs · rhs` with `accumulate`.
///
/// `dst` is `m × n` with so many elements from one row to the next, `lhs` `m × k`, `rhs` `k × n`.
///
/// # Panics
/// If a matrix reaches beyond its slice.
pub(super) fn gemm(
    size: [usize; 3],
    dst: (&mut [f32], usize),
    accumulate: bool,
    lhs: (&[f32], Strides),
    rhs: (&[f32], Strides),
    parallel: bool,
) {
    let a = Matrix::new(lhs.0, lhs.1.row, lhs.1.column);
    let b = Matrix::new(rhs.0, rhs.1.column, rhs.1.row);
    product(size, dst, accumulate, &a, &b, parallel);
}
