use crate::{Arguments, Flat, Mode, Network, Result, Stages};
use burn::tensor::{Tensor, backend::Backend};

/// A model that turns images into class scores.
pub trait ImageClassifier<B: Backend>: Network<B> {
    /// `pixel_values` `[batch, channels, height, width]` to `logits` `[batch, num_classes]`.
    fn logits(
        &self,
        pixel_values: Tensor<B, 4>,
        mode: Mode,
        stages: Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 2>;

    /// [`Network::run`] of an image classifier.
    ///
    /// # Errors
    /// If there are no images.
    fn classify(
        &self,
        arguments: &Arguments<B>,
        mode: Mode,
        stages: Option<&mut dyn Stages<B>>,
    ) -> Result<Flat<B>> {
        let logits = self.logits(arguments.float("pixel_values")?, mode, stages);
        Ok(Flat::of(logits))
    }
}
