//! A recipe becomes a run: loop, schedule, checkpoints, exact resume and report.
pub use burn_zoo_ops as ops;
