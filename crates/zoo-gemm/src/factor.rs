use crate::interleave::interleave;
use crate::kernel::WIDEST;
use std::ops::Range;

/// One of two factors of a product: `lines × depth` numbers, where the lines are A's rows or B's columns, and the
/// depth is what is summed over.
pub trait Factor: Sync {
    /// Writes a part of some lines side by side: number `p` of line `i` of the part to `out[p * width + i]`, and 0
    /// for the lines that are missing to `width`.
    ///
    /// `out` has `depth.len() * width` numbers, and there are at most `width` lines.
    fn pack(&self, lines: Range<usize>, depth: Range<usize>, width: usize, out: &mut [f32]);
}

/// A factor in memory.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    data: &'a [f32],
    /// From a line to the next.
    line: usize,
    /// From a number of a line to the next.
    step: usize,
}

impl<'a> Matrix<'a> {
    /// The factor whose number `p` of line `i` is `data[i * line + p * step]`.
    pub fn new(data: &'a [f32], line: usize, step: usize) -> Self {
        Self { data, line, step }
    }
}

impl Factor for Matrix<'_> {
    fn pack(&self, lines: Range<usize>, depth: Range<usize>, width: usize, out: &mut [f32]) {
        let axis = |len, step| Axis::new([1, 1, len], [0, 0, step]);
        let lines_axis = axis(lines.end, self.line);
        let depth_axis = axis(depth.end, self.step);
        pack(
            self.data,
            (&lines_axis, lines),
            (&depth_axis, depth),
            width,
            out,
        );
    }
}

/// The places of a grid of three sides in memory, in the order of its cells.
#[derive(Clone, Debug)]
pub struct Axis<'a> {
    sides: [usize; 3],
    steps: [usize; 3],
    /// Where the cells of the last side are, if not at multiples of its step.
    table: Option<&'a [usize]>,
}

impl<'a> Axis<'a> {
    /// Cell `(i, j, k)` is `i · steps[0] + j · steps[1] + k · steps[2]` from the start.
    pub fn new(sides: [usize; 3], steps: [usize; 3]) -> Self {
        Self {
            sides,
            steps,
            table: None,
        }
    }

    /// Cell `(i, k)` is `i · step + table[k]` from the start.
    pub fn table(len: usize, step: usize, table: &'a [usize]) -> Self {
        Self {
            sides: [1, len, table.len()],
            steps: [0, step, 0],
            table: Some(table),
        }
    }

    /// Calls `f` with the first place and the length of every stretch of memory that the cells `range` are in.
    fn stretches(&self, range: Range<usize>, mut f: impl FnMut(usize, usize)) {
        let [_, rows, columns] = self.sides;
        let mut stretch = (0, 0);
        let mut add = |start: usize, len: usize| {
            if stretch.0 + stretch.1 == start {
                stretch.1 += len;
            } else {
                if stretch.1 > 0 {
                    f(stretch.0, stretch.1);
                }
                stretch = (start, len);
            }
        };
        let mut at = range.start;
        while at < range.end {
            let (row, column) = (at / columns, at % columns);
            let len = (columns - column).min(range.end - at);
            let start = row / rows * self.steps[0] + row % rows * self.steps[1];
            match self.table {
                Some(table) => table[column..column + len]
                    .iter()
                    .for_each(|place| add(start + place, 1)),
                None if self.steps[2] == 1 => add(start + column, len),
                None => {
                    (column..column + len).for_each(|column| add(start + column * self.steps[2], 1))
                }
            }
            at += len;
        }
        add(usize::MAX, 0);
    }
}

/// A factor whose numbers lie where two axes say: number `p` of line `i` is at the sum of the place of line `i` and
/// that of `p`.
#[derive(Clone, Debug)]
pub struct Grid<'a> {
    data: &'a [f32],
    lines: Axis<'a>,
    depth: Axis<'a>,
}

impl<'a> Grid<'a> {
    /// The numbers of `data` at the sums of the places of these two.
    pub fn new(data: &'a [f32], lines: Axis<'a>, depth: Axis<'a>) -> Self {
        Self { data, lines, depth }
    }
}

impl Factor for Grid<'_> {
    fn pack(&self, lines: Range<usize>, depth: Range<usize>, width: usize, out: &mut [f32]) {
        pack(
            self.data,
            (&self.lines, lines),
            (&self.depth, depth),
            width,
            out,
        );
    }
}

/// As [`Factor::pack`]: by copies where neighbouring lines are neighbours in memory, by transposed squares where the
/// numbers of a line are, and else one by one.
fn pack(
    data: &[f32],
    (lines, part): (&Axis, Range<usize>),
    (depth, range): (&Axis, Range<usize>),
    width: usize,
    out: &mut [f32],
) {
    /// Shorter stretches are not worth a call.
    const LONG: usize = 8;
    let count = part.len();
    if count < width {
        out.fill(0.0);
    }
    let mut starts = [0; WIDEST];
    let mut stretches = [(0, 0, 0); WIDEST / LONG];
    let (mut line, mut number) = (0, 0);
    lines.stretches(part, |start, len| {
        for (i, place) in starts[line..line + len].iter_mut().enumerate() {
            *place = start + i;
        }
        if let Some(stretch) = stretches.get_mut(number) {
            *stretch = (line, start, len);
        }
        (line, number) = (line + len, number + 1);
    });
    let starts = &starts[..count];
    if number * LONG <= count || (number == 1 && count > 1) {
        let mut rows = out.chunks_exact_mut(width);
        depth.stretches(range, |start, len| {
            for (place, row) in (start..start + len).zip(&mut rows) {
                for (line, start, len) in &stretches[..number] {
                    row[*line..line + len].copy_from_slice(&data[place + start..][..*len]);
                }
            }
        });
        return;
    }
    let mut done = 0;
    depth.stretches(range, |start, len| {
        let out = &mut out[done * width..][..len * width];
        let data = &data[start..];
        if len >= LONG {
            interleave(data, starts, width, out);
        } else {
            for (p, out) in out.chunks_exact_mut(width).enumerate() {
                let data = &data[p..];
                for (out, start) in out.iter_mut().zip(starts) {
                    *out = data[*start];
                }
            }
        }
        done += len;
    });
}
