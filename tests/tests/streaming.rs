//! An image folder streams with flat memory. Alone in its file, so alone in its process.
#![cfg(target_os = "linux")]

use burn_zoo_core::Preprocessing;
use burn_zoo_images::{ImageFolder, ImageSource, Loader, LoaderOptions, Transform};
use image::{ImageBuffer, Rgb};
use std::sync::Arc;

#[test]
fn an_image_folder_streams_with_flat_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    for class in ["a", "b"] {
        std::fs::create_dir(root.join(class)).expect("a folder");
        for i in 0..30u8 {
            let image = ImageBuffer::from_fn(400, 400, |x, y| Rgb([x as u8 ^ i, y as u8, i]));
            image
                .save(root.join(class).join(format!("{i}.png")))
                .expect("writable");
        }
    }
    let classes = ImageFolder::classes(root).expect("two classes");
    let source = Arc::new(ImageFolder::open(root, &classes, 3).expect("images"));
    assert_eq!(source.len(), 60);
    let transform = Transform::eval(Preprocessing::imagenet(256));
    let options = LoaderOptions {
        batch_size: 4,
        seed: Some(1),
        workers: 2,
    };
    let loader = Loader::new(source, transform, options).expect("valid options");
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
        let line = status
            .lines()
            .find(|l| l.starts_with("VmRSS"))
            .expect("resident memory");
        line.split_whitespace()
            .nth(1)
            .and_then(|kib| kib.parse::<i64>().ok())
            .expect("a number")
    };
    let mut after = Vec::new();
    for epoch in 0..12 {
        let batches = loader.epoch(epoch, 0).filter(|b| b.is_ok()).count();
        assert_eq!(batches, 15);
        after.push(resident());
    }
    // Decoded, an epoch is 29 MB, so ten epochs are 288 MB. Threads come and go with pools of their
    // own, some megabytes each; had one image in ten stayed, this would be 29 MB.
    let grown = after[11] - after[1];
    println!("resident KiB after each epoch: {after:?}");
    assert!(grown < 28_000, "grown by {grown} KiB: {after:?}");
}
