//! The types of tensors: ggml's `enum ggml_type`, with the sizes of `ggml-common.h`.

use super::block::{Block, Kernels, Vector, VectorI8};
use super::cursor::Parsed;
use super::{blocks, k_quants};
use burn::tensor::DType;

/// A type of which several numbers share one block of bytes, as llama.cpp's quantised ones.
#[derive(Clone, Copy, Debug)]
pub struct BlockType(pub(super) &'static GgmlType);

impl BlockType {
    /// ggml's name, as `Q4_K`.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Numbers in a block, at most 256.
    pub fn elements(&self) -> usize {
        self.0.elements
    }

    /// Bytes of a block.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Computes the numbers of whole `blocks`, with the rounding of ggml's `dequantize_row_*`.
    ///
    /// # Panics
    /// If `blocks` ends within a block, or `out` has another length than their numbers.
    pub fn dequantize(&self, blocks: &[u8], out: &mut [f32]) {
        let count = blocks.len() / self.bytes();
        assert!(
            blocks.len() == count * self.bytes() && out.len() == count * self.elements(),
            "{} bytes and {} numbers are not the same whole blocks of {}",
            blocks.len(),
            out.len(),
            self.name()
        );
        if let Layout::Blocks(kernels) = &self.0.layout {
            (kernels.dequantize)(blocks, out);
        }
    }

    /// `out[row · vectors + vector]` becomes the product of a row of `rows` and a vector.
    pub(crate) fn product(&self, rows: &[u8], vectors: &[Vector], out: &mut [f32]) {
        if let Layout::Blocks(kernels) = &self.0.layout {
            (kernels.product)(rows, vectors, out);
        }
    }

    /// As [`product`](Self::product) with less exact vectors.
    pub(crate) fn product_i8(&self, rows: &[u8], vectors: &[VectorI8], out: &mut [f32]) {
        if let Layout::Blocks(kernels) = &self.0.layout {
            (kernels.product_i8)(rows, vectors, out);
        }
    }

    /// The numbers of whole `blocks`, each converted: block by block, so that nothing as large is in
    /// memory beside them.
    pub(crate) fn numbers<T>(&self, blocks: &[u8], convert: impl Fn(f32) -> T) -> Vec<T> {
        let count = blocks.len() / self.bytes();
        let mut numbers = Vec::with_capacity(count * self.elements());
        let mut scratch = [0.0; 256];
        let scratch = &mut scratch[..self.elements()];
        for block in blocks.chunks_exact(self.bytes()) {
            self.dequantize(block, scratch);
            numbers.extend(scratch.iter().map(|n| convert(*n)));
        }
        numbers
    }
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct GgmlType {
    number: u32,
    pub name: &'static str,
    /// Numbers in a block.
    elements: usize,
    /// Bytes of a block; 0 where only the name is known.
    bytes: usize,
    pub layout: Layout,
}

/// How the numbers are read.
#[derive(Debug)]
pub(super) enum Layout {
    /// One by one.
    Plain(DType),
    /// By blocks.
    Blocks(Kernels),
    /// Not at all.
    Unsupported,
}

const fn plain(number: u32, name: &'static str, bytes: usize, dtype: DType) -> GgmlType {
    row(number, name, 1, bytes, Layout::Plain(dtype))
}

const fn packed<T: Block>(number: u32, name: &'static str) -> GgmlType {
    let kernels = Kernels::of::<T>();
    let (elements, bytes) = (kernels.elements, kernels.bytes);
    row(number, name, elements, bytes, Layout::Blocks(kernels))
}

const fn not_read(number: u32, name: &'static str, elements: usize, bytes: usize) -> GgmlType {
    row(number, name, elements, bytes, Layout::Unsupported)
}

/// Types that were taken out of ggml.
const fn gone(number: u32, name: &'static str) -> GgmlType {
    not_read(number, name, 1, 0)
}

const fn row(
    number: u32,
    name: &'static str,
    elements: usize,
    bytes: usize,
    layout: Layout,
) -> GgmlType {
    GgmlType {
        number,
        name,
        elements,
        bytes,
        layout,
    }
}

static TYPES: [GgmlType; 42] = [
    plain(0, "F32", 4, DType::F32),
    plain(1, "F16", 2, DType::F16),
    packed::<blocks::Q4_0>(2, "Q4_0"),
    packed::<blocks::Q4_1>(3, "Q4_1"),
    gone(4, "Q4_2"),
    gone(5, "Q4_3"),
    packed::<blocks::Q5_0>(6, "Q5_0"),
    packed::<blocks::Q5_1>(7, "Q5_1"),
    packed::<blocks::Q8_0>(8, "Q8_0"),
    not_read(9, "Q8_1", 32, 36),
    packed::<k_quants::Q2K>(10, "Q2_K"),
    packed::<k_quants::Q3K>(11, "Q3_K"),
    packed::<k_quants::Q4K>(12, "Q4_K"),
    packed::<k_quants::Q5K>(13, "Q5_K"),
    packed::<k_quants::Q6K>(14, "Q6_K"),
    not_read(15, "Q8_K", 256, 292),
    not_read(16, "IQ2_XXS", 256, 66),
    not_read(17, "IQ2_XS", 256, 74),
    not_read(18, "IQ3_XXS", 256, 98),
    not_read(19, "IQ1_S", 256, 50),
    packed::<blocks::Iq4Nl>(20, "IQ4_NL"),
    not_read(21, "IQ3_S", 256, 110),
    not_read(22, "IQ2_S", 256, 82),
    packed::<k_quants::Iq4Xs>(23, "IQ4_XS"),
    plain(24, "I8", 1, DType::I8),
    plain(25, "I16", 2, DType::I16),
    plain(26, "I32", 4, DType::I32),
    plain(27, "I64", 8, DType::I64),
    plain(28, "F64", 8, DType::F64),
    not_read(29, "IQ1_M", 256, 56),
    plain(30, "BF16", 2, DType::BF16),
    gone(31, "Q4_0_4_4"),
    gone(32, "Q4_0_4_8"),
    gone(33, "Q4_0_8_8"),
    not_read(34, "TQ1_0", 256, 54),
    not_read(35, "TQ2_0", 256, 66),
    gone(36, "IQ4_NL_4_4"),
    gone(37, "IQ4_NL_4_8"),
    gone(38, "IQ4_NL_8_8"),
    packed::<blocks::Mxfp4>(39, "MXFP4"),
    not_read(40, "NVFP4", 64, 36),
    not_read(41, "Q1_0", 128, 18),
];

/// The type with ggml's `number`.
pub(super) fn of(number: u32) -> Option<&'static GgmlType> {
    TYPES.iter().find(|row| row.number == number)
}

/// Bytes of `elements` in rows of `row`; 0 for a type of which no size is known.
pub(super) fn bytes(number: u32, elements: usize, row: usize) -> Parsed<usize> {
    let Some(found) = of(number) else {
        return Ok(0);
    };
    if !row.is_multiple_of(found.elements) {
        return Err(format!(
            "rows of {row} elements are not whole blocks of {}, which have {}",
            found.name, found.elements
        ));
    }
    let bytes = (elements / found.elements).checked_mul(found.bytes);
    bytes.ok_or_else(|| format!("{elements} elements of {} overflow", found.name))
}
