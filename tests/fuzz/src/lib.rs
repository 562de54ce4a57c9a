//! Weights files that are mutated, opened and read: nothing may panic, and memory stays within a stated
//! multiple of the file.

mod mutation;
mod reading;

pub use mutation::{Seeds, mutated};
pub use reading::read_whole;
