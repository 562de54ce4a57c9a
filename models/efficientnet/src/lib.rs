//! EfficientNet, EfficientNet-Lite and EfficientNetV2 for Burn, equal to torchvision's, timm's and
//! efficientnet_pytorch's.
//!
//! - Tan and Le 2019, *EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks*,
//!   arXiv:1905.11946.
//! - Tan and Le 2021, *EfficientNetV2: Smaller Models and Faster Training*, arXiv:2104.00298.
//!
//! ```
//! use burn_zoo_efficientnet::{EfficientNet, PretrainedModel, burn::backend::Flex, burn::tensor::Tensor};
//!
//! let device = Default::default();
//! let model = EfficientNet::<Flex>::from_preset("efficientnet_b0", &device)?.with_num_classes(7);
//! let pixel_values = Tensor::zeros([2, 3, 64, 64], &device);
//! assert_eq!(model.forward(pixel_values.clone()).dims(), [2, 7]);
//! assert_eq!(model.forward_features(pixel_values).dims(), [2, 1280, 2, 2]);
//! # Ok::<(), burn_zoo_efficientnet::Error>(())
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
pub use burn_zoo_nn::Padding;
pub use burn_zoo_ops::{Activation, Counts, count};
pub use config::{EfficientNetConfig, StageConfig};
pub use model::EfficientNet;
