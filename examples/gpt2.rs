//! Trains a small GPT-2 on four megabytes of English, measures it beside a tuned trigram, and lets it write.
//!
//! ```text
//! cargo run --release --example gpt2
//! cargo run --release --example gpt2 -- --help
//! ```

use burn_zoo_cli::{Demo, Example};

fn main() {
    let example = Example {
        name: "gpt2",
        about: "Trains a small GPT-2 on the King James Bible, beside a tuned trigram, and lets it go on with some verses; leaves a run folder with a report",
        dataset: "kjv",
        models: ["gpt2_mini", "gpt2_mini"],
        demo: Demo::None,
    };
    std::process::exit(example.run());
}
