//! 3×3 convolutions of stride 1 by minimal filtering, F(2×2, 3×3) of Lavin and Gray (2016): 16 products for four
//! outputs instead of 36.
//!
//! An image is covered with tiles of 4×4 pixels, each two further than the one before. With `d` a tile, `g` a kernel and
//! `∘` the product of elements, a tile of 2×2 outputs is `Aᵀ [(G g Gᵀ) ∘ (Bᵀ d B)] A`; over channels, each of the 16
//! elements is a product of matrices. The gradient of the weights takes the same tiles of the input, with tiles of 2×2 of
//! the output's gradient as kernels (F(3×3, 2×2)).

use super::padded::Images;
use super::{Geometry, with_scratch};
use burn_zoo_gemm::{Matrix, product};
use rayon::prelude::*;
use std::ops::Range;

/// Tiles side by side.
const LANES: usize = 16;
type Lanes = [f32; LANES];

impl Geometry {
    /// Whether the convolution is one of these, and large enough that kernels are worth transforming.
    pub(super) fn is_minimal(&self) -> bool {
        /// Tiles that a kernel is used for.
        const TILES: usize = 128;
        let o = &self.options;
        let small =
            self.kernel == [3, 3] && o.stride == [1, 1] && o.dilation == [1, 1] && o.groups == 1;
        let tiles = |[height, width]: [usize; 2]| height.div_ceil(2) * width.div_ceil(2);
        small
            && o.padding.iter().all(|padding| *padding <= 2)
            && self.in_channels.min(self.out_channels) >= LANES
            // Images are split among threads.
            && self.batch >= rayon::current_num_threads()
            && self.batch * tiles(self.output).min(tiles(self.input)) >= TILES
    }
}

/// Tiles of several images, in rows.
struct Cover<'a> {
    source: Images<'a>,
    /// Zeros above and left of an image.
    before: [usize; 2],
    /// Tiles down and across an image.
    tiles: [usize; 2],
}

impl Cover<'_> {
    /// The rows of tiles of so many images in blocks, each about as large as a cache is.
    fn blocks(&self, images: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        const TILES: usize = 192;
        let rows = images * self.tiles[0];
        let step = (TILES / self.tiles[1]).max(1);
        (0..rows)
            .step_by(step)
            .map(move |start| start..(start + step).min(rows))
    }

    /// Numbers of one channel and element in a block: lanes may reach beyond its last tile.
    fn stride(&self, rows: &Range<usize>) -> usize {
        rows.len() * self.tiles[1] + LANES
    }

    /// `Bᵀ d B` of the tiles in `rows`, as `[16, channels, stride]`.
    fn inputs<'m>(&self, rows: &Range<usize>, memory: &'m mut Vec<f32>) -> &'m [f32] {
        self.elements::<4>(rows, memory, |lines, out, places| {
            inputs(lines, out, places)
        })
    }

    /// `G d Gᵀ` of the tiles of 2×2 in `rows`, in the same order.
    fn kernels<'m>(&self, rows: &Range<usize>, memory: &'m mut Vec<f32>) -> &'m [f32] {
        self.elements::<2>(rows, memory, |lines, out, places| {
            kernels(lines, out, places)
        })
    }

    /// Calls `f` for the `R` rows of pixels of each row of tiles, even pixels before odd ones.
    fn elements<'m, const R: usize>(
        &self,
        rows: &Range<usize>,
        memory: &'m mut Vec<f32>,
        f: impl Fn([&[f32]; R], &mut [f32], Places),
    ) -> &'m [f32] {
        let channels = self.source.channels;
        let [height, width] = self.source.size;
        let stride = self.stride(rows);
        let len = 16 * channels * stride;
        if memory.len() < len {
            memory.resize(len, 0.0);
        }
        let half = self.tiles[1] + 1 + LANES;
        let mut lines = vec![0.0f32; R * 2 * half];
        for c in 0..channels {
            for (i, row) in rows.clone().enumerate() {
                let (image, down) = (row / self.tiles[0], row % self.tiles[0]);
                let plane = &self.source.data[(image * channels + c) * height * width..];
                for (y, line) in lines.chunks_exact_mut(2 * half).enumerate() {
                    let y = (2 * down + y).wrapping_sub(self.before[0]);
                    let pixels = if y < height {
                        &plane[y * width..][..width]
                    } else {
                        &[]
                    };
                    split(pixels, self.before[1], line.split_at_mut(half));
                }
                let mut all = lines.chunks_exact(2 * half);
                let lines = std::array::from_fn(|_| all.next().unwrap_or_default());
                let places = Places {
                    start: c * stride + i * self.tiles[1],
                    element: channels * stride,
                    tiles: self.tiles[1],
                };
                f(lines, &mut memory[..len], places);
            }
        }
        &memory[..len]
    }
}

/// Where the elements of a row of tiles go.
#[derive(Clone, Copy)]
struct Places {
    start: usize,
    /// From an element to the next.
    element: usize,
    tiles: usize,
}

/// Pixels behind so many zeros, those at even places and those at odd ones.
fn split(pixels: &[f32], before: usize, (even, odd): (&mut [f32], &mut [f32])) {
    even.fill(0.0);
    odd.fill(0.0);
    let (first, second) = if before.is_multiple_of(2) {
        (even, odd)
    } else {
        (odd, even)
    };
    let (first, second) = (&mut first[before / 2..], &mut second[before.div_ceil(2)..]);
    let (pairs, rest) = pixels.as_chunks::<2>();
    for ((pair, first), second) in pairs.iter().zip(&mut *first).zip(second) {
        (*first, *second) = (pair[0], pair[1]);
    }
    if let [last] = rest {
        first[pairs.len()] = *last;
    }
}

#[inline(always)]
fn load(from: &[f32], at: usize) -> Lanes {
    let mut lanes = [0.0; LANES];
    lanes.copy_from_slice(&from[at..at + LANES]);
    lanes
}

#[inline(always)]
fn sum(mut a: Lanes, b: Lanes) -> Lanes {
    for (a, b) in a.iter_mut().zip(b) {
        *a += b;
    }
    a
}

#[inline(always)]
fn less(mut a: Lanes, b: Lanes) -> Lanes {
    for (a, b) in a.iter_mut().zip(b) {
        *a -= b;
    }
    a
}

#[inline(always)]
fn half(mut a: Lanes) -> Lanes {
    for a in &mut a {
        *a *= 0.5;
    }
    a
}

/// `Bᵀ d`.
#[inline(always)]
fn of_pixels(d: [Lanes; 4]) -> [Lanes; 4] {
    [
        less(d[0], d[2]),
        sum(d[1], d[2]),
        less(d[2], d[1]),
        less(d[1], d[3]),
    ]
}

/// `G g` for kernels of 3.
#[inline(always)]
fn of_three(g: [Lanes; 3]) -> [Lanes; 4] {
    let ends = sum(g[0], g[2]);
    [g[0], half(sum(ends, g[1])), half(less(ends, g[1])), g[2]]
}

/// `G g` for kernels of 2.
#[inline(always)]
fn of_two(g: [Lanes; 2]) -> [Lanes; 4] {
    [g[0], half(sum(g[0], g[1])), half(less(g[0], g[1])), g[1]]
}

/// `Aᵀ m` for 2 outputs.
#[inline(always)]
fn to_two(m: [Lanes; 4]) -> [Lanes; 2] {
    [sum(sum(m[0], m[1]), m[2]), less(less(m[1], m[2]), m[3])]
}

/// `Aᵀ m` for 3 outputs.
#[inline(always)]
fn to_three(m: [Lanes; 4]) -> [Lanes; 3] {
    let both = sum(m[1], m[2]);
    [sum(m[0], both), less(m[1], m[2]), less(both, m[3])]
}

/// The rows of a square as its columns.
#[inline(always)]
fn turned<const R: usize, const C: usize>(a: [[Lanes; C]; R]) -> [[Lanes; R]; C] {
    let mut b = [[[0.0; LANES]; R]; C];
    for (i, row) in a.into_iter().enumerate() {
        for (j, v) in row.into_iter().enumerate() {
            b[j][i] = v;
        }
    }
    b
}

#[inline(always)]
fn store(elements: [[Lanes; 4]; 4], out: &mut [f32], places: Places, at: usize) {
    for (f, v) in elements.as_flattened().iter().enumerate() {
        out[places.start + f * places.element + at..][..LANES].copy_from_slice(v);
    }
}

vectorized! {
    fn inputs<'a>(lines: [&'a [f32]; 4], out: &'a mut [f32], places: Places) -> () {
        let half = lines[0].len() / 2;
        for at in (0..places.tiles).step_by(LANES) {
            // One column of pixels after the other.
            let mut columns = [[[0.0; LANES]; 4]; 4];
            for (j, column) in columns.iter_mut().enumerate() {
                let place = j % 2 * half + j / 2 + at;
                *column = of_pixels([
                    load(lines[0], place),
                    load(lines[1], place),
                    load(lines[2], place),
                    load(lines[3], place),
                ]);
            }
            let [a, b, c, d] = turned(columns);
            store([of_pixels(a), of_pixels(b), of_pixels(c), of_pixels(d)], out, places, at);
        }
    }
}

vectorized! {
    fn kernels<'a>(lines: [&'a [f32]; 2], out: &'a mut [f32], places: Places) -> () {
        let half = lines[0].len() / 2;
        for at in (0..places.tiles).step_by(LANES) {
            let even = of_two([load(lines[0], at), load(lines[1], at)]);
            let odd = of_two([load(lines[0], half + at), load(lines[1], half + at)]);
            let [a, b, c, d] = turned([even, odd]);
            store([of_two(a), of_two(b), of_two(c), of_two(d)], out, places, at);
        }
    }
}

vectorized! {
    /// `G g Gᵀ` of 3×3 kernels, 16 at a time: `taps[t]` of kernel `i` is `g[i * step + taps[t]]`, and its element `f` goes
    /// to `out[f * element + i]`.
    fn whole_kernels<'a>(
        g: &'a [f32],
        step: usize,
        taps: [usize; 9],
        out: &'a mut [f32],
        element: usize,
        count: usize,
    ) -> () {
        for first in (0..count).step_by(LANES) {
            let mut rows = [[[0.0f32; LANES]; 3]; 3];
            let lanes = LANES.min(count - first);
            for (tap, values) in taps.iter().zip(rows.as_flattened_mut()) {
                for (i, value) in values.iter_mut().enumerate().take(lanes) {
                    *value = g[(first + i) * step + tap];
                }
            }
            let [a, b, c] = turned(rows);
            let [a, b, c, d] = turned([of_three(a), of_three(b), of_three(c)]);
            let all = [of_three(a), of_three(b), of_three(c), of_three(d)];
            for (f, values) in all.as_flattened().iter().enumerate() {
                out[f * element + first..][..lanes].copy_from_slice(&values[..lanes]);
            }
        }
    }
}

vectorized! {
    /// `Aᵀ m A` of a row of tiles: two rows of outputs, of which the lower may be missing.
    fn outputs<'a>(m: &'a [f32], places: Places, upper: &'a mut [f32], lower: &'a mut [f32]) -> () {
        for at in (0..places.tiles).step_by(LANES) {
            let mut rows = [[[0.0; LANES]; 4]; 4];
            for (f, lanes) in rows.as_flattened_mut().iter_mut().enumerate() {
                *lanes = load(m, places.start + f * places.element + at);
            }
            let [a, b, c, d] = turned(rows);
            let [first, second] = turned([to_two(a), to_two(b), to_two(c), to_two(d)]);
            for (row, [even, odd]) in [(&mut *upper, to_two(first)), (&mut *lower, to_two(second))] {
                let row = row.get_mut(2 * at..).unwrap_or_default();
                let (pairs, rest) = row.as_chunks_mut::<2>();
                for ((pair, even), odd) in pairs.iter_mut().zip(even).zip(odd) {
                    *pair = [even, odd];
                }
                if let ([last], Some(even)) = (rest, even.get(pairs.len())) {
                    *last = *even;
                }
            }
        }
    }
}

vectorized! {
    /// `Aᵀ m A` for 3×3 outputs, 16 at a time: element `f` of number `i` is `m[f * element + i]`.
    fn whole_outputs<'a>(m: &'a [f32], element: usize, out: &'a mut [f32]) -> () {
        let count = out.len() / 9;
        for first in (0..count).step_by(LANES) {
            let lanes = LANES.min(count - first);
            let mut rows = [[[0.0f32; LANES]; 4]; 4];
            for (f, values) in rows.as_flattened_mut().iter_mut().enumerate() {
                values[..lanes].copy_from_slice(&m[f * element + first..][..lanes]);
            }
            let [a, b, c, d] = turned(rows);
            let [a, b, c] = turned([to_three(a), to_three(b), to_three(c), to_three(d)]);
            let all = [to_three(a), to_three(b), to_three(c)];
            for (tap, values) in all.as_flattened().iter().enumerate() {
                for (i, value) in values.iter().enumerate().take(lanes) {
                    out[(first + i) * 9 + tap] = *value;
                }
            }
        }
    }
}

/// Convolves images with kernels `[16, to, from]` that are transformed.
fn convolve(
    source: Images,
    before: [usize; 2],
    kernels: &[f32],
    [height, width]: [usize; 2],
    y: &mut [f32],
) {
    let from = source.channels;
    let to = kernels.len() / 16 / from;
    let images = y.len() / (to * height * width);
    let cover = Cover {
        source,
        before,
        tiles: [height.div_ceil(2), width.div_ceil(2)],
    };
    with_scratch(|[memory, side]| {
        for rows in cover.blocks(images) {
            let stride = cover.stride(&rows);
            let tiles = rows.len() * cover.tiles[1];
            let elements = cover.inputs(&rows, memory);
            if side.len() < 16 * to * stride {
                side.resize(16 * to * stride, 0.0);
            }
            for f in 0..16 {
                let kernel = Matrix::new(&kernels[f * to * from..][..to * from], from, 1);
                let pixels =
                    Matrix::new(&elements[f * from * stride..][..from * stride], 1, stride);
                let out = (&mut side[f * to * stride..][..to * stride], stride);
                product([to, tiles, from], out, false, &kernel, &pixels, false);
            }
            for c in 0..to {
                for (i, row) in rows.clone().enumerate() {
                    let (image, down) = (row / cover.tiles[0], row % cover.tiles[0]);
                    let places = Places {
                        start: c * stride + i * cover.tiles[1],
                        element: to * stride,
                        tiles: cover.tiles[1],
                    };
                    let plane = &mut y[(image * to + c) * height * width..][..height * width];
                    let both = &mut plane[2 * down * width..];
                    let both = both.len().min(2 * width);
                    let both = &mut plane[2 * down * width..][..both];
                    let (upper, lower) = both.split_at_mut(width);
                    outputs(side, places, upper, lower);
                }
            }
        }
    });
}

/// Images that one thread takes.
fn part(g: &Geometry) -> usize {
    g.batch.div_ceil(rayon::current_num_threads())
}

pub(super) fn forward(g: &Geometry, x: &[f32], weight: &[f32], y: &mut [f32]) {
    let (from, to) = (g.in_channels, g.out_channels);
    let mut kernels = vec![0.0; 16 * to * from];
    let taps = std::array::from_fn(|tap| tap);
    whole_kernels(weight, 9, taps, &mut kernels, to * from, to * from);
    y.par_chunks_mut(part(g) * g.y_image())
        .zip(x.par_chunks(part(g) * g.x_image()))
        .for_each(|(y, x)| {
            let source = Images {
                data: x,
                channels: from,
                size: g.input,
            };
            convolve(source, g.options.padding, &kernels, g.output, y);
        });
}

/// A convolution of the output's gradient with kernels that are turned around.
pub(super) fn input_gradient(g: &Geometry, weight: &[f32], dy: &[f32], dx: &mut [f32]) {
    let (from, to) = (g.out_channels, g.in_channels);
    let mut kernels = vec![0.0; 16 * to * from];
    let taps = std::array::from_fn(|tap| 8 - tap);
    for c in 0..to {
        let out = &mut kernels[c * from..];
        whole_kernels(&weight[c * 9..], to * 9, taps, out, to * from, from);
    }
    let before = g.options.padding.map(|padding| 2 - padding);
    dx.par_chunks_mut(part(g) * g.x_image())
        .zip(dy.par_chunks(part(g) * g.y_image()))
        .for_each(|(dx, dy)| {
            let source = Images {
                data: dy,
                channels: from,
                size: g.output,
            };
            convolve(source, before, &kernels, g.input, dx);
        });
}

pub(super) fn weight_gradient(g: &Geometry, x: &[f32], dy: &[f32]) -> Vec<f32> {
    let (from, to) = (g.in_channels, g.out_channels);
    let tiles = g.output.map(|size| size.div_ceil(2));
    let parts: Vec<Vec<f32>> = x
        .par_chunks(part(g) * g.x_image())
        .zip(dy.par_chunks(part(g) * g.y_image()))
        .map(|(x, dy)| {
            let images = Cover {
                source: Images {
                    data: x,
                    channels: from,
                    size: g.input,
                },
                before: g.options.padding,
                tiles,
            };
            let gradients = Cover {
                source: Images {
                    data: dy,
                    channels: to,
                    size: g.output,
                },
                before: [0, 0],
                tiles,
            };
            let mut sums = vec![0.0; 16 * to * from];
            with_scratch(|[memory, side]| {
                for rows in images.blocks(x.len() / g.x_image()) {
                    let stride = images.stride(&rows);
                    let tiles = rows.len() * images.tiles[1];
                    let pixels = images.inputs(&rows, memory);
                    let kernels = gradients.kernels(&rows, side);
                    for f in 0..16 {
                        let kernel =
                            Matrix::new(&kernels[f * to * stride..][..to * stride], stride, 1);
                        let pixels =
                            Matrix::new(&pixels[f * from * stride..][..from * stride], stride, 1);
                        let sums = (&mut sums[f * to * from..][..to * from], from);
                        product([to, from, tiles], sums, true, &kernel, &pixels, false);
                    }
                }
            });
            sums
        })
        .collect();
    let sums = parts.into_iter().reduce(|mut all, part| {
        all.iter_mut().zip(part).for_each(|(all, v)| *all += v);
        all
    });
    let mut dw = vec![0.0; to * from * 9];
    whole_outputs(&sums.unwrap_or_default(), to * from, &mut dw);
    dw
}
