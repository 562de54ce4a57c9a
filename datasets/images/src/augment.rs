use burn_zoo_core::{Preprocessing, Result};
use burn_zoo_image::{Image, crop, resize};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Random changes to training images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Augment {
    /// Shift by up to this many pixels each way, black coming in (He et al. 2015: 4 for CIFAR).
    #[serde(default)]
    pub shift: usize,
    /// Mirror an image with probability one half.
    #[serde(default)]
    pub flip: bool,
    /// Cut a random box of at least this share of the area, with sides of 3:4 to 4:3, and resize
    /// it (Szegedy et al. 2014); 0 turns it off.
    #[serde(default)]
    pub crop_area: f64,
}

impl Augment {
    pub(crate) fn apply(
        &self,
        image: &Image,
        p: &Preprocessing,
        rng: &mut ChaCha8Rng,
    ) -> Result<Image> {
        let mut image = if self.crop_area > 0.0 {
            let area = self.random_box(image, rng);
            resize(image, area, p.crop, p.crop, p.interpolation)?
        } else if (image.width, image.height) != (p.crop, p.crop) {
            let all = [0, 0, image.width, image.height];
            resize(image, all, p.crop, p.crop, p.interpolation)?
        } else {
            image.clone()
        };
        if self.shift > 0 {
            let most = self.shift as i64;
            let (left, top) = (
                rng.random_range(-most..=most),
                rng.random_range(-most..=most),
            );
            image = crop(&image, left as isize, top as isize, p.crop);
        }
        if self.flip && rng.random::<bool>() {
            for row in image.pixels.chunks_exact_mut(image.width * image.channels) {
                let pixels: Vec<u8> = row
                    .chunks_exact(image.channels)
                    .rev()
                    .flatten()
                    .copied()
                    .collect();
                row.copy_from_slice(&pixels);
            }
        }
        Ok(image)
    }

    /// `[left, top, width, height]` inside the image.
    fn random_box(&self, image: &Image, rng: &mut ChaCha8Rng) -> [usize; 4] {
        let (width, height) = (image.width as f64, image.height as f64);
        for _ in 0..10 {
            let area = width * height * rng.random_range(self.crop_area.min(1.0)..=1.0);
            let ratio = rng
                .random_range((3.0f64 / 4.0).ln()..=(4.0f64 / 3.0).ln())
                .exp();
            let w = (area * ratio).sqrt().round() as usize;
            let h = (area / ratio).sqrt().round() as usize;
            if w > 0 && h > 0 && w <= image.width && h <= image.height {
                let left = rng.random_range(0..=image.width - w);
                let top = rng.random_range(0..=image.height - h);
                return [left, top, w, h];
            }
        }
        let side = image.width.min(image.height);
        [
            (image.width - side) / 2,
            (image.height - side) / 2,
            side,
            side,
        ]
    }
}
