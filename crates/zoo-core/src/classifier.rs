use crate::{Mode, Stages};
use burn::module::Module;
use burn::tensor::{Tensor, backend::Backend};

/// A model that turns images into class scores.
pub trait ImageClassifier<B: Backend>: Module<B> {
    /// `pixel_values` `[batch, channels, height, width]` to `logits` `[batch, num_classes]`.
    ///
    /// Every intermediate stage is handed to `stages` where one is given; the result is the same
    /// with and without it.
    fn logits(
        &self,
        pixel_values: Tensor<B, 4>,
        mode: Mode,
        stages: Option<&mut dyn Stages<B>>,
    ) -> Tensor<B, 2>;
}
