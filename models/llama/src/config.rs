use burn_zoo_core::{Error, Result};
use burn_zoo_nn::{Rope, TextHead, classifier_dropout, num_labels};
use burn_zoo_ops::Activation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Whose decoder it is: they differ in biases, norms and windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Llama 2 and 3, TinyLlama, SmolLM2.
    Llama,
    /// Mistral: every layer sees a window.
    Mistral,
    /// Qwen2 and 2.5: biases on queries, keys and values.
    Qwen2,
    /// Qwen3: norms over the heads of queries and keys.
    Qwen3,
}

impl Variant {
    /// The names of transformers' classes begin with it.
    fn class(self) -> &'static str {
        match self {
            Variant::Llama => "Llama",
            Variant::Mistral => "Mistral",
            Variant::Qwen2 => "Qwen2",
            Variant::Qwen3 => "Qwen3",
        }
    }
}

/// What a layer's queries see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerType {
    /// All that came before.
    FullAttention,
    /// The last `sliding_window` tokens.
    SlidingAttention,
}

/// The shape of a decoder, in the names of transformers' `LlamaConfig`, `MistralConfig`, `Qwen2Config` and
/// `Qwen3Config`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlamaConfig {
    /// Whose decoder it is.
    pub variant: Variant,
    /// What stands on it.
    pub head: TextHead,
    /// Tokens that are known.
    pub vocab_size: usize,
    /// Size of a token's vector.
    pub hidden_size: usize,
    /// Size between the matrices of the feed-forward part.
    pub intermediate_size: usize,
    /// Layers.
    pub num_hidden_layers: usize,
    /// Heads of the queries.
    pub num_attention_heads: usize,
    /// Heads of keys and values.
    pub num_key_value_heads: usize,
    /// Size of a head.
    pub head_dim: usize,
    /// Activation of the gate.
    pub hidden_act: Activation,
    /// Tokens of the longest sequence it was made for.
    pub max_position_embeddings: usize,
    /// `eps` of every norm.
    pub rms_norm_eps: f64,
    /// Rotary positions.
    pub rope: Rope,
    /// The head's matrix is the embedding's.
    pub tie_word_embeddings: bool,
    /// Biases on queries, keys and values, and but for Qwen2 on the output.
    pub attention_bias: bool,
    /// Biases in the feed-forward part.
    pub mlp_bias: bool,
    /// Probability that an attention weight is dropped in training.
    pub attention_dropout: f64,
    /// Tokens that a sliding layer sees.
    pub sliding_window: Option<usize>,
    /// What each layer sees.
    pub layer_types: Vec<LayerType>,
    /// The token that stands for nothing.
    pub pad_token_id: Option<usize>,
    /// Standard deviation of the initial weights.
    pub initializer_range: f64,
    /// Probability that a number is dropped in training before tokens are told apart.
    pub classifier_dropout: f64,
    /// Classes, where the head tells them apart.
    pub num_labels: usize,
}

/// The fields of upstream's `config.json` that say what is computed, with the defaults that all four
/// classes share; the others stand in [`LlamaConfig::from_transformers`].
#[derive(Deserialize)]
struct Upstream {
    vocab_size: Option<usize>,
    #[serde(default = "hidden_size")]
    hidden_size: usize,
    intermediate_size: Option<usize>,
    #[serde(default = "thirty_two")]
    num_hidden_layers: usize,
    #[serde(default = "thirty_two")]
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    #[serde(default = "silu")]
    hidden_act: Activation,
    max_position_embeddings: Option<usize>,
    #[serde(default = "eps")]
    rms_norm_eps: f64,
    #[serde(default)]
    tie_word_embeddings: bool,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    attention_dropout: Option<f64>,
    sliding_window: Option<usize>,
    use_sliding_window: Option<bool>,
    max_window_layers: Option<usize>,
    layer_types: Option<Vec<LayerType>>,
    pad_token_id: Option<usize>,
    #[serde(default = "range")]
    initializer_range: f64,
}

fn hidden_size() -> usize {
    4096
}

fn thirty_two() -> usize {
    32
}

fn silu() -> Activation {
    Activation::Silu
}

fn eps() -> f64 {
    1e-6
}

fn range() -> f64 {
    0.02
}

impl LlamaConfig {
    /// The `model_type`s of upstream's configurations.
    pub const MODEL_TYPES: [&str; 4] = ["llama", "mistral", "qwen2", "qwen3"];

    /// From upstream's `config.json`, in old and new spellings; what it leaves out has that class's
    /// defaults.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn from_transformers(json: &Value) -> Result<Self> {
        let variant = match json["model_type"].as_str().unwrap_or_default() {
            "llama" => Variant::Llama,
            "mistral" => Variant::Mistral,
            "qwen2" => Variant::Qwen2,
            "qwen3" => Variant::Qwen3,
            other => return Err(Error::unknown("model_type", other, Self::MODEL_TYPES)),
        };
        let read = Upstream::deserialize(json);
        let up = read.map_err(|e| Error::usage("config.json", e.to_string()))?;
        // vocab_size, intermediate_size, key-value heads, longest sequence
        let (vocab, intermediate, shared, longest) = match variant {
            Variant::Llama => (32_000, 11_008, None, 2048),
            Variant::Mistral => (32_000, 14_336, Some(8), 131_072),
            Variant::Qwen2 | Variant::Qwen3 => (151_936, 22_016, Some(32), 32_768),
        };
        let heads = up.num_attention_heads;
        // `null` is as many as there are query heads; that nothing is said is the class's default.
        let shared = match json.get("num_key_value_heads") {
            None => shared.unwrap_or(heads),
            Some(_) => up.num_key_value_heads.unwrap_or(heads),
        };
        let split = up.hidden_size.checked_div(heads).unwrap_or_default();
        let head_dim = match (variant, json.get("head_dim")) {
            (Variant::Qwen3, None) => 128,
            _ => up.head_dim.unwrap_or(split),
        };
        let max_position_embeddings = up.max_position_embeddings.unwrap_or(longest);
        let windowed = match variant {
            Variant::Llama => false,
            Variant::Mistral => true,
            Variant::Qwen2 | Variant::Qwen3 => up.use_sliding_window.unwrap_or(false),
        };
        let window = match json.get("sliding_window") {
            None => Some(4096),
            Some(_) => up.sliding_window,
        };
        let sliding_window = window.filter(|_| windowed);
        let first = match variant {
            Variant::Mistral => 0,
            _ => up.max_window_layers.unwrap_or(28),
        };
        let layer_type = |i: usize| match sliding_window.is_some() && i >= first {
            true => LayerType::SlidingAttention,
            false => LayerType::FullAttention,
        };
        let layers = up.num_hidden_layers;
        if layers > 1000 {
            let message = format!("wants 1 to 1000, got {layers}");
            return Err(Error::usage("num_hidden_layers", message));
        }
        let stated = up.layer_types.filter(|_| variant != Variant::Mistral);
        let heads_of_text = [
            TextHead::CausalLm,
            TextHead::None,
            TextHead::SequenceClassification,
            TextHead::TokenClassification,
            TextHead::QuestionAnswering,
        ];
        let config = Self {
            variant,
            head: TextHead::from_transformers(json, variant.class(), &heads_of_text)?,
            vocab_size: up.vocab_size.unwrap_or(vocab),
            hidden_size: up.hidden_size,
            intermediate_size: up.intermediate_size.unwrap_or(intermediate),
            num_hidden_layers: layers,
            num_attention_heads: heads,
            num_key_value_heads: shared,
            head_dim,
            hidden_act: up.hidden_act,
            max_position_embeddings,
            rms_norm_eps: up.rms_norm_eps,
            rope: Rope::from_transformers(json, max_position_embeddings)?,
            tie_word_embeddings: up.tie_word_embeddings,
            attention_bias: match variant {
                Variant::Qwen2 => true,
                Variant::Mistral => false,
                _ => up.attention_bias,
            },
            mlp_bias: variant == Variant::Llama && up.mlp_bias,
            attention_dropout: up.attention_dropout.unwrap_or(0.0),
            sliding_window,
            layer_types: stated.unwrap_or_else(|| (0..layers).map(layer_type).collect()),
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
        let model_type = self.variant.class().to_lowercase();
        let mut config = json!({
            "architectures": [self.head.architecture(self.variant.class())],
            "model_type": model_type,
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "hidden_act": self.hidden_act,
            "max_position_embeddings": self.max_position_embeddings,
            "rms_norm_eps": self.rms_norm_eps,
            "tie_word_embeddings": self.tie_word_embeddings,
            "attention_bias": self.attention_bias,
            "mlp_bias": self.mlp_bias,
            "attention_dropout": self.attention_dropout,
            "pad_token_id": self.pad_token_id,
            "initializer_range": self.initializer_range,
            "classifier_dropout": self.classifier_dropout,
            "num_labels": self.num_labels,
        });
        for (key, value) in self.rope.to_transformers() {
            config[key] = value;
        }
        // Llama's class knows no window, and Mistral's slides in every layer.
        if self.variant != Variant::Llama {
            config["sliding_window"] = json!(self.sliding_window);
        }
        if matches!(self.variant, Variant::Qwen2 | Variant::Qwen3) {
            let slides = |kind: &LayerType| *kind == LayerType::SlidingAttention;
            let first = self.layer_types.iter().position(slides);
            config["use_sliding_window"] = json!(self.sliding_window.is_some());
            config["max_window_layers"] = json!(first.unwrap_or(self.num_hidden_layers));
            config["layer_types"] = json!(self.layer_types);
        }
        config
    }

    /// The window of layer `i`.
    pub fn window(&self, i: usize) -> Option<usize> {
        let slides = self.layer_types.get(i) == Some(&LayerType::SlidingAttention);
        self.sliding_window.filter(|_| slides)
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
            ("intermediate_size", self.intermediate_size, 1 << 20),
            ("num_hidden_layers", self.num_hidden_layers, 1000),
            ("num_attention_heads", self.num_attention_heads, 4096),
            ("num_key_value_heads", self.num_key_value_heads, 4096),
            ("head_dim", self.head_dim, 4096),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                1 << 30,
            ),
            ("sliding_window", self.sliding_window.unwrap_or(1), 1 << 30),
            ("num_labels", self.num_labels, 1 << 20),
        ];
        for (field, value, most) in sizes {
            if value == 0 || value > most {
                return fail(field, format!("wants 1 to {most}, got {value}"));
            }
        }
        if !self
            .num_attention_heads
            .is_multiple_of(self.num_key_value_heads)
        {
            let message = format!(
                "{} heads do not divide into groups for {} key and value heads",
                self.num_attention_heads, self.num_key_value_heads
            );
            return fail("num_key_value_heads", message);
        }
        if !self.head_dim.is_multiple_of(2) || self.head_dim < 4 {
            let message = format!("wants an even size from 4, got {}", self.head_dim);
            return fail("head_dim", message);
        }
        if self.layer_types.len() != self.num_hidden_layers {
            let message = format!(
                "wants a type for each of {} layers, got {}",
                self.num_hidden_layers,
                self.layer_types.len()
            );
            return fail("layer_types", message);
        }
        if self.pad_token_id.is_some_and(|id| id >= self.vocab_size) {
            let message = format!("wants a token below {}", self.vocab_size);
            return fail("pad_token_id", message);
        }
        let fine = self.rms_norm_eps.is_finite() && self.rms_norm_eps >= 0.0;
        if !fine {
            return fail(
                "rms_norm_eps",
                format!("wants 0 or more, got {}", self.rms_norm_eps),
            );
        }
        let rates = [
            ("attention_dropout", self.attention_dropout),
            ("classifier_dropout", self.classifier_dropout),
        ];
        for (field, rate) in rates {
            if !(0.0..1.0).contains(&rate) {
                return fail(field, format!("wants 0 to 1, got {rate}"));
            }
        }
        Ok(())
    }
}
