//! Golden fixtures and how models are compared with them.
//!
//! Fixtures are made by `tools/golden/make.py` from the upstream Python classes, in f64.

pub mod compare;
pub mod golden;
pub mod parity;
pub mod presets;
