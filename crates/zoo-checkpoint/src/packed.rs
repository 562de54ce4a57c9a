//! Matrices that stay in the blocks of their file.

use crate::LazyTensor;
use crate::gguf::{BlockType, Vector, VectorI8};
use burn::module::ParamId;
use burn_zoo_core::PackedMatrix;
use memmap2::Mmap;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Matrices by the parameter that each takes the place of.
pub type PackedMatrices = BTreeMap<ParamId, Arc<dyn PackedMatrix>>;

/// How vectors are multiplied with blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockProducts {
    /// In f32: as exact as with the numbers that the blocks stand for.
    Exact,
    /// With vectors rounded to integers of 8 bits, of which 32 share a scale.
    Fast,
}

/// A matrix in the blocks of a mapped file.
#[derive(Debug)]
pub(crate) struct PackedBlocks {
    kind: BlockType,
    map: Arc<Mmap>,
    bytes: Range<usize>,
    shape: [usize; 2],
    /// The stored row of each row.
    order: Vec<usize>,
    products: BlockProducts,
}

impl PackedBlocks {
    /// The matrix of a tensor, if it is one of blocks; its row `i` is the stored row `order[i]`.
    pub fn new(tensor: &LazyTensor, order: Vec<usize>, products: BlockProducts) -> Option<Self> {
        let (kind, map, bytes) = tensor.mapped_blocks()?;
        let shape = tensor.shape.as_slice().try_into().ok()?;
        Some(Self {
            kind,
            map,
            bytes,
            shape,
            order,
            products,
        })
    }

    fn row(&self, i: usize) -> &[u8] {
        let size = self.bytes.len() / self.shape[0].max(1);
        let start = self.bytes.start + self.order[i] * size;
        &self.map[start..start + size]
    }
}

/// Rows that a thread takes at once.
const ROWS: usize = 32;

impl PackedMatrix for PackedBlocks {
    fn shape(&self) -> [usize; 2] {
        self.shape
    }

    fn unpack(&self, rows: Range<usize>, out: &mut [f32]) {
        let [_, columns] = self.shape;
        assert_eq!(out.len(), rows.len() * columns, "room for the rows");
        let outs = out.par_chunks_mut(columns.max(1));
        outs.zip(rows)
            .for_each(|(out, i)| self.kind.dequantize(self.row(i), out));
    }

    fn multiply(&self, x: &[f32]) -> Vec<f32> {
        let [rows, columns] = self.shape;
        assert!(x.len().is_multiple_of(columns.max(1)), "whole vectors");
        let vectors = x.chunks_exact(columns.max(1));
        let count = vectors.len();
        if count == 0 || rows == 0 {
            return Vec::new();
        }
        // For each row the products with all vectors, so that its blocks are read once.
        let mut products = vec![0.0; rows * count];
        let mut each = |one: &(dyn Fn(&[u8], &mut [f32]) + Sync)| {
            let chunks = products.par_chunks_mut(ROWS * count).enumerate();
            chunks.for_each(|(c, out)| {
                for (i, out) in out.chunks_exact_mut(count).enumerate() {
                    one(self.row(c * ROWS + i), out);
                }
            });
        };
        match self.products {
            BlockProducts::Exact => {
                let vectors: Vec<Vector> = vectors.map(Vector::new).collect();
                each(&|row, out| self.kind.product(row, &vectors, out));
            }
            BlockProducts::Fast => {
                let vectors: Vec<VectorI8> = vectors.map(VectorI8::new).collect();
                each(&|row, out| self.kind.product_i8(row, &vectors, out));
            }
        }
        if count == 1 {
            return products;
        }
        let by_vector = |v: usize| (0..rows).map(move |r| (r, v));
        let order = (0..count).flat_map(by_vector);
        order.map(|(r, v)| products[r * count + v]).collect()
    }
}
