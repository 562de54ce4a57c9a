use super::gemm::{Strides, gemm};
use super::math::{exp, max, sum, sum2};
use super::{float, from_vec, is_f32, kind, run, tensor};
use crate::{AttentionMask, counter};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorMetadata};
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops},
};
use burn_flex::{Flex, FlexTensor};
use rayon::prelude::*;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// Queries whose scores are in memory at a time, on each thread.
const BLOCK: usize = 64;

/// See [`crate::attention`] without dropout.
///
/// Scores exist for a block of queries at a time, of the keys that one of them sees; the backward pass
/// computes them again from each row's largest and sum (Dao et al. 2022, algorithms 1 and 4, with whole rows).
pub(crate) fn attention<B: Backend>(
    query: &Tensor<B, 4>,
    key: &Tensor<B, 4>,
    value: &Tensor<B, 4>,
    mask: &AttentionMask<B>,
    scale: f64,
) -> Option<Tensor<B, 4>> {
    let [batch, heads, queries, head_dim] = query.dims();
    let [key_batch, shared, keys, key_dim] = key.dims();
    let size = Size {
        batch,
        heads,
        shared,
        queries,
        keys,
        head_dim,
        scale: scale as f32,
    };
    let whole = batch * heads * queries * keys * head_dim * shared > 0;
    let fits = whole
        && key.dims() == value.dims()
        && (key_batch, key_dim) == (batch, head_dim)
        && heads % shared == 0
        && keys == mask.past() + queries;
    let all = [query, key, value];
    if kind::<B>().is_none() || !fits || !all.iter().all(|x| is_f32(x)) {
        return None;
    }
    let padding = match mask.attention_mask() {
        Some(mask) if mask.dims() != [batch, keys] => return None,
        Some(mask) => Some(mask.to_data().iter::<i64>().map(|n| n != 0).collect()),
        None => None,
    };
    counter::took_fast_path();
    let seen = Seen {
        ahead: mask.ahead(),
        window: mask.window(),
        past: mask.past(),
        keys,
        padding,
    };
    let inputs = all.map(|x| float(x.clone()));
    let y = run::<B, _, 3>(Attention, inputs, |[query, key, value]| {
        let (y, saved) = size.forward(rows(query), rows(key), rows(value), seen);
        (y, Arc::new(saved))
    });
    Some(tensor(y))
}

/// Which keys are seen.
#[derive(Debug)]
struct Seen {
    /// How many keys after its own a query sees; None if all.
    ahead: Option<usize>,
    window: Option<usize>,
    past: usize,
    keys: usize,
    /// `[batch, keys]`
    padding: Option<Vec<bool>>,
}

impl Seen {
    /// The keys that may be seen by their place, but for padding.
    fn range(&self, query: usize) -> Range<usize> {
        let Some(ahead) = self.ahead else {
            return 0..self.keys;
        };
        let next = self.past + query + 1;
        let end = (next + ahead).min(self.keys);
        let start = self.window.map_or(0, |window| next.saturating_sub(window));
        start.min(end)..end
    }

    /// Which keys of a sequence are no padding.
    fn padding(&self, batch: usize) -> Option<&[bool]> {
        let padding = self.padding.as_ref()?;
        Some(&padding[batch * self.keys..][..self.keys])
    }

    /// Whether a query sees nothing: then it looks at every key alike, as where one number of f32 is added
    /// to all scores.
    fn nothing(&self, batch: usize, query: usize) -> bool {
        let mut range = self.range(query);
        range.is_empty()
            || self
                .padding(batch)
                .is_some_and(|seen| !range.any(|key| seen[key]))
    }

    /// The keys from the first to the last that one of these queries looks at.
    fn range_of(&self, batch: usize, queries: Range<usize>) -> Range<usize> {
        if queries.clone().any(|query| self.nothing(batch, query)) {
            return 0..self.keys;
        }
        self.range(queries.start).start..self.range(queries.end - 1).end
    }
}

/// A tensor whose last dimension is side by side in memory, copied only if it is not.
fn rows(x: FlexTensor) -> FlexTensor {
    let strides = x.layout().strides();
    let fits = strides[3] == 1 && strides.iter().all(|stride| *stride >= 0);
    if fits { x } else { x.to_contiguous() }
}

/// Rows of numbers by batch and head.
#[derive(Clone, Copy)]
struct Rows<'a> {
    data: &'a [f32],
    batch: usize,
    head: usize,
    row: usize,
}

impl<'a> Rows<'a> {
    fn of(x: &'a FlexTensor) -> Self {
        let strides = x.layout().strides();
        Self {
            data: &x.storage::<f32>()[x.layout().start_offset()..],
            batch: strides[0] as usize,
            head: strides[1] as usize,
            row: strides[2] as usize,
        }
    }

    /// The matrix of one head from a row on.
    fn matrix(self, batch: usize, head: usize, row: usize) -> (&'a [f32], Strides) {
        let start = batch * self.batch + head * self.head + row * self.row;
        (&self.data[start..], Strides::rows(self.row))
    }

    fn row(self, batch: usize, head: usize, row: usize, size: usize) -> &'a [f32] {
        &self.matrix(batch, head, row).0[..size]
    }
}

/// What the backward pass needs.
#[derive(Debug)]
struct Saved {
    size: Size,
    seen: Seen,
    query: FlexTensor,
    key: FlexTensor,
    value: FlexTensor,
    /// The result: `[batch, queries, heads, head_dim]`.
    y: FlexTensor,
    /// The largest score and `1 / Σ e^(score - largest)`: `[batch, queries, heads]`.
    sums: Vec<[f32; 2]>,
}

#[derive(Clone, Copy, Debug)]
struct Size {
    batch: usize,
    heads: usize,
    /// Heads of keys and values.
    shared: usize,
    queries: usize,
    keys: usize,
    head_dim: usize,
    scale: f32,
}

thread_local! {
    /// Reused between calls: fresh pages would cost more than what is written to them.
    static SCRATCH: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

impl Size {
    fn forward(
        self,
        query: FlexTensor,
        key: FlexTensor,
        value: FlexTensor,
        seen: Seen,
    ) -> (FlexTensor, Saved) {
        let Self {
            batch,
            heads,
            queries,
            head_dim,
            ..
        } = self;
        let inputs = [&query, &key, &value].map(Rows::of);
        let line = heads * head_dim;
        let mut y = vec![0.0f32; batch * queries * line];
        let mut sums = vec![[0.0f32; 2]; batch * queries * heads];
        if queries == 1 {
            y.par_chunks_mut(head_dim)
                .zip(&mut sums)
                .enumerate()
                .for_each(|(i, (y, sum))| {
                    *sum = self.one(inputs, &seen, i / heads, i % heads, y);
                });
        } else {
            y.par_chunks_mut(queries * line)
                .zip(sums.par_chunks_mut(queries * heads))
                .enumerate()
                .for_each(|(n, (y, sums))| {
                    y.par_chunks_mut(BLOCK * line)
                        .zip(sums.par_chunks_mut(BLOCK * heads))
                        .enumerate()
                        .for_each(|(i, (y, sums))| {
                            let first = i * BLOCK;
                            let block = first..first + y.len() / line;
                            self.block(inputs, &seen, n, block, y, sums);
                        });
                });
        }
        let y = from_vec(y, &[batch, queries, heads, head_dim]);
        let saved = Saved {
            size: self,
            seen,
            query,
            key,
            value,
            y: y.clone(),
            sums,
        };
        (y.permute(&[0, 2, 1, 3]), saved)
    }

    /// Some queries of all heads: `y [rows, heads, head_dim]`, `sums [rows, heads]`.
    fn block(
        self,
        [query, key, value]: [Rows; 3],
        seen: &Seen,
        batch: usize,
        block: Range<usize>,
        y: &mut [f32],
        sums: &mut [[f32; 2]],
    ) {
        let (rows, size) = (block.len(), self.head_dim);
        let line = self.heads * size;
        let keys = seen.range_of(batch, block.clone());
        with_scratch(|[scores, _]| {
            for head in 0..self.heads {
                let shared = head / (self.heads / self.shared);
                self.scores(query, key, batch, head, block.clone(), &keys, scores);
                let each = scores.chunks_exact_mut(keys.len()).zip(block.clone());
                for ((row, query), sums) in each.zip(sums.chunks_exact_mut(self.heads)) {
                    sums[head] = self.softmax(seen, batch, query, &keys, row);
                }
                let dst = &mut y[head * size..];
                gemm(
                    [rows, size, keys.len()],
                    (&mut *dst, line),
                    false,
                    (scores, Strides::rows(keys.len())),
                    value.matrix(batch, shared, keys.start),
                    false,
                );
                for (row, sums) in dst.chunks_mut(line).zip(sums.chunks_exact(self.heads)) {
                    let [_, factor] = sums[head];
                    row[..size].iter_mut().for_each(|y| *y *= factor);
                }
            }
        });
    }

    /// One query of one head; gives its largest score and one over the sum.
    fn one(
        self,
        [query, key, value]: [Rows; 3],
        seen: &Seen,
        batch: usize,
        head: usize,
        y: &mut [f32],
    ) -> [f32; 2] {
        let (size, shared) = (self.head_dim, head / (self.heads / self.shared));
        let keys = seen.range_of(batch, 0..1);
        let query = query.row(batch, head, 0, size);
        with_scratch(|[scores, _]| {
            scores.resize(keys.len(), 0.0);
            let (key, strides) = key.matrix(batch, shared, keys.start);
            products(scores, query, key, strides.row);
            let [largest, factor] = self.softmax(seen, batch, 0, &keys, scores);
            let (value, strides) = value.matrix(batch, shared, keys.start);
            mix(y, scores, factor, value, strides.row);
            [largest, factor]
        })
    }

    /// `q kᵀ` of some queries and keys of one head.
    #[allow(clippy::too_many_arguments)]
    fn scores(
        self,
        query: Rows,
        key: Rows,
        batch: usize,
        head: usize,
        block: Range<usize>,
        keys: &Range<usize>,
        scores: &mut Vec<f32>,
    ) {
        let shared = head / (self.heads / self.shared);
        scores.resize(block.len() * keys.len(), 0.0);
        let (key, strides) = key.matrix(batch, shared, keys.start);
        gemm(
            [block.len(), keys.len(), self.head_dim],
            (scores, keys.len()),
            false,
            query.matrix(batch, head, block.start),
            (key, Strides::transposed(strides.row)),
            false,
        );
    }

    /// Makes a row of products `q kᵀ` a row of `e^(score - largest)`, and gives the largest and one over their sum.
    fn softmax(
        self,
        seen: &Seen,
        batch: usize,
        query: usize,
        keys: &Range<usize>,
        row: &mut [f32],
    ) -> [f32; 2] {
        if seen.nothing(batch, query) {
            row.fill(1.0);
            return [0.0, 1.0 / row.len() as f32];
        }
        let scale = self.scale;
        let row = clear_outside(seen.range(query), keys, row);
        let padding = seen
            .padding(batch)
            .map(|seen_in| &seen_in[seen.range(query)]);
        exponentials(row, padding, scale)
    }

    /// The same with both known: a row of probabilities.
    fn probabilities(
        self,
        seen: &Seen,
        batch: usize,
        query: usize,
        keys: &Range<usize>,
        [largest, share]: [f32; 2],
        row: &mut [f32],
    ) {
        if seen.nothing(batch, query) {
            row.fill(1.0 / row.len() as f32);
            return;
        }
        let scale = self.scale;
        let row = clear_outside(seen.range(query), keys, row);
        let padding = seen
            .padding(batch)
            .map(|seen_in| &seen_in[seen.range(query)]);
        weights(row, padding, scale, largest, share);
    }
}

vectorized! {
    /// Products of a vector with rows that begin `stride` apart.
    fn products<'a>(out: &'a mut [f32], vector: &'a [f32], rows: &'a [f32], stride: usize) -> () {
        for (i, out) in out.iter_mut().enumerate() {
            *out = sum2(vector, &rows[i * stride..][..vector.len()], |a, b| a * b) as f32;
        }
    }
}

vectorized! {
    /// Adds rows that begin `stride` apart to `y`, each times its weight and `factor`.
    fn mix<'a>(
        y: &'a mut [f32],
        weights: &'a [f32],
        factor: f32,
        rows: &'a [f32],
        stride: usize,
    ) -> () {
        for (i, weight) in weights.iter().enumerate() {
            let weight = weight * factor;
            let row = &rows[i * stride..][..y.len()];
            for (y, v) in y.iter_mut().zip(row) {
                *y += v * weight;
            }
        }
    }
}

vectorized! {
    /// `e^(scale · score - largest)` in place of each score, 0 where it is padding; the largest of
    /// `scale · score`, and one over the sum.
    fn exponentials<'a>(row: &'a mut [f32], padding: Option<&'a [bool]>, scale: f32) -> [f32; 2] {
        match padding {
            None => row.iter_mut().for_each(|score| *score *= scale),
            Some(padding) => {
                for (score, seen) in row.iter_mut().zip(padding) {
                    *score = if *seen { *score * scale } else { f32::NEG_INFINITY };
                }
            }
        }
        let largest = max(row);
        for score in row.iter_mut() {
            *score = exp(*score - largest);
        }
        [largest, (1.0 / sum(row, |v| v)) as f32]
    }
}

vectorized! {
    /// The same with both known, times `share`.
    fn weights<'a>(
        row: &'a mut [f32],
        padding: Option<&'a [bool]>,
        scale: f32,
        largest: f32,
        share: f32,
    ) -> () {
        for score in row.iter_mut() {
            *score = exp(*score * scale - largest) * share;
        }
        for (weight, seen) in row.iter_mut().zip(padding.into_iter().flatten()) {
            *weight = if *seen { *weight } else { 0.0 };
        }
    }
}

vectorized! {
    /// `ds = p · (ds - dy · y) · scale`, where `dy · y` is a product of vectors.
    fn differentiate<'a>(
        ds: &'a mut [f32],
        p: &'a [f32],
        dy: &'a [f32],
        y: &'a [f32],
        scale: f32,
    ) -> () {
        let along = sum2(dy, y, |dy, y| dy * y) as f32;
        for (ds, p) in ds.iter_mut().zip(p) {
            *ds = p * (*ds - along) * scale;
        }
    }
}

/// The part of a row of scores of `keys` that is of `range`; the rest becomes 0.
fn clear_outside<'a>(
    range: Range<usize>,
    keys: &Range<usize>,
    row: &'a mut [f32],
) -> &'a mut [f32] {
    let (start, end) = (range.start - keys.start, range.end - keys.start);
    row[..start].fill(0.0);
    row[end..].fill(0.0);
    &mut row[start..end]
}

fn with_scratch<T>(f: impl FnOnce(&mut [Vec<f32>; 2]) -> T) -> T {
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => f(&mut scratch),
        Err(_) => f(&mut [Vec::new(), Vec::new()]),
    })
}

impl Saved {
    /// Gradients of queries, keys and values, each `[batch, heads, rows, head_dim]`.
    ///
    /// With probabilities `P` and `D = Σ dy y` of each row: `dV = Pᵀ dY`, `dS = P ∘ (dY Vᵀ - D)`,
    /// `dQ = scale dS K`, `dK = scale dSᵀ Q`.
    fn backward(&self, dy: &FlexTensor) -> [Vec<f32>; 3] {
        let Size {
            batch,
            heads,
            shared,
            queries,
            keys,
            head_dim,
            ..
        } = self.size;
        let group = heads / shared;
        let mut dq = vec![0.0f32; batch * heads * queries * head_dim];
        let [mut dk, mut dv] = [0, 1].map(|_| vec![0.0f32; batch * shared * keys * head_dim]);
        dq.par_chunks_mut(group * queries * head_dim)
            .zip(dk.par_chunks_mut(keys * head_dim))
            .zip(dv.par_chunks_mut(keys * head_dim))
            .enumerate()
            .for_each(|(i, ((dq, dk), dv))| {
                for (j, dq) in dq.chunks_exact_mut(queries * head_dim).enumerate() {
                    let head = i % shared * group + j;
                    for (block, dq) in dq.chunks_mut(BLOCK * head_dim).enumerate() {
                        let first = block * BLOCK;
                        let block = first..first + dq.len() / head_dim;
                        self.block(dy, i / shared, head, block, [dq, dk, dv]);
                    }
                }
            });
        [dq, dk, dv]
    }

    /// Some queries of one head; `dk` and `dv` are added to.
    fn block(
        &self,
        dy: &FlexTensor,
        batch: usize,
        head: usize,
        block: Range<usize>,
        [dq, dk, dv]: [&mut [f32]; 3],
    ) {
        let Size {
            heads,
            shared,
            queries,
            head_dim: size,
            scale,
            ..
        } = self.size;
        let [query, key, value, dys] = [&self.query, &self.key, &self.value, dy].map(Rows::of);
        let y = self.y.storage::<f32>();
        let of = head / (heads / shared);
        let keys = self.seen.range_of(batch, block.clone());
        let (rows, width) = (block.len(), keys.len());
        let key = key.matrix(batch, of, keys.start);
        let value = value.matrix(batch, of, keys.start);
        let [dk, dv] = [dk, dv].map(|all| &mut all[keys.start * size..keys.end * size]);
        let dy_block = dys.matrix(batch, head, block.start);
        with_scratch(|[p, ds]| {
            let keys_of = Rows::of(&self.key);
            self.size
                .scores(query, keys_of, batch, head, block.clone(), &keys, p);
            ds.resize(rows * width, 0.0);
            gemm(
                [rows, width, size],
                (ds, width),
                false,
                dy_block,
                (value.0, Strides::transposed(value.1.row)),
                false,
            );
            let both = p.chunks_exact_mut(width).zip(ds.chunks_exact_mut(width));
            for ((p, ds), row) in both.zip(block.clone()) {
                let line = (batch * queries + row) * heads + head;
                self.size
                    .probabilities(&self.seen, batch, row, &keys, self.sums[line], p);
                let (dy, y) = (dys.row(batch, head, row, size), &y[line * size..][..size]);
                differentiate(ds, p, dy, y, scale);
            }
            let turned = Strides::transposed(width);
            let sizes = [width, size, rows];
            gemm(sizes, (dv, size), true, (p, turned), dy_block, false);
            let block_of = query.matrix(batch, head, block.start);
            gemm(sizes, (dk, size), true, (ds, turned), block_of, false);
            let sizes = [rows, size, width];
            gemm(
                sizes,
                (dq, size),
                false,
                (ds, Strides::rows(width)),
                key,
                false,
            );
        });
    }
}

/// `[batch, heads, rows, head_dim]` with the heads of a row side by side in memory, as projections want it.
fn side_by_side(x: &[f32], [batch, heads, rows, size]: [usize; 4]) -> FlexTensor {
    let mut out = vec![0.0f32; x.len()];
    out.par_chunks_mut(heads * size)
        .enumerate()
        .for_each(|(i, line)| {
            let (batch, row) = (i / rows, i % rows);
            for (head, out) in line.chunks_exact_mut(size).enumerate() {
                let at = ((batch * heads + head) * rows + row) * size;
                out.copy_from_slice(&x[at..at + size]);
            }
        });
    from_vec(out, &[batch, rows, heads, size]).permute(&[0, 2, 1, 3])
}

/// Backward of attention.
#[derive(Debug)]
struct Attention;

impl Backward<Flex, 3> for Attention {
    type State = Arc<Saved>;

    fn backward(self, ops: Ops<Arc<Saved>, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = rows(grads.consume::<Flex>(&ops.node));
        let saved = &ops.state;
        let found = saved.backward(&dy);
        let inputs = [&saved.query, &saved.key, &saved.value];
        for ((node, grad), input) in ops.parents.into_iter().zip(found).zip(inputs) {
            let shape = input.shape();
            let shape = [shape[0], shape[1], shape[2], shape[3]];
            if let Some(node) = node {
                grads.register::<Flex>(node.id, side_by_side(&grad, shape));
            }
        }
    }
}
