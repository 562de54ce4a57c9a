use crate::{Augment, Image};
use burn_zoo_core::{Error, Interpolation, Preprocessing, Result};
use fast_image_resize::images::Image as Buffer;
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use rand_chacha::ChaCha8Rng;

/// Makes `pixel_values` from images: resize, crop, perhaps augment, normalise.
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
        Self { preprocessing, augment: None }
    }

    /// Shape of the result for one image, `[channels, height, width]`.
    pub fn shape(&self) -> [usize; 3] {
        let p = &self.preprocessing;
        [p.num_channels, p.crop, p.crop]
    }

    /// Appends `[channels, crop, crop]` normalised values of `image` to `out`.
    ///
    /// Without augmentation: the shorter side is resized to `resize`, the centre cut to `crop`, as
    /// torchvision's presets do with PIL. An image that has the right size already stays as it is.
    ///
    /// # Errors
    /// If the image has other channels than the preprocessing.
    pub fn apply(&self, image: &Image, rng: Option<&mut ChaCha8Rng>, out: &mut Vec<f32>) -> Result<()> {
        let p = &self.preprocessing;
        if image.channels != p.num_channels {
            let message = format!("the image has {}, the model wants {}", image.channels, p.num_channels);
            return Err(Error::usage("channels", message));
        }
        let cropped = match (&self.augment, rng) {
            (Some(augment), Some(rng)) => augment.apply(image, p, rng)?,
            _ => center_crop(&self.resize_shorter(image)?, p.crop),
        };
        let plane = p.crop * p.crop;
        for channel in 0..p.num_channels {
            let (mean, std) = (p.mean[channel], p.std[channel]);
            let values = cropped.pixels.iter().skip(channel).step_by(p.num_channels);
            out.extend(values.take(plane).map(|v| (f32::from(*v) / 255.0 - mean) / std));
        }
        Ok(())
    }

    pub(crate) fn resize_shorter(&self, image: &Image) -> Result<Image> {
        let p = &self.preprocessing;
        let (short, long) = (image.width.min(image.height), image.width.max(image.height));
        if short == p.resize || short == 0 {
            return Ok(image.clone());
        }
        let long = (p.resize * long / short).max(1);
        let (width, height) = if image.width <= image.height { (p.resize, long) } else { (long, p.resize) };
        resize(image, [0, 0, image.width, image.height], width, height, p.interpolation)
    }
}

/// Resizes the box `[left, top, width, height]` of an image, antialiased as PIL's.
pub(crate) fn resize(
    image: &Image,
    [left, top, box_width, box_height]: [usize; 4],
    width: usize,
    height: usize,
    interpolation: Interpolation,
) -> Result<Image> {
    let pixel = if image.channels == 1 { PixelType::U8 } else { PixelType::U8x3 };
    let fail = |e: String| Error::usage("resize", format!("{}×{} to {width}×{height}: {e}", image.width, image.height));
    let source = Buffer::from_vec_u8(image.width as u32, image.height as u32, image.pixels.clone(), pixel)
        .map_err(|e| fail(e.to_string()))?;
    let mut target = Buffer::new(width as u32, height as u32, pixel);
    let filter = match interpolation {
        Interpolation::Bilinear => FilterType::Bilinear,
        Interpolation::Bicubic => FilterType::CatmullRom,
    };
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(filter))
        .crop(left as f64, top as f64, box_width as f64, box_height as f64);
    Resizer::new()
        .resize(&source, &mut target, &options)
        .map_err(|e| fail(e.to_string()))?;
    Ok(Image { width, height, channels: image.channels, pixels: target.into_vec() })
}

/// The square of side `side` in the middle, padded with black where the image is smaller;
/// offsets round half to even, as torchvision's `center_crop`.
fn center_crop(image: &Image, side: usize) -> Image {
    let offset = |length: usize| ((length as f64 - side as f64) / 2.0).round_ties_even() as isize;
    crop(image, offset(image.width), offset(image.height), side)
}

/// The square at (`left`, `top`), which may lie outside; what is outside is black.
pub(crate) fn crop(image: &Image, left: isize, top: isize, side: usize) -> Image {
    let c = image.channels;
    let mut pixels = vec![0; side * side * c];
    let from = (-left).clamp(0, side as isize) as usize;
    let to = (image.width as isize - left).clamp(from as isize, side as isize) as usize;
    for row in 0..side {
        let y = top + row as isize;
        if y < 0 || y >= image.height as isize || from == to {
            continue;
        }
        let start = (y as usize * image.width + (left + from as isize) as usize) * c;
        pixels[(row * side + from) * c..(row * side + to) * c]
            .copy_from_slice(&image.pixels[start..start + (to - from) * c]);
    }
    Image { width: side, height: side, channels: c, pixels }
}
