//! Strict loading: every way a file can disagree with a model is an error that names the key.

use burn::tensor::{DType, TensorData};
use burn_flex::Flex;
use burn_zoo_checkpoint::{
    KeyMap, Tensors, collect, load, read_safetensors, save, write_safetensors,
};
use burn_zoo_core::Error;
use burn_zoo_resnet::{ModelConfig, PretrainedModel, ResNet, ResNetConfig};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn model(seed: u64) -> ResNet<Flex> {
    let config = ResNetConfig {
        num_classes: 3,
        ..ResNetConfig::cifar(1).with_width(4)
    };
    ResNet::new(&config, seed, &Default::default()).expect("a valid config")
}

fn maps() -> Vec<KeyMap> {
    model(1).config().key_maps()
}

/// A saved model whose tensors were changed.
fn changed(change: impl FnOnce(&mut Tensors)) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("weights.safetensors");
    save(&model(1), &path, &maps()[0]).expect("writable");
    let mut tensors = read_safetensors(&path).expect("just written");
    change(&mut tensors);
    write_safetensors(&path, &tensors).expect("writable");
    (folder, path)
}

fn error(change: impl FnOnce(&mut Tensors)) -> Error {
    let (_folder, path) = changed(change);
    load(model(2), &path, &maps(), DType::F32).expect_err("a file that does not fit")
}

#[test]
fn what_is_saved_loads_bit_equal_under_upstreams_names() {
    let (_folder, path) = changed(|_| ());
    let tensors = read_safetensors(&path).expect("just written");
    for key in [
        "conv1.weight",
        "layer1.0.bn1.running_var",
        "layer2.0.downsample.0.weight",
        "layer3.0.downsample.1.bias",
        "fc.bias",
    ] {
        assert!(tensors.contains_key(key), "{key} is missing");
    }
    let loaded = load(model(2), &path, &maps(), DType::F32).expect("it fits");
    assert_eq!(collect(&loaded), collect(&model(1)));
    assert_ne!(collect(&loaded), collect(&model(2)));
}

#[test]
fn symptom_1_a_misspelt_or_extra_key_is_an_error_that_names_it() {
    let found = error(|t| {
        let data = t.remove("layer1.0.conv1.weight").expect("there");
        t.insert("layer1.0.conv1.wieght".into(), data);
    });
    let Error::MissingKey { key, nearest, .. } = found else {
        panic!("{found}")
    };
    assert_eq!(
        (key.as_str(), nearest),
        (
            "layer1.0.conv1.weight",
            vec!["layer1.0.conv1.wieght".to_string()]
        )
    );

    let found = error(|t| {
        let data = t["fc.bias"].clone();
        t.insert("fc.biass".into(), data);
    });
    let Error::UnexpectedKey { key, nearest, .. } = found else {
        panic!("{found}")
    };
    assert_eq!(
        (key.as_str(), nearest),
        ("fc.biass", vec!["fc.bias".to_string()])
    );
}

#[test]
fn a_key_of_another_shape_is_an_error_with_both_shapes() {
    let found = error(|t| {
        t.insert(
            "fc.weight".into(),
            TensorData::new(vec![0.0f32; 64], [4, 16]),
        );
    });
    let Error::Shape {
        key, wanted, found, ..
    } = found
    else {
        panic!("{found}")
    };
    assert_eq!(
        (key.as_str(), wanted, found),
        ("fc.weight", vec![3, 16], vec![4, 16])
    );
}

#[test]
fn integers_for_a_weight_are_refused() {
    let found = error(|t| {
        t.insert("fc.bias".into(), TensorData::new(vec![1i64, 2, 3], [3]));
    });
    assert!(found.to_string().contains("`fc.bias` holds I64"), "{found}");
}

#[test]
fn torchs_batch_counters_are_dropped() {
    let (_folder, path) = changed(|t| {
        t.insert(
            "bn1.num_batches_tracked".into(),
            TensorData::new(vec![7i64], [1]),
        );
    });
    load(model(2), &path, &maps(), DType::F32).expect("a counter is no weight");
}

#[test]
fn symptom_4_the_dtype_in_memory_is_the_one_asked_for() {
    let (_folder, path) = changed(|t| {
        for data in t.values_mut() {
            *data = data.clone().convert_dtype(DType::BF16);
        }
    });
    for dtype in [DType::F32, DType::F64] {
        let loaded = load(model(2), &path, &maps(), dtype).expect("bf16 is a float");
        assert!(collect(&loaded).values().all(|data| data.dtype == dtype));
    }
}

#[test]
fn a_number_too_large_for_the_type_asked_for_is_refused() {
    let with = |number: f64| {
        changed(move |t| {
            let bias = t.get_mut("bn1.bias").expect("a batch norm");
            let mut numbers: Vec<f64> = bias.iter::<f64>().collect();
            numbers[3] = number;
            *bias = TensorData::new(numbers, bias.shape.clone());
        })
    };
    let load = |path: &Path, dtype| load(model(2), path, &maps(), dtype);
    for (number, dtype) in [
        (-70_000.0, DType::F16),
        (1e39, DType::F32),
        (1e39, DType::BF16),
    ] {
        let (_folder, path) = with(number);
        let error = load(&path, dtype)
            .expect_err("it would be infinite")
            .to_string();
        for words in ["bn1.bias", &format!("{number:e}"), &format!("{dtype:?}")] {
            assert!(error.contains(words), "{words}: {error}");
        }
        load(&path, DType::F64).expect("it fits");
    }
    let (_folder, path) = with(f64::INFINITY);
    load(&path, DType::F32).expect("infinite in the file too");
}

#[test]
fn a_file_that_is_cut_off_or_no_safetensors_is_refused() {
    let (_folder, path) = changed(|_| ());
    let bytes = std::fs::read(&path).expect("there");
    for bad in [
        &bytes[..bytes.len() - 1],
        &bytes[..20],
        &bytes[..4],
        b"",
        b"not a weights file at all, but text",
    ] {
        std::fs::write(&path, bad).expect("writable");
        let found = load(model(2), &path, &maps(), DType::F32).expect_err("damaged");
        assert!(found.to_string().contains("weights.safetensors"), "{found}");
    }
    std::fs::write(&path, b"").expect("writable");
    let found = load(model(2), &path, &maps(), DType::F32).expect_err("nothing");
    assert!(found.to_string().contains("is empty"), "{found}");
    // A header that claims more than there is.
    std::fs::write(&path, [&u64::MAX.to_le_bytes()[..], b"{}"].concat()).expect("writable");
    load(model(2), &path, &maps(), DType::F32).expect_err("a lie");
}
