//! Every test that can share a process: linking Burn once is most of what building tests costs.

mod activations;
mod bad_input;
mod checkpoint;
mod cli;
mod common;
mod dropout;
mod export;
mod faults;
mod finetune;
mod formats;
mod forward;
mod gguf;
mod hub;
mod hub_faults;
mod images;
mod knn;
mod layouts;
mod mutations;
mod presets;
mod real_weights;
mod repository;
mod resnet;
mod resume;
mod server;
mod training;
mod verify;
