use crate::config::{BertConfig, Variant};
use burn_zoo_core::{Preset, Task, Weights};
use burn_zoo_nn::TextHead;
use burn_zoo_ops::Activation;
use std::sync::LazyLock;

const BERT: &str =
    "BERT: Pre-training of Deep Bidirectional Transformers, Devlin et al. 2018, arXiv:1810.04805";
const ROBERTA: &str =
    "RoBERTa: A Robustly Optimized BERT Pretraining Approach, Liu et al. 2019, arXiv:1907.11692";
const XLM: &str = "Unsupervised Cross-lingual Representation Learning at Scale, Conneau et al. 2019, arXiv:1911.02116";
const DISTIL: &str = "DistilBERT, a distilled version of BERT, Sanh et al. 2019, arXiv:1910.01108";
const MINILM: &str = "MiniLM: Deep Self-Attention Distillation, Wang et al. 2020, arXiv:2002.10957";

/// Name, paper, vocabulary, layers, heads, size, parameters, hub model, licence and data of the weights.
type Row = (
    &'static str,
    &'static str,
    usize,
    usize,
    usize,
    usize,
    usize,
    &'static str,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const PUBLISHED: [Row; 9] = [
    ("bert-base-uncased", BERT, 30_522, 12, 12, 768, 109_514_298, "https://huggingface.co/google-bert/bert-base-uncased", "Apache-2.0", "BookCorpus and Wikipedia"),
    ("bert-large-uncased", BERT, 30_522, 24, 16, 1024, 335_174_458, "https://huggingface.co/google-bert/bert-large-uncased", "Apache-2.0", "BookCorpus and Wikipedia"),
    ("bert-base-cased", BERT, 28_996, 12, 12, 768, 108_340_804, "https://huggingface.co/google-bert/bert-base-cased", "Apache-2.0", "BookCorpus and Wikipedia"),
    ("bert-base-multilingual-cased", BERT, 119_547, 12, 12, 768, 177_974_523, "https://huggingface.co/google-bert/bert-base-multilingual-cased", "Apache-2.0", "Wikipedia in 104 languages"),
    ("roberta-base", ROBERTA, 50_265, 12, 12, 768, 124_697_433, "https://huggingface.co/FacebookAI/roberta-base", "MIT", "BookCorpus, Wikipedia, CC-News, OpenWebText and Stories"),
    ("roberta-large", ROBERTA, 50_265, 24, 16, 1024, 355_412_057, "https://huggingface.co/FacebookAI/roberta-large", "MIT", "BookCorpus, Wikipedia, CC-News, OpenWebText and Stories"),
    ("xlm-roberta-base", XLM, 250_002, 12, 12, 768, 278_295_186, "https://huggingface.co/FacebookAI/xlm-roberta-base", "MIT", "CommonCrawl in 100 languages"),
    ("distilbert-base-uncased", DISTIL, 30_522, 6, 12, 768, 66_985_530, "https://huggingface.co/distilbert/distilbert-base-uncased", "Apache-2.0", "BookCorpus and Wikipedia"),
    ("all-MiniLM-L6-v2", MINILM, 30_522, 6, 12, 384, 22_713_216, "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2", "Apache-2.0", "over a billion pairs of sentences"),
];

/// Every preset of the family with its configuration.
pub(crate) static PRESETS: LazyLock<Vec<(Preset, BertConfig)>> =
    LazyLock::new(|| PUBLISHED.iter().map(published).chain([small()]).collect());

/// A small encoder to be trained.
fn small() -> (Preset, BertConfig) {
    let (preset, config) = published(&PUBLISHED[0]);
    let preset = Preset {
        name: "bert_mini",
        num_parameters: 556_624,
        weights: None,
        ..preset
    };
    let config = BertConfig {
        vocab_size: 2000,
        hidden_size: 128,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        intermediate_size: 256,
        max_position_embeddings: 128,
        ..config
    };
    (preset, config)
}

fn published(row: &Row) -> (Preset, BertConfig) {
    let &(name, paper, vocab_size, layers, heads, size, num_parameters, url, license, data) = row;
    let variant = match paper {
        ROBERTA => Variant::Roberta,
        XLM => Variant::XlmRoberta,
        DISTIL => Variant::DistilBert,
        _ => Variant::Bert,
    };
    let embeds = paper == MINILM;
    let roberta = variant.is_roberta();
    let config = BertConfig {
        variant,
        head: match embeds {
            true => TextHead::None,
            false => TextHead::MaskedLm,
        },
        vocab_size,
        hidden_size: size,
        num_hidden_layers: layers,
        num_attention_heads: heads,
        intermediate_size: 4 * size,
        hidden_act: Activation::Gelu,
        hidden_dropout_prob: 0.1,
        attention_probs_dropout_prob: 0.1,
        classifier_dropout: 0.1,
        max_position_embeddings: if roberta { 514 } else { 512 },
        type_vocab_size: match variant {
            Variant::Bert => 2,
            Variant::Roberta | Variant::XlmRoberta => 1,
            Variant::DistilBert => 0,
        },
        layer_norm_eps: if roberta { 1e-5 } else { 1e-12 },
        pad_token_id: Some(usize::from(roberta)),
        tie_word_embeddings: true,
        initializer_range: 0.02,
        num_labels: 2,
    };
    let preset = Preset {
        name,
        family: "bert",
        task: match embeds {
            true => Task::TextEmbedding,
            false => Task::FillMask,
        },
        paper,
        upstream: "transformers",
        license: "Apache-2.0",
        num_parameters,
        preprocessing: None,
        weights: Some(Weights::hub(url, license, data)),
    };
    (preset, config)
}
