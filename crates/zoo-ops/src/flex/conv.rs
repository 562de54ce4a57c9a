use super::gemm::{Strides, gemm};
use super::{contiguous, from_vec, slice};
use crate::Conv2dOptions;
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops},
};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;
use std::cell::RefCell;

/// Sizes of one 2-d convolution, computed as a matrix product over unfolded input ("im2col").
///
/// For one group, with `K = in/groups · kernel_h · kernel_w` and output positions as columns:
/// `y = W [out/groups, K] · col [K, positions]`, `dW = dy · colᵀ`, `dcol = Wᵀ · dy`.
/// Columns are handled in tiles that stay in cache: some rows of one image, or several small
/// images side by side. The batch is split into one fixed part per thread, so sums are added in
/// the same order in every run with the same number of threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    batch: usize,
    in_channels: usize,
    out_channels: usize,
    input: [usize; 2],
    kernel: [usize; 2],
    output: [usize; 2],
    options: Conv2dOptions,
}

/// Columns of one product: whole images `first..first + images`, or some output rows of one.
#[derive(Clone, Copy)]
struct Tile {
    first: usize,
    images: usize,
    row: usize,
    rows: usize,
}

thread_local! {
    /// Reused between calls: fresh pages for every unfolding would cost more than the unfolding.
    static SCRATCH: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

impl Geometry {
    pub fn new(x: [usize; 4], weight: [usize; 4], options: Conv2dOptions) -> Self {
        let (input, kernel) = ([x[2], x[3]], [weight[2], weight[3]]);
        Self {
            batch: x[0],
            in_channels: x[1],
            out_channels: weight[0],
            input,
            kernel,
            output: options.output_size(input, kernel),
            options,
        }
    }

    /// Whether a weight with `in_group` input channels fits the input, and no size is zero.
    pub fn fits(&self, in_group: usize) -> bool {
        let Conv2dOptions {
            stride,
            padding,
            dilation,
            groups,
        } = self.options;
        let reaches = |i: usize| {
            self.kernel[i] > 0
                && stride[i] > 0
                && dilation[i] * (self.kernel[i] - 1) < self.input[i] + 2 * padding[i]
        };
        groups > 0
            && self.in_channels == in_group * groups
            && self.out_channels.is_multiple_of(groups)
            && self.batch * self.in_channels * self.out_channels * self.plane() > 0
            && reaches(0)
            && reaches(1)
    }

    fn in_group(&self) -> usize {
        self.in_channels / self.options.groups
    }

    fn out_group(&self) -> usize {
        self.out_channels / self.options.groups
    }

    /// Rows of the unfolded input of one group.
    fn depth(&self) -> usize {
        self.in_group() * self.kernel[0] * self.kernel[1]
    }

    fn positions(&self) -> usize {
        self.output[0] * self.output[1]
    }

    fn plane(&self) -> usize {
        self.input[0] * self.input[1]
    }

    /// A kernel of one tap that visits every pixel: the input is its own unfolding.
    fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.options.stride == [1, 1] && self.options.padding == [0, 0]
    }

    /// Images per part: one part a thread, or everything in one part with parallel products.
    fn part(&self) -> (usize, bool) {
        let threads = rayon::current_num_threads();
        if threads > 1 && self.batch >= threads {
            (self.batch.div_ceil(threads), false)
        } else {
            (self.batch, threads > 1)
        }
    }

    fn tiles(&self, images: usize) -> impl Iterator<Item = Tile> + use<> {
        let columns = (128 * 1024 / self.depth()).clamp(256, 1024);
        let positions = self.positions();
        let [height, width] = self.output;
        let (images_each, rows_each) = if positions <= columns {
            ((columns / positions).max(1), height)
        } else {
            (1, (columns / width).clamp(1, height))
        };
        (0..images).step_by(images_each).flat_map(move |first| {
            (0..height).step_by(rows_each).map(move |row| Tile {
                first,
                images: images_each.min(images - first),
                row,
                rows: rows_each.min(height - row),
            })
        })
    }

    /// The result, and the contiguous inputs for the backward pass.
    pub fn forward_tensor(
        &self,
        x: FlexTensor,
        weight: FlexTensor,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        let (x, weight) = (contiguous(x), contiguous(weight));
        let mut y = vec![0.0; self.batch * self.out_channels * self.positions()];
        self.forward(slice(&x), slice(&weight), &mut y);
        let shape = [
            self.batch,
            self.out_channels,
            self.output[0],
            self.output[1],
        ];
        (from_vec(y, &shape), x, weight)
    }

    fn forward(&self, x: &[f32], weight: &[f32], y: &mut [f32]) {
        let (images, parallel) = self.part();
        let x_image = self.in_channels * self.plane();
        let y_image = self.out_channels * self.positions();
        y.par_chunks_mut(images * y_image)
            .zip(x.par_chunks(images * x_image))
            .for_each(|(y, x)| {
                with_scratch(|[col, out]| {
                    for tile in self.tiles(y.len() / y_image) {
                        for group in 0..self.options.groups {
                            self.forward_tile(tile, group, x, weight, y, col, out, parallel);
                        }
                    }
                })
            });
    }

    #[allow(clippy::too_many_arguments)]
    fn forward_tile(
        &self,
        tile: Tile,
        group: usize,
        x: &[f32],
        weight: &[f32],
        y: &mut [f32],
        col: &mut Vec<f32>,
        out: &mut Vec<f32>,
        parallel: bool,
    ) {
        let (m, k, positions) = (self.out_group(), self.depth(), self.positions());
        let columns = tile.columns(self);
        let weight = &weight[group * m * k..][..m * k];
        let rhs = self.unfold(tile, group, x, col);
        let size = [m, columns, k];
        let lhs = (weight, Strides::rows(k));
        if tile.images == 1 {
            let start = self.y_offset(tile.first, group) + tile.row * self.output[1];
            let dst = (&mut y[start..], Strides::rows(positions));
            gemm(size, dst, false, lhs, rhs, parallel);
        } else {
            out.resize(m * columns, 0.0);
            gemm(
                size,
                (out, Strides::rows(columns)),
                false,
                lhs,
                rhs,
                parallel,
            );
            for image in 0..tile.images {
                let start = self.y_offset(tile.first + image, group);
                let y = &mut y[start..][..m * positions];
                for (y, out) in y.chunks_exact_mut(positions).zip(out.chunks_exact(columns)) {
                    y.copy_from_slice(&out[image * positions..][..positions]);
                }
            }
        }
    }

    /// Gradients of input and weight, each only if wanted.
    fn backward(
        &self,
        x: &[f32],
        weight: &[f32],
        dy: &[f32],
        want: [bool; 2],
    ) -> [Option<Vec<f32>>; 2] {
        let (images, parallel) = self.part();
        let x_image = self.in_channels * self.plane();
        let y_image = self.out_channels * self.positions();
        let mut dx = vec![0.0; if want[0] { x.len() } else { 0 }];
        // Without a wanted `dx` the parts of it are empty slices, one for each part of the batch.
        let parts = self.batch.div_ceil(images);
        let dx_parts: Vec<&mut [f32]> = if want[0] {
            dx.chunks_mut(images * x_image).collect()
        } else {
            (0..parts).map(|_| Default::default()).collect()
        };
        let mut dws: Vec<Vec<f32>> = dx_parts
            .into_par_iter()
            .zip(x.par_chunks(images * x_image))
            .zip(dy.par_chunks(images * y_image))
            .map(|((dx, x), dy)| {
                let mut dw = vec![0.0; if want[1] { weight.len() } else { 0 }];
                with_scratch(|[col, side]| {
                    for tile in self.tiles(dy.len() / y_image) {
                        for group in 0..self.options.groups {
                            let dy = self.gather(tile, group, dy, side);
                            if want[1] {
                                self.weight_tile(tile, group, x, dy, &mut dw, col, parallel);
                            }
                            if want[0] {
                                self.input_tile(tile, group, weight, dy, dx, col, parallel);
                            }
                        }
                    }
                });
                dw
            })
            .collect();
        let dw = want[1].then(|| {
            let mut sum = dws.remove(0);
            for part in &dws {
                for (sum, part) in sum.iter_mut().zip(part) {
                    *sum += part;
                }
            }
            sum
        });
        [want[0].then_some(dx), dw]
    }

    #[allow(clippy::too_many_arguments)]
    fn weight_tile(
        &self,
        tile: Tile,
        group: usize,
        x: &[f32],
        dy: (&[f32], Strides),
        dw: &mut [f32],
        col: &mut Vec<f32>,
        parallel: bool,
    ) {
        let (m, k) = (self.out_group(), self.depth());
        let (col, strides) = self.unfold(tile, group, x, col);
        let dst = (&mut dw[group * m * k..][..m * k], Strides::rows(k));
        let rhs = (col, Strides::transposed(strides.row));
        gemm([m, k, tile.columns(self)], dst, true, dy, rhs, parallel);
    }

    #[allow(clippy::too_many_arguments)]
    fn input_tile(
        &self,
        tile: Tile,
        group: usize,
        weight: &[f32],
        dy: (&[f32], Strides),
        dx: &mut [f32],
        col: &mut Vec<f32>,
        parallel: bool,
    ) {
        let (m, k, columns) = (self.out_group(), self.depth(), tile.columns(self));
        let lhs = (&weight[group * m * k..][..m * k], Strides::transposed(k));
        col.resize(k * columns, 0.0);
        gemm(
            [k, columns, m],
            (col, Strides::rows(columns)),
            false,
            lhs,
            dy,
            parallel,
        );
        self.fold(tile, group, col, dx);
    }

    fn y_offset(&self, image: usize, group: usize) -> usize {
        (image * self.out_channels + group * self.out_group()) * self.positions()
    }

    fn x_offset(&self, image: usize, group: usize) -> usize {
        (image * self.in_channels + group * self.in_group()) * self.plane()
    }

    /// The output gradient of a tile as an `[out/groups, columns]` matrix.
    fn gather<'a>(
        &self,
        tile: Tile,
        group: usize,
        dy: &'a [f32],
        side: &'a mut Vec<f32>,
    ) -> (&'a [f32], Strides) {
        let positions = self.positions();
        if tile.images == 1 {
            let start = self.y_offset(tile.first, group) + tile.row * self.output[1];
            return (&dy[start..], Strides::rows(positions));
        }
        let columns = tile.columns(self);
        side.resize(self.out_group() * columns, 0.0);
        for image in 0..tile.images {
            let dy = &dy[self.y_offset(tile.first + image, group)..];
            let rows = side
                .chunks_exact_mut(columns)
                .zip(dy.chunks_exact(positions));
            for (side, dy) in rows {
                side[image * positions..][..positions].copy_from_slice(dy);
            }
        }
        (side, Strides::rows(columns))
    }

    /// The unfolded input of a tile as a `[K, columns]` matrix.
    fn unfold<'a>(
        &self,
        tile: Tile,
        group: usize,
        x: &'a [f32],
        col: &'a mut Vec<f32>,
    ) -> (&'a [f32], Strides) {
        if self.is_pointwise() && tile.images == 1 {
            let start = self.x_offset(tile.first, group) + tile.row * self.output[1];
            return (&x[start..], Strides::rows(self.plane()));
        }
        let columns = tile.columns(self);
        col.resize(self.depth() * columns, 0.0);
        if self.keeps_size() {
            self.shifts(tile, group, |row, shift| {
                let dst = &mut col[row * columns + shift.column..][..shift.len];
                dst[..shift.from].fill(0.0);
                dst[shift.to..].fill(0.0);
                let valid = shift.to - shift.from;
                dst[shift.from..shift.to].copy_from_slice(&x[shift.input..][..valid]);
                shift.clear_borders(dst, self.input[1]);
            });
            return (col, Strides::rows(columns));
        }
        let width = self.output[1];
        self.taps(tile, group, |row, tap| {
            let dst = &mut col[row * columns + tap.column..][..width];
            dst[..tap.from].fill(0.0);
            dst[tap.to..].fill(0.0);
            let dst = &mut dst[tap.from..tap.to];
            if dst.is_empty() {
                return;
            }
            let src = &x[tap.input..];
            match self.options.stride[1] {
                1 => dst.copy_from_slice(&src[..dst.len()]),
                stride => {
                    for (dst, src) in dst.iter_mut().zip(src.iter().step_by(stride)) {
                        *dst = *src;
                    }
                }
            }
        });
        (col, Strides::rows(columns))
    }

    /// Adds the columns of a tile back to the pixels they came from.
    fn fold(&self, tile: Tile, group: usize, col: &mut [f32], dx: &mut [f32]) {
        let columns = tile.columns(self);
        if self.keeps_size() {
            let arch = pulp::Arch::new();
            self.shifts(tile, group, |row, shift| {
                let src = &mut col[row * columns + shift.column..][..shift.len];
                shift.clear_borders(src, self.input[1]);
                let src = &src[shift.from..shift.to];
                let dst = &mut dx[shift.input..][..src.len()];
                arch.dispatch(|| {
                    for (dst, src) in dst.iter_mut().zip(src) {
                        *dst += src;
                    }
                });
            });
            return;
        }
        self.taps(tile, group, |row, tap| {
            let src = &col[row * columns + tap.column..][tap.from..tap.to];
            if src.is_empty() {
                return;
            }
            let dst = &mut dx[tap.input..];
            for (dst, src) in dst.iter_mut().step_by(self.options.stride[1]).zip(src) {
                *dst += src;
            }
        });
    }

    /// Stride 1 and an output as large as the input: each kernel tap sees the image moved.
    fn keeps_size(&self) -> bool {
        self.options.stride == [1, 1] && self.input == self.output
    }

    /// Calls `f(row of the unfolding, shift)` for each kernel tap and image of a tile, for a
    /// convolution that [keeps the size](Self::keeps_size).
    fn shifts(&self, tile: Tile, group: usize, mut f: impl FnMut(usize, Shift)) {
        let [height, width] = self.input;
        let mut row = 0;
        for channel in 0..self.in_group() {
            for kernel_y in 0..self.kernel[0] {
                for kernel_x in 0..self.kernel[1] {
                    let up = self.options.padding[0] as isize
                        - (kernel_y * self.options.dilation[0]) as isize;
                    let left = self.options.padding[1] as isize
                        - (kernel_x * self.options.dilation[1]) as isize;
                    // Output rows `first..last` of the tile read rows inside the image.
                    let first = (up - tile.row as isize).clamp(0, tile.rows as isize) as usize;
                    let last = (height as isize + up - tile.row as isize)
                        .clamp(first as isize, tile.rows as isize)
                        as usize;
                    let len = tile.rows * width;
                    // The first and last few pixels would read outside of the valid rows; they are
                    // in the columns that are cleared.
                    let (before, after) = (left.max(0) as usize, (-left).max(0) as usize);
                    let (from, to) = (first * width + before, (last * width).saturating_sub(after));
                    let empty = first == last || before + after >= width;
                    for image in 0..tile.images {
                        let plane =
                            self.x_offset(tile.first + image, group) + channel * self.plane();
                        let start =
                            ((tile.row * width + from) as isize - up * width as isize - left)
                                .max(0);
                        let shift = Shift {
                            column: image * len,
                            len,
                            from,
                            to,
                            input: plane + start as usize,
                            before,
                            after,
                        };
                        let none = Shift {
                            from: 0,
                            to: 0,
                            input: 0,
                            ..shift
                        };
                        f(row, if empty { none } else { shift });
                    }
                    row += 1;
                }
            }
        }
    }

    /// Calls `f(row of the unfolding, tap)` for each kernel tap and each output row of a tile.
    fn taps(&self, tile: Tile, group: usize, mut f: impl FnMut(usize, Tap)) {
        let Conv2dOptions {
            stride,
            padding,
            dilation,
            ..
        } = self.options;
        let [height, width] = self.input;
        let out_width = self.output[1];
        let mut row = 0;
        for channel in 0..self.in_group() {
            for kernel_y in 0..self.kernel[0] {
                for kernel_x in 0..self.kernel[1] {
                    let x_shift = kernel_x * dilation[1];
                    // Output columns `from..to` read pixels inside the image.
                    let from = padding[1]
                        .saturating_sub(x_shift)
                        .div_ceil(stride[1])
                        .min(out_width);
                    let to = (width + padding[1])
                        .saturating_sub(x_shift)
                        .div_ceil(stride[1])
                        .clamp(from, out_width);
                    let mut column = 0;
                    for image in tile.first..tile.first + tile.images {
                        let plane = self.x_offset(image, group) + channel * self.plane();
                        for out_y in tile.row..tile.row + tile.rows {
                            let y = (out_y * stride[0] + kernel_y * dilation[0])
                                .checked_sub(padding[0])
                                .filter(|y| *y < height);
                            let tap = match y {
                                Some(y) if from < to => Tap {
                                    column,
                                    from,
                                    to,
                                    input: plane + y * width + from * stride[1] + x_shift
                                        - padding[1],
                                },
                                _ => Tap {
                                    column,
                                    from: 0,
                                    to: 0,
                                    input: 0,
                                },
                            };
                            f(row, tap);
                            column += out_width;
                        }
                    }
                    row += 1;
                }
            }
        }
    }
}

/// One kernel tap over one output row: columns `column + from .. column + to` of the unfolding
/// read the input from index `input` on; the row's other columns read padding.
struct Tap {
    column: usize,
    from: usize,
    to: usize,
    input: usize,
}

/// One kernel tap over one image of a tile, for a convolution that keeps the size: columns
/// `column .. column + len` of the unfolding; of these, `from..to` read the input from index `input`
/// on without a gap, but in each row of the image the first `before` and the last `after` columns
/// read padding.
struct Shift {
    column: usize,
    len: usize,
    from: usize,
    to: usize,
    input: usize,
    before: usize,
    after: usize,
}

impl Shift {
    /// Zeroes the columns that read padding left and right of the image.
    fn clear_borders(&self, columns: &mut [f32], width: usize) {
        if self.before + self.after == 0 {
            return;
        }
        for row in columns.chunks_exact_mut(width) {
            let (before, after) = (self.before.min(width), self.after.min(width));
            row[..before].fill(0.0);
            row[width - after..].fill(0.0);
        }
    }
}

impl Tile {
    fn columns(self, geometry: &Geometry) -> usize {
        self.images * self.rows * geometry.output[1]
    }
}

fn with_scratch<T>(f: impl FnOnce(&mut [Vec<f32>; 2]) -> T) -> T {
    // A parallel product may make this thread run another part of the same convolution.
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => f(&mut scratch),
        Err(_) => f(&mut [Vec::new(), Vec::new()]),
    })
}

/// Backward of a convolution without bias.
#[derive(Debug)]
pub(super) struct Conv2d;

impl Backward<Flex, 2> for Conv2d {
    type State = (Geometry, FlexTensor, FlexTensor);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = contiguous(grads.consume::<Flex>(&ops.node));
        let (g, x, weight) = ops.state;
        let want = [0, 1].map(|i| ops.parents[i].is_some());
        let found = g.backward(slice(&x), slice(&weight), slice(&dy), want);
        let shapes = [
            [g.batch, g.in_channels, g.input[0], g.input[1]],
            [g.out_channels, g.in_group(), g.kernel[0], g.kernel[1]],
        ];
        for ((node, grad), shape) in ops.parents.into_iter().zip(found).zip(shapes) {
            if let (Some(node), Some(grad)) = (node, grad) {
                grads.register::<Flex>(node.id, from_vec(grad, &shape));
            }
        }
    }
}
