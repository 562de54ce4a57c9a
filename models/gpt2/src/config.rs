use burn_zoo_core::{Error, Result};
use burn_zoo_nn::{TextHead, classifier_dropout, num_labels};
use burn_zoo_ops::Activation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The shape of a GPT-2, in the names of transformers' `GPT2Config`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpt2Config {
    /// What stands on it.
    pub head: TextHead,
    /// Tokens that are known.
    pub vocab_size: usize,
    /// Tokens of the longest sequence.
    pub n_positions: usize,
    /// Size of a token's vector.
    pub n_embd: usize,
    /// Layers.
    pub n_layer: usize,
    /// Attention heads.
    pub n_head: usize,
    /// Size between the matrices of the feed-forward part; 4 `n_embd` where nothing is said.
    pub n_inner: usize,
    /// Between those matrices.
    pub activation_function: Activation,
    /// Probability that an embedding is dropped in training.
    pub embd_pdrop: f64,
    /// Probability that an attention weight is dropped in training.
    pub attn_pdrop: f64,
    /// Probability that what a part adds is dropped in training.
    pub resid_pdrop: f64,
    /// `eps` of every norm.
    pub layer_norm_epsilon: f64,
    /// Scores are divided by the root of a head's size.
    pub scale_attn_weights: bool,
    /// Scores are also divided by the layer's number, from 1.
    pub scale_attn_by_inverse_layer_idx: bool,
    /// The head's matrix is the embedding's.
    pub tie_word_embeddings: bool,
    /// The token that stands for nothing.
    pub pad_token_id: Option<usize>,
    /// Standard deviation of the initial weights.
    pub initializer_range: f64,
    /// Probability that a number is dropped in training before tokens are told apart.
    pub classifier_dropout: f64,
    /// Classes, where the head tells them apart.
    pub num_labels: usize,
}

impl Gpt2Config {
    /// The `model_type`s of upstream's configurations.
    pub const MODEL_TYPES: [&str; 1] = ["gpt2"];

    /// A language model of this size with upstream's defaults, without dropout.
    pub fn new(
        vocab_size: usize,
        n_positions: usize,
        n_layer: usize,
        n_head: usize,
        n_embd: usize,
    ) -> Self {
        Self {
            head: TextHead::CausalLm,
            vocab_size,
            n_positions,
            n_embd,
            n_layer,
            n_head,
            n_inner: 4 * n_embd,
            activation_function: Activation::GeluTanh,
            embd_pdrop: 0.0,
            attn_pdrop: 0.0,
            resid_pdrop: 0.0,
            layer_norm_epsilon: 1e-5,
            scale_attn_weights: true,
            scale_attn_by_inverse_layer_idx: false,
            tie_word_embeddings: true,
            pad_token_id: None,
            initializer_range: 0.02,
            classifier_dropout: 0.1,
            num_labels: 2,
        }
    }

    /// From upstream's `config.json`; what it leaves out has the class's defaults.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn from_transformers(json: &Value) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(default)]
        struct Upstream {
            vocab_size: usize,
            n_positions: usize,
            n_embd: usize,
            n_layer: usize,
            n_head: usize,
            n_inner: Option<usize>,
            activation_function: Activation,
            embd_pdrop: f64,
            attn_pdrop: f64,
            resid_pdrop: f64,
            layer_norm_epsilon: f64,
            scale_attn_weights: bool,
            scale_attn_by_inverse_layer_idx: bool,
            tie_word_embeddings: bool,
            add_cross_attention: bool,
            pad_token_id: Option<usize>,
            initializer_range: f64,
        }
        impl Default for Upstream {
            fn default() -> Self {
                Self {
                    vocab_size: 50_257,
                    n_positions: 1024,
                    n_embd: 768,
                    n_layer: 12,
                    n_head: 12,
                    n_inner: None,
                    activation_function: Activation::GeluTanh,
                    embd_pdrop: 0.1,
                    attn_pdrop: 0.1,
                    resid_pdrop: 0.1,
                    layer_norm_epsilon: 1e-5,
                    scale_attn_weights: true,
                    scale_attn_by_inverse_layer_idx: false,
                    tie_word_embeddings: true,
                    add_cross_attention: false,
                    pad_token_id: None,
                    initializer_range: 0.02,
                }
            }
        }
        // The names that transformers maps to GPT-2's own; where both are there they win.
        let mut json = json.clone();
        for (mapped, own) in [
            ("hidden_size", "n_embd"),
            ("max_position_embeddings", "n_positions"),
            ("num_attention_heads", "n_head"),
            ("num_hidden_layers", "n_layer"),
        ] {
            if let Some(value) = json.get(mapped).cloned() {
                json[own] = value;
            }
        }
        let json = &json;
        let read = Upstream::deserialize(json);
        let up = read.map_err(|e| Error::usage("config.json", e.to_string()))?;
        if up.add_cross_attention {
            let message = "a decoder that looks at an encoder is not supported";
            return Err(Error::usage("add_cross_attention", message));
        }
        let heads = [
            TextHead::CausalLm,
            TextHead::None,
            TextHead::SequenceClassification,
            TextHead::TokenClassification,
            TextHead::QuestionAnswering,
        ];
        let config = Self {
            head: TextHead::from_transformers(json, "GPT2", &heads)?,
            vocab_size: up.vocab_size,
            n_positions: up.n_positions,
            n_embd: up.n_embd,
            n_layer: up.n_layer,
            n_head: up.n_head,
            n_inner: up.n_inner.unwrap_or(up.n_embd.saturating_mul(4)),
            activation_function: up.activation_function,
            embd_pdrop: up.embd_pdrop,
            attn_pdrop: up.attn_pdrop,
            resid_pdrop: up.resid_pdrop,
            layer_norm_epsilon: up.layer_norm_epsilon,
            scale_attn_weights: up.scale_attn_weights,
            scale_attn_by_inverse_layer_idx: up.scale_attn_by_inverse_layer_idx,
            tie_word_embeddings: up.tie_word_embeddings,
            pad_token_id: up.pad_token_id,
            initializer_range: up.initializer_range,
            classifier_dropout: classifier_dropout(json),
            num_labels: num_labels(json),
        };
        config.validate()?;
        Ok(config)
    }

    /// The `config.json` from which transformers makes the same network, without names of classes.
    pub fn to_transformers(&self) -> Value {
        json!({
            "architectures": [self.head.architecture("GPT2")],
            "model_type": "gpt2",
            "vocab_size": self.vocab_size,
            "n_positions": self.n_positions,
            "n_embd": self.n_embd,
            "n_layer": self.n_layer,
            "n_head": self.n_head,
            "n_inner": self.n_inner,
            "activation_function": self.activation_function,
            "embd_pdrop": self.embd_pdrop,
            "attn_pdrop": self.attn_pdrop,
            "resid_pdrop": self.resid_pdrop,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "scale_attn_weights": self.scale_attn_weights,
            "scale_attn_by_inverse_layer_idx": self.scale_attn_by_inverse_layer_idx,
            "tie_word_embeddings": self.tie_word_embeddings,
            "pad_token_id": self.pad_token_id,
            "initializer_range": self.initializer_range,
            "classifier_dropout": self.classifier_dropout,
            "num_labels": self.num_labels,
        })
    }

    /// Checks that the sizes make a network.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn validate(&self) -> Result<()> {
        let fail = |field: &str, message: String| Err(Error::usage(field, message));
        let sizes = [
            ("vocab_size", self.vocab_size, 1 << 24),
            ("n_positions", self.n_positions, 1 << 24),
            ("n_embd", self.n_embd, 1 << 17),
            ("n_layer", self.n_layer, 1000),
            ("n_head", self.n_head, 4096),
            ("n_inner", self.n_inner, 1 << 20),
            ("num_labels", self.num_labels, 1 << 20),
        ];
        for (field, value, most) in sizes {
            if value == 0 || value > most {
                return fail(field, format!("wants 1 to {most}, got {value}"));
            }
        }
        if !self.n_embd.is_multiple_of(self.n_head) {
            let message = format!(
                "{} numbers do not divide into {} heads",
                self.n_embd, self.n_head
            );
            return fail("n_head", message);
        }
        if self.pad_token_id.is_some_and(|id| id >= self.vocab_size) {
            let message = format!("wants a token below {}", self.vocab_size);
            return fail("pad_token_id", message);
        }
        let rates = [
            ("embd_pdrop", self.embd_pdrop),
            ("attn_pdrop", self.attn_pdrop),
            ("resid_pdrop", self.resid_pdrop),
            ("classifier_dropout", self.classifier_dropout),
        ];
        for (field, rate) in rates {
            if !(0.0..1.0).contains(&rate) {
                return fail(field, format!("wants 0 to 1, got {rate}"));
            }
        }
        let eps = self.layer_norm_epsilon;
        if !eps.is_finite() || eps < 0.0 {
            return fail("layer_norm_epsilon", format!("wants 0 or more, got {eps}"));
        }
        Ok(())
    }
}
