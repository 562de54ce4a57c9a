use crate::{CausalLm, Linear, TextHead, dropout, last_tokens, rows_at};
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{Arguments, Flat, Mode, Result, Stages};

/// What stands on a decoder: transformers' `GenericForSequenceClassification`, `GenericForTokenClassification`,
/// `GenericForQuestionAnswering`, or the next token.
pub struct DecoderHead<'a, B: Backend> {
    /// Which.
    pub head: TextHead,
    /// The layer that tells classes apart, for heads that have one.
    pub score: Option<&'a Linear<B>>,
    /// The token that fills up shorter sequences.
    pub pad_token_id: Option<usize>,
    /// Dropout before tokens are told apart.
    pub dropout: f64,
}

impl<B: Backend> DecoderHead<'_, B> {
    /// The primary output for `hidden` `[batch, sequence, hidden_size]`, which the decoder made of `arguments`.
    ///
    /// # Errors
    /// If it is not known where sequences to be classified end.
    pub fn forward(
        &self,
        decoder: &impl CausalLm<B>,
        hidden: Tensor<B, 3>,
        arguments: &Arguments<B>,
        mode: Mode,
        stages: &mut Option<&mut dyn Stages<B>>,
    ) -> Result<Flat<B>> {
        let Some(score) = self.score else {
            return Ok(Flat::of(match self.head {
                TextHead::CausalLm => decoder.head(hidden),
                _ => hidden,
            }));
        };
        Ok(match self.head {
            TextHead::SequenceClassification => {
                let last = last_tokens(arguments, self.pad_token_id)?;
                Flat::of(score.forward(rows_at(hidden, &last)))
            }
            TextHead::TokenClassification => {
                Flat::of(score.forward(dropout(hidden, self.dropout, mode)))
            }
            head => Flat::of(head.record_spans(score.forward(hidden), stages)),
        })
    }
}

impl TextHead {
    /// Outputs of the layer `score` on a decoder, and whether it has a bias.
    pub fn decoder_classes(self, num_labels: usize) -> Option<(usize, bool)> {
        match self {
            TextHead::SequenceClassification => Some((num_labels, false)),
            TextHead::TokenClassification => Some((num_labels, true)),
            TextHead::QuestionAnswering => Some((2, true)),
            _ => None,
        }
    }
}
