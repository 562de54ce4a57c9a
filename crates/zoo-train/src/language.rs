use crate::recipe::{Recipe, TextRecipe};
use crate::task::{Forward, Score, Task};
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Int, Tensor, TensorData};
use burn_zoo_core::{Error, Mode, Result, Stages};
use burn_zoo_nn::{CausalLm, TokenBatch};
use burn_zoo_optim::number;
use burn_zoo_texts::{Tokens, Window, Windows};
use std::ops::Range;

/// How a text goes on: every token's successor.
pub struct LanguageTask<'a, B: AutodiffBackend> {
    train: Windows,
    valid: Windows,
    label_smoothing: f64,
    device: &'a B::Device,
}

/// The training and the validation part of so many tokens: one contiguous piece each, the validation part last.
pub fn parts(tokens: usize, valid_fraction: f64) -> [Range<usize>; 2] {
    let valid = ((tokens as f64 * valid_fraction) as usize).clamp(1, tokens.max(2) - 1);
    let train = tokens.saturating_sub(valid);
    [0..train, train..tokens]
}

impl<'a, B: AutodiffBackend> LanguageTask<'a, B> {
    /// On a text, as the recipe says.
    ///
    /// # Errors
    /// If there are too few tokens, or one that the model does not know.
    pub fn new(
        recipe: &Recipe,
        tokens: &Tokens,
        vocab_size: usize,
        device: &'a B::Device,
    ) -> Result<Self> {
        let Some(TextRecipe {
            sequence_length, ..
        }) = recipe.text
        else {
            return Err(Error::usage("recipe.json", "says nothing of a text"));
        };
        if tokens.len() < 2 {
            return Err(Error::usage(
                "--dataset",
                "holds too few tokens of this vocabulary",
            ));
        }
        tokens.fits(0..tokens.len(), vocab_size)?;
        let [train, valid] = parts(tokens.len(), recipe.valid_fraction);
        let windows = |range, seed| {
            Windows::new(
                tokens.clone(),
                range,
                sequence_length,
                recipe.batch_size,
                seed,
            )
        };
        Ok(Self {
            train: windows(train, Some(recipe.seed))?,
            valid: windows(valid, None)?,
            label_smoothing: recipe.label_smoothing,
            device,
        })
    }
}

/// Sequences as input, and a target for each of their tokens in a row.
fn tensors<B: Backend>(window: &Window, device: &B::Device) -> (TokenBatch<B>, Tensor<B, 1, Int>) {
    let inputs = TensorData::new(window.inputs.clone(), window.shape);
    let targets = TensorData::new(window.targets.clone(), [window.targets.len()]);
    let batch = TokenBatch::new(Tensor::from_data(inputs, device));
    (batch, Tensor::from_data(targets, device))
}

/// `[batch, sequence, vocab_size]` as a row for each token.
fn rows<B: Backend>(logits: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, sequence, vocab] = logits.dims();
    logits.reshape([batch * sequence, vocab])
}

/// Mean cross-entropy and share of right guesses of a decoder on sequences.
///
/// # Errors
/// If the text cannot be read.
pub fn evaluate_text<B: Backend, M: CausalLm<B>>(
    model: &M,
    windows: &Windows,
    device: &B::Device,
    mut progress: impl FnMut(usize),
) -> Result<Score> {
    let (mut loss, mut right, mut count) = (0.0, 0.0, 0);
    for (done, window) in windows.epoch(0, 0).enumerate() {
        let window = window?;
        let (batch, targets) = tensors::<B>(&window, device);
        let logits = rows(model.logits(&batch, Mode::Eval));
        let best = logits.clone().argmax(1).flatten::<1>(0, 1);
        right += number(best.equal(targets.clone()).float().sum());
        let mean = number(burn_zoo_ops::cross_entropy(logits, targets, 0.0));
        loss += mean * window.targets.len() as f64;
        count += window.targets.len();
        progress(done + 1);
    }
    let loss = loss / count.max(1) as f64;
    Ok(Score {
        loss,
        accuracy: right / count.max(1) as f64,
        score: -loss,
        margin: 0.0,
    })
}

impl<B, M> Task<B, M> for LanguageTask<'_, B>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + CausalLm<B>,
    M::InnerModule: CausalLm<B::InnerBackend>,
{
    type Batch = Window;

    fn unit(&self) -> &'static str {
        "tokens"
    }

    fn batches(&self) -> usize {
        self.train.batches()
    }

    fn epoch(&self, epoch: usize, first: usize) -> Box<dyn Iterator<Item = Result<Window>>> {
        Box::new(self.train.epoch(epoch, first))
    }

    fn count(&self, batch: &Window) -> usize {
        batch.targets.len()
    }

    fn forward(
        &self,
        model: &M,
        batch: &Window,
        mut stages: Option<&mut dyn Stages<B>>,
    ) -> Result<Forward<B>> {
        let (tokens, targets) = tensors::<B>(batch, self.device);
        let hidden = model.hidden_states(&tokens, None, Mode::Train, &mut stages);
        let logits = rows(model.head(hidden));
        Ok(Forward::classifying(logits, targets, self.label_smoothing))
    }

    fn validate(&self, model: &M::InnerModule) -> Result<Option<Score>> {
        evaluate_text(model, &self.valid, self.device, |_| ()).map(Some)
    }
}
