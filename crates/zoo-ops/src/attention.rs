use crate::counter;
use crate::norm::{narrow, wide};
use crate::quotient::softmax;
use burn::tensor::{Bool, DType, Int, Tensor, backend::Backend};
use burn_zoo_core::seeded;
use std::cell::OnceCell;

/// Which keys a query may look at.
#[derive(Clone, Debug)]
pub struct MaskOptions<B: Backend> {
    /// No key after the query.
    pub causal: bool,
    /// With `causal`: no key that is this far before the query, or farther (Mistral's sliding window).
    pub window: Option<usize>,
    /// Keys from before the first query, as a cache holds.
    pub past: usize,
    /// `[batch, keys]`: 0 where a key is padding.
    pub attention_mask: Option<Tensor<B, 2, Int>>,
}

/// Which keys a query may look at, for the layers that share it: as numbers, and as a tensor once one of them
/// needs that.
#[derive(Clone, Debug)]
pub struct AttentionMask<B: Backend> {
    options: MaskOptions<B>,
    /// The least distance to a key that is seen.
    least: i64,
    added: OnceCell<Option<Tensor<B, 4>>>,
}

impl<B: Backend> AttentionMask<B> {
    /// A mask with these options.
    pub fn new(options: MaskOptions<B>) -> Self {
        let hide = |window: usize| seeded("a window one wider", window, |window| window + 1);
        let padding = seeded("padding that is seen", options.attention_mask, |_| None);
        Self {
            least: seeded("a causal mask that shows the next token", 0, |_| -1),
            options: MaskOptions {
                window: options.window.filter(|_| options.causal).map(hide),
                attention_mask: padding,
                ..options
            },
            added: OnceCell::new(),
        }
    }

    /// What is added to the scores of so many queries: 0 where a key may be seen, the least number of
    /// `dtype` elsewhere, f32's for half types. None where every query sees every key. Later calls give what
    /// the first one made.
    ///
    /// Added, not filled in, as transformers' eager attention does: a query that may see nothing looks at
    /// everything alike, and the gradient of its scores is not cut.
    ///
    /// # Shapes
    /// - result: `[batch or 1, 1, queries, keys]`
    pub fn added(&self, queries: usize, dtype: DType, device: &B::Device) -> Option<Tensor<B, 4>> {
        let make = || self.make(queries, dtype, device);
        self.added.get_or_init(make).clone()
    }

    fn make(&self, queries: usize, dtype: DType, device: &B::Device) -> Option<Tensor<B, 4>> {
        let MaskOptions {
            causal,
            window,
            past,
            ref attention_mask,
        } = self.options;
        let keys = past + queries;
        let mut hidden: Option<Tensor<B, 4, Bool>> = None;
        if causal && (queries > 1 || window.is_some_and(|window| window < keys)) {
            let range = |from: usize, to: usize| {
                Tensor::<B, 1, Int>::arange(from as i64..to as i64, device)
            };
            let distance = range(past, keys)
                .reshape([queries, 1])
                .expand([queries, keys])
                - range(0, keys).reshape([1, keys]).expand([queries, keys]);
            let mut outside = distance.clone().lower_elem(self.least);
            if let Some(window) = window {
                outside = outside.bool_or(distance.greater_equal_elem(window as i64));
            }
            hidden = Some(outside.reshape([1, 1, queries, keys]));
        }
        if let Some(mask) = attention_mask {
            let [batch, _] = mask.dims();
            let shape = [batch, 1, queries, keys];
            let padding = mask
                .clone()
                .equal_elem(0)
                .reshape([batch, 1, 1, keys])
                .expand(shape);
            hidden = Some(match hidden {
                Some(outside) => padding.bool_or(outside.expand(shape)),
                None => padding,
            });
        }
        hidden.map(|hidden| {
            let (dtype, least) = match dtype {
                DType::F64 => (dtype, f64::MIN),
                _ => (DType::F32, f64::from(f32::MIN)),
            };
            Tensor::zeros(hidden.dims(), (device, dtype)).mask_fill(hidden, least)
        })
    }
}

#[cfg(feature = "flex")]
impl<B: Backend> AttentionMask<B> {
    /// How many keys after its own a query sees; None if all.
    pub(crate) fn ahead(&self) -> Option<usize> {
        self.options
            .causal
            .then_some(self.least.unsigned_abs() as usize)
    }

    pub(crate) fn window(&self) -> Option<usize> {
        self.options.window
    }

    pub(crate) fn past(&self) -> usize {
        self.options.past
    }

    pub(crate) fn attention_mask(&self) -> Option<&Tensor<B, 2, Int>> {
        self.options.attention_mask.as_ref()
    }
}

/// Scaled dot-product attention, `softmax(q kᵀ · scale + mask) v` (Vaswani et al. 2017, equation 1).
/// Each group of `heads / key_value_heads` queries shares a key and a value head (Ainslie et al. 2023).
///
/// Half types compute the weights of the values in f32; `dropout` is applied to them. Where there is none, the
/// fast path holds no matrix of all scores.
///
/// # Shapes
/// - query: `[batch, heads, queries, head_dim]`
/// - key, value: `[batch, key_value_heads, keys, head_dim]`, with as many keys as the mask's past and queries
/// - result: `[batch, heads, queries, head_dim]`
pub fn attention<B: Backend>(
    query: Tensor<B, 4>,
    key: Tensor<B, 4>,
    value: Tensor<B, 4>,
    mask: &AttentionMask<B>,
    scale: f64,
    dropout: Option<&dyn Fn(Tensor<B, 4>) -> Tensor<B, 4>>,
) -> Tensor<B, 4> {
    let [batch, heads, queries, head_dim] = query.dims();
    let [_, shared, keys, _] = key.dims();
    counter::add_flops(4 * (batch * heads * queries * keys * head_dim) as u64);
    let scale = seeded("attention without its scale", scale, |_| 1.0);
    let group = heads / shared;
    let query = seeded("query heads of another group", query, |query| {
        let split = query.reshape([batch, group, shared, queries * head_dim]);
        split
            .swap_dims(1, 2)
            .reshape([batch, heads, queries, head_dim])
    });
    #[cfg(feature = "flex")]
    if dropout.is_none()
        && let Some(y) = crate::flex::attention(&query, &key, &value, mask, scale)
    {
        return y;
    }
    counter::took_generic_path();
    let mask = mask.added(queries, query.dtype(), &query.device());
    // The queries of a group lie one after the other, so that keys and values are not repeated.
    let query = query.reshape([batch, shared, group * queries, head_dim]);
    let scores = query.matmul(key.swap_dims(2, 3)) * scale;
    let dtype = scores.dtype();
    let mut scores = wide(scores);
    if let Some(mask) = mask {
        scores = scores + mask.repeat_dim(2, group);
    }
    let mut weights = narrow(softmax(scores, 3), dtype);
    if let Some(dropout) = dropout {
        weights = dropout(weights);
    }
    weights
        .matmul(value)
        .reshape([batch, heads, queries, head_dim])
}

/// Turns each pair of numbers `(x[i], x[i + head_dim / 2])` by its angle: rotary positions in the order
/// that transformers' checkpoints have (Su et al. 2021, equation 34; `apply_rotary_pos_emb`).
///
/// # Shapes
/// - x, result: `[batch, heads, sequence, head_dim]`
/// - cos, sin: `[batch or 1, 1, sequence, head_dim / 2]`
pub fn rotate<B: Backend>(x: Tensor<B, 4>, cos: &Tensor<B, 4>, sin: &Tensor<B, 4>) -> Tensor<B, 4> {
    let half = x.dims()[3] / 2;
    let [a, b]: [Tensor<B, 4>; 2] = seeded(
        "rotary positions of neighbours",
        [
            x.clone().narrow(3, 0, half),
            x.clone().narrow(3, half, half),
        ],
        |_| {
            let pairs = |at: usize| {
                let [batch, heads, sequence, _] = x.dims();
                let pairs = x.clone().reshape([batch, heads, sequence, half, 2]);
                let one = pairs.narrow(4, at, 1);
                one.reshape([batch, heads, sequence, half])
            };
            [pairs(0), pairs(1)]
        },
    );
    let turned = a.clone() * cos.clone() - b.clone() * sin.clone();
    let other = b * cos.clone() + a * sin.clone();
    Tensor::cat(vec![turned, other], 3)
}
