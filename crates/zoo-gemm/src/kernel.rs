//! The innermost loops: a tile of C in registers.

/// Lines of the widest tile.
pub const WIDEST: usize = 48;

use std::marker::PhantomData;
use std::ops::Range;

/// What a processor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Sixteen numbers at a time, in tiles of 12 × 32.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// The same in tiles of 8 × 48.
    #[cfg(target_arch = "x86_64")]
    Avx512Wide,
    /// Eight numbers at a time.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What the compiler makes of it.
    Portable,
}

/// C, a matrix of which several threads write different tiles.
pub struct Cells<'a> {
    data: *mut f32,
    stride: usize,
    rows: usize,
    columns: usize,
    borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: whoever takes tiles promises that no two of them overlap, so that threads share no number.
#[allow(unsafe_code)]
unsafe impl Sync for Cells<'_> {}

/// A tile of C.
pub struct Tile<'a> {
    data: *mut f32,
    stride: usize,
    rows: usize,
    columns: usize,
    borrowed: PhantomData<&'a mut [f32]>,
}

impl<'a> Cells<'a> {
    /// The matrix whose number `j` of row `i` is `data[i * stride + j]`.
    ///
    /// # Panics
    /// If it has none, if rows overlap, or if `data` is too short.
    pub fn new(data: &'a mut [f32], stride: usize, [rows, columns]: [usize; 2]) -> Self {
        assert!(rows > 0 && columns > 0, "an empty matrix");
        assert!(rows == 1 || columns <= stride, "rows overlap");
        let last = (rows - 1).checked_mul(stride);
        let end = last.and_then(|last| last.checked_add(columns));
        assert!(
            end.is_some_and(|end| end <= data.len()),
            "a matrix beyond its slice"
        );
        Self {
            data: data.as_mut_ptr(),
            stride,
            rows,
            columns,
            borrowed: PhantomData,
        }
    }

    /// The numbers of these rows and columns.
    ///
    /// # Panics
    /// If there are none, or they are not of the matrix.
    ///
    /// # Safety
    /// No other tile that exists at the same time may have one of them.
    #[allow(unsafe_code)]
    pub unsafe fn tile(&self, rows: Range<usize>, columns: Range<usize>) -> Tile<'_> {
        assert!(rows.start < rows.end && rows.end <= self.rows, "rows");
        assert!(
            columns.start < columns.end && columns.end <= self.columns,
            "columns"
        );
        Tile {
            // SAFETY: the first number of the tile is one of the matrix, by the assertions here and in `new`.
            data: unsafe { self.data.add(rows.start * self.stride + columns.start) },
            stride: self.stride,
            rows: rows.len(),
            columns: columns.len(),
            borrowed: PhantomData,
        }
    }
}

impl Tile<'_> {
    /// Row `i`.
    fn row(&mut self, i: usize) -> &mut [f32] {
        assert!(i < self.rows);
        // SAFETY: the row is inside of the matrix that `Cells::new` compared with its slice, and nobody else has it.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(self.data.add(i * self.stride), self.columns)
        }
    }
}

impl Kernel {
    /// The best of this processor for a product with so many rows and columns.
    pub fn best(rows: usize, columns: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // The one that computes less beyond the edges.
                let cells = |kernel: &Kernel| {
                    let [down, across] = kernel.tile();
                    rows.next_multiple_of(down) * columns.next_multiple_of(across)
                };
                let both = [Kernel::Avx512, Kernel::Avx512Wide];
                return both.into_iter().min_by_key(cells).unwrap_or(Kernel::Avx512);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Kernel::Avx2;
            }
        }
        Kernel::Portable
    }

    /// All that this processor can run.
    #[cfg(test)]
    pub fn all() -> Vec<Self> {
        let mut all = vec![Kernel::Portable];
        #[cfg(target_arch = "x86_64")]
        match Kernel::best(1, 1) {
            Kernel::Portable => {}
            Kernel::Avx2 => all.push(Kernel::Avx2),
            _ => all.extend([Kernel::Avx2, Kernel::Avx512, Kernel::Avx512Wide]),
        }
        all
    }

    /// Rows and columns of a tile.
    pub fn tile(self) -> [usize; 2] {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => [12, 32],
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Wide => [8, WIDEST],
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => [6, 16],
            Kernel::Portable => [4, 16],
        }
    }

    /// `C = A · B`, or `C += A · B` with `accumulate`, for a tile of C. `a` and `b` are packed for this kernel:
    /// numbers of a depth after those of another.
    ///
    /// # Panics
    /// If the tile is larger than this kernel's, or a factor is not of one depth.
    pub fn run(self, a: &[f32], b: &[f32], c: Tile, accumulate: bool) {
        let [rows, columns] = self.tile();
        let depth = a.len() / rows;
        assert!(c.rows <= rows && c.columns <= columns, "too large a tile");
        assert!(
            a.len() == depth * rows && b.len() == depth * columns,
            "factors of different depth"
        );
        match self {
            // SAFETY: a kernel is only made where its processor features were detected. It reads `depth * rows` numbers
            // of `a` and `depth * columns` of `b`, which the assertion above counted, and touches only the tile.
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            Kernel::Avx512 => unsafe { avx512::<12, 2>(depth, a, b, c, accumulate) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            Kernel::Avx512Wide => unsafe { avx512::<8, 3>(depth, a, b, c, accumulate) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            Kernel::Avx2 => unsafe { avx2(depth, a, b, c, accumulate) },
            Kernel::Portable => {
                let mut tile = [[0.0f32; 16]; 4];
                for (a, b) in a.as_chunks::<4>().0.iter().zip(b.as_chunks::<16>().0) {
                    for (tile, a) in tile.iter_mut().zip(a) {
                        for (tile, b) in tile.iter_mut().zip(b) {
                            *tile += a * b;
                        }
                    }
                }
                store(tile.as_flattened(), 16, c, accumulate);
            }
        }
    }
}

/// Writes a tile from memory.
fn store(tile: &[f32], width: usize, mut c: Tile, accumulate: bool) {
    for (i, tile) in tile.chunks_exact(width).take(c.rows).enumerate() {
        for (c, tile) in c.row(i).iter_mut().zip(tile) {
            *c = if accumulate { *c + tile } else { *tile };
        }
    }
}

/// # Safety
/// The processor must have AVX-512F; `a` must have `R * depth` numbers and `b` `16 * V * depth`; `c` at most `R` rows
/// and `16 * V` columns.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const R: usize, const V: usize>(
    depth: usize,
    a: &[f32],
    b: &[f32],
    c: Tile,
    accumulate: bool,
) {
    use std::arch::x86_64::*;
    let mut tile = [[_mm512_setzero_ps(); V]; R];
    let (mut a, mut b) = (a.as_ptr(), b.as_ptr());
    for _ in 0..depth {
        // SAFETY: the caller counted `R` and `16 * V` numbers for each depth.
        unsafe {
            let mut columns = [_mm512_setzero_ps(); V];
            for (j, column) in columns.iter_mut().enumerate() {
                *column = _mm512_loadu_ps(b.add(16 * j));
            }
            for (i, tile) in tile.iter_mut().enumerate() {
                let row = _mm512_set1_ps(*a.add(i));
                for (tile, column) in tile.iter_mut().zip(columns) {
                    *tile = _mm512_fmadd_ps(row, column, *tile);
                }
            }
            (a, b) = (a.add(R), b.add(16 * V));
        }
    }
    let masks: [u16; V] = std::array::from_fn(|j| {
        let count = c.columns.saturating_sub(16 * j).min(16);
        ((1u32 << count) - 1) as u16
    });
    for (i, tile) in tile.iter().enumerate() {
        if i < c.rows {
            for (j, (number, mask)) in tile.iter().zip(masks).enumerate() {
                // SAFETY: masked out numbers are neither read nor written; the others are of the tile. `wrapping_add`
                // since a part that is masked out as a whole may begin beyond the end.
                unsafe {
                    let at = c.data.wrapping_add(i * c.stride + 16 * j);
                    let old = match accumulate {
                        true => _mm512_maskz_loadu_ps(mask, at),
                        false => _mm512_setzero_ps(),
                    };
                    _mm512_mask_storeu_ps(at, mask, _mm512_add_ps(old, *number));
                }
            }
        }
    }
}

/// # Safety
/// The processor must have AVX2 and FMA; `a` must have `6 * depth` numbers and `b` `16 * depth`.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(depth: usize, a: &[f32], b: &[f32], c: Tile, accumulate: bool) {
    use std::arch::x86_64::*;
    let mut tile = [[_mm256_setzero_ps(); 2]; 6];
    let (mut a, mut b) = (a.as_ptr(), b.as_ptr());
    for _ in 0..depth {
        // SAFETY: the caller counted 6 and 16 numbers for each depth.
        unsafe {
            let columns = [_mm256_loadu_ps(b), _mm256_loadu_ps(b.add(8))];
            for (i, tile) in tile.iter_mut().enumerate() {
                let row = _mm256_set1_ps(*a.add(i));
                tile[0] = _mm256_fmadd_ps(row, columns[0], tile[0]);
                tile[1] = _mm256_fmadd_ps(row, columns[1], tile[1]);
            }
            (a, b) = (a.add(6), b.add(16));
        }
    }
    let mut numbers = [0.0f32; 6 * 16];
    for (row, tile) in numbers.chunks_exact_mut(16).zip(&tile) {
        // SAFETY: a row has 16 numbers.
        unsafe {
            _mm256_storeu_ps(row.as_mut_ptr(), tile[0]);
            _mm256_storeu_ps(row.as_mut_ptr().add(8), tile[1]);
        }
    }
    store(&numbers, 16, c, accumulate);
}
