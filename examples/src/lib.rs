//! One example per model.
