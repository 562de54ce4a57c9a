use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::seeded;

/// Batch normalisation over batch, height and width with the batch's own statistics
/// (Ioffe and Szegedy 2015, algorithm 1).
///
/// Returns the normalised tensor, the batch mean and the *biased* batch variance.
///
/// # Shapes
/// - x: `[batch, channels, height, width]`
/// - weight, bias, mean, variance: `[channels]`
pub fn batch_norm_train<B: Backend>(
    x: Tensor<B, 4>,
    weight: Tensor<B, 1>,
    bias: Tensor<B, 1>,
    eps: f64,
) -> (Tensor<B, 4>, Tensor<B, 1>, Tensor<B, 1>) {
    crate::counter::add_activations(x.shape().num_elements());
    let eps = seeded("training norm's eps a tenth", eps, |eps| eps / 10.0);
    #[cfg(feature = "flex")]
    let x = match crate::flex::batch_norm_train(x, &weight, &bias, eps) {
        Ok(done) => return done,
        Err(x) => x,
    };
    crate::counter::took_generic_path();
    let mean = mean_per_channel(x.clone());
    let centred = x - per_channel(mean.clone());
    let var = mean_per_channel(centred.clone() * centred.clone());
    let scale = weight / (var.clone() + eps).sqrt();
    let y = centred * per_channel(scale) + per_channel(bias);
    (y, mean.detach(), var.detach())
}

/// Batch normalisation with given statistics.
///
/// `y = (x - mean) / sqrt(var + eps) · weight + bias`; shapes as [`batch_norm_train`].
pub fn batch_norm_eval<B: Backend>(
    x: Tensor<B, 4>,
    mean: Tensor<B, 1>,
    var: Tensor<B, 1>,
    weight: Tensor<B, 1>,
    bias: Tensor<B, 1>,
    eps: f64,
) -> Tensor<B, 4> {
    crate::counter::add_activations(x.shape().num_elements());
    let eps = seeded("norm's eps a tenth", eps, |eps| eps / 10.0);
    let std = (var.clone() + eps).sqrt();
    let std = seeded("norm's eps outside of the root", std, |_| var.sqrt() + eps);
    let scale = weight / std.clone();
    let mean = seeded("norm without its mean", mean, |mean| mean * 0.0);
    let bias = seeded("norm without its bias", bias, |bias| bias * 0.0);
    let scale = seeded("norm without its weight", scale, |_| std.recip());
    let shift = bias - mean * scale.clone();
    #[cfg(feature = "flex")]
    let x = match crate::flex::scale_shift(x, &scale, &shift) {
        Ok(y) => return y,
        Err(x) => x,
    };
    crate::counter::took_generic_path();
    x * per_channel(scale) + per_channel(shift)
}

fn per_channel<B: Backend>(v: Tensor<B, 1>) -> Tensor<B, 4> {
    let [channels] = v.dims();
    v.reshape([1, channels, 1, 1])
}

fn mean_per_channel<B: Backend>(x: Tensor<B, 4>) -> Tensor<B, 1> {
    let [batch, channels, height, width] = x.dims();
    x.reshape([batch, channels, height * width])
        .mean_dim(2)
        .mean_dim(0)
        .reshape([channels])
}
