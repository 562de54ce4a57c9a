use crate::config::Gpt2Config;
use burn_zoo_core::{Preset, Task, Weights};
use std::sync::LazyLock;

const GPT2: &str = "Language Models are Unsupervised Multitask Learners, Radford et al. 2019";
const DISTIL: &str = "DistilBERT, a distilled version of BERT, Sanh et al. 2019, arXiv:1910.01108";

/// Name, paper, layers, heads, size, parameters, hub model, licence of the weights.
type Row = (
    &'static str,
    &'static str,
    usize,
    usize,
    usize,
    usize,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const PUBLISHED: [Row; 5] = [
    ("gpt2", GPT2, 12, 12, 768, 124_439_808, "https://huggingface.co/openai-community/gpt2", "MIT"),
    ("gpt2-medium", GPT2, 24, 16, 1024, 354_823_168, "https://huggingface.co/openai-community/gpt2-medium", "MIT"),
    ("gpt2-large", GPT2, 36, 20, 1280, 774_030_080, "https://huggingface.co/openai-community/gpt2-large", "MIT"),
    ("gpt2-xl", GPT2, 48, 25, 1600, 1_557_611_200, "https://huggingface.co/openai-community/gpt2-xl", "MIT"),
    ("distilgpt2", DISTIL, 6, 12, 768, 81_912_576, "https://huggingface.co/distilbert/distilgpt2", "Apache-2.0"),
];

/// Name, vocabulary, longest sequence, layers, heads, size, parameters: for characters and bytes.
type Small = (&'static str, usize, usize, usize, usize, usize, usize);

#[rustfmt::skip]
const SMALL: [Small; 2] = [
    ("gpt2_mini", 65, 64, 4, 4, 128, 809_856),
    ("gpt2_char", 65, 256, 6, 6, 384, 10_770_816),
];

/// Every preset of the family with its configuration.
pub(crate) static PRESETS: LazyLock<Vec<(Preset, Gpt2Config)>> = LazyLock::new(|| {
    let preset = |name, paper, num_parameters, weights| Preset {
        name,
        family: "gpt2",
        task: Task::TextGeneration,
        paper,
        upstream: "transformers",
        license: "Apache-2.0",
        num_parameters,
        preprocessing: None,
        weights,
    };
    let published = PUBLISHED.iter().map(|row| {
        let &(name, paper, layers, heads, size, parameters, url, license) = row;
        let config = Gpt2Config {
            embd_pdrop: 0.1,
            attn_pdrop: 0.1,
            resid_pdrop: 0.1,
            ..Gpt2Config::new(50_257, 1024, layers, heads, size)
        };
        let weights = Weights::hub(url, license, "WebText");
        (preset(name, paper, parameters, Some(weights)), config)
    });
    let small = SMALL.iter().map(|row| {
        let &(name, vocab, positions, layers, heads, size, parameters) = row;
        let config = Gpt2Config::new(vocab, positions, layers, heads, size);
        (preset(name, GPT2, parameters, None), config)
    });
    published.chain(small).collect()
});
