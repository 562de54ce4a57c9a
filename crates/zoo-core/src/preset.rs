use serde::{Deserialize, Serialize};

/// What a model is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// One of a set of classes for an image.
    ImageClassification,
    /// The token that stood at a masked place.
    FillMask,
    /// A vector for a text.
    TextEmbedding,
    /// How a text goes on.
    TextGeneration,
}

impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Task::ImageClassification => f.write_str("image classification"),
            Task::FillMask => f.write_str("masked tokens"),
            Task::TextEmbedding => f.write_str("text embedding"),
            Task::TextGeneration => f.write_str("text generation"),
        }
    }
}

/// The filter an image is resized with (PIL's names; all antialiased).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interpolation {
    /// Triangle filter.
    Bilinear,
    /// Catmull-Rom style cubic with a = -0.5, as PIL uses.
    Bicubic,
}

/// How an image file becomes `pixel_values`: resize the shorter side, crop the centre, scale to
/// `[0, 1]`, subtract `mean` and divide by `std`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preprocessing {
    /// Channels of the input: 1 (grey) or 3 (RGB).
    pub num_channels: usize,
    /// Length in pixels that the shorter side is resized to.
    pub resize: usize,
    /// Side in pixels of the square cut from the centre.
    pub crop: usize,
    /// Resize filter.
    pub interpolation: Interpolation,
    /// Mean per channel, on the `[0, 1]` scale.
    pub mean: Vec<f32>,
    /// Standard deviation per channel, on the `[0, 1]` scale.
    pub std: Vec<f32>,
}

impl Preprocessing {
    /// torchvision's `ImageClassification` preset for ImageNet: resize, then crop 224.
    pub fn imagenet(resize: usize) -> Self {
        Self {
            num_channels: 3,
            resize,
            crop: 224,
            interpolation: Interpolation::Bilinear,
            mean: vec![0.485, 0.456, 0.406],
            std: vec![0.229, 0.224, 0.225],
        }
    }

    /// The same with another side that is cut out, and another filter.
    pub fn cropped(self, crop: usize, interpolation: Interpolation) -> Self {
        Self {
            crop,
            interpolation,
            ..self
        }
    }

    /// The same with this mean and deviation for every channel.
    pub fn scaled(self, mean: f32, std: f32) -> Self {
        Self {
            mean: vec![mean; self.num_channels],
            std: vec![std; self.num_channels],
            ..self
        }
    }

    /// For networks of images of 32 pixels, with CIFAR-10's mean and deviation.
    pub fn cifar() -> Self {
        Self {
            num_channels: 3,
            resize: 32,
            crop: 32,
            interpolation: Interpolation::Bilinear,
            mean: vec![0.4914, 0.4822, 0.4465],
            std: vec![0.2470, 0.2435, 0.2616],
        }
    }
}

/// Where published weights are and what they are worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Weights {
    /// Address of the file.
    pub url: &'static str,
    /// Leading hexadecimal digits of the file's SHA-256, as upstream publishes them; empty where the hub
    /// states it with the file.
    pub sha256_prefix: &'static str,
    /// Licence of the weights.
    pub license: &'static str,
    /// What they were trained on.
    pub dataset: &'static str,
    /// Published top-1 accuracy on `dataset` in percent, where upstream's code states one.
    pub top1: Option<f32>,
}

impl Weights {
    /// A model of the hub.
    pub fn hub(url: &'static str, license: &'static str, dataset: &'static str) -> Self {
        Self {
            url,
            sha256_prefix: "",
            license,
            dataset,
            top1: None,
        }
    }

    /// A file of weights for ImageNet-1k whose name ends with its hash, as torchvision's and timm's
    /// do: `NAME-HASH.pth`.
    pub fn imagenet(url: &'static str, license: &str, top1: Option<f32>) -> Self {
        let stem = url.rsplit_once('.').map_or(url, |(stem, _)| stem);
        Self {
            url,
            sha256_prefix: stem.rsplit_once('-').map_or("", |(_, hash)| hash),
            license: match license {
                "Apache-2.0" => "Apache-2.0; ImageNet's own terms hold for its images",
                _ => "BSD-3-Clause; ImageNet's own terms hold for its images",
            },
            dataset: "ImageNet-1k",
            top1,
        }
    }
}

impl Preset {
    /// How its input is made from an image.
    ///
    /// # Errors
    /// If it takes no images.
    pub fn images(&self) -> crate::Result<&Preprocessing> {
        let found = self.preprocessing.as_ref();
        found.ok_or_else(|| crate::Error::usage(self.name, "takes no images"))
    }
}

/// A named, published configuration of a model family.
#[derive(Clone, Debug, Serialize)]
pub struct Preset {
    /// Upstream's name, such as `resnet50`.
    pub name: &'static str,
    /// The crate that implements it, such as `resnet`.
    pub family: &'static str,
    /// What it is for.
    pub task: Task,
    /// Title, authors and arXiv number of the paper.
    pub paper: &'static str,
    /// The implementation it is equal to.
    pub upstream: &'static str,
    /// Licence of that implementation.
    pub license: &'static str,
    /// Trainable parameters.
    pub num_parameters: usize,
    /// How its input is made from an image, where it takes one.
    pub preprocessing: Option<Preprocessing>,
    /// Published weights, if there are any.
    pub weights: Option<Weights>,
}
