use crate::Augment;
use burn_zoo_core::{Preprocessing, Result};
use burn_zoo_image::{Image, normalise, preprocess};
use rand_chacha::ChaCha8Rng;

/// Makes `pixel_values` from images: preprocessing, or in training random changes instead of the
/// centre crop.
#[derive(Clone, Debug)]
pub struct Transform {
    /// Sizes, filter, mean and deviation.
    pub preprocessing: Preprocessing,
    /// Random changes for training.
    pub augment: Option<Augment>,
}

impl Transform {
    /// Evaluation: nothing random.
    pub fn eval(preprocessing: Preprocessing) -> Self {
        Self {
            preprocessing,
            augment: None,
        }
    }

    /// Shape of the result for one image, `[channels, height, width]`.
    pub fn shape(&self) -> [usize; 3] {
        let p = &self.preprocessing;
        [p.num_channels, p.crop, p.crop]
    }

    /// Appends `[channels, crop, crop]` normalised values of `image` to `out`.
    ///
    /// # Errors
    /// If the image has other channels than the preprocessing.
    pub fn apply(
        &self,
        image: &Image,
        rng: Option<&mut ChaCha8Rng>,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        match (&self.augment, rng) {
            (Some(augment), Some(rng)) => normalise(
                &augment.apply(image, &self.preprocessing, rng)?,
                &self.preprocessing,
                out,
            ),
            _ => preprocess(image, &self.preprocessing, out),
        }
    }
}
