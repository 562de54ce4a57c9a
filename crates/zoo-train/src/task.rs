use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Int, Tensor};
use burn_zoo_core::{Result, Stages};

/// What a run learns: its batches, their loss, and how good a model is.
pub trait Task<B: AutodiffBackend, M: AutodiffModule<B>> {
    /// A batch as it leaves the loader.
    type Batch;

    /// What is counted: `images`, `tokens`.
    fn unit(&self) -> &'static str;

    /// Batches of an epoch.
    fn batches(&self) -> usize;

    /// The batches of epoch `epoch` from `first` on. What they hold depends on nothing else, so that a run
    /// can be continued.
    fn epoch(&self, epoch: usize, first: usize) -> Box<dyn Iterator<Item = Result<Self::Batch>>>;

    /// What a batch holds, in units.
    fn count(&self, batch: &Self::Batch) -> usize;

    /// The training pass on a batch; stages are handed to `stages` where given.
    ///
    /// # Errors
    /// If the batch does not fit the model.
    fn forward(
        &self,
        model: &M,
        batch: &Self::Batch,
        stages: Option<&mut dyn Stages<B>>,
    ) -> Result<Forward<B>>;

    /// How good a model is on the validation part, if there is one.
    ///
    /// # Errors
    /// If data cannot be read.
    fn validate(&self, model: &M::InnerModule) -> Result<Option<Score>>;
}

/// A training pass.
pub struct Forward<B: AutodiffBackend> {
    /// What the loss is computed from, in a row.
    pub logits: Tensor<B, 1>,
    /// The loss, `[1]`.
    pub loss: Tensor<B, 1>,
    /// How many targets were the likeliest, `[1]`.
    pub right: Tensor<B::InnerBackend, 1>,
    /// Of how many.
    pub targets: usize,
}

impl<B: AutodiffBackend> Forward<B> {
    /// Cross-entropy of `logits` `[rows, classes]` and `targets` `[rows]`.
    pub fn classifying(
        logits: Tensor<B, 2>,
        targets: Tensor<B, 1, Int>,
        label_smoothing: f64,
    ) -> Self {
        let [rows, _] = logits.dims();
        let best = logits.clone().detach().argmax(1).flatten::<1>(0, 1);
        let right = best.equal(targets.clone()).float().sum().inner();
        Self {
            loss: burn_zoo_ops::cross_entropy(logits.clone(), targets, label_smoothing),
            logits: logits.flatten(0, 1),
            right,
            targets: rows,
        }
    }
}

/// How good a model is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Mean cross-entropy.
    pub loss: f64,
    /// Share of targets that were the likeliest.
    pub accuracy: f64,
    /// What is as high as possible.
    pub score: f64,
    /// How far two scores may be apart by luck: the latest checkpoint that is no farther from the highest is
    /// the best (Breiman et al. 1984, section 3.4.3).
    pub margin: f64,
}

impl Score {
    /// Of a classifier that was right so often on `count` examples. The margin is the accuracy's standard
    /// error with Laplace's correction, so that it is not 0 where all are right: on a small validation part
    /// the highest score is often luck, and a later one has learnt longer.
    pub fn of_classes(loss: f64, accuracy: f64, count: usize) -> Self {
        let n = count as f64;
        let p = (accuracy * n + 1.0) / (n + 2.0);
        Self {
            loss,
            accuracy,
            score: accuracy,
            margin: (p * (1.0 - p) / n).sqrt(),
        }
    }
}
