use crate::Image;
use burn_zoo_core::{Error, Interpolation, Preprocessing, Result};
use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

/// The most pixels an image may have after its resize.
const MOST_PIXELS: usize = 1 << 24;

/// Appends `[channels, crop, crop]` normalised values of `image` to `out`.
///
/// The shorter side is resized to `resize` and the centre cut to `crop`, as torchvision's presets do
/// with PIL. An image that has the right size already stays as it is.
///
/// # Errors
/// If the image has other channels than the preprocessing.
pub fn preprocess(image: &Image, preprocessing: &Preprocessing, out: &mut Vec<f32>) -> Result<()> {
    let resized = resize_shorter(image, preprocessing)?;
    normalise(
        &center_crop(&resized, preprocessing.crop),
        preprocessing,
        out,
    )
}

/// Appends the values of an image that has its final size, channel by channel:
/// `(value / 255 - mean) / std`.
///
/// # Errors
/// If the image has other channels than the preprocessing.
pub fn normalise(image: &Image, preprocessing: &Preprocessing, out: &mut Vec<f32>) -> Result<()> {
    let channels = preprocessing.num_channels;
    if image.channels != channels {
        let message = format!(
            "the image has {}, the model wants {channels}",
            image.channels
        );
        return Err(Error::usage("channels", message));
    }
    for channel in 0..channels {
        let (mean, std) = (preprocessing.mean[channel], preprocessing.std[channel]);
        let values = image.pixels.iter().skip(channel).step_by(channels);
        out.extend(values.map(|v| (f32::from(*v) / 255.0 - mean) / std));
    }
    Ok(())
}

fn resize_shorter(image: &Image, p: &Preprocessing) -> Result<Image> {
    let (short, long) = (image.width.min(image.height), image.width.max(image.height));
    if short == p.resize || short == 0 {
        return Ok(image.clone());
    }
    let long = p.resize.saturating_mul(long) / short;
    if long.saturating_mul(p.resize) > MOST_PIXELS {
        let message = format!(
            "{}×{} is too long and thin to be resized to {} pixels across",
            image.width, image.height, p.resize
        );
        return Err(Error::usage("image", message));
    }
    let long = long.max(1);
    let (width, height) = if image.width <= image.height {
        (p.resize, long)
    } else {
        (long, p.resize)
    };
    resize(
        image,
        [0, 0, image.width, image.height],
        width,
        height,
        p.interpolation,
    )
}

/// Resizes the box `[left, top, width, height]` of an image, antialiased as PIL's.
///
/// # Errors
/// If the box is empty or lies outside of the image.
pub fn resize(
    image: &Image,
    [left, top, box_width, box_height]: [usize; 4],
    width: usize,
    height: usize,
    interpolation: Interpolation,
) -> Result<Image> {
    let filter = match interpolation {
        Interpolation::Bilinear => FilterType::Bilinear,
        Interpolation::Bicubic => FilterType::CatmullRom,
    };
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(filter))
        .crop(left as f64, top as f64, box_width as f64, box_height as f64);
    let mut resized = Image {
        width,
        height,
        channels: image.channels,
        pixels: vec![0; width * height * image.channels],
    };
    let done = match image.channels {
        1 => resize_pixels::<U8>(image, &mut resized, &options),
        _ => resize_pixels::<U8x3>(image, &mut resized, &options),
    };
    done.map_err(|e| {
        let message = format!("{}×{} to {width}×{height}: {e}", image.width, image.height);
        Error::usage("resize", message)
    })?;
    Ok(resized)
}

/// Only for the types of pixel in use: all of the library's take a minute to compile.
fn resize_pixels<P: PixelTrait>(
    from: &Image,
    to: &mut Image,
    options: &ResizeOptions,
) -> std::result::Result<(), String> {
    let (width, height) = (from.width as u32, from.height as u32);
    let source =
        TypedImageRef::<P>::from_buffer(width, height, &from.pixels).map_err(|e| e.to_string())?;
    let (width, height) = (to.width as u32, to.height as u32);
    let mut target =
        TypedImage::<P>::from_buffer(width, height, &mut to.pixels).map_err(|e| e.to_string())?;
    Resizer::new()
        .resize_typed(&source, &mut target, options)
        .map_err(|e| e.to_string())
}

/// The square of side `side` in the middle, padded with black where the image is smaller;
/// offsets round half to even, as torchvision's `center_crop`.
fn center_crop(image: &Image, side: usize) -> Image {
    let offset = |length: usize| ((length as f64 - side as f64) / 2.0).round_ties_even() as isize;
    crop(image, offset(image.width), offset(image.height), side)
}

/// The square at (`left`, `top`), which may lie outside; what is outside is black.
pub fn crop(image: &Image, left: isize, top: isize, side: usize) -> Image {
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
    Image {
        width: side,
        height: side,
        channels: c,
        pixels,
    }
}
