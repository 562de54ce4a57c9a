//! Every test that can share a process: linking Burn once is most of what building tests costs.

mod activations;
mod bad_input;
mod checkpoint;
mod cli;
mod common;
mod faults;
mod formats;
mod forward;
mod gguf;
mod images;
mod knn;
mod parity_mobilenet;
mod parity_resnet;
mod presets_resnet;
mod real_weights;
mod repository;
mod resume;
mod training;
