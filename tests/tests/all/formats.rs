//! Weights files in every shape they come in, and every way in which they lie.

use burn::tensor::{DType, TensorData};
use burn_flex::Flex;
use burn_zoo_checkpoint::{
    LazyTensors, LoadOptions, Tensors, collect, load, load_with, save_folder, write_safetensors,
};
use burn_zoo_resnet::{ModelConfig, PretrainedModel, ResNet, ResNetConfig};
use burn_zoo_tests::golden::folder;
use std::path::Path;

fn expected(case: &str) -> Tensors {
    let path = folder("checkpoints").join("expected.safetensors");
    let all = LazyTensors::open(&path).expect("a fixture").read_all();
    let all = all.expect("a fixture").into_iter();
    all.filter_map(|(key, data)| Some((key.strip_prefix(case)?.strip_prefix('/')?.into(), data)))
        .collect()
}

#[test]
fn symptom_6_pytorch_files_of_every_kind_hold_the_right_values() {
    for (file, case) in [
        ("zip", "state"),
        ("legacy", "state"),
        ("nested", "state"),
        ("nested_legacy", "state"),
        ("data_parallel", "state"),
        ("strided", "strided"),
        ("strided_legacy", "strided"),
        ("dtypes", "dtypes"),
        ("whole_module", "module"),
    ] {
        let path = folder("checkpoints").join(format!("{file}.pth"));
        let opened = LazyTensors::open(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
        let read = opened.read_all().unwrap_or_else(|e| panic!("{file}: {e}"));
        assert_eq!(read, expected(case), "{file}");
    }
}

#[test]
fn no_pickle_is_executed() {
    for file in ["hostile.pth", "hostile_legacy.pth"] {
        // Refused, or read without what would have run: either way nothing runs.
        if let Ok(opened) = LazyTensors::open(&folder("checkpoints").join(file)) {
            assert!(opened.tensors.keys().all(|key| key == "fc.bias"), "{file}");
        }
        assert!(
            !Path::new("burn-zoo-was-here").exists(),
            "{file} ran a command"
        );
    }
}

#[test]
fn damaged_pytorch_files_are_errors() {
    let work = tempfile::tempdir().expect("a temporary folder");
    for file in ["zip.pth", "legacy.pth", "strided.pth", "whole_module.pth"] {
        let bytes = std::fs::read(folder("checkpoints").join(file)).expect("a fixture");
        let path = work.path().join("damaged.pth");
        for length in (2..bytes.len()).step_by(97) {
            std::fs::write(&path, &bytes[..length]).expect("writable");
            let found = LazyTensors::open(&path).and_then(|t| t.read_all().map(|_| ()));
            let error = found.expect_err("a file that is cut off").to_string();
            assert!(
                error.contains("damaged.pth"),
                "{file} cut at {length}: {error}"
            );
        }
    }
}

fn model(seed: u64) -> ResNet<Flex> {
    let config = ResNetConfig {
        num_classes: 3,
        ..ResNetConfig::cifar(1).with_width(4)
    };
    ResNet::new(&config, seed, &Default::default()).expect("a valid config")
}

/// A model saved in shards of at most 4 KiB.
fn sharded() -> tempfile::TempDir {
    let work = tempfile::tempdir().expect("a temporary folder");
    let map = &model(1).config().key_maps()[0];
    save_folder(&model(1), work.path(), map, 4096).expect("writable");
    work
}

fn shards(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let names = entries.map(|e| {
        e.expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<String> = names.filter(|n| n.contains("-of-")).collect();
    names.sort();
    names
}

fn load_folder(folder: &Path) -> Result<ResNet<Flex>, String> {
    let model = model(2);
    let maps = model.config().key_maps();
    load(model, folder, &maps, DType::F32).map_err(|e| e.to_string())
}

#[test]
fn shards_load_bit_equal() {
    let work = sharded();
    let names = shards(work.path());
    assert!(names.len() > 2, "{names:?}");
    assert_eq!(
        names[0],
        format!("model-00001-of-{:05}.safetensors", names.len())
    );
    let loaded = load_folder(work.path()).expect("all shards are there");
    assert_eq!(collect(&loaded), collect(&model(1)));
}

#[test]
fn symptom_3_a_missing_shard_is_named() {
    let work = sharded();
    let gone = shards(work.path()).swap_remove(1);
    std::fs::remove_file(work.path().join(&gone)).expect("it is there");
    let error = load_folder(work.path()).expect_err("a shard is missing");
    assert!(
        error.contains(&gone) && error.contains("index.json"),
        "{error}"
    );
}

#[test]
fn an_index_that_lies_is_refused() {
    let work = sharded();
    let path = work.path().join("model.safetensors.index.json");
    let text = std::fs::read_to_string(&path).expect("an index");
    let first = shards(work.path()).swap_remove(0);
    let cases = [
        (
            text.replace(&first, "../model.safetensors"),
            "not a plain file name",
        ),
        (text.replace(&first, "/etc/passwd"), "not a plain file name"),
        (text.replace("conv1.weight", "conv9.weight"), "is not what"),
        (
            text.replacen(
                "\"weight_map\": {",
                "\"weight_map\": {\"extra\": \"FIRST\",",
                1,
            )
            .replace("FIRST", &first),
            "`extra` is not in",
        ),
        (text.replace("weight_map", "weights"), "not an index"),
        ("{\"weight_map\": {}}".into(), "names no tensors"),
        ("[".repeat(100_000), "not an index"),
    ];
    for (bad, words) in cases {
        std::fs::write(&path, bad).expect("writable");
        let error = load_folder(work.path()).expect_err(words);
        assert!(error.contains(words), "{error} should say {words}");
    }
}

#[cfg(unix)]
#[test]
fn links_may_lead_to_a_hubs_blobs_and_nowhere_else() {
    use std::os::unix::fs::symlink;
    let work = sharded();
    let outside = tempfile::tempdir().expect("a temporary folder");
    let shard = work.path().join(&shards(work.path())[0]);
    std::fs::rename(&shard, outside.path().join("blob")).expect("movable");
    symlink(outside.path().join("blob"), &shard).expect("links");
    let error = load_folder(work.path()).expect_err("a link that leads out");
    assert!(error.contains("leads out of its folder"), "{error}");

    // As the hub's cache has it: snapshots/COMMIT/FILE links to ../../blobs/HASH.
    let cache = tempfile::tempdir().expect("a temporary folder");
    let snapshot = cache.path().join("snapshots/abc");
    std::fs::create_dir_all(&snapshot).expect("folders");
    std::fs::create_dir_all(cache.path().join("blobs")).expect("a folder");
    let map = &model(1).config().key_maps()[0];
    burn_zoo_checkpoint::save(&model(1), &cache.path().join("blobs/1"), map).expect("writable");
    symlink("../../blobs/1", snapshot.join("model.safetensors")).expect("links");
    let loaded = load_folder(&snapshot).expect("the cache's own blob");
    assert_eq!(collect(&loaded), collect(&model(1)));
}

#[test]
fn a_new_head_is_initialised_where_it_may_be_and_reported() {
    let work = tempfile::tempdir().expect("a temporary folder");
    let path = work.path().join("ten.safetensors");
    let ten = model(1).with_num_classes(10);
    ten.save(&path).expect("writable");
    let opened = LazyTensors::open(&path).expect("just written");
    let maps = ten.config().key_maps();
    let with = |patterns: &[&str]| {
        let options = LoadOptions {
            dtype: DType::F32,
            allow_missing: patterns.iter().map(|p| p.to_string()).collect(),
        };
        load_with(model(2), &opened, &maps, &options)
    };
    assert!(with(&[]).is_err() && with(&["fc.weight"]).is_err() && with(&["c.*"]).is_err());
    let (loaded, report) = with(&["fc.*"]).expect("the head may be new");
    assert_eq!(report.spelling, "torchvision");
    assert_eq!(
        report.initialised,
        [
            "fc.bias [3] (the file has [10])",
            "fc.weight [3, 16] (the file has [10, 16])"
        ]
    );
    assert_eq!(report.loaded, collect(&loaded).len() - 2);
    for (key, value) in collect(&loaded) {
        let from = if key.starts_with("fc") {
            model(2)
        } else {
            model(1)
        };
        assert_eq!(value, collect(&from)[&key], "{key}");
    }
}

#[test]
fn what_does_not_fit_in_memory_is_refused_with_figures() {
    // A file that claims a terabyte and is a hole on disk: opened, and refused before it is read.
    let work = tempfile::tempdir().expect("a temporary folder");
    let path = work.path().join("huge.safetensors");
    let elements = 1usize << 38;
    let header = format!(
        "{{\"weight\":{{\"dtype\":\"F32\",\"shape\":[{elements},1],\"data_offsets\":[0,{}]}}}}",
        elements * 4
    );
    let file = std::fs::File::create(&path).expect("writable");
    use std::io::Write;
    (&file)
        .write_all(&(header.len() as u64).to_le_bytes())
        .expect("writable");
    (&file).write_all(header.as_bytes()).expect("writable");
    if file
        .set_len((8 + header.len() + elements * 4) as u64)
        .is_err()
    {
        println!("not run: this file system has no sparse files of a terabyte");
        return;
    }
    #[derive(burn::module::Module, Debug)]
    struct Huge<B: burn::tensor::backend::Backend> {
        weight: burn::module::Param<burn::tensor::Tensor<B, 2>>,
    }
    let small = burn::tensor::Tensor::<Flex, 2>::zeros([1, 1], &Default::default());
    let module = Huge {
        weight: burn::module::Param::from_tensor(small.expand([elements, 1])),
    };
    let opened = LazyTensors::open(&path).expect("the header is right");
    let options = LoadOptions::strict(DType::F32);
    let found = load_with(module, &opened, &[Default::default()], &options);
    let error = found
        .map(|_| ())
        .expect_err("no machine has that much")
        .to_string();
    assert!(
        error.contains("1048576 MiB in memory") && error.contains("available"),
        "{error}"
    );
}

#[test]
fn header_lies_of_safetensors_are_refused() {
    let work = tempfile::tempdir().expect("a temporary folder");
    let path = work.path().join("lies.safetensors");
    let huge = usize::MAX / 2;
    for header in [
        r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#.to_string(),
        r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#.into(),
        r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#.into(),
        r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#.into(),
        format!(r#"{{"a":{{"dtype":"F32","shape":[{huge},{huge},4],"data_offsets":[0,8]}}}}"#),
        r#"{"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}}"#.into(),
        "[".repeat(50_000),
    ] {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend([0; 8]);
        std::fs::write(&path, bytes).expect("writable");
        let error = LazyTensors::open(&path).map(|_| ()).expect_err("a lie").to_string();
        assert!(error.contains("lies.safetensors"), "{error}");
    }
    // A type that the zoo does not know is an error only where the model wants that key.
    let tensors = Tensors::from([("a".to_string(), TensorData::new(vec![1u8; 8], [8]))]);
    write_safetensors(&path, &tensors).expect("writable");
    let bytes = std::fs::read(&path).expect("there");
    let text = String::from_utf8_lossy(&bytes)
        .replace("\"U8\"", "\"I8\"")
        .replace("I8", "F8_E4M3");
    let header = text[8..text.find("}}").expect("a header") + 2].to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend([1; 8]);
    std::fs::write(&path, bytes).expect("writable");
    let opened = LazyTensors::open(&path).expect("a type of the format");
    let error = opened
        .read_all()
        .expect_err("no such type here")
        .to_string();
    assert!(
        error.contains("`a` has the unsupported type F8_E4M3"),
        "{error}"
    );
}

/// The eight bytes of a header's length may be those that a pickle begins with.
#[test]
fn a_header_of_any_length_is_a_header() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("weights");
    for length in (0x80..0x600).step_by(0x80) {
        let tensor = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
        let mut file = (length as u64).to_le_bytes().to_vec();
        file.extend(format!("{tensor:length$}").bytes());
        file.extend(1.5f32.to_le_bytes());
        std::fs::write(&path, file).expect("writable");
        let tensors = LazyTensors::open(&path).expect("a safetensors file");
        let data = tensors.tensors["a"].read("a").expect("readable");
        assert_eq!(data.to_vec::<f32>().expect("f32"), [1.5], "{length:#x}");
    }
}
