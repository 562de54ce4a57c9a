use crate::counter;
use crate::norm::{narrow, wide};
use crate::quotient::softmax;
use burn::tensor::{Bool, DType, Int, Tensor, backend::Backend};
use burn_zoo_core::seeded;

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

impl<B: Backend> MaskOptions<B> {
    /// What is added to the scores of so many queries: 0 where a key may be seen, the least number of
    /// `dtype` elsewhere, f32's for half types. None where every query sees every key.
    ///
    /// Added, not filled in, as transformers' eager attention does: a query that may see nothing looks at
    /// everything alike, and the gradient of its scores is not cut.
    ///
    /// # Shapes
    /// - result: `[batch or 1, 1, queries, keys]`
    pub fn mask(&self, queries: usize, dtype: DType, device: &B::Device) -> Option<Tensor<B, 4>> {
        let keys = self.past + queries;
        let mut hidden: Option<Tensor<B, 4, Bool>> = None;
        if self.causal && (queries > 1 || self.window.is_some_and(|window| window < keys)) {
            let range = |from: usize, to: usize| {
                Tensor::<B, 1, Int>::arange(from as i64..to as i64, device)
            };
            let distance = range(self.past, keys)
                .reshape([queries, 1])
                .expand([queries, keys])
                - range(0, keys).reshape([1, keys]).expand([queries, keys]);
            let least = seeded("a causal mask that shows the next token", 0, |_| -1);
            let mut outside = distance.clone().lower_elem(least);
            if let Some(window) = self.window {
                let window = seeded("a window one wider", window, |window| window + 1);
                outside = outside.bool_or(distance.greater_equal_elem(window as i64));
            }
            hidden = Some(outside.reshape([1, 1, queries, keys]));
        }
        let padding = seeded("padding that is seen", self.attention_mask.clone(), |_| {
            None
        });
        if let Some(mask) = padding {
            let [batch, _] = mask.dims();
            let shape = [batch, 1, queries, keys];
            let padding = mask
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

/// Scaled dot-product attention, `softmax(q kᵀ · scale + mask) v` (Vaswani et al. 2017, equation 1).
/// Each group of `heads / key_value_heads` queries shares a key and a value head (Ainslie et al. 2023).
///
/// Half types compute the weights of the values in f32; `dropout` is applied to them.
///
/// # Shapes
/// - query: `[batch, heads, queries, head_dim]`
/// - key, value: `[batch, key_value_heads, keys, head_dim]`
/// - mask: `[batch or 1, 1, queries, keys]`
/// - result: `[batch, heads, queries, head_dim]`
pub fn attention<B: Backend>(
    query: Tensor<B, 4>,
    key: Tensor<B, 4>,
    value: Tensor<B, 4>,
    mask: Option<&Tensor<B, 4>>,
    scale: f64,
    dropout: impl FnOnce(Tensor<B, 4>) -> Tensor<B, 4>,
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
    // The queries of a group lie one after the other, so that keys and values are not repeated.
    let query = query.reshape([batch, shared, group * queries, head_dim]);
    let scores = query.matmul(key.swap_dims(2, 3)) * scale;
    let dtype = scores.dtype();
    let mut scores = wide(scores);
    if let Some(mask) = mask {
        scores = scores + mask.clone().repeat_dim(2, group);
    }
    let weights = narrow(softmax(scores, 3), dtype);
    let mixed = dropout(weights).matmul(value);
    mixed.reshape([batch, heads, queries, head_dim])
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
