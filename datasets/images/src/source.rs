use burn_zoo_core::{Error, Result};
use burn_zoo_image::Image;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::sync::Arc;

/// Labelled images by position; reading one may fail and may be slow.
pub trait ImageSource: Send + Sync {
    /// Number of images.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The class of image `i`.
    fn label(&self, i: usize) -> usize;

    /// Image `i`.
    ///
    /// # Errors
    /// If its file cannot be read or decoded.
    fn image(&self, i: usize) -> Result<Image>;
}

/// Images of one size, held in memory.
pub struct InMemory {
    size: [usize; 3],
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl InMemory {
    /// Images of `[height, width, channels]`, one after the other, and their labels.
    ///
    /// # Errors
    /// If the counts differ, where `images` is named, or a label is not below `num_classes`, where `labelled_by` is.
    pub fn new(
        size: [usize; 3],
        pixels: Vec<u8>,
        labels: Vec<u8>,
        num_classes: usize,
        images: &Path,
        labelled_by: &Path,
    ) -> Result<Self> {
        let each: usize = size.iter().product();
        if labels.is_empty() {
            return Err(Error::malformed(images, "holds no images"));
        }
        if each == 0 || pixels.len() != each * labels.len() {
            let count = pixels.len() / each.max(1);
            let message = format!("{count} images but {} labels", labels.len());
            return Err(Error::malformed(images, message));
        }
        if let Some(i) = labels.iter().position(|l| usize::from(*l) >= num_classes) {
            let message = format!(
                "label {} of item {i} is out of range: there are {num_classes} classes",
                labels[i]
            );
            return Err(Error::malformed(labelled_by, message));
        }
        Ok(Self {
            size,
            pixels,
            labels,
        })
    }
}

impl ImageSource for InMemory {
    fn len(&self) -> usize {
        self.labels.len()
    }

    fn label(&self, i: usize) -> usize {
        usize::from(self.labels[i])
    }

    fn image(&self, i: usize) -> Result<Image> {
        let [height, width, channels] = self.size;
        let each = height * width * channels;
        let pixels = self.pixels[i * each..][..each].to_vec();
        Ok(Image {
            width,
            height,
            channels,
            pixels,
        })
    }
}

/// Some images of another source.
pub struct Subset {
    source: Arc<dyn ImageSource>,
    indices: Vec<usize>,
}

impl Subset {
    /// The images at `indices`, in that order.
    pub fn new(source: Arc<dyn ImageSource>, indices: Vec<usize>) -> Self {
        Self { source, indices }
    }
}

impl ImageSource for Subset {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn label(&self, i: usize) -> usize {
        self.source.label(self.indices[i])
    }

    fn image(&self, i: usize) -> Result<Image> {
        self.source.image(self.indices[i])
    }
}

/// Splits `source` in two so that `fraction` of each class, rounded, is in the second part. The
/// split depends on the labels alone, never on a run's seed. A class keeps at least one image in
/// the first part.
pub fn stratified_split(source: Arc<dyn ImageSource>, fraction: f64) -> (Subset, Subset) {
    let mut by_class: Vec<Vec<usize>> = Vec::new();
    for i in 0..source.len() {
        let label = source.label(i);
        if by_class.len() <= label {
            by_class.resize(label + 1, Vec::new());
        }
        by_class[label].push(i);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for mut class in by_class {
        class.shuffle(&mut rng);
        let count = (class.len() as f64 * fraction).round() as usize;
        let held = class.split_off(class.len() - count.min(class.len().saturating_sub(1)));
        first.extend(class);
        second.extend(held);
    }
    first.sort_unstable();
    second.sort_unstable();
    (
        Subset::new(source.clone(), first),
        Subset::new(source, second),
    )
}
