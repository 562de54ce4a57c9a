//! Compares sentences with all-MiniLM-L6-v2 where its weights are on this machine, and otherwise trains a
//! small BERT to tell the books of verses apart.
//!
//! ```text
//! cargo run --release --example bert
//! cargo run --release --example bert -- --help
//! ```

use burn_zoo_cli::{Demo, Example};

fn main() {
    let example = Example {
        name: "bert",
        about: "Compares sentences with all-MiniLM-L6-v2 where its weights are on this machine, and otherwise trains a small BERT to tell the books of verses apart; with --dataset labelled-file and --model it fine-tunes an encoder",
        dataset: "verses",
        models: ["bert_mini", "bert_mini"],
        demo: Demo::Sentences(
            &[
                "The weather is lovely today.",
                "It's so sunny outside!",
                "He drove to the stadium.",
            ],
            "all-MiniLM-L6-v2",
            "sentence-transformers/all-MiniLM-L6-v2",
        ),
    };
    std::process::exit(example.run());
}
