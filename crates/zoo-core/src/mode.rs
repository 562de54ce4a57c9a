/// Whether a layer trains or evaluates.
///
/// Burn's own layers read this from the backend type; here the caller says it, so that gradients
/// can be taken in evaluation mode, as PyTorch's `model.eval()` allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Batch statistics are used and running statistics updated; dropout drops.
    Train,
    /// Running statistics are used and nothing changes.
    Eval,
}
