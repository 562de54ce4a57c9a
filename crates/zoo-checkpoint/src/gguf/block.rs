//! What all kinds of blocks have in common: small integers in groups, of which each number is
//! `scale · q − min`. The order of operations is ggml's, for equal rounding.

use pulp::{Arch, Simd, WithSimd};
use std::marker::PhantomData;

/// The contents of one block.
pub(super) struct Unpacked {
    pub q: [i8; 256],
    pub scales: [f32; 16],
    pub mins: [f32; 16],
}

impl Unpacked {
    const EMPTY: Self = Self {
        q: [0; 256],
        scales: [0.0; 16],
        mins: [0.0; 16],
    };
}

/// A kind of block.
pub(super) trait Block {
    /// Bytes of a block.
    const BYTES: usize;
    /// Groups in a block.
    const GROUPS: usize;
    /// Whether `mins` are filled; elsewhere they are 0.
    const MINS: bool;
    /// Numbers in a group: 16 or 32.
    const GROUP: usize;

    /// Reads `BYTES` bytes.
    fn unpack(block: &[u8], out: &mut Unpacked);
}

/// What is done with blocks of a kind.
#[derive(Debug)]
pub(super) struct Kernels {
    /// Numbers in a block.
    pub elements: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// The numbers of whole blocks.
    pub dequantize: fn(&[u8], &mut [f32]),
    /// [`Product`].
    pub product: fn(&[u8], &[Vector], &mut [f32]),
    /// The same with less exact vectors.
    pub product_i8: fn(&[u8], &[VectorI8], &mut [f32]),
}

impl Kernels {
    pub const fn of<T: Block>() -> Self {
        Self {
            elements: T::GROUPS * T::GROUP,
            bytes: T::BYTES,
            dequantize: dequantize::<T>,
            product: product::<T, Vector>,
            product_i8: product::<T, VectorI8>,
        }
    }
}

fn dequantize<T: Block>(blocks: &[u8], out: &mut [f32]) {
    let mut unpacked = Unpacked::EMPTY;
    let blocks = blocks.chunks_exact(T::BYTES);
    for (block, out) in blocks.zip(out.chunks_exact_mut(T::GROUPS * T::GROUP)) {
        T::unpack(block, &mut unpacked);
        let groups = out.chunks_exact_mut(T::GROUP);
        for (g, (out, q)) in groups.zip(unpacked.q.chunks_exact(T::GROUP)).enumerate() {
            let (scale, min) = (unpacked.scales[g], unpacked.mins[g]);
            for (out, q) in out.iter_mut().zip(q) {
                *out = scale * f32::from(*q) - min;
            }
        }
    }
}

/// A vector that rows of blocks are multiplied with.
pub(crate) struct Vector {
    numbers: Vec<f32>,
    /// Of every 16 numbers.
    sums: Vec<f32>,
}

impl Vector {
    pub fn new(numbers: &[f32]) -> Self {
        let sums = numbers.chunks(16).map(|group| group.iter().sum());
        Self {
            sums: sums.collect(),
            numbers: numbers.to_vec(),
        }
    }
}

/// A vector as integers of 8 bits, of which every 32 share a scale.
pub(crate) struct VectorI8 {
    q: Vec<i8>,
    scales: Vec<f32>,
    /// Of every 16 numbers, as they are now.
    sums: Vec<f32>,
}

impl VectorI8 {
    pub fn new(numbers: &[f32]) -> Self {
        let (mut q, mut scales, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        for group in numbers.chunks(32) {
            let largest = group.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            let scale = largest / 127.0;
            let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
            scales.push(scale);
            let start = q.len();
            q.extend(group.iter().map(|x| (x * inverse).round_ties_even() as i8));
            for half in q[start..].chunks(16) {
                let sum: i32 = half.iter().map(|q| i32::from(*q)).sum();
                sums.push(scale * sum as f32);
            }
        }
        Self { q, scales, sums }
    }
}

/// Lanes that sums are kept in, so that they are vectorised.
const LANES: usize = 16;

/// A product as it grows.
#[derive(Clone, Copy)]
struct Sum {
    lanes: [f32; LANES],
    min: f32,
}

impl Sum {
    const ZERO: Self = Self {
        lanes: [0.0; LANES],
        min: 0.0,
    };

    #[inline(always)]
    fn total(&self) -> f32 {
        self.lanes.iter().sum::<f32>() - self.min
    }
}

/// What a row can be multiplied with.
trait Factor {
    /// Adds the product with a block, whose first number is the row's number `at`.
    fn add<T: Block>(&self, block: &Unpacked, at: usize, sum: &mut Sum);
}

impl Factor for Vector {
    #[inline(always)]
    fn add<T: Block>(&self, block: &Unpacked, at: usize, sum: &mut Sum) {
        let groups = block.q.chunks_exact(T::GROUP).take(T::GROUPS);
        for (g, q) in groups.enumerate() {
            let from = at + g * T::GROUP;
            let x = &self.numbers[from..from + T::GROUP];
            let mut lanes = [0.0; LANES];
            for (q, x) in q.chunks_exact(LANES).zip(x.chunks_exact(LANES)) {
                for l in 0..LANES {
                    lanes[l] += f32::from(q[l]) * x[l];
                }
            }
            for (sum, lane) in sum.lanes.iter_mut().zip(lanes) {
                *sum += block.scales[g] * lane;
            }
            if T::MINS {
                sum.min += block.mins[g] * group_sum::<T>(&self.sums, from);
            }
        }
    }
}

impl Factor for VectorI8 {
    #[inline(always)]
    fn add<T: Block>(&self, block: &Unpacked, at: usize, sum: &mut Sum) {
        let groups = block.q.chunks_exact(T::GROUP).take(T::GROUPS);
        for (g, q) in groups.enumerate() {
            let from = at + g * T::GROUP;
            let x = &self.q[from..from + T::GROUP];
            let mut lanes = [0_i16; LANES];
            for (q, x) in q.chunks_exact(LANES).zip(x.chunks_exact(LANES)) {
                for l in 0..LANES {
                    // Exact: at most two of 2^14 are added.
                    lanes[l] += i16::from(q[l]) * i16::from(x[l]);
                }
            }
            let scale = block.scales[g] * self.scales[from / 32];
            for (sum, lane) in sum.lanes.iter_mut().zip(lanes) {
                *sum += scale * f32::from(lane);
            }
            if T::MINS {
                sum.min += block.mins[g] * group_sum::<T>(&self.sums, from);
            }
        }
    }
}

/// The sum of a group's numbers, from the sums of every 16.
#[inline(always)]
fn group_sum<T: Block>(sums: &[f32], from: usize) -> f32 {
    match T::GROUP {
        32 => sums[from / 16] + sums[from / 16 + 1],
        _ => sums[from / 16],
    }
}

/// `out[row · vectors + vector]` becomes the product of each row of blocks with each vector. A type and not a
/// closure: its body is compiled for each instruction set.
struct Product<'a, T, V> {
    rows: &'a [u8],
    vectors: &'a [V],
    out: &'a mut [f32],
    kind: PhantomData<T>,
}

impl<T: Block, V: Factor> WithSimd for Product<'_, T, V> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let count = self.vectors.len().max(1);
        let rows = (self.out.len() / count).max(1);
        let rows = self.rows.chunks_exact((self.rows.len() / rows).max(1));
        let mut unpacked = Unpacked::EMPTY;
        if let [vector] = self.vectors {
            for (row, out) in rows.zip(self.out) {
                let mut sum = Sum::ZERO;
                for (b, block) in row.chunks_exact(T::BYTES).enumerate() {
                    T::unpack(block, &mut unpacked);
                    vector.add::<T>(&unpacked, b * T::GROUPS * T::GROUP, &mut sum);
                }
                *out = sum.total();
            }
            return;
        }
        let mut sums = vec![Sum::ZERO; count];
        for (row, out) in rows.zip(self.out.chunks_exact_mut(count)) {
            sums.fill(Sum::ZERO);
            for (b, block) in row.chunks_exact(T::BYTES).enumerate() {
                T::unpack(block, &mut unpacked);
                for (vector, sum) in self.vectors.iter().zip(&mut sums) {
                    vector.add::<T>(&unpacked, b * T::GROUPS * T::GROUP, sum);
                }
            }
            for (out, sum) in out.iter_mut().zip(&sums) {
                *out = sum.total();
            }
        }
    }
}

fn product<T: Block, V: Factor>(rows: &[u8], vectors: &[V], out: &mut [f32]) {
    Arch::new().dispatch(Product {
        rows,
        vectors,
        out,
        kind: PhantomData::<T>,
    });
}
