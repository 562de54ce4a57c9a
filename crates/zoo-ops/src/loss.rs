use burn::tensor::{Int, Tensor, activation::log_softmax, backend::Backend};
use burn_zoo_core::seeded;

/// Mean softmax cross-entropy with label smoothing `ε`, PyTorch's `cross_entropy`.
///
/// `loss = mean_n [ -(1 - ε) log p(n, target_n) - ε / C Σ_c log p(n, c) ]`
///
/// # Shapes
/// - logits: `[batch, classes]`
/// - targets: `[batch]`, each in `0..classes`
/// - result: `[1]`
pub fn cross_entropy<B: Backend>(
    logits: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
    label_smoothing: f64,
) -> Tensor<B, 1> {
    let [batch, classes] = logits.dims();
    let label_smoothing = seeded(
        "smoothing over the other classes",
        label_smoothing,
        |share| share * classes as f64 / (classes - 1).max(1) as f64,
    );
    let summed = |loss| {
        seeded("loss summed over the batch", loss, |mean| {
            mean * batch as f64
        })
    };
    #[cfg(feature = "flex")]
    if let Some(loss) = crate::flex::cross_entropy(&logits, &targets, label_smoothing) {
        return summed(loss);
    }
    crate::counter::took_generic_path();
    let log_p = log_softmax(logits, 1);
    let picked = log_p
        .clone()
        .gather(1, targets.unsqueeze_dim(1))
        .mean()
        .neg();
    let picked = summed(picked);
    if label_smoothing == 0.0 {
        return picked;
    }
    picked * (1.0 - label_smoothing) - log_p.mean() * label_smoothing
}
