//! ResNet, ResNeXt and Wide ResNet for Burn, equal to torchvision's.
//!
//! - He et al. 2015, *Deep Residual Learning for Image Recognition*, arXiv:1512.03385; the
//!   bottleneck strides in its 3×3 convolution ("v1.5"), as torchvision's does.
//! - Xie et al. 2016, *Aggregated Residual Transformations*, arXiv:1611.05431 (ResNeXt).
//! - Zagoruyko and Komodakis 2016, *Wide Residual Networks*, arXiv:1605.07146.
//!
//! ```
//! use burn_zoo_resnet::{PretrainedModel, ResNet, burn::backend::Flex, burn::tensor::Tensor};
//!
//! let device = Default::default();
//! let model = ResNet::<Flex>::from_preset("resnet20", &device)?.with_num_classes(7);
//! let pixel_values = Tensor::zeros([2, 3, 32, 32], &device);
//! assert_eq!(model.forward(pixel_values.clone()).dims(), [2, 7]);
//! assert_eq!(model.forward_features(pixel_values).dims(), [2, 64, 8, 8]);
//! # Ok::<(), burn_zoo_resnet::Error>(())
//! ```

mod checkpoint;
mod config;
mod model;
mod presets;

pub use burn;
pub use burn_zoo_checkpoint::{ClassifierConfig, LoadReport, ModelConfig, PretrainedModel};
pub use burn_zoo_core::{Error, Mode, Preprocessing, Preset};
#[cfg(feature = "image")]
pub use burn_zoo_image::read_image;
pub use burn_zoo_ops::{Counts, count};
pub use config::{BlockType, ResNetConfig, Stem};
pub use model::{Block, Downsample, ResNet};
