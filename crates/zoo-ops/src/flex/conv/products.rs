//! A convolution as products of matrices, for each group, with output positions as columns:
//! `y = W · col`, `dW = dy · colᵀ` and `dx = W'ᵀ · col'`, where `col [in/groups · taps, positions]` is the unfolded
//! input, and `col'` the unfolded output gradient. Neither is ever in memory as a whole.

use super::padded::{Images, Padded};
use super::{Geometry, with_scratch};
use burn_zoo_gemm::{Axis, Grid, Matrix, product};
use rayon::prelude::*;
use std::ops::Range;

impl Geometry {
    /// Images per part: one part a thread, or everything in one part with parallel products.
    fn part(&self) -> (usize, bool) {
        let threads = rayon::current_num_threads();
        if threads > 1 && self.batch >= threads {
            (self.batch.div_ceil(threads), false)
        } else {
            (self.batch, threads > 1)
        }
    }

    /// The images `0..images` and all groups, in the steps in which products take them.
    fn steps(&self, images: usize) -> impl Iterator<Item = (Range<usize>, usize)> + use<> {
        /// Columns that make a product worth packing its weights.
        const COLUMNS: usize = 512;
        let together = (COLUMNS / self.positions()).clamp(1, images);
        let groups = self.options.groups;
        (0..images).step_by(together).flat_map(move |first| {
            let images = first..(first + together).min(images);
            (0..groups).map(move |group| (images.clone(), group))
        })
    }

    /// What the kernel sees of images.
    fn seen<'a>(
        &self,
        x: &'a [f32],
        (images, group): (Range<usize>, usize),
        memory: &'a mut Vec<f32>,
        parallel: bool,
    ) -> Padded<'a> {
        let o = &self.options;
        let size = [0, 1]
            .map(|i| (self.output[i] - 1) * o.stride[i] + o.dilation[i] * (self.kernel[i] - 1) + 1);
        let source = Images {
            data: x,
            channels: self.in_channels,
            size: self.input,
        };
        let channels = group * self.in_group()..(group + 1) * self.in_group();
        Padded::new(source, images, channels, o.padding, size, memory, parallel)
    }

    /// Where the taps of a kernel are from its first.
    fn offsets(&self, pitch: usize) -> Vec<usize> {
        let [down, right] = self.options.dilation;
        let [height, width] = self.kernel;
        let taps = (0..height).flat_map(|i| (0..width).map(move |j| (i, j)));
        taps.map(|(i, j)| i * down * pitch + j * right).collect()
    }

    /// Where the first taps are for every output position.
    fn windows(&self, images: usize, seen: &Padded) -> Axis<'static> {
        let [height, width] = self.output;
        let [down, right] = self.options.stride;
        Axis::new(
            [images, height, width],
            [seen.image, down * seen.pitch, right],
        )
    }
}

pub(super) fn forward(g: &Geometry, x: &[f32], weight: &[f32], y: &mut [f32]) {
    let (part, parallel) = g.part();
    let (m, k, positions) = (g.out_group(), g.in_group() * g.taps(), g.positions());
    y.par_chunks_mut(part * g.y_image())
        .zip(x.par_chunks(part * g.x_image()))
        .for_each(|(y, x)| {
            with_scratch(|[memory, side]| {
                for (images, group) in g.steps(y.len() / g.y_image()) {
                    let count = images.len();
                    let start = images.start * g.y_image() + group * m * positions;
                    let seen = g.seen(x, (images, group), memory, parallel);
                    let offsets = g.offsets(seen.pitch);
                    let taps = Axis::table(g.in_group(), seen.plane, &offsets);
                    let col = Grid::new(seen.data, g.windows(count, &seen), taps);
                    let weight = Matrix::new(&weight[group * m * k..][..m * k], k, 1);
                    let size = [m, count * positions, k];
                    if count == 1 {
                        let y = (&mut y[start..], positions);
                        product(size, y, false, &weight, &col, parallel);
                        continue;
                    }
                    let side = sized(side, m * count * positions);
                    product(
                        size,
                        (side, count * positions),
                        false,
                        &weight,
                        &col,
                        parallel,
                    );
                    for (side, c) in side.chunks_exact(count * positions).zip(0..) {
                        for (side, n) in side.chunks_exact(positions).zip(0..) {
                            let start = start + n * g.y_image() + c * positions;
                            y[start..][..positions].copy_from_slice(side);
                        }
                    }
                }
            })
        });
}

pub(super) fn weight_gradient(g: &Geometry, x: &[f32], dy: &[f32]) -> Vec<f32> {
    let (part, parallel) = g.part();
    let (m, k, positions) = (g.out_group(), g.in_group() * g.taps(), g.positions());
    let parts: Vec<Vec<f32>> = dy
        .par_chunks(part * g.y_image())
        .zip(x.par_chunks(part * g.x_image()))
        .map(|(dy, x)| {
            let mut dw = vec![0.0; g.out_channels * k];
            with_scratch(|[memory, _]| {
                for (images, group) in g.steps(dy.len() / g.y_image()) {
                    let count = images.len();
                    let dy = &dy[images.start * g.y_image() + group * m * positions..];
                    let seen = g.seen(x, (images, group), memory, parallel);
                    let offsets = g.offsets(seen.pitch);
                    let taps = Axis::table(g.in_group(), seen.plane, &offsets);
                    let col = Grid::new(seen.data, taps, g.windows(count, &seen));
                    let channels = Axis::new([1, 1, m], [0, 0, positions]);
                    let pixels = Axis::new([count, 1, positions], [g.y_image(), 0, 1]);
                    let dy = Grid::new(dy, channels, pixels);
                    let dw = (&mut dw[group * m * k..][..m * k], k);
                    product([m, k, count * positions], dw, true, &dy, &col, parallel);
                }
            });
            dw
        })
        .collect();
    parts
        .into_iter()
        .reduce(|mut sum, part| {
            sum.iter_mut().zip(part).for_each(|(sum, v)| *sum += v);
            sum
        })
        .unwrap_or_default()
}

/// Along one side, the input pixels `first`, `first + stride`, ..: all see the output through the same taps.
struct Phase {
    first: usize,
    count: usize,
    /// Taps, and how far the output that pixel number `q` sees through it is from output `q`.
    taps: Vec<(usize, isize)>,
}

/// The phases of one side, and how many outputs before the first and in all they reach for.
fn phases(g: &Geometry, side: usize) -> (Vec<Phase>, [usize; 2]) {
    let o = &g.options;
    let (stride, input) = (o.stride[side], g.input[side]);
    let phase = |first: usize| {
        let taps = (0..g.kernel[side]).filter_map(|tap| {
            let place = (first + o.padding[side]) as isize - (tap * o.dilation[side]) as isize;
            let stride = stride as isize;
            (place.rem_euclid(stride) == 0).then(|| (tap, place.div_euclid(stride)))
        });
        Phase {
            first,
            count: (input - first).div_ceil(stride),
            taps: taps.collect(),
        }
    };
    let phases: Vec<Phase> = (0..stride.min(input)).map(phase).collect();
    let all = || {
        phases
            .iter()
            .flat_map(|p| p.taps.iter().map(|(_, d)| (p.count, *d)))
    };
    let before = all().map(|(_, d)| -d).max().unwrap_or(0).max(0);
    let last = all()
        .map(|(count, d)| count as isize - 1 + d)
        .max()
        .unwrap_or(0);
    let size = (before + last + 1).max(1);
    (phases, [before as usize, size as usize])
}

pub(super) fn input_gradient(g: &Geometry, weight: &[f32], dy: &[f32], dx: &mut [f32]) {
    let (part, parallel) = g.part();
    let (m, taps) = (g.in_group(), g.taps());
    let (rows, [above, height]) = phases(g, 0);
    let (columns, [left, width]) = phases(g, 1);
    dx.par_chunks_mut(part * g.x_image())
        .zip(dy.par_chunks(part * g.y_image()))
        .for_each(|(dx, dy)| {
            with_scratch(|[memory, side]| {
                for (images, group) in g.steps(dy.len() / g.y_image()) {
                    let count = images.len();
                    let start = images.start * g.x_image() + group * m * g.plane();
                    let source = Images {
                        data: dy,
                        channels: g.out_channels,
                        size: g.output,
                    };
                    let channels = group * g.out_group()..(group + 1) * g.out_group();
                    let (before, size) = ([above, left], [height, width]);
                    let seen =
                        Padded::new(source, images, channels, before, size, memory, parallel);
                    let weight = &weight[group * g.out_group() * m * taps..];
                    for (row, column) in rows
                        .iter()
                        .flat_map(|r| columns.iter().map(move |c| (r, c)))
                    {
                        let pairs = row
                            .taps
                            .iter()
                            .flat_map(|r| column.taps.iter().map(move |c| (r, c)));
                        let (kernel, offsets): (Vec<usize>, Vec<usize>) = pairs
                            .map(|((i, down), (j, right))| {
                                let down = above.wrapping_add_signed(*down);
                                let right = left.wrapping_add_signed(*right);
                                (i * g.kernel[1] + j, down * seen.pitch + right)
                            })
                            .unzip();
                        if kernel.is_empty() {
                            continue;
                        }
                        let pixels = Axis::new(
                            [count, row.count, column.count],
                            [seen.image, seen.pitch, 1],
                        );
                        let col = Grid::new(
                            seen.data,
                            pixels,
                            Axis::table(g.out_group(), seen.plane, &offsets),
                        );
                        let channels = Axis::new([1, 1, m], [0, 0, taps]);
                        let weight = Grid::new(
                            weight,
                            channels,
                            Axis::table(g.out_group(), m * taps, &kernel),
                        );
                        let area = row.count * column.count;
                        let size = [m, count * area, g.out_group() * kernel.len()];
                        if count == 1 && area == g.plane() {
                            let dx = (&mut dx[start..], area);
                            product(size, dx, false, &weight, &col, parallel);
                            continue;
                        }
                        let side = sized(side, m * count * area);
                        product(size, (side, count * area), false, &weight, &col, parallel);
                        for (side, i) in side.chunks_exact(column.count).zip(0..) {
                            let (plane, y) = (
                                i / row.count,
                                row.first + i % row.count * g.options.stride[0],
                            );
                            let start =
                                start + plane % count * g.x_image() + plane / count * g.plane();
                            let dx = &mut dx[start + y * g.input[1]..][..g.input[1]];
                            let pixels = dx[column.first..].iter_mut().step_by(g.options.stride[1]);
                            pixels.zip(side).for_each(|(dx, v)| *dx = *v);
                        }
                    }
                }
            })
        });
}

fn sized(memory: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if memory.len() < len {
        memory.resize(len, 0.0);
    }
    &mut memory[..len]
}
