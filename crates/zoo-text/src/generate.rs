use crate::{Sampler, Sampling};
use burn::tensor::{DType, Int, Tensor, TensorData, backend::Backend};
use burn_zoo_core::{Error, Mode, Result};
use burn_zoo_nn::{CausalLm, KeyValueCache, TokenBatch, position_ids};
use std::ops::ControlFlow;

/// How texts go on.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// Tokens that are added at most to each prompt.
    pub max_new_tokens: usize,
    /// How a token is chosen.
    pub sampling: Sampling,
    /// Tokens that end a text.
    pub stop_tokens: Vec<usize>,
    /// Where the context is full: forget its older half and go on, in place of an error before the start.
    pub slide: bool,
}

/// Why a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A token that ends texts.
    StopToken,
    /// So many tokens were asked for.
    Length,
    /// Whoever receives the tokens said so.
    Asked,
}

/// How one prompt went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The new tokens, without one that ended the text.
    pub tokens: Vec<usize>,
    /// Why it ended.
    pub reason: StopReason,
}

/// Continues prompts, all at once. `each(row, token)` receives every new token as it comes, and may end the
/// text of that prompt.
///
/// Prompts of different lengths are padded on the left, which changes nothing but rounding.
///
/// # Errors
/// If a prompt is empty, a token is unknown to the model, or a text would be longer than the model's context.
pub fn generate<B: Backend, M: CausalLm<B>>(
    model: &M,
    prompts: &[Vec<usize>],
    options: &GenerateOptions,
    device: &B::Device,
    mut each: impl FnMut(usize, usize) -> Result<ControlFlow<()>>,
) -> Result<Vec<Generated>> {
    options.sampling.validate()?;
    check(model, prompts, options)?;
    let rows = 0..prompts.len() as u64;
    let samplers = rows.map(|row| Sampler::new(options.sampling, row));
    let mut samplers = samplers.collect::<Result<Vec<_>>>()?;
    let mut texts = prompts.to_vec();
    let mut ended: Vec<Option<StopReason>> = vec![None; prompts.len()];
    let mut run = Run::<B, M>::new(model, options, device);
    for _ in 0..options.max_new_tokens {
        if ended.iter().all(Option::is_some) {
            break;
        }
        let logits = run.next(&texts)?;
        for (row, logits) in logits.into_iter().enumerate() {
            if ended[row].is_some() {
                // Something must stand there; nobody looks at it.
                texts[row].push(0);
                continue;
            }
            let token = samplers[row].next(logits, &texts[row])?;
            texts[row].push(token);
            if options.stop_tokens.contains(&token) {
                ended[row] = Some(StopReason::StopToken);
            } else if each(row, token)?.is_break() {
                ended[row] = Some(StopReason::Asked);
            }
            if let Some(reason) = ended[row] {
                let drop = usize::from(reason == StopReason::StopToken);
                run.lengths
                    .push((row, texts[row].len() - prompts[row].len() - drop));
            }
        }
    }
    let done = |(row, text): (usize, Vec<usize>)| {
        let new = &text[prompts[row].len()..];
        let length = run.lengths.iter().find(|(of, _)| *of == row);
        Generated {
            tokens: new[..length.map_or(new.len(), |(_, length)| *length)].to_vec(),
            reason: ended[row].unwrap_or(StopReason::Length),
        }
    };
    Ok(texts.into_iter().enumerate().map(done).collect())
}

fn check<B: Backend, M: CausalLm<B>>(
    model: &M,
    prompts: &[Vec<usize>],
    options: &GenerateOptions,
) -> Result<()> {
    let (vocab, most) = (model.vocab_size(), model.max_positions());
    for prompt in prompts {
        if prompt.is_empty() {
            return Err(Error::usage(
                "prompt",
                "is empty: there is no token to go on from",
            ));
        }
        if let Some(id) = prompt.iter().find(|id| **id >= vocab) {
            let message = format!("has token {id}, the model knows {vocab}");
            return Err(Error::usage("prompt", message));
        }
        let whole = prompt.len().saturating_add(options.max_new_tokens);
        if !options.slide && whole > most {
            let message = format!(
                "{} tokens and {} new ones are more than the {most} of the model's context: ask for fewer with --max-new-tokens, or let --slide forget the oldest",
                prompt.len(),
                options.max_new_tokens
            );
            return Err(Error::usage("prompt", message));
        }
    }
    Ok(())
}

/// The model at work on a batch.
struct Run<'a, B: Backend, M> {
    model: &'a M,
    options: &'a GenerateOptions,
    device: &'a B::Device,
    cache: Option<KeyValueCache<B>>,
    /// Tokens of padding before each text, and of the oldest that were forgotten.
    starts: Vec<usize>,
    padding: Vec<usize>,
    /// New tokens of the texts that ended.
    lengths: Vec<(usize, usize)>,
}

impl<'a, B: Backend, M: CausalLm<B>> Run<'a, B, M> {
    fn new(model: &'a M, options: &'a GenerateOptions, device: &'a B::Device) -> Self {
        Self {
            model,
            options,
            device,
            cache: None,
            starts: Vec::new(),
            padding: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// Logits of the next token of each text.
    fn next(&mut self, texts: &[Vec<usize>]) -> Result<Vec<Vec<f32>>> {
        let most = self.model.max_positions();
        let full = self
            .cache
            .as_ref()
            .is_some_and(|cache| cache.seen >= cache.capacity());
        let hidden = match self.cache.take().filter(|_| !full) {
            Some(mut cache) => {
                let last = texts.iter().map(|text| text[text.len() - 1..].to_vec());
                let positions = texts.iter().zip(&self.starts);
                let positions = positions.map(|(text, start)| vec![text.len() - 1 - start]);
                let tokens = self.batch(
                    &last.collect::<Vec<_>>(),
                    positions.collect(),
                    cache.seen + 1,
                );
                let hidden =
                    self.model
                        .hidden_states(&tokens, Some(&mut cache), Mode::Eval, &mut None);
                self.cache = Some(cache);
                hidden
            }
            None => {
                // Where a text does not fit, its older half is forgotten.
                let begin = |text: &Vec<usize>| match text.len() < most {
                    true => 0,
                    false => text.len() - most.div_ceil(2),
                };
                self.starts = texts.iter().map(begin).collect();
                let kept = texts
                    .iter()
                    .zip(&self.starts)
                    .map(|(text, start)| &text[*start..]);
                let kept: Vec<&[usize]> = kept.collect();
                let longest = kept.iter().map(|text| text.len()).max().unwrap_or_default();
                self.padding = kept.iter().map(|text| longest - text.len()).collect();
                let padded = kept.iter().zip(&self.padding);
                let padded: Vec<Vec<usize>> = padded
                    .clone()
                    .map(|(text, pad)| [&vec![0; *pad], *text].concat())
                    .collect();
                let positions = self
                    .padding
                    .iter()
                    .map(|pad| (0..longest).map(|i| i.saturating_sub(*pad)).collect());
                let room = longest
                    .saturating_add(self.options.max_new_tokens)
                    .min(most);
                let mut cache = self.model.cache(room.max(longest));
                let tokens = self.batch(&padded, positions.collect(), longest);
                let hidden =
                    self.model
                        .hidden_states(&tokens, Some(&mut cache), Mode::Eval, &mut None);
                self.cache = Some(cache);
                hidden
            }
        };
        let [batch, sequence, size] = hidden.dims();
        let last = hidden.slice([0..batch, sequence - 1..sequence, 0..size]);
        let logits = self.model.head(last).cast(DType::F32).into_data();
        let vocab = self.model.vocab_size();
        let all: Vec<f32> = logits.iter::<f32>().collect();
        Ok(all.chunks(vocab).map(<[f32]>::to_vec).collect())
    }

    fn batch(&self, ids: &[Vec<usize>], positions: Vec<Vec<usize>>, keys: usize) -> TokenBatch<B> {
        let padded = self.padding.iter().any(|pad| *pad > 0);
        TokenBatch {
            input_ids: position_ids(ids, self.device),
            attention_mask: padded.then(|| self.mask(keys)),
            positions: Some(positions),
        }
    }

    /// 0 where a text is padded: `[batch, keys]`.
    fn mask(&self, keys: usize) -> Tensor<B, 2, Int> {
        let rows = self.padding.iter();
        let rows = rows.flat_map(|pad| (0..keys).map(move |i| i64::from(i >= *pad)));
        let data = TensorData::new(rows.collect::<Vec<i64>>(), [self.padding.len(), keys]);
        Tensor::from_data(data, self.device)
    }
}
