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

    /// Which stages upstream's class gives out, and under which names. Without a head of its own,
    /// one of them is the class's primary output.
    fn upstream_outputs(&self) -> Vec<UpstreamOutput> {
        Vec::new()
    }
}

/// A stage that upstream's class gives out.
#[derive(Clone, Debug)]
pub struct UpstreamOutput {
    /// Upstream's name for it, such as `hidden_states.0`.
    pub name: String,
    /// The stage's name here.
    pub stage: String,
    /// How many sizes upstream's value has; those that the stage lacks are 1 and come last.
    pub rank: usize,
    /// Whether it is the class's primary output, in place of `logits`.
    pub primary: bool,
}
