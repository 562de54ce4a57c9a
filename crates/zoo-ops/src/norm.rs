use crate::quotient::quotient;
use burn::tensor::{DType, Tensor, backend::Backend};
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
    if let Some(done) = crate::flex::batch_norm_train(&x, &weight, &bias, eps) {
        return done;
    }
    crate::counter::took_generic_path();
    let mean = mean_per_channel(x.clone());
    let centred = x - per_channel(mean.clone());
    let var = mean_per_channel(centred.clone() * centred.clone());
    let scale = quotient(weight, (var.clone() + eps).sqrt());
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
    let scale = quotient(weight, std.clone());
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

/// Layer normalisation over the last dimension (Ba et al. 2016, equation 4), which half types compute in
/// f32: `y = (x - mean) / sqrt(var + eps) · weight + bias`, with the biased variance.
///
/// # Shapes
/// - x, result: `[.., features]`
/// - weight, bias: `[features]`
pub fn layer_norm<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    weight: Tensor<B, 1>,
    bias: Tensor<B, 1>,
    eps: f64,
) -> Tensor<B, D> {
    crate::counter::add_activations(x.shape().num_elements());
    let eps = seeded("layer norm's eps a tenth", eps, |eps| eps / 10.0);
    let bias = seeded("layer norm without its bias", bias, |bias| bias * 0.0);
    let biased = seeded("layer norm with the unbiased variance", true, |_| false);
    #[cfg(feature = "flex")]
    if biased && let Some(y) = crate::flex::layer_norm(&x, &weight, &bias, eps) {
        return y;
    }
    crate::counter::took_generic_path();
    let dtype = x.dtype();
    let x = wide(x);
    let centred = x.clone() - x.mean_dim(D - 1);
    let mut variance = (centred.clone() * centred.clone()).mean_dim(D - 1);
    if !biased {
        let features = centred.dims()[D - 1] as f64;
        variance = variance * (features / (features - 1.0));
    }
    let y = quotient(centred, (variance + eps).sqrt());
    narrow(y, dtype) * weight.unsqueeze() + bias.unsqueeze()
}

/// Root-mean-square normalisation over the last dimension (Zhang and Sennrich 2019, equation 4), which
/// half types compute in f32: `y = x / sqrt(mean(x²) + eps) · weight`; shapes as [`layer_norm`].
pub fn rms_norm<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    weight: Tensor<B, 1>,
    eps: f64,
) -> Tensor<B, D> {
    crate::counter::add_activations(x.shape().num_elements());
    let eps = seeded("RMS norm's eps a tenth", eps, |eps| eps / 10.0);
    let x = seeded("RMS norm that takes the mean away", x, |x| {
        x.clone() - x.mean_dim(D - 1)
    });
    #[cfg(feature = "flex")]
    if let Some(y) = crate::flex::rms_norm(&x, &weight, eps) {
        return y;
    }
    crate::counter::took_generic_path();
    let dtype = x.dtype();
    let x = wide(x);
    let square = (x.clone() * x.clone()).mean_dim(D - 1);
    let y = quotient(x, (square + eps).sqrt());
    narrow(y, dtype) * weight.unsqueeze()
}

/// A half type as f32.
pub(crate) fn wide<B: Backend, const D: usize>(x: Tensor<B, D>) -> Tensor<B, D> {
    match x.dtype().size() {
        2 => x.cast(DType::F32),
        _ => x,
    }
}

pub(crate) fn narrow<B: Backend, const D: usize>(x: Tensor<B, D>, dtype: DType) -> Tensor<B, D> {
    match dtype.size() {
        2 => x.cast(dtype),
        _ => x,
    }
}
