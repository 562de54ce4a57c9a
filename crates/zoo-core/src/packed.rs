use std::fmt::Debug;
use std::ops::Range;

/// A matrix `[rows, columns]` that is kept in another form than a tensor, smaller than its numbers.
pub trait PackedMatrix: Debug + Send + Sync {
    /// Rows and columns.
    fn shape(&self) -> [usize; 2];

    /// Writes the numbers of some rows.
    ///
    /// # Panics
    /// If there are no such rows, or `out` has another length.
    fn unpack(&self, rows: Range<usize>, out: &mut [f32]);

    /// `x Wᵀ`: `x` are vectors of `columns` numbers one after another, and the result has `rows` for each.
    ///
    /// # Panics
    /// If `x` ends within a vector.
    fn multiply(&self, x: &[f32]) -> Vec<f32>;
}
