use crate::{ImageSource, Transform};
use burn_zoo_core::{Error, Result};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// How a source becomes batches.
#[derive(Clone, Debug)]
pub struct LoaderOptions {
    /// Images a batch.
    pub batch_size: usize,
    /// Shuffle and augment from this seed; `None` for evaluation: in order, whole, nothing random.
    pub seed: Option<u64>,
    /// Threads that decode and augment.
    pub workers: usize,
}

/// Images as model input.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// `[batch, channels, height, width]` values.
    pub pixel_values: Vec<f32>,
    /// Shape of `pixel_values`.
    pub shape: [usize; 4],
    /// Class of each image.
    pub labels: Vec<i32>,
}

/// Batches of a source, epoch by epoch.
///
/// What batch `b` of epoch `e` holds depends only on seed, `e` and `b`: neither the number of
/// workers nor where the iteration began changes it.
#[derive(Clone)]
pub struct Loader {
    source: Arc<dyn ImageSource>,
    transform: Transform,
    options: LoaderOptions,
}

impl Loader {
    /// Batches of `source` made by `transform`.
    ///
    /// # Errors
    /// If the batch size is 0, or a training set is smaller than a batch.
    pub fn new(
        source: Arc<dyn ImageSource>,
        transform: Transform,
        options: LoaderOptions,
    ) -> Result<Self> {
        if options.batch_size == 0 {
            return Err(Error::usage("--batch-size", "must be at least 1"));
        }
        if options.seed.is_some() && source.len() < options.batch_size {
            let message = format!(
                "{} is more than the {} training images",
                options.batch_size,
                source.len()
            );
            return Err(Error::usage("--batch-size", message));
        }
        Ok(Self {
            source,
            transform,
            options,
        })
    }

    /// Batches an epoch. In training the last, smaller one is left out: batch statistics of a few
    /// images would be noise.
    pub fn batches(&self) -> usize {
        match self.options.seed {
            Some(_) => self.source.len() / self.options.batch_size,
            None => self.source.len().div_ceil(self.options.batch_size),
        }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }

    /// The source's images in the order of `epoch`.
    fn order(&self, epoch: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.source.len()).collect();
        if let Some(seed) = self.options.seed {
            order.shuffle(&mut stream(seed, epoch, u64::MAX));
        }
        order
    }

    /// Starts epoch `epoch` at batch `first`.
    pub fn epoch(&self, epoch: usize, first: usize) -> Epoch {
        let order = Arc::new(self.order(epoch));
        let batches = self.batches();
        let workers = self.options.workers.clamp(1, 64);
        // Worker w makes batches first + w, first + w + workers, …; taking from them in turn gives
        // the batches in order, and each runs at most two ahead.
        let receivers = (0..workers)
            .map(|worker| {
                let (sender, receiver) = sync_channel(2);
                let (loader, order) = (self.clone(), order.clone());
                std::thread::spawn(move || {
                    for b in (first + worker..batches).step_by(workers) {
                        let batch = loader.batch(&order, epoch, b);
                        let failed = batch.is_err();
                        if sender.send(batch).is_err() || failed {
                            return;
                        }
                    }
                });
                receiver
            })
            .collect();
        Epoch {
            receivers,
            next: 0,
            left: batches.saturating_sub(first),
        }
    }

    fn batch(&self, order: &[usize], epoch: usize, b: usize) -> Result<Batch> {
        let size = self.options.batch_size;
        let items = &order[b * size..(b * size + size).min(order.len())];
        let [channels, height, width] = self.transform.shape();
        let mut pixel_values = Vec::with_capacity(items.len() * channels * height * width);
        let mut labels = Vec::with_capacity(items.len());
        for &i in items {
            let image = self.source.image(i)?;
            let mut rng = self.options.seed.map(|seed| stream(seed, epoch, i as u64));
            self.transform
                .apply(&image, rng.as_mut(), &mut pixel_values)?;
            labels.push(self.source.label(i) as i32);
        }
        let shape = [items.len(), channels, height, width];
        Ok(Batch {
            pixel_values,
            shape,
            labels,
        })
    }
}

/// Random numbers of one item of one epoch.
fn stream(seed: u64, epoch: usize, item: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(epoch as u64).to_le_bytes());
    key[16..24].copy_from_slice(&item.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// The batches of one epoch, made ahead on worker threads; ends after the first error.
pub struct Epoch {
    receivers: Vec<Receiver<Result<Batch>>>,
    next: usize,
    left: usize,
}

impl Iterator for Epoch {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let receiver = &self.receivers[self.next];
        self.next = (self.next + 1) % self.receivers.len();
        let batch = receiver.recv().unwrap_or_else(|_| {
            Err(Error::usage(
                "data loader",
                "a worker thread ended unexpectedly",
            ))
        });
        if batch.is_err() {
            self.left = 0;
        }
        Some(batch)
    }
}
