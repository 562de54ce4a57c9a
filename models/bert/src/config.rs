use burn_zoo_core::{Error, Result};
use burn_zoo_nn::{TextHead, num_labels};
use burn_zoo_ops::Activation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Whose encoder it is: they differ in positions, token types and heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// BERT, MiniLM.
    Bert,
    /// Positions count from the padding's number on, and not over padding.
    Roberta,
    /// As RoBERTa.
    XlmRoberta,
    /// No token types, no pooler.
    #[serde(rename = "distilbert")]
    DistilBert,
}

impl Variant {
    /// The names of transformers' classes begin with it.
    fn class(self) -> &'static str {
        match self {
            Variant::Bert => "Bert",
            Variant::Roberta => "Roberta",
            Variant::XlmRoberta => "XLMRoberta",
            Variant::DistilBert => "DistilBert",
        }
    }

    /// Whether it is one of RoBERTa's.
    pub(crate) fn is_roberta(self) -> bool {
        matches!(self, Variant::Roberta | Variant::XlmRoberta)
    }
}

/// The shape of an encoder, in the names of transformers' `BertConfig`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BertConfig {
    /// Whose encoder it is.
    pub variant: Variant,
    /// What stands on it.
    pub head: TextHead,
    /// Tokens that are known.
    pub vocab_size: usize,
    /// Size of a token's vector.
    pub hidden_size: usize,
    /// Layers.
    pub num_hidden_layers: usize,
    /// Attention heads.
    pub num_attention_heads: usize,
    /// Size between the matrices of the feed-forward part.
    pub intermediate_size: usize,
    /// Between those matrices.
    pub hidden_act: Activation,
    /// Probability that a number of a token's vector is dropped in training.
    pub hidden_dropout_prob: f64,
    /// Probability that an attention weight is dropped in training.
    pub attention_probs_dropout_prob: f64,
    /// Probability that a number is dropped before the classes are told apart.
    pub classifier_dropout: f64,
    /// Rows of the table of positions.
    pub max_position_embeddings: usize,
    /// Kinds of segments; 0: there are none.
    pub type_vocab_size: usize,
    /// `eps` of every norm.
    pub layer_norm_eps: f64,
    /// The token that stands for nothing.
    pub pad_token_id: Option<usize>,
    /// The head's matrix is the embedding's.
    pub tie_word_embeddings: bool,
    /// Standard deviation of the initial weights.
    pub initializer_range: f64,
    /// Classes, where the head tells them apart.
    pub num_labels: usize,
}

/// The fields of upstream's `config.json` that say what is computed; DistilBERT has other names for some.
#[derive(Deserialize)]
#[serde(default)]
struct Upstream {
    vocab_size: Option<usize>,
    #[serde(alias = "dim")]
    hidden_size: usize,
    #[serde(alias = "n_layers")]
    num_hidden_layers: Option<usize>,
    #[serde(alias = "n_heads")]
    num_attention_heads: usize,
    #[serde(alias = "hidden_dim")]
    intermediate_size: usize,
    #[serde(alias = "activation")]
    hidden_act: Activation,
    #[serde(alias = "dropout")]
    hidden_dropout_prob: f64,
    #[serde(alias = "attention_dropout")]
    attention_probs_dropout_prob: f64,
    classifier_dropout: Option<f64>,
    seq_classif_dropout: f64,
    qa_dropout: f64,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    layer_norm_eps: f64,
    tie_word_embeddings: bool,
    initializer_range: f64,
    is_decoder: bool,
    position_embedding_type: Option<String>,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            vocab_size: None,
            hidden_size: 768,
            num_hidden_layers: None,
            num_attention_heads: 12,
            intermediate_size: 3072,
            hidden_act: Activation::Gelu,
            hidden_dropout_prob: 0.1,
            attention_probs_dropout_prob: 0.1,
            classifier_dropout: None,
            seq_classif_dropout: 0.2,
            qa_dropout: 0.1,
            max_position_embeddings: 512,
            type_vocab_size: 2,
            layer_norm_eps: 1e-12,
            tie_word_embeddings: true,
            initializer_range: 0.02,
            is_decoder: false,
            position_embedding_type: None,
        }
    }
}

impl BertConfig {
    /// The `model_type`s of upstream's configurations.
    pub const MODEL_TYPES: [&str; 4] = ["bert", "roberta", "xlm-roberta", "distilbert"];

    /// From upstream's `config.json`; what it leaves out has that class's defaults.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn from_transformers(json: &Value) -> Result<Self> {
        let variant = match json["model_type"].as_str().unwrap_or_default() {
            "bert" => Variant::Bert,
            "roberta" => Variant::Roberta,
            "xlm-roberta" => Variant::XlmRoberta,
            "distilbert" => Variant::DistilBert,
            other => return Err(Error::unknown("model_type", other, Self::MODEL_TYPES)),
        };
        let read = Upstream::deserialize(json);
        let up = read.map_err(|e| Error::usage("config.json", e.to_string()))?;
        if up.is_decoder {
            let message = "an encoder that is used as a decoder is not supported";
            return Err(Error::usage("is_decoder", message));
        }
        if let Some(other) = up.position_embedding_type.filter(|kind| kind != "absolute") {
            return Err(Error::unknown(
                "position_embedding_type",
                &other,
                ["absolute"],
            ));
        }
        if json["sinusoidal_pos_embds"].as_bool() == Some(true) {
            // Only how the table is made differs; a checkpoint holds it.
            let message = "tables that are not learned are not supported";
            return Err(Error::usage("sinusoidal_pos_embds", message));
        }
        let distilled = variant == Variant::DistilBert;
        let heads = [
            TextHead::None,
            TextHead::MaskedLm,
            TextHead::SequenceClassification,
            TextHead::TokenClassification,
            TextHead::QuestionAnswering,
        ];
        let head = TextHead::from_transformers(json, variant.class(), &heads)?;
        // `null` is no padding; that nothing is said is the class's default.
        let pad_token_id = match json.get("pad_token_id") {
            None => Some(usize::from(variant.is_roberta())),
            Some(Value::Null) => None,
            Some(id) => match id.as_u64().and_then(|id| usize::try_from(id).ok()) {
                Some(id) => Some(id),
                None => {
                    return Err(Error::usage(
                        "pad_token_id",
                        format!("wants a token, got {id}"),
                    ));
                }
            },
        };
        let dropout = up.hidden_dropout_prob;
        let config = Self {
            variant,
            head,
            vocab_size: up.vocab_size.unwrap_or(match variant.is_roberta() {
                true => 50_265,
                false => 30_522,
            }),
            hidden_size: up.hidden_size,
            num_hidden_layers: up
                .num_hidden_layers
                .unwrap_or(if distilled { 6 } else { 12 }),
            num_attention_heads: up.num_attention_heads,
            intermediate_size: up.intermediate_size,
            hidden_act: up.hidden_act,
            hidden_dropout_prob: dropout,
            attention_probs_dropout_prob: up.attention_probs_dropout_prob,
            classifier_dropout: match (distilled, head) {
                (true, TextHead::SequenceClassification) => up.seq_classif_dropout,
                (true, TextHead::QuestionAnswering) => up.qa_dropout,
                (false, TextHead::QuestionAnswering) => 0.0,
                _ => up.classifier_dropout.unwrap_or(dropout),
            },
            max_position_embeddings: up.max_position_embeddings,
            type_vocab_size: if distilled { 0 } else { up.type_vocab_size },
            layer_norm_eps: if distilled { 1e-12 } else { up.layer_norm_eps },
            pad_token_id,
            tie_word_embeddings: up.tie_word_embeddings,
            initializer_range: up.initializer_range,
            num_labels: num_labels(json),
        };
        config.validate()?;
        Ok(config)
    }

    /// The `config.json` from which transformers makes the same network, without names of classes.
    pub fn to_transformers(&self) -> Value {
        let mut config = json!({
            "architectures": [self.head.architecture(self.variant.class())],
            "model_type": self.variant,
            "vocab_size": self.vocab_size,
            "max_position_embeddings": self.max_position_embeddings,
            "pad_token_id": self.pad_token_id,
            "tie_word_embeddings": self.tie_word_embeddings,
            "initializer_range": self.initializer_range,
            "classifier_dropout": self.classifier_dropout,
            "num_labels": self.num_labels,
        });
        let more = match self.variant {
            Variant::DistilBert => {
                let classes = match self.head {
                    TextHead::SequenceClassification => "seq_classif_dropout",
                    TextHead::QuestionAnswering => "qa_dropout",
                    _ => "classifier_dropout",
                };
                json!({
                    "dim": self.hidden_size,
                    "n_layers": self.num_hidden_layers,
                    "n_heads": self.num_attention_heads,
                    "hidden_dim": self.intermediate_size,
                    "activation": self.hidden_act,
                    "dropout": self.hidden_dropout_prob,
                    "attention_dropout": self.attention_probs_dropout_prob,
                    classes: self.classifier_dropout,
                })
            }
            _ => json!({
                "hidden_size": self.hidden_size,
                "num_hidden_layers": self.num_hidden_layers,
                "num_attention_heads": self.num_attention_heads,
                "intermediate_size": self.intermediate_size,
                "hidden_act": self.hidden_act,
                "hidden_dropout_prob": self.hidden_dropout_prob,
                "attention_probs_dropout_prob": self.attention_probs_dropout_prob,
                "type_vocab_size": self.type_vocab_size,
                "layer_norm_eps": self.layer_norm_eps,
            }),
        };
        if let (Some(all), Some(more)) = (config.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        config
    }

    /// The longest sequence: RoBERTa's positions begin after its padding's.
    pub fn max_length(&self) -> usize {
        match (self.variant.is_roberta(), self.pad_token_id) {
            (true, Some(pad)) => self.max_position_embeddings.saturating_sub(pad + 1),
            _ => self.max_position_embeddings,
        }
    }

    /// Checks that the sizes make a network.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn validate(&self) -> Result<()> {
        let fail = |field: &str, message: String| Err(Error::usage(field, message));
        let sizes = [
            ("vocab_size", self.vocab_size, 1 << 24),
            ("hidden_size", self.hidden_size, 1 << 17),
            ("num_hidden_layers", self.num_hidden_layers, 1000),
            ("num_attention_heads", self.num_attention_heads, 4096),
            ("intermediate_size", self.intermediate_size, 1 << 20),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                1 << 24,
            ),
            ("type_vocab_size", self.type_vocab_size.max(1), 1 << 16),
            ("num_labels", self.num_labels, 1 << 20),
        ];
        for (field, value, most) in sizes {
            if value == 0 || value > most {
                return fail(field, format!("wants 1 to {most}, got {value}"));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let message = format!(
                "{} numbers do not divide into {} heads",
                self.hidden_size, self.num_attention_heads
            );
            return fail("num_attention_heads", message);
        }
        if self.pad_token_id.is_some_and(|id| id >= self.vocab_size) {
            let message = format!("wants a token below {}", self.vocab_size);
            return fail("pad_token_id", message);
        }
        if self.variant.is_roberta() && self.pad_token_id.is_none() {
            return fail("pad_token_id", "is needed to count positions".into());
        }
        if self.max_length() == 0 {
            let message = "leaves no position beside the padding's".into();
            return fail("max_position_embeddings", message);
        }
        let rates = [
            ("hidden_dropout_prob", self.hidden_dropout_prob),
            (
                "attention_probs_dropout_prob",
                self.attention_probs_dropout_prob,
            ),
            ("classifier_dropout", self.classifier_dropout),
        ];
        for (field, rate) in rates {
            if !(0.0..1.0).contains(&rate) {
                return fail(field, format!("wants 0 to 1, got {rate}"));
            }
        }
        let eps = self.layer_norm_eps;
        if !eps.is_finite() || eps < 0.0 {
            return fail("layer_norm_eps", format!("wants 0 or more, got {eps}"));
        }
        Ok(())
    }
}
