//! Golden fixtures and how models are compared with them.
//!
//! Fixtures are made by `tools/golden/make.py` from the upstream Python classes, in f64.

pub mod compare;
pub mod golden;
#[cfg(target_os = "linux")]
pub mod loading;
pub mod parity;
pub mod presets;
