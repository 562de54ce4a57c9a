//! Image data sets, preprocessing and deterministic loaders.
//!
//! - [`open`] finds a data set by name: bundled, in a folder, or downloaded by hash;
//! - [`decode`] reads an image file, [`Transform`] makes model input from it;
//! - [`Loader`] shuffles, augments and batches on worker threads. What it yields depends only on
//!   seed, epoch and position, so a run can stop anywhere and go on.
//!
//! Files are not trusted: magic numbers, lengths and labels are checked before they are used.

mod augment;
mod cifar;
mod dataset;
mod decode;
#[cfg(feature = "download")]
mod download;
mod folder;
mod idx;
mod image;
mod loader;
mod locate;
mod transform;

pub use augment::Augment;
pub use cifar::read_cifar10;
pub use dataset::{DATASETS, Dataset, OpenOptions, open};
pub use decode::decode;
pub use folder::{ImageFolder, images_in};
pub use idx::{read_idx_images, read_idx_labels};
pub use image::{Image, ImageSource, InMemory, Subset, stratified_split};
pub use loader::{Batch, Epoch, Loader, LoaderOptions};
pub use transform::Transform;
