use crate::Factor;
use crate::kernel::{Cells, Kernel};
use rayon::prelude::*;
use std::cell::RefCell;
use std::ops::Range;

/// The most that is summed over before C is written: a panel of B of so many rows stays in the first cache.
const DEPTH: usize = 256;
/// Rows of A and columns of B that are packed at a time.
const ROWS: usize = 1536;
const COLUMNS: usize = 2048;
/// Rows of A that one thread goes through for each panel of B: they stay in its second cache.
const NEAR: usize = 192;

thread_local! {
    /// Packed parts, which are reused: fresh pages would cost more than what is written to them.
    static PACKED: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// `C = A · B`, or `C += A · B` with `accumulate`, for C `m × n`, A `m × k` and B `k × n`; `size` is `[m, n, k]`.
///
/// Number `j` of row `i` of C is `c.0[i * c.1 + j]`. With `parallel`, all threads of the current pool take part.
///
/// # Panics
/// If C is beyond its slice or its rows overlap, or if a factor in memory is smaller than `size` says.
pub fn product(
    size: [usize; 3],
    c: (&mut [f32], usize),
    accumulate: bool,
    a: &impl Factor,
    b: &impl Factor,
    parallel: bool,
) {
    with_kernel(
        Kernel::best(size[0], size[1]),
        size,
        c,
        accumulate,
        a,
        b,
        parallel,
    );
}

fn with_kernel(
    kernel: Kernel,
    [m, n, k]: [usize; 3],
    (c, stride): (&mut [f32], usize),
    accumulate: bool,
    a: &impl Factor,
    b: &impl Factor,
    parallel: bool,
) {
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if !accumulate {
            c.chunks_mut(stride.max(1))
                .take(m)
                .for_each(|row| row[..n].fill(0.0));
        }
        return;
    }
    let parallel = parallel && rayon::current_num_threads() > 1;
    let cells = Cells::new(c, stride, [m, n]);
    // Parts of about the same depth.
    let depth = k.div_ceil(k.div_ceil(DEPTH));
    let [packed_a, packed_b] = PACKED.take();
    let (mut packed_a, mut packed_b) = (packed_a, packed_b);
    for columns in parts(n, COLUMNS) {
        for depth in parts(k, depth) {
            let b = Packed::new(
                b,
                &columns,
                &depth,
                kernel.tile()[1],
                &mut packed_b,
                parallel,
            );
            for rows in parts(m, ROWS) {
                let a = Packed::new(a, &rows, &depth, kernel.tile()[0], &mut packed_a, parallel);
                let accumulate = accumulate || depth.start > 0;
                Block {
                    kernel,
                    a,
                    b: &b,
                    rows: rows.start,
                    columns: columns.start,
                    accumulate,
                }
                .run(&cells, parallel);
            }
        }
    }
    PACKED.set([packed_a, packed_b]);
}

/// `0..len` in parts of `most`.
fn parts(len: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len)
        .step_by(most)
        .map(move |start| start..(start + most).min(len))
}

/// Some lines of a factor in panels of `width`.
struct Packed<'a> {
    lines: usize,
    width: usize,
    /// Numbers of a panel.
    panel: usize,
    data: &'a [f32],
}

impl<'a> Packed<'a> {
    fn new(
        factor: &impl Factor,
        lines: &Range<usize>,
        depth: &Range<usize>,
        width: usize,
        memory: &'a mut Vec<f32>,
        parallel: bool,
    ) -> Self {
        let panel = width * depth.len();
        let data = aligned(memory, lines.len().div_ceil(width) * panel);
        let pack = |(i, out): (usize, &mut [f32])| {
            let start = lines.start + i * width;
            let part = start..(start + width).min(lines.end);
            factor.pack(part, depth.clone(), width, out);
        };
        match parallel {
            true => data.par_chunks_exact_mut(panel).enumerate().for_each(pack),
            false => data.chunks_exact_mut(panel).enumerate().for_each(pack),
        }
        Self {
            lines: lines.len(),
            width,
            panel,
            data,
        }
    }

    fn panels(&self) -> usize {
        self.lines.div_ceil(self.width)
    }

    fn panel(&self, i: usize) -> &[f32] {
        &self.data[i * self.panel..][..self.panel]
    }

    /// The lines of a panel.
    fn lines(&self, i: usize, first: usize) -> Range<usize> {
        let end = (i + 1) * self.width;
        first + i * self.width..first + end.min(self.lines)
    }
}

/// Memory for so many numbers that begins where a cache line does.
fn aligned(memory: &mut Vec<f32>, len: usize) -> &mut [f32] {
    const LINE: usize = 64;
    let spare = LINE / size_of::<f32>();
    if memory.len() < len + spare {
        memory.resize(len + spare, 0.0);
    }
    let start = memory.as_ptr().align_offset(LINE).min(spare);
    &mut memory[start..start + len]
}

/// A product of packed parts.
struct Block<'a> {
    kernel: Kernel,
    a: Packed<'a>,
    b: &'a Packed<'a>,
    rows: usize,
    columns: usize,
    accumulate: bool,
}

impl Block<'_> {
    fn run(&self, cells: &Cells, parallel: bool) {
        let [down, across] = [self.a.panels(), self.b.panels()];
        let panels = NEAR / self.a.width;
        if !parallel {
            for rows in parts(down, panels) {
                self.task(cells, rows, 0..across);
            }
            return;
        }
        // Several tasks for each thread, as threads are not all as fast.
        let rows: Vec<Range<usize>> = parts(down, panels).collect();
        let wanted = (4 * rayon::current_num_threads()).div_ceil(rows.len());
        let columns: Vec<Range<usize>> = parts(across, across.div_ceil(wanted).max(1)).collect();
        (0..rows.len() * columns.len())
            .into_par_iter()
            .for_each(|i| {
                let (rows, columns) = (&rows[i / columns.len()], &columns[i % columns.len()]);
                self.task(cells, rows.clone(), columns.clone());
            });
    }

    /// Some panels of A with some of B.
    fn task(&self, cells: &Cells, rows: Range<usize>, columns: Range<usize>) {
        for j in columns {
            for i in rows.clone() {
                let place = (self.a.lines(i, self.rows), self.b.lines(j, self.columns));
                // SAFETY: every pair of panels is visited once, and pairs have different rows or columns.
                #[allow(unsafe_code)]
                let tile = unsafe { cells.tile(place.0, place.1) };
                self.kernel
                    .run(self.a.panel(i), self.b.panel(j), tile, self.accumulate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;
    use proptest::prelude::*;

    fn numbers(len: usize, seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..len).map(|_| next()).collect()
    }

    /// Where the numbers of a factor are: by its lines and steps.
    fn strides(kind: u8, lines: usize, depth: usize, gap: usize) -> [usize; 2] {
        match kind {
            0 => [depth + gap, 1],
            1 => [1, lines + gap],
            _ => [2 * depth + gap, 2],
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn products_are_sums_of_products(
            m in prop_oneof![1usize..40, 190usize..210],
            n in prop_oneof![1usize..80, 250usize..270],
            k in prop_oneof![0usize..40, 250usize..530],
            kinds in (0u8..3, 0u8..3),
            gaps in (0usize..3, 0usize..3, 0usize..3),
            accumulate: bool,
            seed in 0u64..1000,
        ) {
            let [a_line, a_step] = strides(kinds.0, m, k, gaps.0);
            let [b_line, b_step] = strides(kinds.1, n, k, gaps.1);
            let reach = |lines: usize, line: usize, step: usize| (lines - 1) * line + k.saturating_sub(1) * step + 1;
            let a = numbers(reach(m, a_line, a_step), seed);
            let b = numbers(reach(n, b_line, b_step), seed + 1);
            let stride = n + gaps.2;
            let before = numbers((m - 1) * stride + n, seed + 2);
            for kernel in Kernel::all() {
                let mut first = None;
                for parallel in [false, true] {
                    let mut c = before.clone();
                    let factors = (Matrix::new(&a, a_line, a_step), Matrix::new(&b, b_line, b_step));
                    with_kernel(kernel, [m, n, k], (&mut c, stride), accumulate, &factors.0, &factors.1, parallel);
                    for (at, (got, old)) in c.iter().zip(&before).enumerate() {
                        let (i, j) = (at / stride, at % stride);
                        if j >= n {
                            prop_assert_eq!(got, old, "a gap was written to");
                            continue;
                        }
                        let term = |p: usize| f64::from(a[i * a_line + p * a_step]) * f64::from(b[j * b_line + p * b_step]);
                        let before = if accumulate { f64::from(*old) } else { 0.0 };
                        let sum = (0..k).map(term).sum::<f64>() + before;
                        // A sum of k + 1 terms in any order is no farther off (Higham 2002, section 3.1).
                        let sizes = (0..k).map(|p| term(p).abs()).sum::<f64>() + before.abs();
                        let limit = 1.01 * (k + 1) as f64 * 2f64.powi(-24) * sizes + f64::EPSILON;
                        prop_assert!((f64::from(*got) - sum).abs() <= limit, "{kernel:?} {i} {j}: {got} {sum}");
                    }
                    // Neither threads nor parts change a bit.
                    let first = first.get_or_insert(c.clone());
                    prop_assert_eq!(&*first, &c);
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_reaches_its_row_alone() {
        let (mut a, b) = (numbers(30 * 7, 1), numbers(7 * 50, 2));
        a[3 * 7 + 2] = f32::NAN;
        for kernel in Kernel::all() {
            let mut c = vec![0.0; 30 * 50];
            let (a, b) = (Matrix::new(&a, 7, 1), Matrix::new(&b, 1, 50));
            with_kernel(kernel, [30, 50, 7], (&mut c, 50), false, &a, &b, false);
            for (i, row) in c.chunks_exact(50).enumerate() {
                assert!(row.iter().all(|v| v.is_nan() == (i == 3)), "row {i}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "beyond its slice")]
    fn a_stride_that_wraps_around_is_refused() {
        let (a, b) = ([1.0; 2], [1.0; 4]);
        let (a, b) = (Matrix::new(&a, 1, 1), Matrix::new(&b, 1, 1));
        product([2, 4, 1], (&mut [0.0; 4], usize::MAX), false, &a, &b, false);
    }

    #[test]
    #[should_panic(expected = "beyond its slice")]
    fn a_matrix_that_is_too_short_is_refused() {
        let (a, b) = (numbers(12, 1), numbers(12, 2));
        let factors = (Matrix::new(&a, 3, 1), Matrix::new(&b, 1, 4));
        product(
            [4, 4, 3],
            (&mut [0.0; 15], 4),
            false,
            &factors.0,
            &factors.1,
            false,
        );
    }
}
