//! Products of f32 matrices on a CPU.
//!
//! [`product`] computes `C = A · B` or `C += A · B` as BLIS does (Van Zee and van de Geijn 2015): parts of both
//! factors are packed so that a small kernel reads them in order, and the kernel keeps a tile of C in registers.
//! A factor is anything that can [`pack`](Factor::pack) its parts: a matrix in memory with any strides, or one
//! that exists nowhere else, such as the unfolded input of a convolution ([`Grid`]).
//!
//! Every number of C is a sum over k in an order that depends on the sizes alone: neither on the number of
//! threads nor on how the work was split.
//!
//! All unsafe code of the zoo's CPU paths is in this crate.

mod factor;
mod interleave;
mod kernel;
mod product;

pub use factor::{Axis, Factor, Grid, Matrix};
pub use product::product;
