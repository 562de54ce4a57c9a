use crate::{KeyValueCache, Matrix};
use burn::tensor::{Int, Tensor, TensorData, backend::Backend};
use burn_zoo_core::{Arguments, Error, Mode, Network, Result, Stages, seeded};
use burn_zoo_ops::{AttentionMask, MaskOptions};
use std::collections::BTreeMap;

/// Token numbers of some sequences, and where they stand.
#[derive(Clone, Debug)]
pub struct TokenBatch<B: Backend> {
    /// `[batch, sequence]`
    pub input_ids: Tensor<B, 2, Int>,
    /// `[batch, tokens of the cache + sequence]`: 0 where a token is padding.
    pub attention_mask: Option<Tensor<B, 2, Int>>,
    /// Positions of the tokens, a row for each sequence or one for all; without, they count from the first
    /// token of the cache.
    pub positions: Option<Vec<Vec<usize>>>,
}

impl<B: Backend> TokenBatch<B> {
    /// Sequences without padding.
    pub fn new(input_ids: Tensor<B, 2, Int>) -> Self {
        Self {
            input_ids,
            attention_mask: None,
            positions: None,
        }
    }

    /// From `input_ids`, `attention_mask` and `position_ids` of a forward pass.
    ///
    /// # Errors
    /// If their sizes do not fit together.
    pub fn read(arguments: &Arguments<B>) -> Result<Self> {
        let Some(input_ids) = arguments.tokens("input_ids") else {
            return Err(Error::usage("input_ids", "is needed"));
        };
        let [batch, sequence] = input_ids.dims();
        for name in ["attention_mask", "token_type_ids", "position_ids"] {
            let Some(data) = arguments.ints(name) else {
                continue;
            };
            // Positions may be the same for all sequences.
            let fits = data.shape[1] == sequence
                && (data.shape[0] == batch || (data.shape[0] == 1 && name == "position_ids"));
            if !fits {
                let message = format!(
                    "has shape {:?}, `input_ids` has [{batch}, {sequence}]",
                    &data.shape[..]
                );
                return Err(Error::usage(name, message));
            }
        }
        let positions = arguments.ints("position_ids").map(|data| {
            let all: Vec<usize> = data.iter::<i64>().map(|n| n as usize).collect();
            all.chunks(sequence).map(<[usize]>::to_vec).collect()
        });
        Ok(Self {
            input_ids,
            attention_mask: arguments.tokens("attention_mask"),
            positions,
        })
    }

    /// Where the tokens stand, after so many of a cache.
    pub fn positions(&self, past: usize) -> Vec<Vec<usize>> {
        match &self.positions {
            Some(positions) => positions.clone(),
            None => {
                let past = seeded("positions that begin anew after the cache", past, |_| 0);
                let [_, sequence] = self.input_ids.dims();
                vec![(past..past + sequence).collect()]
            }
        }
    }

    /// The mask of layers with this window, in a decoder.
    pub fn causal_mask(
        &self,
        window: Option<usize>,
        cache: Option<&KeyValueCache<B>>,
    ) -> AttentionMask<B> {
        let [_, sequence] = self.input_ids.dims();
        let past = cache.map_or(0, |cache| cache.held(window));
        let keys = past + sequence;
        let last = |mask: &Tensor<B, 2, Int>| {
            let [_, all] = mask.dims();
            mask.clone().narrow(1, all - keys, keys)
        };
        AttentionMask::new(MaskOptions {
            causal: true,
            window,
            past,
            attention_mask: self.attention_mask.as_ref().map(last),
        })
    }
}

/// A row of positions, or one for each sequence, as a tensor: `[rows, sequence]`.
pub fn position_ids<B: Backend>(positions: &[Vec<usize>], device: &B::Device) -> Tensor<B, 2, Int> {
    let sequence = positions.first().map_or(0, Vec::len);
    let all: Vec<i64> = positions.iter().flatten().map(|n| *n as i64).collect();
    let flat = Tensor::<B, 1, Int>::from_data(all.as_slice(), device);
    flat.reshape([positions.len(), sequence])
}

/// `input_ids` and `attention_mask` of rows of token numbers, shorter ones padded with `pad` on the right.
pub fn pad_right(rows: &[&[usize]], pad: usize) -> BTreeMap<String, TensorData> {
    let longest = rows.iter().map(|row| row.len()).max().unwrap_or_default();
    let (mut ids, mut mask) = (Vec::new(), Vec::new());
    for row in rows {
        ids.extend(row.iter().map(|id| *id as i64));
        ids.resize(ids.len() + longest - row.len(), pad as i64);
        mask.extend((0..longest).map(|i| i64::from(i < row.len())));
    }
    let shape = [rows.len(), longest];
    BTreeMap::from([
        ("input_ids".into(), TensorData::new(ids, shape)),
        ("attention_mask".into(), TensorData::new(mask, shape)),
    ])
}

/// The row of `x` `[batch, sequence, features]` at one place in each sequence: `[batch, features]`.
pub fn rows_at<B: Backend>(x: Tensor<B, 3>, places: &[usize]) -> Tensor<B, 2> {
    let [batch, sequence, features] = x.dims();
    let flat = places
        .iter()
        .enumerate()
        .map(|(i, place)| (i * sequence + place) as i64);
    let flat: Vec<i64> = flat.collect();
    let flat = Tensor::<B, 1, Int>::from_data(flat.as_slice(), &x.device());
    x.reshape([batch * sequence, features]).select(0, flat)
}

/// The place of the last token of each sequence that is no padding: what transformers'
/// `GenericForSequenceClassification` looks at.
///
/// # Errors
/// If there are several sequences and it is not known which token is padding.
pub fn last_tokens<B: Backend>(
    arguments: &Arguments<B>,
    pad_token_id: Option<usize>,
) -> Result<Vec<usize>> {
    let Some(ids) = arguments.ints("input_ids") else {
        return Err(Error::usage("input_ids", "is needed"));
    };
    let (batch, sequence) = (ids.shape[0], ids.shape[1]);
    let Some(pad) = pad_token_id else {
        return match batch {
            1 => Ok(vec![sequence - 1]),
            _ => Err(Error::usage(
                "pad_token_id",
                "is needed in config.json to classify several sequences at once",
            )),
        };
    };
    let all: Vec<i64> = ids.iter::<i64>().collect();
    let last = |row: &[i64]| row.iter().rposition(|id| *id != pad as i64).unwrap_or(0);
    Ok(all.chunks(sequence).map(last).collect())
}

/// A decoder that continues text.
pub trait CausalLm<B: Backend>: Network<B> {
    /// What goes into the head: `[batch, sequence, hidden_size]`. With a cache, the sequence follows what it
    /// holds, and is added to it.
    fn hidden_states(
        &self,
        batch: &TokenBatch<B>,
        cache: Option<&mut KeyValueCache<B>>,
        mode: Mode,
        stages: &mut Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 3>;

    /// `[batch, sequence, hidden_size]` to the logits of the next token, `[batch, sequence, vocab_size]`.
    fn head(&self, hidden: Tensor<B, 3>) -> Tensor<B, 3>;

    /// An empty cache with room for `capacity` tokens.
    fn cache(&self, capacity: usize) -> KeyValueCache<B>;

    /// The matrices that may stay packed: those of which nothing but products and rows is needed.
    fn matrices(&mut self) -> Vec<Matrix<'_, B>> {
        Vec::new()
    }

    /// Tokens that are known.
    fn vocab_size(&self) -> usize;

    /// Tokens of the longest sequence it was made for.
    fn max_positions(&self) -> usize;

    /// Logits of every token's successor: `[batch, sequence, vocab_size]`.
    fn logits(&self, batch: &TokenBatch<B>, mode: Mode) -> Tensor<B, 3> {
        self.head(self.hidden_states(batch, None, mode, &mut None))
    }
}
