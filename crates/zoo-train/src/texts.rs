use crate::recipe::Recipe;
use crate::task::{Forward, Score, Task};
use burn::module::AutodiffModule;
use burn::tensor::activation::softmax;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Int, Tensor};
use burn_zoo_core::{Arguments, Error, Mode, Network, Result, Stages};
use burn_zoo_nn::pad_right;
use burn_zoo_optim::number;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::sync::Arc;

/// A text as token numbers, and its class.
pub type LabelledTokens = (Vec<usize>, usize);

/// Telling classes of texts apart.
pub struct TextTask<'a, B: AutodiffBackend> {
    train: Arc<Vec<LabelledTokens>>,
    valid: Vec<LabelledTokens>,
    batch_size: usize,
    seed: u64,
    label_smoothing: f64,
    pad: usize,
    device: &'a B::Device,
}

impl<'a, B: AutodiffBackend> TextTask<'a, B> {
    /// On texts, as the recipe says; shorter ones of a batch are padded with `pad` on the right.
    ///
    /// # Errors
    /// If there are fewer texts than a batch.
    pub fn new(
        recipe: &Recipe,
        train: Vec<LabelledTokens>,
        valid: Vec<LabelledTokens>,
        pad: usize,
        device: &'a B::Device,
    ) -> Result<Self> {
        if train.len() < recipe.batch_size {
            let message = format!(
                "{} is more than the {} training texts",
                recipe.batch_size,
                train.len()
            );
            return Err(Error::usage("--batch-size", message));
        }
        Ok(Self {
            train: Arc::new(train),
            valid,
            batch_size: recipe.batch_size,
            seed: recipe.seed,
            label_smoothing: recipe.label_smoothing,
            pad,
            device,
        })
    }
}

/// The logits of texts, `[texts, classes]`, and their classes.
fn logits<B: Backend, M: Network<B>>(
    model: &M,
    texts: &[LabelledTokens],
    pad: usize,
    mode: Mode,
    stages: Option<&mut dyn Stages<B>>,
    device: &B::Device,
) -> Result<(Tensor<B, 2>, Tensor<B, 1, Int>)> {
    let rows: Vec<&[usize]> = texts.iter().map(|(ids, _)| ids.as_slice()).collect();
    let tensors = pad_right(&rows, pad);
    let from = Path::new("the texts");
    let arguments = Arguments::read(&model.arguments(), &tensors, from, DType::F32, device)?;
    let output = model.run(&arguments, mode, stages)?;
    let logits = output.tensor::<2>();
    let logits = logits.ok_or_else(|| Error::usage("the model", "does not tell texts apart"))?;
    let labels: Vec<i64> = texts.iter().map(|(_, label)| *label as i64).collect();
    let labels = Tensor::<B, 1, Int>::from_data(labels.as_slice(), device);
    Ok((logits, labels))
}

/// The likeliest class of each text with its probability, and the score of all.
///
/// # Errors
/// If the model does not tell texts apart, or a probability is not finite.
pub fn evaluate_texts<B: Backend, M: Network<B>>(
    model: &M,
    texts: &[LabelledTokens],
    batch_size: usize,
    pad: usize,
    device: &B::Device,
) -> Result<(Vec<(usize, f32)>, Score)> {
    let (mut predictions, mut loss) = (Vec::new(), 0.0);
    for batch in texts.chunks(batch_size.max(1)) {
        let (logits, labels) = logits(model, batch, pad, Mode::Eval, None, device)?;
        let mean = number(burn_zoo_ops::cross_entropy(logits.clone(), labels, 0.0));
        loss += mean * batch.len() as f64;
        let [_, classes] = logits.dims();
        let all: Vec<f32> = softmax(logits, 1).into_data().iter::<f32>().collect();
        for row in all.chunks(classes) {
            let best = row
                .iter()
                .copied()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(&b.1));
            predictions.push(best.unwrap_or((0, 0.0)));
        }
    }
    if !loss.is_finite() {
        let message = "gives scores that are not finite: its weights are damaged or it diverged";
        return Err(Error::usage("the model", message));
    }
    let count = texts.len().max(1) as f64;
    let right = predictions
        .iter()
        .zip(texts)
        .filter(|((best, _), (_, label))| best == label)
        .count();
    let score = Score::of_classes(loss / count, right as f64 / count, texts.len());
    Ok((predictions, score))
}

impl<B, M> Task<B, M> for TextTask<'_, B>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + Network<B>,
    M::InnerModule: Network<B::InnerBackend>,
{
    type Batch = Vec<LabelledTokens>;

    fn unit(&self) -> &'static str {
        "texts"
    }

    fn batches(&self) -> usize {
        self.train.len() / self.batch_size
    }

    fn epoch(&self, epoch: usize, first: usize) -> Box<dyn Iterator<Item = Result<Self::Batch>>> {
        let mut order: Vec<usize> = (0..self.train.len()).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(epoch as u64);
        order.shuffle(&mut rng);
        let (train, size) = (self.train.clone(), self.batch_size);
        let batches = train.len() / size;
        Box::new((first..batches).map(move |b| {
            let places = &order[b * size..(b + 1) * size];
            Ok(places.iter().map(|i| train[*i].clone()).collect())
        }))
    }

    fn count(&self, batch: &Self::Batch) -> usize {
        batch.len()
    }

    fn forward(
        &self,
        model: &M,
        batch: &Self::Batch,
        stages: Option<&mut dyn Stages<B>>,
    ) -> Result<Forward<B>> {
        let (logits, targets) = logits(model, batch, self.pad, Mode::Train, stages, self.device)?;
        Ok(Forward::classifying(logits, targets, self.label_smoothing))
    }

    fn validate(&self, model: &M::InnerModule) -> Result<Option<Score>> {
        if self.valid.is_empty() {
            return Ok(None);
        }
        let (_, score) =
            evaluate_texts(model, &self.valid, self.batch_size, self.pad, self.device)?;
        Ok(Some(score))
    }
}
