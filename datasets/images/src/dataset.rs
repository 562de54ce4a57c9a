use crate::locate::{Wanted, locate};
use crate::{
    Augment, ImageFolder, ImageSource, InMemory, Subset, read_cifar10, read_idx_images,
    read_idx_labels, stratified_split,
};
use burn_zoo_core::{Error, Interpolation, Preprocessing, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The names [`open`] knows.
pub const DATASETS: [&str; 5] = [
    "digits",
    "mnist",
    "fashion-mnist",
    "cifar10",
    "image-folder",
];

/// Where to look and how to split.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Folder of the data, looked into before any other.
    pub data_dir: Option<PathBuf>,
    /// Share of the training images that is held out to choose the best checkpoint, where the set
    /// has no validation part of its own.
    pub valid_fraction: f64,
    /// Side in pixels of the model's input, for `image-folder`.
    pub image_size: usize,
    /// Whether files may be downloaded.
    pub download: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            data_dir: None,
            valid_fraction: 0.1,
            image_size: 224,
            download: true,
        }
    }
}

/// A data set with its parts and how a model sees it.
#[derive(Clone)]
pub struct Dataset {
    /// Its name.
    pub name: String,
    /// Names of the classes, by label.
    pub class_names: Vec<String>,
    /// Images to learn from.
    pub train: Arc<dyn ImageSource>,
    /// Images that choose the best checkpoint.
    pub valid: Arc<dyn ImageSource>,
    /// Images that nothing is chosen by.
    pub test: Arc<dyn ImageSource>,
    /// Sizes, mean and deviation.
    pub preprocessing: Preprocessing,
    /// Random changes that suit it.
    pub augment: Augment,
    /// Authors and licence, to be shown with results.
    pub attribution: String,
}

/// Opens a data set by name.
///
/// # Errors
/// If the name is unknown, the files are not found, or they are not what they must be.
pub fn open(name: &str, options: &OpenOptions) -> Result<Dataset> {
    if !(0.0..1.0).contains(&options.valid_fraction) {
        let message = format!(
            "wants a share from 0 to below 1, got {}",
            options.valid_fraction
        );
        return Err(Error::usage("--valid-fraction", message));
    }
    match name {
        "digits" => digits(options),
        "mnist" => idx_set(&MNIST, options),
        "fashion-mnist" => idx_set(&FASHION, options),
        "cifar10" => cifar10(options),
        "image-folder" => image_folder(options),
        _ => Err(Error::unknown("data set", name, DATASETS)),
    }
}

fn square(side: usize, mean: Vec<f32>, std: Vec<f32>) -> Preprocessing {
    Preprocessing {
        num_channels: mean.len(),
        resize: side,
        crop: side,
        interpolation: Interpolation::Bilinear,
        mean,
        std,
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

const TEN: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

fn digits(options: &OpenOptions) -> Result<Dataset> {
    let bundled = Path::new("the bundled digits");
    let images = include_bytes!("../data/digits-images-idx3-ubyte.gz");
    let labels = include_bytes!("../data/digits-labels-idx1-ubyte.gz");
    let gz = |bytes: &'static [u8]| flate2::read::GzDecoder::new(bytes);
    let ([_, height, width], pixels) = crate::idx::read::<3>(gz(images), 1 << 20, bundled)?;
    let (_, labels) = crate::idx::read::<1>(gz(labels), 1 << 20, bundled)?;
    // The scans have 17 levels; spread them over the range of a byte.
    let pixels = pixels
        .iter()
        .map(|v| ((u16::from(*v) * 255 + 8) / 16) as u8)
        .collect();
    let all = Arc::new(InMemory::new(
        [height, width, 1],
        pixels,
        labels,
        10,
        bundled,
        bundled,
    )?);
    let (rest, test) = stratified_split(all, 0.2);
    let (train, valid) = stratified_split(Arc::new(rest), options.valid_fraction);
    Ok(Dataset {
        name: "digits".into(),
        class_names: names(&TEN),
        train: Arc::new(train),
        valid: Arc::new(valid),
        test: Arc::new(test),
        preprocessing: square(8, vec![0.305], vec![0.376]),
        augment: Augment { shift: 1, ..Augment::default() },
        attribution: "Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak 1998, UCI, CC BY 4.0".into(),
    })
}

struct IdxSet {
    name: &'static str,
    classes: [&'static str; 10],
    system: Option<&'static str>,
    url: &'static str,
    hashes: [&'static str; 4],
    mean: f32,
    std: f32,
    augment: Augment,
    attribution: &'static str,
}

const IDX_FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

const MNIST: IdxSet = IdxSet {
    name: "mnist",
    classes: TEN,
    system: None,
    url: "https://storage.googleapis.com/cvdf-datasets/mnist/",
    hashes: [
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ],
    mean: 0.1307,
    std: 0.3081,
    augment: Augment {
        shift: 2,
        flip: false,
        crop_area: 0.0,
    },
    attribution: "MNIST, Y. LeCun, C. Cortes and C. Burges 1998",
};

const FASHION: IdxSet = IdxSet {
    name: "fashion-mnist",
    classes: [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ],
    system: Some("/usr/share/datasets/fashion-mnist"),
    url: "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    hashes: [
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ],
    mean: 0.2860,
    std: 0.3530,
    augment: Augment {
        shift: 2,
        flip: true,
        crop_area: 0.0,
    },
    attribution: "Fashion-MNIST, H. Xiao, K. Rasul and R. Vollgraf 2017, MIT",
};

fn idx_set(set: &IdxSet, options: &OpenOptions) -> Result<Dataset> {
    let wanted = Wanted {
        dataset: set.name,
        files: &IDX_FILES,
        alternative: ".gz",
        system: set.system.map(Path::new),
        urls: &IDX_FILES.map(|file| format!("{}{file}.gz", set.url)),
        hashes: &set.hashes,
    };
    let files = locate(&wanted, options)?;
    let part = |images: &Path, labelled_by: &Path| {
        let ([_, height, width], pixels) = read_idx_images(images)?;
        let labels = read_idx_labels(labelled_by)?;
        if [height, width] != [28, 28] {
            let message = format!("images of {height}×{width}, {} has 28×28", set.name);
            return Err(Error::malformed(images, message));
        }
        InMemory::new([height, width, 1], pixels, labels, 10, images, labelled_by)
    };
    let (train, valid) = stratified_split(
        Arc::new(part(&files[0], &files[1])?),
        options.valid_fraction,
    );
    Ok(Dataset {
        name: set.name.into(),
        class_names: names(&set.classes),
        train: Arc::new(train),
        valid: Arc::new(valid),
        test: Arc::new(part(&files[2], &files[3])?),
        preprocessing: square(28, vec![set.mean], vec![set.std]),
        augment: set.augment,
        attribution: set.attribution.into(),
    })
}

const CIFAR_FILES: [&str; 6] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
    "test_batch.bin",
];

fn cifar10(options: &OpenOptions) -> Result<Dataset> {
    let wanted = Wanted {
        dataset: "cifar10",
        files: &CIFAR_FILES,
        alternative: "",
        system: None,
        urls: &["https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz".to_string()],
        hashes: &["c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"],
    };
    let files = locate(&wanted, options)?;
    let (train, valid) =
        stratified_split(Arc::new(read_cifar10(&files[..5])?), options.valid_fraction);
    Ok(Dataset {
        name: "cifar10".into(),
        class_names: names(&[
            "airplane",
            "automobile",
            "bird",
            "cat",
            "deer",
            "dog",
            "frog",
            "horse",
            "ship",
            "truck",
        ]),
        train: Arc::new(train),
        valid: Arc::new(valid),
        test: Arc::new(read_cifar10(&files[5..])?),
        preprocessing: square(
            32,
            vec![0.4914, 0.4822, 0.4465],
            vec![0.2470, 0.2435, 0.2616],
        ),
        augment: Augment {
            shift: 4,
            flip: true,
            crop_area: 0.0,
        },
        attribution: "CIFAR-10, A. Krizhevsky 2009".into(),
    })
}

/// `root/train/CLASS/*` with `val` and `test` beside it, or `root/CLASS/*` split here.
fn image_folder(options: &OpenOptions) -> Result<Dataset> {
    let Some(root) = &options.data_dir else {
        return Err(Error::usage(
            "--data-dir",
            "is needed for image-folder: a folder with one folder of images a class",
        ));
    };
    if !root.is_dir() {
        return Err(Error::NotFound {
            path: root.clone(),
            hint: "--data-dir must be a folder with one folder of images a class".into(),
        });
    }
    let size = options.image_size;
    if !(8..=4096).contains(&size) {
        return Err(Error::usage(
            "--image-size",
            format!("wants 8 to 4096 pixels, got {size}"),
        ));
    }
    let (train_root, parted) = match root.join("train") {
        train if train.is_dir() => (train, true),
        _ => (root.clone(), false),
    };
    let class_names = ImageFolder::classes(&train_root)?;
    let folder = |part: &Path| ImageFolder::open(part, &class_names, 3).map(Arc::new);
    let all: Arc<dyn ImageSource> = folder(&train_root)?;
    let part = |names: &[&str]| -> Result<Option<Arc<dyn ImageSource>>> {
        let found = names
            .iter()
            .map(|n| root.join(n))
            .find(|path| parted && path.is_dir());
        found
            .map(|path| Ok(folder(&path)? as Arc<dyn ImageSource>))
            .transpose()
    };
    let hold_out = |source: Arc<dyn ImageSource>,
                    share: f64|
     -> (Arc<dyn ImageSource>, Arc<dyn ImageSource>) {
        let (rest, held): (Subset, Subset) = stratified_split(source, share);
        (Arc::new(rest), Arc::new(held))
    };
    let (rest, test) = match part(&["test"])? {
        Some(test) => (all, test),
        None => hold_out(all, 0.2),
    };
    let (train, valid) = match part(&["val", "valid"])? {
        Some(valid) => (rest, valid),
        None => hold_out(rest, options.valid_fraction),
    };
    if test.is_empty() {
        return Err(Error::malformed(
            root,
            "has too few images a class to hold any out for a test",
        ));
    }
    let imagenet = Preprocessing::imagenet(size * 8 / 7);
    Ok(Dataset {
        name: "image-folder".into(),
        class_names,
        train,
        valid,
        test,
        preprocessing: Preprocessing {
            crop: size,
            ..imagenet
        },
        augment: Augment {
            shift: 0,
            flip: true,
            crop_area: 0.35,
        },
        attribution: root.display().to_string(),
    })
}
