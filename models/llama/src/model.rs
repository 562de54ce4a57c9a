use crate::config::{LlamaConfig, Variant};
use burn::module::Module;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{
    Argument, Arguments, Flat, Mode, Network, Result, Stages, UpstreamOutput, record, seeded,
};
use burn_zoo_nn::{
    AttentionContext, CausalLm, DecoderHead, Embedding, Init, KeyValueCache, LayerCache, Linear,
    Matrix, RmsNorm, SelfAttention, SelfAttentionOptions, TextHead, TokenBatch,
};
use burn_zoo_ops::Activation;

/// `down(act(gate(x)) · up(x))` (Shazeer 2020, SwiGLU).
#[derive(Module, Debug)]
pub struct Mlp<B: Backend> {
    gate_proj: Linear<B>,
    up_proj: Linear<B>,
    down_proj: Linear<B>,
    #[module(skip)]
    hidden_act: Activation,
}

impl<B: Backend> Mlp<B> {
    fn new(config: &LlamaConfig, init: &mut Init<B>) -> Self {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let mut project = |input, output| {
            Linear::normal(init, input, output, config.initializer_range).with_bias(config.mlp_bias)
        };
        Self {
            gate_proj: project(hidden, inner),
            up_proj: project(hidden, inner),
            down_proj: project(inner, hidden),
            hidden_act: config.hidden_act,
        }
    }

    fn forward(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        let ways = [&self.gate_proj, &self.up_proj];
        let [gate, up] = seeded("gate and up swapped", ways, |[gate, up]| [up, gate]);
        let gate = self.hidden_act.forward(gate.forward(x.clone()));
        self.down_proj.forward(gate * up.forward(x))
    }
}

/// Attention and feed-forward, each added to what was normed for it.
#[derive(Module, Debug)]
pub struct Layer<B: Backend> {
    input_layernorm: RmsNorm<B>,
    self_attn: SelfAttention<B>,
    post_attention_layernorm: RmsNorm<B>,
    mlp: Mlp<B>,
}

impl<B: Backend> Layer<B> {
    fn new(config: &LlamaConfig, init: &mut Init<B>) -> Self {
        let norm = |init: &Init<B>| RmsNorm::new(init, config.hidden_size, config.rms_norm_eps);
        let options = SelfAttentionOptions {
            hidden_size: config.hidden_size,
            num_heads: config.num_attention_heads,
            num_key_value_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            scale: (config.head_dim as f64).powf(-0.5),
            dropout: config.attention_dropout,
            std: config.initializer_range,
            output_std: config.initializer_range,
            bias: config.attention_bias,
            output_bias: config.attention_bias && config.variant != Variant::Qwen2,
            norm_eps: (config.variant == Variant::Qwen3).then_some(config.rms_norm_eps),
        };
        Self {
            input_layernorm: norm(init),
            self_attn: SelfAttention::new(init, options),
            post_attention_layernorm: norm(init),
            mlp: Mlp::new(config, init),
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
        let normed = self.input_layernorm.forward(x.clone());
        let mixed = self.self_attn.forward(normed, context, cache, mode);
        let x = x + mixed.clone();
        let normed = self.post_attention_layernorm.forward(x.clone());
        [mixed, x + self.mlp.forward(normed)]
    }
}

/// A decoder of the Llama class.
///
/// Stages for verification: `embeddings`, of each layer `layers.{i}.attention` and `layers.{i}`, `norm`.
#[derive(Module, Debug)]
pub struct Llama<B: Backend> {
    embed_tokens: Embedding<B>,
    layers: Vec<Layer<B>>,
    norm: RmsNorm<B>,
    /// The head, unless it is the embedding's matrix.
    lm_head: Option<Linear<B>>,
    /// The head that tells classes apart.
    score: Option<Linear<B>>,
    #[module(skip)]
    pub(crate) config: LlamaConfig,
}

impl<B: Backend> Llama<B> {
    /// A decoder with random weights.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub fn new(config: &LlamaConfig, seed: u64, device: &B::Device) -> Result<Self> {
        Self::init(config, &mut Init::new(seed, device))
    }

    /// A decoder with weights from `init`.
    ///
    /// # Errors
    /// If the configuration makes no network.
    pub(crate) fn init(config: &LlamaConfig, init: &mut Init<B>) -> Result<Self> {
        config.validate()?;
        let (vocab, hidden, std) = (
            config.vocab_size,
            config.hidden_size,
            config.initializer_range,
        );
        let embed_tokens = Embedding::new(init, vocab, hidden, std);
        let layers = (0..config.num_hidden_layers).map(|_| Layer::new(config, init));
        let layers = layers.collect();
        let mut head = |outputs, bias| Linear::normal(init, hidden, outputs, std).with_bias(bias);
        let own_head = config.head == TextHead::CausalLm && !config.tie_word_embeddings;
        Ok(Self {
            embed_tokens: embed_tokens.with_padding_idx(config.pad_token_id),
            layers,
            lm_head: own_head.then(|| head(vocab, false)),
            score: config
                .head
                .decoder_classes(config.num_labels)
                .map(|(outputs, bias)| head(outputs, bias)),
            norm: RmsNorm::new(init, hidden, config.rms_norm_eps),
            config: config.clone(),
        })
    }

    /// Logits of every token's successor in evaluation mode: `[batch, sequence, vocab_size]`.
    pub fn forward(&self, batch: &TokenBatch<B>) -> Tensor<B, 3> {
        self.logits(batch, Mode::Eval)
    }
}

impl<B: Backend> CausalLm<B> for Llama<B> {
    fn hidden_states(
        &self,
        batch: &TokenBatch<B>,
        mut cache: Option<&mut KeyValueCache<B>>,
        mode: Mode,
        stages: &mut Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 3> {
        let [_, sequence] = batch.input_ids.dims();
        let mut x = self.embed_tokens.forward(batch.input_ids.clone());
        record(stages, || "embeddings".into(), &x);
        let (device, dtype) = (x.device(), x.dtype());
        let past = cache.as_ref().map_or(0, |cache| cache.seen);
        let positions = batch.positions(past);
        let rope = &self.config.rope;
        let rotary = rope.table(&positions, self.config.head_dim, dtype, &device);
        // One mask for the layers that see all, and one for those that see a window.
        let [full, sliding] = [None, self.config.sliding_window].map(|window| AttentionContext {
            mask: batch.causal_mask(window, cache.as_deref()),
            rotary: Some(rotary.clone()),
        });
        for (i, layer) in self.layers.iter().enumerate() {
            let context = match self.config.window(i) {
                Some(_) => &sliding,
                None => &full,
            };
            let cache = cache.as_mut().and_then(|cache| cache.layers.get_mut(i));
            let [mixed, output] = layer.forward(x, context, cache, mode);
            record(stages, || format!("layers.{i}.attention"), &mixed);
            record(stages, || format!("layers.{i}"), &output);
            x = output;
        }
        if let Some(cache) = cache {
            cache.seen += sequence;
        }
        let x = self.norm.forward(x);
        record(stages, || "norm".into(), &x);
        x
    }

    fn head(&self, hidden: Tensor<B, 3>) -> Tensor<B, 3> {
        match &self.lm_head {
            Some(head) => head.forward(hidden),
            None => self.embed_tokens.project(hidden),
        }
    }

    fn matrices(&mut self) -> Vec<Matrix<'_, B>> {
        let mut all = vec![self.embed_tokens.matrix()];
        for Layer { self_attn, mlp, .. } in &mut self.layers {
            all.extend(self_attn.matrices());
            let mlp = [&mut mlp.gate_proj, &mut mlp.up_proj, &mut mlp.down_proj];
            all.extend(mlp.map(Linear::matrix));
        }
        all.extend(self.lm_head.as_mut().map(Linear::matrix));
        all
    }

    fn cache(&self, capacity: usize) -> KeyValueCache<B> {
        let layers = 0..self.config.num_hidden_layers;
        KeyValueCache::new(layers.map(|i| self.config.window(i)), capacity)
    }

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn max_positions(&self) -> usize {
        self.config.max_position_embeddings
    }
}

impl<B: Backend> Network<B> for Llama<B> {
    fn arguments(&self) -> Vec<Argument> {
        vec![
            Argument::tokens("input_ids", self.config.vocab_size),
            Argument::tokens("attention_mask", 2),
            Argument::tokens("position_ids", 1 << 30),
        ]
    }

    fn run(
        &self,
        arguments: &Arguments<B>,
        mode: Mode,
        mut stages: Option<&mut dyn Stages<B>>,
    ) -> Result<Flat<B>> {
        let batch = TokenBatch::read(arguments)?;
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
        self.config
            .head
            .outputs(self.config.num_hidden_layers, |i| match i {
                0 => "embeddings".into(),
                i if i == self.config.num_hidden_layers => "norm".into(),
                i => format!("layers.{}", i - 1),
            })
    }
}
