//! A convolution whose channels do not see each other: tap by tap over whole planes.
//!
//! A plane is cut into phases, one for each place of a window's first pixel modulo the stride, with the zeros of the
//! padding. Then every tap sees one phase moved by so many numbers, for all output positions at once: the output has
//! the phases' row length too.

use super::super::math::sum2;
use super::{Geometry, with_scratch};
use rayon::prelude::*;

/// How the planes of one convolution are cut.
struct Cut {
    /// Phases down and across.
    phases: [usize; 2],
    /// Rows and row length of a phase.
    size: [usize; 2],
    /// Where each tap is in all phases together.
    taps: Vec<usize>,
    /// From the first output position to the last, at the phases' row length.
    len: usize,
}

impl Cut {
    fn new(g: &Geometry) -> Self {
        let (phases, dilation) = (g.options.stride, g.options.dilation);
        let reach = [0, 1].map(|i| dilation[i] * (g.kernel[i] - 1) / phases[i]);
        let size = [g.output[0] + reach[0], g.output[1] + reach[1]];
        let taps = (0..g.taps()).map(|tap| {
            let [i, j] = [
                tap / g.kernel[1] * dilation[0],
                tap % g.kernel[1] * dilation[1],
            ];
            let phase = i % phases[0] * phases[1] + j % phases[1];
            phase * size[0] * size[1] + i / phases[0] * size[1] + j / phases[1]
        });
        Self {
            phases,
            size,
            taps: taps.collect(),
            len: (g.output[0] - 1) * size[1] + g.output[1],
        }
    }

    fn area(&self) -> usize {
        self.phases[0] * self.phases[1] * self.size[0] * self.size[1]
    }

    /// Calls `f` for every row of a plane that a phase has pixels of: with the row, its first column, the place of
    /// that pixel in the phases, and how many pixels there are.
    fn rows(&self, g: &Geometry, mut f: impl FnMut(usize, usize, usize, usize)) {
        let [down, across] = self.phases;
        let [above, left] = g.options.padding;
        for (a, b) in (0..down).flat_map(|a| (0..across).map(move |b| (a, b))) {
            // The first column of the phase that is inside of the image.
            let skipped = left.saturating_sub(b).div_ceil(across);
            let first = skipped * across + b - left;
            let count = g.input[1].saturating_sub(first).div_ceil(across);
            let count = count.min(self.size[1].saturating_sub(skipped));
            for row in 0..self.size[0] {
                let y = (row * down + a).wrapping_sub(above);
                if y < g.input[0] && count > 0 {
                    let phase = (a * across + b) * self.size[0] + row;
                    f(y, first, phase * self.size[1] + skipped, count);
                }
            }
        }
    }

    /// A plane in phases.
    fn cut<'a>(&self, g: &Geometry, x: &[f32], memory: &'a mut Vec<f32>) -> &'a [f32] {
        memory.clear();
        memory.resize(self.area(), 0.0);
        self.rows(g, |y, first, place, count| {
            let x = x[y * g.input[1]..][first..g.input[1]]
                .iter()
                .step_by(self.phases[1]);
            memory[place..][..count]
                .iter_mut()
                .zip(x)
                .for_each(|(to, x)| *to = *x);
        });
        memory
    }

    /// Numbers of output positions at the phases' row length, with zeros between the rows.
    fn spread<'a>(&self, g: &Geometry, dy: &[f32], memory: &'a mut Vec<f32>) -> &'a [f32] {
        memory.clear();
        memory.resize(self.len, 0.0);
        for (to, dy) in memory
            .chunks_mut(self.size[1])
            .zip(dy.chunks_exact(g.output[1]))
        {
            to[..dy.len()].copy_from_slice(dy);
        }
        memory
    }
}

pub(super) fn forward(g: &Geometry, x: &[f32], weight: &[f32], y: &mut [f32]) {
    let cut = Cut::new(g);
    y.par_chunks_exact_mut(g.positions())
        .zip(x.par_chunks_exact(g.plane()))
        .enumerate()
        .for_each(|(i, (y, x))| {
            let weight = &weight[i % g.in_channels * g.taps()..][..g.taps()];
            with_scratch(|[memory, wide]| {
                let x = cut.cut(g, x, memory);
                wide.resize(cut.len, 0.0);
                weighted(wide, x, &cut.taps, weight);
                for (y, wide) in y
                    .chunks_exact_mut(g.output[1])
                    .zip(wide.chunks(cut.size[1]))
                {
                    y.copy_from_slice(&wide[..y.len()]);
                }
            });
        });
}

pub(super) fn input_gradient(g: &Geometry, weight: &[f32], dy: &[f32], dx: &mut [f32]) {
    let cut = Cut::new(g);
    dx.par_chunks_exact_mut(g.plane())
        .zip(dy.par_chunks_exact(g.positions()))
        .enumerate()
        .for_each(|(i, (dx, dy))| {
            let weight = &weight[i % g.in_channels * g.taps()..][..g.taps()];
            with_scratch(|[memory, wide]| {
                let dy = cut.spread(g, dy, wide);
                memory.clear();
                memory.resize(cut.area(), 0.0);
                for (tap, weight) in cut.taps.iter().zip(weight) {
                    add(&mut memory[*tap..][..cut.len], dy, *weight);
                }
                cut.rows(g, |y, first, place, count| {
                    let dx = dx[y * g.input[1]..][first..g.input[1]].iter_mut();
                    let pixels = dx.step_by(cut.phases[1]).zip(&memory[place..][..count]);
                    pixels.for_each(|(dx, v)| *dx = *v);
                });
            });
        });
}

pub(super) fn weight_gradient(g: &Geometry, x: &[f32], dy: &[f32]) -> Vec<f32> {
    let cut = Cut::new(g);
    let mut dw = vec![0.0; g.in_channels * g.taps()];
    dw.par_chunks_exact_mut(g.taps())
        .enumerate()
        .for_each(|(c, dw)| {
            let mut sums = vec![0.0f64; dw.len()];
            for n in 0..g.batch {
                let plane = n * g.in_channels + c;
                with_scratch(|[memory, wide]| {
                    let x = cut.cut(g, &x[plane * g.plane()..][..g.plane()], memory);
                    let dy = cut.spread(g, &dy[plane * g.positions()..][..g.positions()], wide);
                    for (sum, tap) in sums.iter_mut().zip(&cut.taps) {
                        *sum += dot(dy, &x[*tap..][..cut.len]);
                    }
                });
            }
            dw.iter_mut()
                .zip(sums)
                .for_each(|(dw, sum)| *dw = sum as f32);
        });
    dw
}

vectorized! {
    /// `out[i] = Σ weight[t] · x[i + taps[t]]`.
    fn weighted<'a>(out: &'a mut [f32], x: &'a [f32], taps: &'a [usize], weight: &'a [f32]) -> () {
        /// Sums that stay in registers.
        const LEN: usize = 64;
        let mut at = 0;
        let mut blocks = out.chunks_exact_mut(LEN);
        for block in &mut blocks {
            let mut sums = [0.0f32; LEN];
            for (tap, weight) in taps.iter().zip(weight) {
                let x = &x[at + tap..][..LEN];
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = weight.mul_add(*x, *sum);
                }
            }
            block.copy_from_slice(&sums);
            at += LEN;
        }
        let rest = blocks.into_remainder();
        rest.fill(0.0);
        for (tap, weight) in taps.iter().zip(weight) {
            for (sum, x) in rest.iter_mut().zip(&x[at + tap..]) {
                *sum = weight.mul_add(*x, *sum);
            }
        }
    }
}

vectorized! {
    /// `out += weight · x`.
    fn add<'a>(out: &'a mut [f32], x: &'a [f32], weight: f32) -> () {
        for (out, x) in out.iter_mut().zip(x) {
            *out = weight.mul_add(*x, *out);
        }
    }
}

vectorized! {
    /// `Σ a · b`.
    fn dot<'a>(a: &'a [f32], b: &'a [f32]) -> f64 {
        sum2(a, b, |a, b| a * b)
    }
}
