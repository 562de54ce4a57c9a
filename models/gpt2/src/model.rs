use crate::config::Gpt2Config;
use burn::module::Module;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{
    Argument, Arguments, Error, Flat, Mode, Network, Result, Stages, UpstreamOutput, record, seeded,
};
use burn_zoo_nn::{
    AttentionContext, CausalLm, DecoderHead, Embedding, Init, KeyValueCache, LayerCache, LayerNorm,
    Linear, SelfAttention, SelfAttentionOptions, TextHead, TokenBatch, dropout, position_ids,
};
use burn_zoo_ops::Activation;

/// Two matrices with an activation between them.
#[derive(Module, Debug)]
pub struct Mlp<B: Backend> {
    c_fc: Linear<B>,
    c_proj: Linear<B>,
    #[module(skip)]
    activation_function: Activation,
}

impl<B: Backend> Mlp<B> {
    fn forward(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        let x = self.activation_function.forward(self.c_fc.forward(x));
        self.c_proj.forward(x)
    }
}

/// Attention and feed-forward, each added to what was normed for it.
#[derive(Module, Debug)]
pub struct Block<B: Backend> {
    ln_1: LayerNorm<B>,
    attn: SelfAttention<B>,
    ln_2: LayerNorm<B>,
    mlp: Mlp<B>,
    resid_pdrop: f64,
}

impl<B: Backend> Block<B> {
    fn new(config: &Gpt2Config, index: usize, init: &mut Init<B>) -> Self {
        let (hidden, std) = (config.n_embd, config.initializer_range);
        let head_dim = hidden / config.n_head;
        let mut scale = match config.scale_attn_weights {
            true => (head_dim as f64).powf(-0.5),
            false => 1.0,
        };
        if config.scale_attn_by_inverse_layer_idx {
            scale /= (index + 1) as f64;
        }
        // What is added to the sum of all layers starts smaller (Radford et al. 2019, section 2.3).
        let added = std / ((2 * config.n_layer) as f64).sqrt();
        let options = SelfAttentionOptions {
            hidden_size: hidden,
            num_heads: config.n_head,
            num_key_value_heads: config.n_head,
            head_dim,
            scale,
            dropout: config.attn_pdrop,
            std,
            output_std: added,
            bias: true,
            output_bias: true,
            norm_eps: None,
        };
        let norm = |init: &Init<B>| LayerNorm::new(init, hidden, config.layer_norm_epsilon);
        Self {
            ln_1: norm(init),
            attn: SelfAttention::new(init, options),
            ln_2: norm(init),
            mlp: Mlp {
                c_fc: Linear::normal(init, hidden, config.n_inner, std),
                c_proj: Linear::normal(init, config.n_inner, hidden, added),
                activation_function: config.activation_function,
            },
            resid_pdrop: config.resid_pdrop,
        }
    }

    /// Also gives the attention's output.
    fn forward(
        &self,
        x: Tensor<B, 3>,
        context: &AttentionContext<B>,
        cache: Option<&mut LayerCache<B>>,
        mode: Mode,
    ) -> [Tensor<B, 3>; 2] {
        let mixed = self
            .attn
            .forward(self.ln_1.forward(x.clone()), context, cache, mode);
        let x = x + dropout(mixed.clone(), self.resid_pdrop, mode);
        let fed = self.mlp.forward(self.ln_2.forward(x.clone()));
        [mixed, x + dropout(fed, self.resid_pdrop, mode)]
    }
}

/// GPT-2: a decoder with learned positions.
///
/// Stages for verification: `embeddings`, of each layer `h.{i}.attn` and `h.{i}`, `ln_f`.
#[derive(Module, Debug)]
pub struct Gpt2<B: Backend> {
    wte: Embedding<B>,
    wpe: Embedding<B>,
    h: Vec<Block<B>>,
    ln_f: LayerNorm<B>,
    /// The head, unless it is the embedding's matrix.
    lm_head: Option<Linear<B>>,
    /// The head that tells classes apart.
    score: Option<Linear<B>>,
    #[module(skip)]
    pub(crate) config: Gpt2Config,
}

impl<B: Backend> Gpt2<B> {
    /// A decoder with random weights.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub fn new(config: &Gpt2Config, seed: u64, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    /// A decoder with weights from `init`.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub(crate) fn init(config: &Gpt2Config, init: &mut Init<B>) -> Result<Self> {
        config.validate()?;
        let (hidden, std) = (config.n_embd, config.initializer_range);
        let wte = Embedding::new(init, config.vocab_size, hidden, std);
        let wpe = Embedding::new(init, config.n_positions, hidden, std);
        let h = (0..config.n_layer)
            .map(|i| Block::new(config, i, init))
            .collect();
        let mut head = |outputs, bias| Linear::normal(init, hidden, outputs, std).with_bias(bias);
        let own_head = config.head == TextHead::CausalLm && !config.tie_word_embeddings;
        Ok(Self {
            wte,
            wpe,
            h,
            lm_head: own_head.then(|| head(config.vocab_size, false)),
            score: config
                .head
                .decoder_classes(config.num_labels)
                .map(|(outputs, bias)| head(outputs, bias)),
            ln_f: LayerNorm::new(init, hidden, config.layer_norm_epsilon),
            config: config.clone(),
        })
    }

    /// Logits of every token's successor in evaluation mode: `[batch, sequence, vocab_size]`.
    pub fn forward(&self, batch: &TokenBatch<B>) -> Tensor<B, 3> {
        self.logits(batch, Mode::Eval)
    }
}

impl<B: Backend> CausalLm<B> for Gpt2<B> {
    fn hidden_states(
        &self,
        batch: &TokenBatch<B>,
        mut cache: Option<&mut KeyValueCache<B>>,
        mode: Mode,
        stages: &mut Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 3> {
        let [_, sequence] = batch.input_ids.dims();
        let device = batch.input_ids.device();
        let past = cache.as_ref().map_or(0, |cache| cache.seen);
        let positions = seeded("learned positions from 1", batch.positions(past), |rows| {
            let next = |n: usize| (n + 1) % self.config.n_positions;
            rows.into_iter()
                .map(|row| row.into_iter().map(next).collect())
                .collect()
        });
        let positions = self.wpe.forward(position_ids(&positions, &device));
        let x = self.wte.forward(batch.input_ids.clone()) + positions;
        record(stages, || "embeddings".into(), &x);
        let mut x = dropout(x, self.config.embd_pdrop, mode);
        let context = AttentionContext {
            mask: batch.causal_mask(None, cache.as_deref()),
            rotary: None,
        };
        for (i, block) in self.h.iter().enumerate() {
            let cache = cache.as_mut().and_then(|cache| cache.layers.get_mut(i));
            let [mixed, output] = block.forward(x, &context, cache, mode);
            record(stages, || format!("h.{i}.attn"), &mixed);
            record(stages, || format!("h.{i}"), &output);
            x = output;
        }
        if let Some(cache) = cache {
            cache.seen += sequence;
        }
        let x = self.ln_f.forward(x);
        record(stages, || "ln_f".into(), &x);
        x
    }

    fn head(&self, hidden: Tensor<B, 3>) -> Tensor<B, 3> {
        match &self.lm_head {
            Some(head) => head.forward(hidden),
            None => self.wte.project(hidden),
        }
    }

    fn cache(&self, capacity: usize) -> KeyValueCache<B> {
        KeyValueCache::new((0..self.config.n_layer).map(|_| None), capacity)
    }

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn max_positions(&self) -> usize {
        self.config.n_positions
    }
}

impl<B: Backend> Network<B> for Gpt2<B> {
    fn arguments(&self) -> Vec<Argument> {
        vec![
            Argument::tokens("input_ids", self.config.vocab_size),
            Argument::tokens("attention_mask", 2),
            Argument::tokens("position_ids", self.config.n_positions),
        ]
    }

    fn run(
        &self,
        arguments: &Arguments<B>,
        mode: Mode,
        mut stages: Option<&mut dyn Stages<B>>,
    ) -> Result<Flat<B>> {
        let batch = TokenBatch::read(arguments)?;
        let [_, sequence] = batch.input_ids.dims();
        if sequence > self.config.n_positions {
            let message = format!(
                "has {sequence} tokens, the model takes {}",
                self.config.n_positions
            );
            return Err(Error::usage("input_ids", message));
        }
        let hidden = self.hidden_states(&batch, None, mode, &mut stages);
        let head = DecoderHead {
            head: self.config.head,
            score: self.score.as_ref(),
            pad_token_id: self.config.pad_token_id,
            dropout: self.config.classifier_dropout,
        };
        head.forward(self, hidden, arguments, mode, &mut stages)
    }

    fn upstream_outputs(&self) -> Vec<UpstreamOutput> {
        self.config.head.outputs(self.config.n_layer, |i| match i {
            0 => "embeddings".into(),
            i if i == self.config.n_layer => "ln_f".into(),
            i => format!("h.{}", i - 1),
        })
    }
}
