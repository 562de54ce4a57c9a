//! Image files to pixel values.
//!
//! - [`decode`] reads a file the way PIL does;
//! - [`preprocess`] resizes, crops and normalises as a preset's [`Preprocessing`] says;
//! - `read_image` (feature `burn`) does both and gives a tensor.
//!
//! [`Preprocessing`]: burn_zoo_core::Preprocessing

mod decode;
mod jpeg;
mod preprocess;

pub use decode::decode;
pub use preprocess::{crop, normalise, preprocess, resize};

/// 8-bit pixels in rows, channels interleaved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Pixels a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 (grey) or 3 (RGB).
    pub channels: usize,
    /// `height · width · channels` values.
    pub pixels: Vec<u8>,
}

/// Reads an image file as `pixel_values` `[1, channels, height, width]` of f32.
///
/// # Errors
/// As [`decode`].
#[cfg(feature = "burn")]
pub fn read_image<B: burn::tensor::backend::Backend>(
    file: impl AsRef<std::path::Path>,
    preprocessing: &burn_zoo_core::Preprocessing,
    device: &B::Device,
) -> burn_zoo_core::Result<burn::tensor::Tensor<B, 4>> {
    use burn::tensor::{DType, Tensor, TensorData};
    let image = decode(file.as_ref(), preprocessing.num_channels)?;
    let mut values = Vec::new();
    preprocess(&image, preprocessing, &mut values)?;
    let shape = [
        1,
        preprocessing.num_channels,
        preprocessing.crop,
        preprocessing.crop,
    ];
    Ok(Tensor::from_data(
        TensorData::new(values, shape),
        (device, DType::F32),
    ))
}
