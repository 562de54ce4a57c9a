//! MobileNetV2 and MobileNetV3 for Burn, equal to torchvision's.
//!
//! - Sandler et al. 2018, *MobileNetV2: Inverted Residuals and Linear Bottlenecks*,
//!   arXiv:1801.04381.
//! - Howard et al. 2019, *Searching for MobileNetV3*, arXiv:1905.02244.
//!
//! ```
//! use burn_zoo_mobilenet::{MobileNet, PretrainedModel, burn::backend::Flex, burn::tensor::Tensor};
//!
//! let device = Default::default();
//! let model = MobileNet::<Flex>::from_preset("mobilenet_v3_small", &device)?.with_num_classes(7);
//! let pixel_values = Tensor::zeros([2, 3, 64, 64], &device);
//! assert_eq!(model.forward(pixel_values.clone()).dims(), [2, 7]);
//! assert_eq!(model.forward_features(pixel_values).dims(), [2, 576, 2, 2]);
//! # Ok::<(), burn_zoo_mobilenet::Error>(())
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
pub use burn_zoo_ops::{Activation, Counts, count};
pub use config::{BlockConfig, MobileNetConfig, Version};
pub use model::MobileNet;
