//! Talks with SmolLM2-135M-Instruct where its weights are on this machine, and otherwise trains a small
//! decoder of the Llama class on four megabytes of English.
//!
//! ```text
//! cargo run --release --example llama
//! cargo run --release --example llama -- --help
//! ```

use burn_zoo_cli::{Demo, Example};

fn main() {
    let example = Example {
        name: "llama",
        about: "Talks with SmolLM2-135M-Instruct where its weights are on this machine, and otherwise trains a small Llama on the King James Bible",
        dataset: "kjv",
        models: ["llama_mini", "llama_mini"],
        demo: Demo::Chat(
            "What is the capital of France?",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "HuggingFaceTB/SmolLM2-135M-Instruct",
        ),
    };
    std::process::exit(example.run());
}
