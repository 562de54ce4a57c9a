use gemm::Parallelism;

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

    fn reach(self, rows: usize, columns: usize) -> usize {
        (rows - 1) * self.row + (columns - 1) * self.column + 1
    }
}

/// `dst = lhs · rhs`, or `dst += lhs · rhs` with `accumulate`.
///
/// `dst` is `m × n`, `lhs` `m × k`, `rhs` `k × n`.
///
/// # Panics
/// If a matrix reaches beyond its slice.
#[allow(clippy::too_many_arguments)]
pub(super) fn gemm(
    [m, n, k]: [usize; 3],
    dst: (&mut [f32], Strides),
    accumulate: bool,
    lhs: (&[f32], Strides),
    rhs: (&[f32], Strides),
    parallel: bool,
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(dst.1.reach(m, n) <= dst.0.len(), "destination too short");
    assert!(lhs.1.reach(m, k) <= lhs.0.len(), "left factor too short");
    assert!(rhs.1.reach(k, n) <= rhs.0.len(), "right factor too short");
    let parallelism = if parallel {
        Parallelism::Rayon(0)
    } else {
        Parallelism::None
    };
    // SAFETY: the asserts above bound every index that the product touches: strides are
    // non-negative, so element (m-1, n-1) is the farthest. `dst` is borrowed exclusively, so it
    // overlaps neither factor.
    #[allow(unsafe_code)]
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst.0.as_mut_ptr(),
            dst.1.column as isize,
            dst.1.row as isize,
            accumulate,
            lhs.0.as_ptr(),
            lhs.1.column as isize,
            lhs.1.row as isize,
            rhs.0.as_ptr(),
            rhs.1.column as isize,
            rhs.1.row as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}
