use crate::ImageSource;
use burn_zoo_core::{Error, Result};
use burn_zoo_image::{Image, decode};
use std::path::{Path, PathBuf};

/// Endings of the files that are taken for images.
const EXTENSIONS: [&str; 9] = [
    "png", "jpg", "jpeg", "bmp", "gif", "webp", "tif", "tiff", "ppm",
];

/// A folder with one folder of images a class, decoded when asked for.
///
/// Only names are held in memory, so a set may be of any size.
#[derive(Debug)]
pub struct ImageFolder {
    files: Vec<(PathBuf, usize)>,
    channels: usize,
}

impl ImageFolder {
    /// The class names of `root`: its folders, sorted.
    ///
    /// # Errors
    /// If it cannot be read or has no folders.
    pub fn classes(root: &Path) -> Result<Vec<String>> {
        let mut classes = Vec::new();
        for entry in read_dir(root)? {
            if entry.is_dir() {
                let name = entry.file_name().map(|n| n.to_string_lossy().into_owned());
                classes.extend(name.filter(|n| !n.starts_with('.')));
            }
        }
        classes.sort();
        if classes.len() < 2 {
            let message = format!(
                "wants a folder of images for each of two classes or more, has {}",
                classes.len()
            );
            return Err(Error::malformed(root, message));
        }
        Ok(classes)
    }

    /// Lists the images of `root`, whose folders must be `classes`.
    ///
    /// # Errors
    /// If a class folder is missing or has no images.
    pub fn open(root: &Path, classes: &[String], channels: usize) -> Result<Self> {
        let mut files = Vec::new();
        for (label, class) in classes.iter().enumerate() {
            let folder = root.join(class);
            let before = files.len();
            files.extend(images_in(&folder)?.into_iter().map(|path| (path, label)));
            if files.len() == before {
                let message = format!("the class folder has no images ({})", EXTENSIONS.join(", "));
                return Err(Error::malformed(folder, message));
            }
        }
        Ok(Self { files, channels })
    }
}

/// Whether the file's ending is one of an image.
fn is_image(path: &Path) -> bool {
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    extension.is_some_and(|e| EXTENSIONS.contains(&e.as_str())) && path.is_file()
}

fn read_dir(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(path).map_err(Error::io(path, "list the folder"))?;
    entries
        .map(|entry| Ok(entry.map_err(Error::io(path, "list the folder"))?.path()))
        .collect()
}

impl ImageSource for ImageFolder {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn label(&self, i: usize) -> usize {
        self.files[i].1
    }

    fn image(&self, i: usize) -> Result<Image> {
        decode(&self.files[i].0, self.channels)
    }
}

/// The image files of a folder, sorted by name.
///
/// # Errors
/// If the folder cannot be listed.
pub fn images_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut images: Vec<PathBuf> = read_dir(folder)?
        .into_iter()
        .filter(|path| is_image(path))
        .collect();
    images.sort();
    Ok(images)
}
