use crate::{Init, LayerCache, Linear, Matrix, RmsNorm, dropout};
use burn::module::Module;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{Mode, seeded};
use burn_zoo_ops::{AttentionMask, attention, rotate};

/// The sizes of a [`SelfAttention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfAttentionOptions {
    /// Size of a token.
    pub hidden_size: usize,
    /// Heads of the queries.
    pub num_heads: usize,
    /// Heads of keys and values, a divisor of `num_heads`.
    pub num_key_value_heads: usize,
    /// Size of a head.
    pub head_dim: usize,
    /// What scores are multiplied with, usually `1 / sqrt(head_dim)`.
    pub scale: f64,
    /// Probability that the weight of a value is dropped in training.
    pub dropout: f64,
    /// Standard deviation of the initial weights.
    pub std: f64,
    /// That of the output's.
    pub output_std: f64,
    /// Whether queries, keys and values have biases.
    pub bias: bool,
    /// Whether the output has a bias.
    pub output_bias: bool,
    /// `eps` of norms over the heads of queries and keys, where there are any (Qwen3).
    pub norm_eps: Option<f64>,
}

/// What all layers of a forward pass share.
#[derive(Clone, Debug)]
pub struct AttentionContext<B: Backend> {
    /// Which keys a query may look at.
    pub mask: AttentionMask<B>,
    /// Cosine and sine of rotary positions: [`Rope::table`](crate::Rope::table).
    pub rotary: Option<[Tensor<B, 4>; 2]>,
}

/// Multi-head attention of a sequence to itself.
#[derive(Module, Debug)]
pub struct SelfAttention<B: Backend> {
    q_proj: Linear<B>,
    k_proj: Linear<B>,
    v_proj: Linear<B>,
    o_proj: Linear<B>,
    q_norm: Option<RmsNorm<B>>,
    k_norm: Option<RmsNorm<B>>,
    #[module(skip)]
    options: SelfAttentionOptions,
}

impl<B: Backend> SelfAttention<B> {
    /// Normal weights, biases of zeros.
    pub fn new(init: &mut Init<B>, options: SelfAttentionOptions) -> Self {
        let o = options;
        let mut project =
            |input, output, std, bias| Linear::normal(init, input, output, std).with_bias(bias);
        let (queries, shared) = (o.num_heads * o.head_dim, o.num_key_value_heads * o.head_dim);
        Self {
            q_proj: project(o.hidden_size, queries, o.std, o.bias),
            k_proj: project(o.hidden_size, shared, o.std, o.bias),
            v_proj: project(o.hidden_size, shared, o.std, o.bias),
            o_proj: project(queries, o.hidden_size, o.output_std, o.output_bias),
            q_norm: o.norm_eps.map(|eps| RmsNorm::new(init, o.head_dim, eps)),
            k_norm: o.norm_eps.map(|eps| RmsNorm::new(init, o.head_dim, eps)),
            options,
        }
    }

    /// Its matrices, which may stay packed.
    pub fn matrices(&mut self) -> [Matrix<'_, B>; 4] {
        [
            &mut self.q_proj,
            &mut self.k_proj,
            &mut self.v_proj,
            &mut self.o_proj,
        ]
        .map(Linear::matrix)
    }

    /// `[batch, sequence, hidden_size]` to the same shape. With a cache, the sequence follows what it holds.
    pub fn forward(
        &self,
        x: Tensor<B, 3>,
        context: &AttentionContext<B>,
        cache: Option<&mut LayerCache<B>>,
        mode: Mode,
    ) -> Tensor<B, 3> {
        let o = &self.options;
        let [batch, sequence, _] = x.dims();
        let heads = |x: Tensor<B, 3>, heads: usize, norm: &Option<RmsNorm<B>>| {
            let x = x.reshape([batch, sequence, heads, o.head_dim]);
            let x = match norm {
                Some(norm) => norm.forward(x),
                None => x,
            };
            x.swap_dims(1, 2)
        };
        let projections = seeded(
            "queries and keys swapped",
            [&self.q_proj, &self.k_proj],
            |[q, k]| match o.num_heads == o.num_key_value_heads {
                true => [k, q],
                false => [q, k],
            },
        );
        let mut query = heads(projections[0].forward(x.clone()), o.num_heads, &self.q_norm);
        let shared = o.num_key_value_heads;
        let mut key = heads(projections[1].forward(x.clone()), shared, &self.k_norm);
        let mut value = heads(self.v_proj.forward(x), shared, &None);
        if let Some([cos, sin]) = &context.rotary {
            query = rotate(query, cos, sin);
            key = rotate(key, cos, sin);
        }
        if let Some(cache) = cache {
            [key, value] = cache.update(key, value);
        }
        let dropped = |weights| dropout(weights, o.dropout, mode);
        let drops = mode == Mode::Train && o.dropout > 0.0;
        let dropped = drops.then_some(&dropped as &dyn Fn(_) -> _);
        let mixed = attention(query, key, value, &context.mask, o.scale, dropped);
        let mixed = mixed.swap_dims(1, 2);
        self.o_proj
            .forward(mixed.reshape([batch, sequence, o.num_heads * o.head_dim]))
    }
}
