use crate::{Image, jpeg::is_whole};
use burn_zoo_core::{Error, Result};
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use std::io::Cursor;
use std::path::Path;

/// The largest side of an image that is decoded.
const MOST_SIDE: u32 = 16_384;
/// The most memory a decoder may take, in bytes.
const MOST_MEMORY: u64 = 1 << 30;

/// Decodes an image file to RGB, or to grey if `channels` is 1, the way PIL does: the file's
/// orientation tag is applied, alpha is dropped, 16 bits become 8.
///
/// The contents decide the format; the file's name only where they say nothing.
///
/// # Errors
/// If the file cannot be read, is no image of a known format, is damaged or truncated, or is larger than
/// 16,384 pixels a side.
pub fn decode(path: &Path, channels: usize) -> Result<Image> {
    let size = std::fs::metadata(path)
        .map_err(Error::io(path, "read"))?
        .len();
    if size > MOST_MEMORY {
        let message = format!("{size} bytes are more than an image may have ({MOST_MEMORY})");
        return Err(Error::malformed(path, message));
    }
    let bytes = std::fs::read(path).map_err(Error::io(path, "read"))?;
    let named = ImageFormat::from_path(path).ok();
    let mut reader = ImageReader::new(Cursor::new(&bytes))
        .with_guessed_format()
        .map_err(Error::io(path, "read"))?;
    if let (None, Some(named)) = (reader.format(), named) {
        reader.set_format(named);
    }
    if reader.format() == Some(ImageFormat::Jpeg) && !is_whole(&bytes) {
        return Err(Error::malformed(
            path,
            "ends before its image does: it is truncated",
        ));
    }
    if reader.format().is_none() {
        return Err(Error::malformed(
            path,
            "not an image: its contents match no known format",
        ));
    }
    let mut limits = Limits::default();
    limits.max_image_width = Some(MOST_SIDE);
    limits.max_image_height = Some(MOST_SIDE);
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let damaged = |e: image::ImageError| Error::malformed(path, format!("cannot be decoded: {e}"));
    // A file named .png that is text can be taken for a format by its name alone.
    let mut decoder = reader.into_decoder().map_err(damaged)?;
    let orientation = decoder.orientation().map_err(damaged)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
    image.apply_orientation(orientation);
    let (width, height) = (image.width() as usize, image.height() as usize);
    let pixels = match channels {
        1 if image.color().has_color() => {
            // PIL's weights (ITU-R 601), in its integer arithmetic.
            let luma = |p: &image::Rgb<u8>| {
                let [r, g, b] = p.0.map(u32::from);
                ((19_595 * r + 38_470 * g + 7_471 * b + 0x8000) >> 16) as u8
            };
            image.into_rgb8().pixels().map(luma).collect()
        }
        1 => image.into_luma8().into_raw(),
        _ => image.into_rgb8().into_raw(),
    };
    let channels = if channels == 1 { 1 } else { 3 };
    Ok(Image {
        width,
        height,
        channels,
        pixels,
    })
}
