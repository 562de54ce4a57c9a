use crate::config::{BertConfig, Variant};
use crate::model::Bert;
use crate::presets::PRESETS;
use burn::tensor::backend::Backend;
use burn_zoo_checkpoint::{KeyMap, ModelConfig, PretrainedModel};
use burn_zoo_core::{Preset, Result};
use burn_zoo_nn::{Init, TextHead};

const POSITIONS: (&str, &str) = ("position_ids", "0, 1, 2 and so on");

const DROPPED: &[(&str, &str)] = &[POSITIONS];

/// Published checkpoints of masked language models hold the whole of the pre-training.
const DROPPED_BY_MASKED_LM: &[(&str, &str)] = &[
    POSITIONS,
    ("cls.seq_relationship.weight", NEXT_SENTENCE),
    ("cls.seq_relationship.bias", NEXT_SENTENCE),
    ("bert.pooler.dense.weight", POOLER),
    ("bert.pooler.dense.bias", POOLER),
    ("roberta.pooler.dense.weight", POOLER),
    ("roberta.pooler.dense.bias", POOLER),
];
const NEXT_SENTENCE: &str = "the head that tells whether two sentences belong together";
const POOLER: &str = "a layer on the first token, which no head for masked tokens looks at";

/// The encoder's names in transformers' `BertModel` and `RobertaModel`.
const BERT: &[(&str, &str)] = &[
    ("^embeddings.word", "embeddings.word_embeddings"),
    ("^embeddings.position", "embeddings.position_embeddings"),
    ("^embeddings.token_type", "embeddings.token_type_embeddings"),
    ("^embeddings.norm", "embeddings.LayerNorm"),
    ("^layers.*", "encoder.layer.*"),
    ("attention.q_proj", "attention.self.query"),
    ("attention.k_proj", "attention.self.key"),
    ("attention.v_proj", "attention.self.value"),
    ("attention.o_proj", "attention.output.dense"),
    ("attention_norm", "attention.output.LayerNorm"),
    ("up", "intermediate.dense"),
    ("down", "output.dense"),
    ("output_norm", "output.LayerNorm"),
    ("^pooler", "pooler.dense"),
];

/// The encoder's names in transformers' `DistilBertModel`, and its heads'.
const DISTILBERT: &[(&str, &str)] = &[
    ("^embeddings.word", "embeddings.word_embeddings"),
    ("^embeddings.position", "embeddings.position_embeddings"),
    ("^embeddings.norm", "embeddings.LayerNorm"),
    ("^layers.*", "transformer.layer.*"),
    ("attention.q_proj", "attention.q_lin"),
    ("attention.k_proj", "attention.k_lin"),
    ("attention.v_proj", "attention.v_lin"),
    ("attention.o_proj", "attention.out_lin"),
    ("attention_norm", "sa_layer_norm"),
    ("up", "ffn.lin1"),
    ("down", "ffn.lin2"),
    ("output_norm", "output_layer_norm"),
    ("^pooler", "pre_classifier"),
    ("^lm_head.dense", "vocab_transform"),
    ("^lm_head.norm", "vocab_layer_norm"),
    ("^lm_head.decoder", "vocab_projector"),
    ("^lm_head.bias", "vocab_projector.bias"),
];

/// The names of a class with a head, which puts `prefix` before the encoder's, or of the bare model.
fn transformers(config: &BertConfig, name: &'static str, prefix: &str) -> KeyMap {
    let dropped = match config.head {
        TextHead::MaskedLm => DROPPED_BY_MASKED_LM,
        _ => DROPPED,
    };
    let encoder = match config.variant {
        Variant::DistilBert => DISTILBERT,
        _ => BERT,
    };
    let mut map = KeyMap::new(name, encoder, dropped);
    if config.head == TextHead::QuestionAnswering {
        map.rename("^classifier", "qa_outputs");
    }
    match config.variant {
        Variant::Bert => {
            map.rename("^lm_head.dense", "cls.predictions.transform.dense");
            map.rename("^lm_head.norm", "cls.predictions.transform.LayerNorm");
            map.rename("^lm_head.decoder", "cls.predictions.decoder");
            if !config.tie_word_embeddings {
                map.rename("^lm_head.bias", "cls.predictions.decoder.bias");
                map.rename("^lm_head.unused_bias", "cls.predictions.bias");
            }
            map.rename("^lm_head.bias", "cls.predictions.bias");
        }
        Variant::Roberta | Variant::XlmRoberta => {
            map.rename("^lm_head.norm", "lm_head.layer_norm");
            if !config.tie_word_embeddings {
                map.rename("^lm_head.bias", "lm_head.decoder.bias");
                map.rename("^lm_head.unused_bias", "lm_head.bias");
            }
            if config.head == TextHead::SequenceClassification {
                map.rename("^classifier", "classifier.out_proj");
                map.rename("^pooler.dense", "classifier.dense");
            }
        }
        Variant::DistilBert => {}
    }
    for part in ["embeddings", "encoder", "transformer", "pooler"] {
        map.rename(format!("^{part}"), format!("{prefix}{part}"));
    }
    if config.tie_word_embeddings && config.head == TextHead::MaskedLm {
        map.tied = match (config.variant, prefix) {
            (Variant::Bert, "") => vec![(
                "cls.predictions.decoder.weight",
                "embeddings.word_embeddings.weight",
            )],
            (Variant::Bert, _) => vec![(
                "cls.predictions.decoder.weight",
                "bert.embeddings.word_embeddings.weight",
            )],
            (Variant::DistilBert, _) => vec![(
                "vocab_projector.weight",
                "distilbert.embeddings.word_embeddings.weight",
            )],
            _ => vec![(
                "lm_head.decoder.weight",
                "roberta.embeddings.word_embeddings.weight",
            )],
        };
        map.tied.extend(match config.variant {
            Variant::Bert => Some(("cls.predictions.decoder.bias", "cls.predictions.bias")),
            Variant::DistilBert => None,
            _ => Some(("lm_head.decoder.bias", "lm_head.bias")),
        });
    }
    map
}

/// The names of norms in checkpoints that come from TensorFlow.
fn from_tensorflow(mut map: KeyMap, name: &'static str) -> KeyMap {
    map.name = name;
    map.rename("LayerNorm.weight", "LayerNorm.gamma");
    map.rename("LayerNorm.bias", "LayerNorm.beta");
    map
}

impl ModelConfig for BertConfig {
    fn presets() -> &'static [(Preset, Self)] {
        &PRESETS
    }

    /// transformers' names, of a class with a head and of the bare model; each also with `gamma` and `beta`
    /// for BERT's norms.
    fn key_maps(&self) -> Vec<KeyMap> {
        let prefix = match self.variant {
            Variant::Bert => "bert.",
            Variant::Roberta | Variant::XlmRoberta => "roberta.",
            Variant::DistilBert => "distilbert.",
        };
        let whole = transformers(self, "transformers", prefix);
        let bare = transformers(self, "transformers, the bare model", "");
        let mut maps = match self.head {
            TextHead::None => vec![bare.clone(), whole.clone()],
            _ => vec![whole.clone(), bare.clone()],
        };
        if self.variant == Variant::Bert {
            maps.push(from_tensorflow(whole, "TensorFlow's norms"));
            maps.push(from_tensorflow(bare, "TensorFlow's norms, the bare model"));
        }
        maps
    }
}

impl<B: Backend> PretrainedModel<B> for Bert<B> {
    type Config = BertConfig;

    fn build(config: &BertConfig, seed: Option<u64>, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    fn config(&self) -> &BertConfig {
        &self.config
    }
}
