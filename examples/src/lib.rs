//! One example per model: `cargo run --release --example NAME`.
