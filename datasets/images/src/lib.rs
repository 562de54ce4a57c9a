//! Image data sets, preprocessing and deterministic loaders.
//!
//! - [`open`] finds a data set by name: bundled, in a folder, or downloaded by hash;
//! - [`Transform`] makes model input from an image;
//! - [`Loader`] shuffles, augments and batches on worker threads. What it yields depends only on
//!   seed, epoch and position, so a run can stop anywhere and go on.
//!
//! Files are not trusted: magic numbers, lengths and labels are checked before they are used.

mod augment;
mod cifar;
mod dataset;
#[cfg(feature = "download")]
mod download;
mod folder;
mod idx;
mod loader;
mod locate;
mod source;
mod transform;

pub use augment::Augment;
pub use cifar::read_cifar10;
pub use dataset::{DATASETS, Dataset, OpenOptions, open};
pub use folder::{ImageFolder, images_in};
pub use idx::{read_idx_images, read_idx_labels};
pub use loader::{Batch, Epoch, Loader, LoaderOptions};
pub use source::{ImageSource, InMemory, Subset, stratified_split};
pub use transform::Transform;
