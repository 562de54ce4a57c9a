use burn::tensor::{DType, Tensor, TensorData, activation::softmax, backend::Backend};
use burn_zoo_core::{Error, Result};
use burn_zoo_images::{Batch, Loader};
use serde::{Deserialize, Serialize};

/// What a model says about one image: its most likely classes with their probabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Labels and probabilities, the likeliest first.
    pub top: Vec<(usize, f32)>,
}

/// How a model did on a set of images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Images.
    pub count: usize,
    /// Mean cross-entropy, without label smoothing.
    pub loss: f64,
    /// Share of images whose likeliest class is theirs.
    pub accuracy: f64,
    /// Share of images whose class is among the five likeliest.
    pub top5_accuracy: f64,
    /// `confusion[true class][predicted class]` images.
    pub confusion: Vec<Vec<usize>>,
    /// Likeliest class and its probability for each image, in order.
    pub predictions: Vec<(usize, f32)>,
}

/// A model in evaluation mode: pixel values `[batch, channels, height, width]` to logits
/// `[batch, num_classes]`.
pub type Logits<'a, B> = dyn Fn(Tensor<B, 4>) -> Tensor<B, 2> + 'a;

/// A batch as a tensor `[batch, channels, height, width]` of `dtype`.
pub fn to_tensor<B: Backend>(batch: &Batch, dtype: DType, device: &B::Device) -> Tensor<B, 4> {
    let data = TensorData::new(batch.pixel_values.clone(), batch.shape).convert_dtype(dtype);
    Tensor::from_data(data, (device, dtype))
}

/// The `k` likeliest classes of each image.
///
/// # Errors
/// If a probability is not finite.
pub fn predict_batch<B: Backend>(
    logits: &Logits<B>,
    pixel_values: Tensor<B, 4>,
    k: usize,
) -> Result<Vec<Prediction>> {
    let probabilities = softmax(logits(pixel_values).cast(DType::F32), 1);
    let [_, classes] = probabilities.dims();
    let values: Vec<f32> = probabilities.into_data().iter::<f32>().collect();
    if values.iter().any(|v| !v.is_finite()) {
        let message = "gives scores that are not finite: its weights are damaged or it diverged";
        return Err(Error::usage("the model", message));
    }
    let predictions = values.chunks_exact(classes).map(|row| {
        let mut top: Vec<(usize, f32)> = row.iter().copied().enumerate().collect();
        top.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        top.truncate(k);
        Prediction { top }
    });
    Ok(predictions.collect())
}

/// Runs a model over every image of `loader`, calling `progress(done, all)` after each batch.
///
/// # Errors
/// If an image cannot be read.
pub fn evaluate<B: Backend>(
    logits: &Logits<B>,
    loader: &Loader,
    num_classes: usize,
    dtype: DType,
    device: &B::Device,
    mut progress: impl FnMut(usize, usize),
) -> Result<Evaluation> {
    let mut result = Evaluation {
        count: 0,
        loss: 0.0,
        accuracy: 0.0,
        top5_accuracy: 0.0,
        confusion: vec![vec![0; num_classes]; num_classes],
        predictions: Vec::with_capacity(loader.len()),
    };
    for batch in loader.epoch(0, 0) {
        let batch = batch?;
        let predictions =
            predict_batch(logits, to_tensor::<B>(&batch, dtype, device), num_classes)?;
        for (prediction, label) in predictions.iter().zip(&batch.labels) {
            let label = *label as usize;
            let (first, probability) = prediction.top[0];
            let rank = prediction.top.iter().position(|(class, _)| *class == label);
            let rank = rank.unwrap_or(num_classes);
            let own = prediction.top.get(rank).map_or(0.0, |(_, p)| *p);
            result.loss -= f64::from(own.max(f32::MIN_POSITIVE)).ln();
            result.accuracy += f64::from(u8::from(rank == 0));
            result.top5_accuracy += f64::from(u8::from(rank < 5));
            result.confusion[label][first] += 1;
            result.predictions.push((first, probability));
        }
        result.count += batch.labels.len();
        progress(result.count, loader.len());
    }
    let count = result.count.max(1) as f64;
    result.loss /= count;
    result.accuracy /= count;
    result.top5_accuracy /= count;
    Ok(result)
}
