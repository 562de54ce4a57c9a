use crate::config::{BertConfig, Variant};
use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, backend::Backend};
use burn_zoo_core::{
    Argument, Arguments, Error, Flat, Mode, Network, Result, Stages, UpstreamOutput, record, seeded,
};
use burn_zoo_nn::{
    AttentionContext, Embedding, Init, LayerNorm, Linear, SelfAttention, SelfAttentionOptions,
    TextHead, TokenBatch, dropout, position_ids, rows_at,
};
use burn_zoo_ops::{Activation, AttentionMask, MaskOptions, linear};

/// Sequences of tokens.
#[derive(Clone, Debug)]
pub struct Encoded<B: Backend> {
    /// `[batch, sequence]`
    pub input_ids: Tensor<B, 2, Int>,
    /// `[batch, sequence]`: 0 where a token is padding.
    pub attention_mask: Option<Tensor<B, 2, Int>>,
    /// `[batch, sequence]`: the segment of each token; without, all are of the first.
    pub token_type_ids: Option<Tensor<B, 2, Int>>,
    /// `[batch or 1, sequence]`: rows of the table of positions; [`BertConfig`] says how they count.
    pub position_ids: Tensor<B, 2, Int>,
}

/// Tokens, positions and segments, added and normed.
#[derive(Module, Debug)]
pub struct Embeddings<B: Backend> {
    word: Embedding<B>,
    position: Embedding<B>,
    token_type: Option<Embedding<B>>,
    norm: LayerNorm<B>,
    dropout: f64,
}

impl<B: Backend> Embeddings<B> {
    fn new(config: &BertConfig, init: &mut Init<B>) -> Self {
        let mut table =
            |rows| Embedding::new(init, rows, config.hidden_size, config.initializer_range);
        let of_padding = config.pad_token_id.filter(|_| config.variant.is_roberta());
        Self {
            word: table(config.vocab_size).with_padding_idx(config.pad_token_id),
            position: table(config.max_position_embeddings).with_padding_idx(of_padding),
            token_type: (config.type_vocab_size > 0).then(|| table(config.type_vocab_size)),
            norm: LayerNorm::new(init, config.hidden_size, config.layer_norm_eps),
            dropout: config.hidden_dropout_prob,
        }
    }

    fn forward(&self, tokens: &Encoded<B>, mode: Mode) -> Tensor<B, 3> {
        let mut x = self.word.forward(tokens.input_ids.clone());
        let types = seeded("segments left out", self.token_type.as_ref(), |_| None);
        if let Some(types) = types {
            let first = || tokens.input_ids.zeros_like();
            x = x + types.forward(tokens.token_type_ids.clone().unwrap_or_else(first));
        }
        let x = x + self.position.forward(tokens.position_ids.clone());
        dropout(self.norm.forward(x), self.dropout, mode)
    }
}

/// Attention and feed-forward, each normed after it was added.
#[derive(Module, Debug)]
pub struct Layer<B: Backend> {
    attention: SelfAttention<B>,
    attention_norm: LayerNorm<B>,
    up: Linear<B>,
    down: Linear<B>,
    output_norm: LayerNorm<B>,
    attention_dropout: f64,
    dropout: f64,
    #[module(skip)]
    hidden_act: Activation,
}

impl<B: Backend> Layer<B> {
    fn new(config: &BertConfig, init: &mut Init<B>) -> Self {
        let (hidden, std) = (config.hidden_size, config.initializer_range);
        let head_dim = hidden / config.num_attention_heads;
        let options = SelfAttentionOptions {
            hidden_size: hidden,
            num_heads: config.num_attention_heads,
            num_key_value_heads: config.num_attention_heads,
            head_dim,
            scale: (head_dim as f64).powf(-0.5),
            dropout: config.attention_probs_dropout_prob,
            std,
            output_std: std,
            bias: true,
            output_bias: true,
            norm_eps: None,
        };
        let norm = |init: &Init<B>| LayerNorm::new(init, hidden, config.layer_norm_eps);
        Self {
            attention: SelfAttention::new(init, options),
            attention_norm: norm(init),
            up: Linear::normal(init, hidden, config.intermediate_size, std),
            down: Linear::normal(init, config.intermediate_size, hidden, std),
            output_norm: norm(init),
            // DistilBERT drops nothing after its attention.
            attention_dropout: match config.variant {
                Variant::DistilBert => 0.0,
                _ => config.hidden_dropout_prob,
            },
            dropout: config.hidden_dropout_prob,
            hidden_act: config.hidden_act,
        }
    }

    /// Also gives what follows the attention.
    fn forward(
        &self,
        x: Tensor<B, 3>,
        context: &AttentionContext<B>,
        mode: Mode,
    ) -> [Tensor<B, 3>; 2] {
        let mixed = self.attention.forward(x.clone(), context, None, mode);
        let mixed = dropout(mixed, self.attention_dropout, mode);
        let x = self.attention_norm.forward(x + mixed);
        let fed = self
            .down
            .forward(self.hidden_act.forward(self.up.forward(x.clone())));
        let fed = dropout(fed, self.dropout, mode);
        [x.clone(), self.output_norm.forward(x + fed)]
    }
}

/// The token that stood there.
#[derive(Module, Debug)]
pub struct MaskedLmHead<B: Backend> {
    dense: Linear<B>,
    norm: LayerNorm<B>,
    /// Unless it is the embedding's matrix.
    decoder: Option<Linear<B>>,
    bias: Param<Tensor<B, 1>>,
    /// BERT and RoBERTa keep a second bias where the matrix is the head's own, and never look at it.
    unused_bias: Option<Param<Tensor<B, 1>>>,
    #[module(skip)]
    activation: Activation,
}

impl<B: Backend> MaskedLmHead<B> {
    fn new(config: &BertConfig, init: &mut Init<B>) -> Self {
        let (hidden, std) = (config.hidden_size, config.initializer_range);
        let own = !config.tie_word_embeddings;
        Self {
            dense: Linear::normal(init, hidden, hidden, std),
            norm: LayerNorm::new(init, hidden, config.layer_norm_eps),
            decoder: own
                .then(|| Linear::normal(init, hidden, config.vocab_size, std).with_bias(false)),
            bias: init.constant([config.vocab_size], 0.0),
            unused_bias: (own && config.variant != Variant::DistilBert)
                .then(|| init.constant([config.vocab_size], 0.0)),
            activation: match config.variant.is_roberta() {
                true => Activation::Gelu,
                false => config.hidden_act,
            },
        }
    }

    fn forward(&self, x: Tensor<B, 3>, embeddings: &Embeddings<B>) -> Tensor<B, 3> {
        let x = self
            .norm
            .forward(self.activation.forward(self.dense.forward(x)));
        let weight = match &self.decoder {
            Some(decoder) => decoder.weight.val(),
            None => embeddings.word.weight.val(),
        };
        linear(x, weight, Some(self.bias.val()))
    }
}

/// An encoder of the BERT class.
///
/// Stages for verification: `embeddings`, of each layer `layers.{i}.attention` and `layers.{i}`, `pooler`.
#[derive(Module, Debug)]
pub struct Bert<B: Backend> {
    embeddings: Embeddings<B>,
    layers: Vec<Layer<B>>,
    /// A layer on the first token: BERT's pooler, and the first of the two layers that RoBERTa and DistilBERT
    /// have to tell sequences apart.
    pooler: Option<Linear<B>>,
    classifier: Option<Linear<B>>,
    lm_head: Option<MaskedLmHead<B>>,
    #[module(skip)]
    pub(crate) config: BertConfig,
}

impl<B: Backend> Bert<B> {
    /// An encoder with random weights.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub fn new(config: &BertConfig, seed: u64, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    /// An encoder with weights from `init`.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub(crate) fn init(config: &BertConfig, init: &mut Init<B>) -> Result<Self> {
        config.validate()?;
        let (hidden, std) = (config.hidden_size, config.initializer_range);
        let embeddings = Embeddings::new(config, init);
        let layers = (0..config.num_hidden_layers).map(|_| Layer::new(config, init));
        let layers = layers.collect();
        let lm_head = (config.head == TextHead::MaskedLm).then(|| MaskedLmHead::new(config, init));
        let mut layer = |outputs| Linear::normal(init, hidden, outputs, std);
        let pools = match config.head {
            TextHead::None => config.variant != Variant::DistilBert,
            head => head == TextHead::SequenceClassification,
        };
        Ok(Self {
            embeddings,
            layers,
            pooler: pools.then(|| layer(hidden)),
            classifier: match config.head {
                TextHead::SequenceClassification | TextHead::TokenClassification => {
                    Some(layer(config.num_labels))
                }
                TextHead::QuestionAnswering => Some(layer(2)),
                _ => None,
            },
            lm_head,
            config: config.clone(),
        })
    }

    /// Puts rows of token numbers in order: positions are counted as the variant does.
    pub fn encode(
        &self,
        input_ids: &[Vec<usize>],
        attention_mask: Option<Tensor<B, 2, Int>>,
        token_type_ids: Option<Tensor<B, 2, Int>>,
        device: &B::Device,
    ) -> Encoded<B> {
        Encoded {
            position_ids: position_ids(&self.positions(input_ids), device),
            input_ids: position_ids(input_ids, device),
            attention_mask,
            token_type_ids,
        }
    }

    fn positions(&self, input_ids: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let rows = match self.config.pad_token_id {
            Some(pad) if self.config.variant.is_roberta() => {
                let count = |row: &Vec<usize>| {
                    let mut position = pad;
                    let mut next = |id: &usize| match *id == pad {
                        true => pad,
                        false => {
                            position += 1;
                            position
                        }
                    };
                    row.iter().map(&mut next).collect()
                };
                input_ids.iter().map(count).collect()
            }
            _ => vec![(0..input_ids.first().map_or(0, Vec::len)).collect()],
        };
        seeded("learned positions from 1", rows, |rows: Vec<Vec<usize>>| {
            let next = |n: usize| (n + 1) % self.config.max_position_embeddings;
            rows.into_iter()
                .map(|row| row.into_iter().map(next).collect())
                .collect()
        })
    }

    /// What leaves the last layer: `[batch, sequence, hidden_size]`.
    pub fn hidden_states(
        &self,
        tokens: &Encoded<B>,
        mode: Mode,
        stages: &mut Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 3> {
        let mut x = self.embeddings.forward(tokens, mode);
        record(stages, || "embeddings".into(), &x);
        let mask = AttentionMask::new(MaskOptions {
            causal: false,
            window: None,
            past: 0,
            attention_mask: tokens.attention_mask.clone(),
        });
        let context = AttentionContext { mask, rotary: None };
        for (i, layer) in self.layers.iter().enumerate() {
            let [mixed, output] = layer.forward(x, &context, mode);
            record(stages, || format!("layers.{i}.attention"), &mixed);
            record(stages, || format!("layers.{i}"), &output);
            x = output;
        }
        x
    }

    /// The head's output of `[batch, sequence, hidden_size]`.
    fn head(
        &self,
        hidden: Tensor<B, 3>,
        mode: Mode,
        stages: &mut Option<&mut dyn Stages<B>>,
    ) -> Flat<B> {
        let drop = self.config.classifier_dropout;
        let pooled = self.pooler.as_ref().map(|pooler| {
            let [batch, ..] = hidden.dims();
            let first = rows_at(hidden.clone(), &vec![0; batch]);
            // RoBERTa drops on both sides of its first layer.
            let first = match self.classifier.is_some() && self.config.variant.is_roberta() {
                true => dropout(first, drop, mode),
                false => first,
            };
            let activation = match self.config.variant {
                Variant::DistilBert => Activation::Relu,
                _ => Activation::Tanh,
            };
            let pooled = activation.forward(pooler.forward(first));
            record(stages, || "pooler".into(), &pooled);
            pooled
        });
        match (&self.lm_head, &self.classifier, pooled) {
            (Some(lm_head), ..) => Flat::of(lm_head.forward(hidden, &self.embeddings)),
            (None, Some(classifier), Some(pooled)) => {
                Flat::of(classifier.forward(dropout(pooled, drop, mode)))
            }
            (None, Some(classifier), None) => {
                let logits = classifier.forward(dropout(hidden, drop, mode));
                Flat::of(self.config.head.record_spans(logits, stages))
            }
            (None, None, _) => Flat::of(hidden),
        }
    }
}

impl<B: Backend> Network<B> for Bert<B> {
    fn arguments(&self) -> Vec<Argument> {
        let mut arguments = vec![
            Argument::tokens("input_ids", self.config.vocab_size),
            Argument::tokens("attention_mask", 2),
            Argument::tokens("position_ids", self.config.max_position_embeddings),
        ];
        if self.config.type_vocab_size > 0 {
            let kinds = self.config.type_vocab_size;
            arguments.push(Argument::tokens("token_type_ids", kinds));
        }
        arguments
    }

    fn run(
        &self,
        arguments: &Arguments<B>,
        mode: Mode,
        mut stages: Option<&mut dyn Stages<B>>,
    ) -> Result<Flat<B>> {
        let batch = TokenBatch::read(arguments)?;
        let [_, sequence] = batch.input_ids.dims();
        if sequence > self.config.max_length() {
            let message = format!(
                "has {sequence} tokens, the model takes {}",
                self.config.max_length()
            );
            return Err(Error::usage("input_ids", message));
        }
        let positions = batch.positions.unwrap_or_else(|| {
            let ids = arguments
                .ints("input_ids")
                .into_iter()
                .flat_map(|data| data.iter::<i64>());
            let ids: Vec<usize> = ids.map(|id| id as usize).collect();
            let rows: Vec<Vec<usize>> = ids.chunks(sequence).map(<[usize]>::to_vec).collect();
            self.positions(&rows)
        });
        let tokens = Encoded {
            position_ids: position_ids(&positions, &batch.input_ids.device()),
            input_ids: batch.input_ids,
            attention_mask: batch.attention_mask,
            token_type_ids: arguments.tokens("token_type_ids"),
        };
        let hidden = self.hidden_states(&tokens, mode, &mut stages);
        Ok(self.head(hidden, mode, &mut stages))
    }

    fn upstream_outputs(&self) -> Vec<UpstreamOutput> {
        let stage = |i: usize| match i {
            0 => "embeddings".into(),
            i => format!("layers.{}", i - 1),
        };
        let mut outputs = self
            .config
            .head
            .outputs(self.config.num_hidden_layers, stage);
        if self.config.head == TextHead::None && self.pooler.is_some() {
            outputs.push(UpstreamOutput {
                name: "pooler_output".into(),
                stage: "pooler".into(),
                rank: 2,
                primary: false,
            });
        }
        outputs
    }
}
