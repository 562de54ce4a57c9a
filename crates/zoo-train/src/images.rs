use crate::evaluate::{evaluate, to_tensor};
use crate::recipe::Recipe;
use crate::task::{Forward, Score, Task};
use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_zoo_core::{ImageClassifier, Mode, Result, Stages};
use burn_zoo_images::{Augment, Batch, Dataset, Loader, LoaderOptions, Transform};

/// Telling classes of images apart.
pub struct ImageTask<'a, B: AutodiffBackend> {
    train: Loader,
    valid: Loader,
    classes: usize,
    label_smoothing: f64,
    device: &'a B::Device,
}

impl<'a, B: AutodiffBackend> ImageTask<'a, B> {
    /// On a data set, as the recipe says.
    ///
    /// # Errors
    /// If the batches are too large.
    pub fn new(recipe: &Recipe, data: &Dataset, device: &'a B::Device) -> Result<Self> {
        let transform = Transform {
            preprocessing: data.preprocessing.clone(),
            augment: (recipe.augment != Augment::default()).then_some(recipe.augment),
        };
        let loader = |seed| LoaderOptions {
            batch_size: recipe.batch_size,
            seed,
            workers: recipe.workers,
        };
        let eval = Transform::eval(data.preprocessing.clone());
        Ok(Self {
            train: Loader::new(data.train.clone(), transform, loader(Some(recipe.seed)))?,
            valid: Loader::new(data.valid.clone(), eval, loader(None))?,
            classes: data.class_names.len(),
            label_smoothing: recipe.label_smoothing,
            device,
        })
    }
}

impl<B, M> Task<B, M> for ImageTask<'_, B>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + ImageClassifier<B>,
    M::InnerModule: ImageClassifier<B::InnerBackend>,
{
    type Batch = Batch;

    fn unit(&self) -> &'static str {
        "images"
    }

    fn batches(&self) -> usize {
        self.train.batches()
    }

    fn epoch(&self, epoch: usize, first: usize) -> Box<dyn Iterator<Item = Result<Batch>>> {
        Box::new(self.train.epoch(epoch, first))
    }

    fn count(&self, batch: &Batch) -> usize {
        batch.labels.len()
    }

    fn forward(
        &self,
        model: &M,
        batch: &Batch,
        stages: Option<&mut dyn Stages<B>>,
    ) -> Result<Forward<B>> {
        let pixel_values = to_tensor::<B>(batch, DType::F32, self.device);
        let labels = TensorData::new(batch.labels.clone(), [batch.labels.len()]);
        let targets = Tensor::<B, 1, Int>::from_data(labels, self.device);
        let logits = model.logits(pixel_values, Mode::Train, stages);
        Ok(Forward::classifying(logits, targets, self.label_smoothing))
    }

    fn validate(&self, model: &M::InnerModule) -> Result<Option<Score>> {
        if self.valid.is_empty() {
            return Ok(None);
        }
        let logits = |x| model.logits(x, Mode::Eval, None);
        let (classes, device) = (self.classes, self.device);
        let found = evaluate(&logits, &self.valid, classes, DType::F32, device, |_, _| ())?;
        let score = Score::of_classes(found.loss, found.accuracy, found.count);
        Ok(Some(score))
    }
}
