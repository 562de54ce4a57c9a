//! Reading, preprocessing and feeding images.

use crate::common::*;
use burn_zoo_checkpoint::{Tensors, read_safetensors};
use burn_zoo_core::{Interpolation, Preprocessing};
use burn_zoo_image::{Image, decode, preprocess, resize};
use burn_zoo_images::{Augment, Batch, ImageFolder, Loader, LoaderOptions, Transform};
use burn_zoo_tests::golden::folder;
use image::{DynamicImage, ImageBuffer, Luma, Rgb, Rgba};
use std::sync::Arc;

/// Images before and after torchvision's evaluation transform.
fn golden() -> Tensors {
    let path = folder("images").join("preprocess.safetensors");
    read_safetensors(&path).expect("the fixture is part of the repository")
}

fn golden_image(fixture: &Tensors, name: &str) -> Image {
    let data = &fixture[name];
    let shape = data.shape.to_vec();
    let pixels = data.iter::<u8>().collect();
    Image {
        width: shape[1],
        height: shape[0],
        channels: 3,
        pixels,
    }
}

fn worst_difference(got: &[u8], want: &[u8]) -> i32 {
    assert_eq!(got.len(), want.len());
    got.iter()
        .zip(want)
        .map(|(a, b)| (i32::from(*a) - i32::from(*b)).abs())
        .max()
        .unwrap_or(0)
}

#[test]
fn symptom_12_resize_equals_pil_within_one_step() {
    let fixture = golden();
    for i in 0..2 {
        let image = golden_image(&fixture, &format!("image.{i}"));
        for (name, interpolation) in [
            ("resized", Interpolation::Bilinear),
            ("resized_bicubic", Interpolation::Bicubic),
        ] {
            let want = golden_image(&fixture, &format!("{name}.{i}"));
            let all = [0, 0, image.width, image.height];
            let got =
                resize(&image, all, want.width, want.height, interpolation).expect("valid sizes");
            let worst = worst_difference(&got.pixels, &want.pixels);
            println!("{name}.{i}: {worst}");
            assert!(worst <= 1, "{name}.{i} differs by {worst}");
        }
    }
}

#[test]
fn preprocessing_equals_torchvisions_preset() {
    let fixture = golden();
    let preprocessing = Preprocessing {
        crop: 28,
        ..Preprocessing::imagenet(32)
    };
    for i in 0..2 {
        let image = golden_image(&fixture, &format!("image.{i}"));
        let mut got = Vec::new();
        preprocess(&image, &preprocessing, &mut got).expect("RGB");
        let want: Vec<f32> = fixture[&format!("pixel_values.{i}")]
            .iter::<f32>()
            .collect();
        assert_eq!(got.len(), want.len());
        // One step of a pixel is 1/255/std, at most 0.0176.
        let worst = got
            .iter()
            .zip(&want)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        println!("pixel_values.{i}: {worst}");
        assert!(worst <= 0.0176, "image {i} differs by {worst}");
    }
}

#[test]
fn symptom_12_grey_alpha_and_16_bit_files_become_rgb() {
    let folder = temp();
    let save = |name: &str, image: DynamicImage| {
        let path = folder.path().join(name);
        image.save(&path).expect("writable");
        path
    };
    let grey = save(
        "grey.png",
        ImageBuffer::from_pixel(5, 3, Luma([77u8])).into(),
    );
    let alpha = save(
        "alpha.png",
        ImageBuffer::from_pixel(5, 3, Rgba([10u8, 20, 30, 0])).into(),
    );
    let deep = save(
        "deep.png",
        ImageBuffer::from_pixel(5, 3, Rgb([65535u16, 257 * 9, 0])).into(),
    );
    for (path, want) in [
        (grey, [77, 77, 77]),
        (alpha, [10, 20, 30]),
        (deep, [255, 9, 0]),
    ] {
        let image = decode(&path, 3).expect("a valid file");
        assert_eq!((image.width, image.height, image.channels), (5, 3, 3));
        assert_eq!(image.pixels[..3], want, "{}", path.display());
    }
}

#[test]
fn symptom_12_four_inks_become_the_rgb_that_pil_makes_of_them() {
    let image = decode(&folder("images").join("cmyk.jpg"), 3).expect("a fixture");
    let expected = read_safetensors(&folder("images").join("cmyk.safetensors")).expect("a fixture");
    let want: Vec<u8> = expected["pixels"].iter::<u8>().collect();
    assert_eq!((image.width, image.height), (16, 24));
    let off = image.pixels.iter().zip(&want).map(|(a, b)| a.abs_diff(*b));
    // Decoders of JPEG may differ by the rounding of their transforms.
    let largest = off.max().unwrap_or_default();
    assert!(
        image.pixels.len() == want.len() && largest <= 3,
        "{largest}"
    );
}

#[test]
fn symptom_12_a_files_orientation_is_applied() {
    // A JPEG of 8×4 pixels, left half black and right half white, with an EXIF block that says
    // "rotate by 90 degrees clockwise to show".
    let mut picture = image::GrayImage::new(8, 4);
    picture
        .enumerate_pixels_mut()
        .for_each(|(x, _, p)| p.0[0] = if x < 4 { 0 } else { 255 });
    let mut plain = Vec::new();
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut plain, 100)
        .encode_image(&picture)
        .expect("in memory");
    let exif: &[u8] = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let mut bytes = plain[..2].to_vec();
    bytes.extend([0xff, 0xe1]);
    bytes.extend((exif.len() as u16 + 2).to_be_bytes());
    bytes.extend(exif);
    bytes.extend(&plain[2..]);
    let folder = temp();
    let path = folder.path().join("turned.jpg");
    std::fs::write(&path, bytes).expect("writable");
    let image = decode(&path, 1).expect("a valid file");
    assert_eq!((image.width, image.height), (4, 8));
    assert!(
        image.pixels[0] < 50 && image.pixels[31] > 200,
        "the left half is on top now"
    );
}

fn loader(workers: usize) -> Loader {
    let data = digits();
    let transform = Transform {
        preprocessing: data.preprocessing.clone(),
        augment: Some(Augment {
            shift: 1,
            flip: true,
            crop_area: 0.5,
        }),
    };
    Loader::new(
        data.train.clone(),
        transform,
        LoaderOptions {
            batch_size: 100,
            seed: Some(7),
            workers,
        },
    )
    .expect("valid options")
}

fn batches(loader: &Loader, epoch: usize, first: usize) -> Vec<Batch> {
    loader
        .epoch(epoch, first)
        .map(|b| b.expect("the digits are readable"))
        .collect()
}

#[test]
fn batches_depend_on_seed_epoch_and_position_alone() {
    let all = batches(&loader(1), 3, 0);
    assert_eq!(all.len(), 12);
    assert_eq!(all, batches(&loader(3), 3, 0), "any number of workers");
    assert_eq!(all[5..], batches(&loader(2), 3, 5), "any beginning");
    assert_ne!(all, batches(&loader(1), 4, 0), "another epoch");
}

#[test]
fn evaluation_sees_every_image_in_order() {
    let data = digits();
    let transform = Transform::eval(data.preprocessing.clone());
    let options = LoaderOptions {
        batch_size: 50,
        seed: None,
        workers: 2,
    };
    let loader = Loader::new(data.test.clone(), transform, options).expect("valid options");
    let labels: Vec<i32> = batches(&loader, 0, 0)
        .into_iter()
        .flat_map(|b| b.labels)
        .collect();
    let want: Vec<i32> = (0..data.test.len())
        .map(|i| data.test.label(i) as i32)
        .collect();
    assert_eq!(labels, want);
}

#[test]
fn the_digits_are_split_the_same_way_every_time_with_every_class_in_every_part() {
    let data = digits();
    assert_eq!(
        (data.train.len(), data.valid.len(), data.test.len()),
        (1293, 145, 359)
    );
    for part in [&data.train, &data.valid, &data.test] {
        let mut counts = [0usize; 10];
        (0..part.len()).for_each(|i| counts[part.label(i)] += 1);
        let (least, most) = (
            counts.iter().min().expect("ten"),
            counts.iter().max().expect("ten"),
        );
        assert!(
            most - least <= part.len() / 90 + 1,
            "stratified: {counts:?}"
        );
    }
    // A change of the split would make stated accuracies mean something else.
    let sum: usize = (0..data.test.len())
        .map(|i| (i + 1) * (data.test.label(i) + 1))
        .sum();
    assert_eq!(sum, DIGITS_TEST_SUM);
}

const DIGITS_TEST_SUM: usize = 355_236;

#[test]
fn a_bad_image_ends_the_epoch_with_an_error_that_names_it() {
    let folder = temp();
    digit_folder(folder.path(), 2, 4);
    let bad = folder.path().join("digit 1/bad.png");
    std::fs::write(&bad, "no image").expect("writable");
    let classes = ImageFolder::classes(folder.path()).expect("two classes");
    let source = Arc::new(ImageFolder::open(folder.path(), &classes, 3).expect("images"));
    let transform = Transform::eval(Preprocessing {
        crop: 32,
        ..Preprocessing::imagenet(32)
    });
    let options = LoaderOptions {
        batch_size: 2,
        seed: None,
        workers: 2,
    };
    let loader = Loader::new(source, transform, options).expect("valid options");
    let results: Vec<_> = loader.epoch(0, 0).collect();
    let errors: Vec<String> = results
        .iter()
        .filter_map(|r| r.as_ref().err().map(ToString::to_string))
        .collect();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("bad.png"), "{errors:?}");
    assert!(
        results.last().expect("some").is_err(),
        "nothing follows the error"
    );
}

#[test]
fn fixtures_are_small() {
    for entry in std::fs::read_dir(folder("resnet")).expect("the fixtures") {
        let entry = entry.expect("an entry");
        let size = entry.metadata().expect("readable").len();
        assert!(
            size <= 300_000,
            "{} has {size} bytes",
            entry.path().display()
        );
        if entry.path().extension().is_some_and(|e| e == "safetensors") {
            read_safetensors(&entry.path()).expect("a valid fixture");
        }
    }
}
