//! GGUF: every type against the `gguf` package's numbers, and every way in which a file lies.

use burn::module::{Module, Param};
use burn::tensor::{DType, Tensor, TensorData, backend::Backend};
use burn_flex::Flex;
use burn_zoo_checkpoint::{
    BlockProducts, GgufTokenType, KeyMap, Layout, LazyTensor, LazyTensors, LoadOptions,
    MetadataArray, MetadataValue, Tensors, collect, load_packed, load_with, read_safetensors,
};
use burn_zoo_nn::{Init, Linear};
use burn_zoo_tests::golden::folder;
use std::path::Path;

const TYPES: &str = "gguf_types.gguf";

fn golden(file: &str) -> LazyTensors {
    LazyTensors::open(&folder("checkpoints").join(file)).expect("a fixture")
}

/// What the package found in a file.
fn expected(file: &str) -> Tensors {
    let path = folder("checkpoints").join("gguf_expected.safetensors");
    let all = read_safetensors(&path).expect("a fixture").into_iter();
    let prefix = format!("{}/", file.trim_end_matches(".gguf"));
    all.filter_map(|(key, data)| Some((key.strip_prefix(&prefix)?.to_string(), data)))
        .collect()
}

#[test]
fn every_type_has_the_packages_numbers_bit_for_bit() {
    for (file, count) in [(TYPES, 22), ("gguf_shapes.gguf", 5)] {
        let (opened, expected) = (golden(file), expected(file));
        assert!(opened.tensors.keys().eq(expected.keys()), "{file}");
        assert_eq!(expected.len(), count, "{file}");
        for (key, want) in expected {
            let tensor = &opened.tensors[&key];
            assert_eq!(tensor.shape, want.shape.to_vec(), "{key}");
            let got = match want.dtype {
                DType::F32 => tensor.read_as(&key, DType::F32),
                _ => tensor.read(&key),
            };
            let got = got.unwrap_or_else(|e| panic!("{key}: {e}"));
            // Bytes, not numbers: -0 is not 0.
            assert_eq!(got.dtype, want.dtype, "{key}");
            assert_eq!(got.as_bytes(), want.as_bytes(), "{key}");
        }
    }
}

#[test]
fn types_are_read_as_they_are_and_as_asked() {
    let opened = golden(TYPES);
    for (key, dtype) in [
        ("float32", DType::F32),
        ("float16", DType::F16),
        ("bf16", DType::BF16),
        ("float64", DType::F64),
        ("int8", DType::I8),
        ("int16", DType::I16),
        ("int32", DType::I32),
        ("int64", DType::I64),
        ("q4_k", DType::F32),
    ] {
        let tensor = &opened.tensors[key];
        assert_eq!(tensor.dtype, Ok(dtype), "{key}");
        assert_eq!(tensor.read(key).expect("a fixture").dtype, dtype, "{key}");
        if key.starts_with("int") {
            let error = tensor.read_as(key, DType::F32).expect_err("no floats");
            assert!(error.to_string().contains(key), "{error}");
            continue;
        }
        let wide = tensor.read(key).expect("a fixture");
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            let got = tensor.read_as(key, dtype).expect("a fixture");
            assert_eq!(got, wide.clone().convert_dtype(dtype), "{key} as {dtype:?}");
        }
    }
}

#[test]
fn blocks_are_there_for_work_on_quantised_weights() {
    let opened = golden(TYPES);
    for (key, name, elements, bytes) in [
        ("q8_0", "Q8_0", 32, 34),
        ("q6_k", "Q6_K", 256, 210),
        ("mxfp4", "MXFP4", 32, 17),
    ] {
        let tensor = &opened.tensors[key];
        let (kind, blocks) = tensor.blocks().expect("blocks");
        let found = (kind.name(), kind.elements(), kind.bytes());
        assert_eq!(found, (name, elements, bytes));
        assert_eq!(blocks.len() * elements, tensor.len() * bytes);
        let mut numbers = vec![0.0; tensor.len()];
        kind.dequantize(blocks, &mut numbers);
        let read = tensor.read(key).expect("a fixture");
        assert_eq!(
            TensorData::new(numbers, tensor.shape.clone()),
            read,
            "{key}"
        );
    }
    assert!(opened.tensors["float32"].blocks().is_none());
    let kind = opened.tensors["q8_0"].blocks().expect("blocks").0;
    for (bytes, numbers) in [(34, 31), (33, 32), (35, 32), (68, 32)] {
        let uneven = std::panic::catch_unwind(|| {
            kind.dequantize(&vec![0; bytes], &mut vec![0.0; numbers]);
        });
        assert!(uneven.is_err(), "{bytes} bytes into {numbers} numbers");
    }
}

#[test]
fn a_type_that_is_not_read_is_named_with_its_key_and_spares_the_others() {
    let opened = golden("gguf_unsupported.gguf");
    let want = expected("gguf_unsupported.gguf");
    assert_eq!(
        opened.tensors["plain"].read("plain").expect("f32"),
        want["plain"]
    );
    let tensor = &opened.tensors["ternary"];
    assert_eq!(tensor.shape, [2, 256]);
    for error in [
        tensor.read("ternary"),
        tensor.read_as("ternary", DType::F32),
    ] {
        let error = error.expect_err("not read").to_string();
        let words = "gguf_unsupported.gguf: key `ternary` has the unsupported type TQ1_0";
        assert!(error.contains(words), "{error}");
    }
    for (number, name) in [
        (16, "IQ2_XXS"),
        (40, "NVFP4"),
        (31, "Q4_0_4_4"),
        (99, "ggml type 99"),
    ] {
        let file = File {
            tensors: vec![tensor_of("x", &[256], number, 0)],
            data: vec![0; 256],
            ..File::default()
        };
        let opened = file.open().unwrap_or_else(|e| panic!("{name}: {e}"));
        let error = opened.read_all().expect_err(name).to_string();
        assert!(
            error.contains(&format!("`x` has the unsupported type {name}")),
            "{error}"
        );
    }
}

#[test]
fn metadata_of_every_type_is_read() {
    use MetadataValue::{Array, Bool, Float, Signed, String, Unsigned};
    let metadata = golden(TYPES).metadata;
    let f32s = MetadataArray::F32(vec![0.1, 1.0]);
    let text = "größe 大".to_string();
    for (name, value, array) in [
        ("uint8", Unsigned(200), MetadataArray::U8(vec![200, 1])),
        ("int8", Signed(-100), MetadataArray::I8(vec![-100, 1])),
        (
            "uint16",
            Unsigned(60_000),
            MetadataArray::U16(vec![60_000, 1]),
        ),
        (
            "int16",
            Signed(-30_000),
            MetadataArray::I16(vec![-30_000, 1]),
        ),
        (
            "uint32",
            Unsigned(4_000_000_000),
            MetadataArray::U32(vec![4_000_000_000, 1]),
        ),
        (
            "int32",
            Signed(-2_000_000_000),
            MetadataArray::I32(vec![-2_000_000_000, 1]),
        ),
        ("float32", Float(0.1f32.into()), f32s),
        ("bool", Bool(true), MetadataArray::Bool(vec![true, false])),
        (
            "string",
            String(text.clone()),
            MetadataArray::String(vec![text, "".into()]),
        ),
        (
            "uint64",
            Unsigned(u64::MAX),
            MetadataArray::U64(vec![u64::MAX, 1]),
        ),
        (
            "int64",
            Signed(i64::MIN),
            MetadataArray::I64(vec![i64::MIN, 1]),
        ),
        ("float64", Float(0.1), MetadataArray::F64(vec![0.1, 1.0])),
    ] {
        assert_eq!(metadata[&format!("golden.{name}")], value, "{name}");
        assert_eq!(
            metadata[&format!("golden.array.{name}")],
            Array(array),
            "{name}"
        );
    }
    let nested = [vec![1, -2], vec![3]].map(MetadataArray::I32).to_vec();
    assert_eq!(
        metadata["golden.array.array"],
        Array(MetadataArray::Array(nested))
    );
    assert_eq!(metadata["general.architecture"].as_str(), Some("golden"));
    assert_eq!(metadata["golden.uint64"].as_u64(), Some(u64::MAX));
    assert_eq!(metadata["golden.uint64"].as_i64(), None);
    assert_eq!(metadata["golden.int8"].as_i64(), Some(-100));
    assert_eq!(metadata["golden.int8"].as_u64(), None);
    assert_eq!(metadata["golden.float64"].as_f64(), Some(0.1));
    assert_eq!(metadata["golden.bool"].as_bool(), Some(true));
    assert!(metadata["golden.array.bool"].as_array().is_some());
    assert_eq!(
        golden("gguf_shapes.gguf").metadata["general.alignment"].as_u64(),
        Some(64)
    );
    assert!(golden("expected.safetensors").metadata.is_empty());
}

#[test]
fn the_tokenizer_is_read() {
    use GgufTokenType::{Byte, Control, Normal, Unknown, Unused, UserDefined};
    let found = golden(TYPES).gguf_tokenizer().expect("a fixture");
    let found = found.expect("it has one");
    assert_eq!(
        (found.model.as_str(), found.pre.as_deref()),
        ("llama", Some("default"))
    );
    let tokens = "<unk> <s> </s> <0x0A> ▁ a b ab ▁ab ü <pad>";
    assert!(found.tokens.iter().eq(tokens.split(' ')));
    let scores: Vec<f32> = (0..11).map(|i| i as f32 / -2.0).collect();
    assert_eq!(found.scores, scores);
    let (begin, end) = (
        [Unknown, Control, Control, Byte],
        [UserDefined, Normal, Unused],
    );
    assert_eq!(found.token_types, [&begin[..], &[Normal; 4], &end].concat());
    assert_eq!(found.merges, ["a b", "▁ ab"]);
    let ids = [found.bos, found.eos, found.unknown, found.padding];
    assert_eq!(ids, [Some(1), Some(2), Some(0), Some(10)]);
    assert_eq!(found.add_bos, Some(true));
    let template = found.chat_template.expect("it has one");
    assert!(
        template.starts_with("{% for m in messages %}"),
        "{template}"
    );
    assert_eq!(
        golden("gguf_shapes.gguf").gguf_tokenizer().expect("fine"),
        None
    );
}

#[test]
fn a_tokenizer_that_lies_is_refused_by_its_key() {
    let with = |entries: &[(&str, Vec<u8>)]| {
        let entries = entries
            .iter()
            .map(|(name, value)| (format!("tokenizer.{name}").into_bytes(), value.clone()));
        let file = File {
            entries: entries.collect(),
            ..File::default()
        };
        file.open()
            .expect("the container is right")
            .gguf_tokenizer()
    };
    let model = || ("ggml.model", text("gpt2"));
    let tokens = || {
        (
            "ggml.tokens",
            array(8, 2, &[string("a"), string("b")].concat()),
        )
    };
    let whole = with(&[model(), tokens()]).expect("enough").expect("enough");
    assert_eq!(
        (whole.tokens.len(), whole.scores.len(), whole.bos),
        (2, 0, None)
    );
    assert_eq!(with(&[("ggml.model", text("none"))]).expect("fine"), None);
    let floats = |n: u64| array(6, n, &vec![0; 4 * n as usize]);
    let types = |n: u32| array(5, 2, &[1u32.to_le_bytes(), n.to_le_bytes()].concat());
    for (entries, words) in [
        (vec![tokens()], "`tokenizer.ggml.model` is missing"),
        (vec![model()], "`tokenizer.ggml.tokens` is missing"),
        (
            vec![("ggml.model", u32_value(1)), tokens()],
            "`tokenizer.ggml.model` is an unsigned integer, wanted a text",
        ),
        (
            vec![model(), ("ggml.tokens", floats(2))],
            "`tokenizer.ggml.tokens` is an array of f32, wanted an array of texts",
        ),
        (
            vec![model(), tokens(), ("ggml.scores", floats(3))],
            "`tokenizer.ggml.scores` has 3 values for 2 tokens",
        ),
        (
            vec![model(), tokens(), ("ggml.scores", text(""))],
            "`tokenizer.ggml.scores` is a text, wanted an array of f32",
        ),
        (
            vec![model(), tokens(), ("ggml.token_type", types(7))],
            "`tokenizer.ggml.token_type` has 7",
        ),
        (
            vec![model(), tokens(), ("ggml.token_type", types(u32::MAX))],
            "`tokenizer.ggml.token_type` has -1",
        ),
        (
            vec![model(), tokens(), ("ggml.token_type", floats(2))],
            "`tokenizer.ggml.token_type` is an array of f32",
        ),
        (
            vec![model(), tokens(), ("ggml.merges", text("a b"))],
            "`tokenizer.ggml.merges` is a text",
        ),
        (
            vec![model(), tokens(), ("ggml.bos_token_id", u32_value(2))],
            "`tokenizer.ggml.bos_token_id` is 2, there are 2 tokens",
        ),
        (
            vec![model(), tokens(), ("ggml.eos_token_id", text("1"))],
            "`tokenizer.ggml.eos_token_id` is a text",
        ),
        (
            vec![model(), tokens(), ("ggml.add_bos_token", u32_value(1))],
            "`tokenizer.ggml.add_bos_token` is an unsigned integer, wanted a truth value",
        ),
        (
            vec![model(), tokens(), ("chat_template", u32_value(1))],
            "`tokenizer.chat_template` is an unsigned integer",
        ),
    ] {
        let error = with(&entries).expect_err(words).to_string();
        assert!(
            error.contains(words) && error.contains("made.gguf"),
            "{error} should say {words}"
        );
    }
}

#[derive(Module, Debug)]
struct Tiny<B: Backend> {
    weight: Param<Tensor<B, 2>>,
    bias: Param<Tensor<B, 1>>,
}

#[test]
fn a_module_is_filled_from_a_gguf_file() {
    // Two rows of Q8_0 with scales 1 and 0.5; the bias is f32.
    let row = |scale: u16, first: u8| {
        [scale.to_le_bytes().to_vec(), (first..first + 32).collect()].concat()
    };
    let mut data = [row(0x3c00, 0), row(0x3800, 32)].concat();
    data.resize(96, 0);
    data.extend([1.5f32, -2.5].iter().flat_map(|n| n.to_le_bytes()));
    let file = File {
        tensors: vec![
            tensor_of("blk.0.attn_q.weight", &[32, 2], 8, 0),
            tensor_of("blk.0.attn_q.bias", &[2], 0, 96),
        ],
        data,
        ..File::default()
    };
    let device = Default::default();
    let module = Tiny::<Flex> {
        weight: Param::from_tensor(Tensor::zeros([2, 32], &device)),
        bias: Param::from_tensor(Tensor::zeros([2], &device)),
    };
    let names = [
        ("weight", "blk.0.attn_q.weight"),
        ("bias", "blk.0.attn_q.bias"),
    ];
    let map = KeyMap::new("llama.cpp", &names, &[]);
    let options = LoadOptions::strict(DType::F32);
    let opened = file.open().expect("a good file");
    let (module, report) = load_with(module, &opened, &[map], &options).expect("it fits");
    assert_eq!((report.spelling, report.loaded), ("llama.cpp", 2));
    let loaded = collect(&module);
    let first = (0..32).map(|n| n as f32);
    let second = (32..64).map(|n| n as f32 / 2.0);
    let want: Vec<f32> = first.chain(second).collect();
    assert_eq!(loaded["weight"], TensorData::new(want, [2, 32]));
    assert_eq!(loaded["bias"], TensorData::new(vec![1.5f32, -2.5], [2]));
}

#[test]
fn version_2_is_read_and_others_are_not() {
    let with = |version| {
        File {
            version,
            ..File::default()
        }
        .open()
        .map(|t| t.tensors.len())
    };
    assert_eq!(with(2).expect("as 3"), 0);
    for (version, words) in [
        (1, "version 1, only 2 and 3 are read"),
        (4, "version 4, only"),
        (0, "version 0, only"),
        (3u32.swap_bytes(), "big-endian"),
        (2u32.swap_bytes(), "big-endian"),
    ] {
        let error = with(version).expect_err(words);
        assert!(
            error.contains(words) && error.contains("made.gguf"),
            "{error}"
        );
    }
}

#[test]
fn what_gguf_allows_is_read() {
    let scalar = tensor_of("scalar", &[], 0, 0);
    let empty = tensor_of("empty", &[32, 0], 8, 32);
    let last = tensor_of("last", &[3], 24, 32);
    // The last tensor needs no padding after it, and metadata may be empty arrays.
    let file = File {
        entries: vec![(b"none".to_vec(), array(8, 0, &[])), (vec![], u32_value(1))],
        tensors: vec![scalar, empty, last],
        data: vec![0; 35],
        ..File::default()
    };
    let opened = file.open().expect("allowed");
    let read = opened.read_all().expect("all types are known");
    let shapes: Vec<_> = read.values().map(|data| data.shape.to_vec()).collect();
    assert_eq!(shapes, [vec![0, 32], vec![3], vec![]]);
    let none = MetadataValue::Array(MetadataArray::String(vec![]));
    assert_eq!(opened.metadata["none"], none);
    assert_eq!(opened.metadata[""], MetadataValue::Unsigned(1));
}

#[test]
fn lies_about_lengths_are_refused_with_figures() {
    let huge = u64::MAX.to_le_bytes();
    let many = (1u64 << 40).to_le_bytes();
    let header = |tensors: u64, entries: u64| {
        let version = 3u32.to_le_bytes();
        [
            &b"GGUF"[..],
            &version,
            &tensors.to_le_bytes(),
            &entries.to_le_bytes(),
        ]
        .concat()
    };
    let entry = |value: &[u8]| [&header(0, 1)[..], &string("k"), value].concat();
    let list = |kind: u32, count: &[u8]| {
        entry(
            &[
                &9u32.to_le_bytes()[..],
                &kind.to_le_bytes(),
                count,
                &[0; 16],
            ]
            .concat(),
        )
    };
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (
            header(1, 0),
            "tensors: 1 items of at least 24 bytes cannot be in the 0 bytes",
        ),
        (header(u64::MAX, 0), "tensors: 18446744073709551615 items"),
        (
            header(0, 1 << 60),
            "metadata: 1152921504606846976 items of at least 13 bytes",
        ),
        (
            [header(0, 1), many.to_vec(), vec![0; 9]].concat(),
            "the key of metadata 0: 1099511627776 bytes wanted at byte 32, 9 are left",
        ),
        (
            [header(0, 1), huge.to_vec(), vec![0; 9]].concat(),
            "the key of metadata 0: 18446744073709551615 bytes wanted",
        ),
        (
            entry(&[&8u32.to_le_bytes()[..], &many].concat()),
            "metadata `k`: 1099511627776 bytes wanted at byte 45, 0 are left",
        ),
        (
            list(0, &many),
            "metadata `k`: 1099511627776 bytes wanted at byte 49, 16 are left",
        ),
        (list(12, &many), "metadata `k`: 8796093022208 bytes wanted"),
        (
            list(12, &huge),
            "metadata `k`: 18446744073709551615 bytes wanted",
        ),
        (
            list(7, &many),
            "metadata `k`: 1099511627776 items of at least 1 bytes cannot be in the 16 bytes",
        ),
        (
            list(8, &many),
            "metadata `k`: 1099511627776 items of at least 8 bytes",
        ),
        (
            list(8, &3u64.to_le_bytes()),
            "metadata `k`: 3 items of at least 8 bytes cannot be in the 16 bytes",
        ),
        (
            list(9, &many),
            "metadata `k`: 1099511627776 items of at least 12 bytes",
        ),
        (
            list(13, &[0; 8]),
            "metadata `k`: an array of the unknown type 13",
        ),
        (
            entry(&13u32.to_le_bytes()),
            "metadata `k`: a value of the unknown type 13",
        ),
        (
            entry(&[7, 0, 0, 0, 2]),
            "metadata `k`: a truth value is 0 or 1, not 2",
        ),
    ];
    for (bytes, words) in cases {
        refused(&bytes, words);
    }
}

#[test]
fn arrays_in_arrays_are_limited() {
    let nested = |depth: usize| {
        let mut value = 9u32.to_le_bytes().to_vec();
        for _ in 1..depth {
            value.extend([&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat());
        }
        value.extend([&0u32.to_le_bytes()[..], &0u64.to_le_bytes()].concat());
        File {
            entries: vec![(b"k".to_vec(), value)],
            ..File::default()
        }
    };
    nested(4).open().expect("four are allowed");
    refused(
        &nested(5).bytes(),
        "metadata `k`: arrays in arrays, more than 4 deep",
    );
    refused(&nested(100_000).bytes(), "more than 4 deep");
}

#[test]
fn names_that_lie_are_refused() {
    let entries = |names: &[&[u8]]| File {
        entries: names
            .iter()
            .map(|name| (name.to_vec(), u32_value(1)))
            .collect(),
        ..File::default()
    };
    refused(
        &entries(&[b"a", b"b", b"a"]).bytes(),
        "metadata `a` is there twice",
    );
    refused(
        &entries(&[b"a", b"\xff\xfe"]).bytes(),
        "the key of metadata 1: the text at byte",
    );
    let long = vec![b'a'; 65_536];
    refused(
        &entries(&[&long]).bytes(),
        "a name of 65536 bytes, at most 65535",
    );
    let twice = File {
        tensors: vec![tensor_of("x", &[8], 0, 0), tensor_of("x", &[8], 0, 32)],
        data: vec![0; 64],
        ..File::default()
    };
    refused(&twice.bytes(), "key `x` is there twice");
    let mut unreadable = tensor_of("x", &[8], 0, 0);
    unreadable[8] = 0xff;
    let file = File {
        tensors: vec![unreadable],
        data: vec![0; 64],
        ..File::default()
    };
    refused(&file.bytes(), "the key of tensor 0: the text at byte");
    let text = [&8u32.to_le_bytes()[..], &1u64.to_le_bytes(), &[0xc0]].concat();
    let file = File {
        entries: vec![(b"k".to_vec(), text)],
        ..File::default()
    };
    refused(&file.bytes(), "metadata `k`: the text at byte");
}

#[test]
fn tensors_that_lie_are_refused() {
    let with = |tensors: &[Vec<u8>]| File {
        tensors: tensors.to_vec(),
        data: vec![0; 128],
        ..File::default()
    };
    with(&[tensor_of("x", &[8, 4], 0, 0)])
        .open()
        .expect("exactly the data");
    let huge = 1u64 << 63;
    for (tensors, words) in [
        (
            vec![tensor_of("x", &[1; 5], 0, 0)],
            "key `x`: 5 dimensions, at most 4",
        ),
        (
            vec![tensor_of("x", &[1 << 32, 1 << 32], 0, 0)],
            "key `x`: the extents [4294967296, 4294967296] overflow",
        ),
        (vec![tensor_of("x", &[0, huge, huge], 99, 0)], "overflow"),
        (vec![tensor_of("x", &[huge, huge, 0], 99, 0)], "overflow"),
        (vec![tensor_of("x", &[1 << 61], 28, 0)], "overflow"),
        (vec![tensor_of("x", &[u64::MAX], 24, 0)], "overflow"),
        (
            vec![tensor_of("x", &[33], 0, 0)],
            "key `x`: bytes 0 to 132 of the data are outside of the file",
        ),
        (
            vec![tensor_of("x", &[8], 0, 128)],
            "key `x`: bytes 128 to 160 of the data are outside",
        ),
        (vec![tensor_of("x", &[0], 0, 160)], "outside of the file"),
        (vec![tensor_of("x", &[8], 99, 160)], "outside of the file"),
        (
            vec![tensor_of("x", &[8], 0, u64::MAX)],
            "outside of any file",
        ),
        (
            vec![tensor_of("x", &[8], 0, u64::MAX - 31 - 64)],
            "outside of the file",
        ),
        (
            vec![tensor_of("x", &[8], 0, 16)],
            "key `x`: the offset 16 is no multiple of the alignment 32",
        ),
        (
            vec![tensor_of("x", &[48], 2, 0)],
            "key `x`: rows of 48 elements are not whole blocks of Q4_0, which have 32",
        ),
        (
            vec![tensor_of("x", &[16, 2], 8, 0)],
            "key `x`: rows of 16 elements",
        ),
        (
            vec![tensor_of("x", &[], 8, 0)],
            "key `x`: rows of 1 elements",
        ),
        (
            vec![tensor_of("x", &[16], 0, 0), tensor_of("y", &[8], 0, 32)],
            "keys `x` (bytes 96..160) and `y` (bytes 128..160) overlap",
        ),
        (
            vec![tensor_of("y", &[8], 0, 32), tensor_of("x", &[16], 0, 0)],
            "keys `x`",
        ),
        (
            vec![tensor_of("x", &[8], 0, 0), tensor_of("y", &[8], 0, 0)],
            "overlap",
        ),
    ] {
        refused(&with(&tensors).bytes(), words);
    }
}

#[test]
fn alignments_that_lie_are_refused() {
    let with = |value: Vec<u8>, data: usize| File {
        entries: vec![(b"general.alignment".to_vec(), value)],
        tensors: vec![tensor_of("x", &[8], 24, 8)],
        data: vec![0; data],
        alignment: 8,
        ..File::default()
    };
    with(u32_value(8), 16).open().expect("a power of two");
    for (value, found) in [
        (u32_value(0), "0"),
        (u32_value(48), "48"),
        (
            [&10u32.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat(),
            "18446744073709551615",
        ),
        (text("8"), "a text"),
    ] {
        let words = format!("metadata `general.alignment` is {found}, wanted a power of two");
        refused(&with(value, 16).bytes(), &words);
    }
    refused(
        &with(u32_value(16), 16).bytes(),
        "no multiple of the alignment 16",
    );
    let far = [&10u32.to_le_bytes()[..], &(1u64 << 63).to_le_bytes()].concat();
    refused(&with(far, 16).bytes(), "key `x`");
}

#[test]
fn files_that_are_cut_off_anywhere_are_errors() {
    let work = tempfile::tempdir().expect("a temporary folder");
    let path = work.path().join("cut.gguf");
    // After the last tensor, whose size is given here, there is only padding.
    for (file, last, alignment) in [(TYPES, 4 * 17, 32), ("gguf_shapes.gguf", 6 * 34, 64)] {
        let bytes = std::fs::read(folder("checkpoints").join(file)).expect("a fixture");
        let end = bytes.len() - usize::next_multiple_of(last, alignment) + last;
        for length in 0..end {
            std::fs::write(&path, &bytes[..length]).expect("writable");
            let error = open_and_read(&path).expect_err("a file that is cut off");
            assert!(
                error.contains("cut.gguf"),
                "{file} cut at {length}: {error}"
            );
        }
        std::fs::write(&path, &bytes[..end]).expect("writable");
        open_and_read(&path).unwrap_or_else(|e| panic!("{file} without padding: {e}"));
    }
}

#[test]
fn damaged_headers_never_panic() {
    let work = tempfile::tempdir().expect("a temporary folder");
    let path = work.path().join("damaged.gguf");
    let good = std::fs::read(folder("checkpoints").join(TYPES)).expect("a fixture");
    let (mut read, mut refused) = (0, 0);
    for at in 0..good.len() {
        // What comes last is numbers, and nothing looks at those but arithmetic.
        let masks: &[u8] = match at {
            0..3000 => &[0x01, 0x04, 0x80, 0xff],
            _ => &[0xff],
        };
        for mask in masks {
            let mut bytes = good.clone();
            bytes[at] ^= mask;
            std::fs::write(&path, bytes).expect("writable");
            match open_and_read(&path) {
                Ok(()) => read += 1,
                Err(error) => {
                    assert!(
                        error.contains("damaged.gguf"),
                        "byte {at} ^ {mask}: {error}"
                    );
                    refused += 1;
                }
            }
        }
    }
    // Most bytes are numbers and text, which no reader can doubt.
    assert!(
        read > 1000 && refused > 1000,
        "{read} read, {refused} refused"
    );
}

/// Opens a file and reads all that is in it: the first error.
fn open_and_read(path: &Path) -> Result<(), String> {
    let opened = LazyTensors::open(path).map_err(|e| e.to_string())?;
    let tokenizer = opened.gguf_tokenizer().map(drop);
    let tensors = opened
        .tensors
        .iter()
        .map(|(key, tensor)| tensor.read(key).map(drop));
    let results: Vec<_> = tensors.chain([tokenizer]).collect();
    results
        .into_iter()
        .collect::<Result<(), _>>()
        .map_err(|e| e.to_string())
}

fn refused(bytes: &[u8], words: &str) {
    let error = open(bytes).map(|_| ()).expect_err(words);
    assert!(
        error.contains("made.gguf") && error.contains(words),
        "{error} should say {words}"
    );
}

fn open(bytes: &[u8]) -> Result<LazyTensors, String> {
    let work = tempfile::tempdir().expect("a temporary folder");
    let path = work.path().join("made.gguf");
    std::fs::write(&path, bytes).expect("writable");
    LazyTensors::open(&path).map_err(|e| e.to_string())
}

/// A file as a test wants it, true or not.
struct File {
    version: u32,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
    alignment: usize,
}

impl Default for File {
    fn default() -> Self {
        Self {
            version: 3,
            entries: vec![],
            tensors: vec![],
            data: vec![],
            alignment: 32,
        }
    }
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.entries.len() as u64).to_le_bytes());
        for (key, value) in &self.entries {
            bytes.extend(bytes_with_length(key));
            bytes.extend(value);
        }
        bytes.extend(self.tensors.concat());
        if !self.data.is_empty() {
            bytes.resize(bytes.len().next_multiple_of(self.alignment), 0);
            bytes.extend(&self.data);
        }
        bytes
    }

    fn open(&self) -> Result<LazyTensors, String> {
        open(&self.bytes())
    }
}

fn bytes_with_length(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat()
}

fn string(text: &str) -> Vec<u8> {
    bytes_with_length(text.as_bytes())
}

/// A text as a value.
fn text(text: &str) -> Vec<u8> {
    [8u32.to_le_bytes().to_vec(), string(text)].concat()
}

/// A u32 as a value.
fn u32_value(n: u32) -> Vec<u8> {
    [4u32.to_le_bytes(), n.to_le_bytes()].concat()
}

/// An array as a value.
fn array(kind: u32, count: u64, items: &[u8]) -> Vec<u8> {
    let (array, kind) = (9u32.to_le_bytes(), kind.to_le_bytes());
    [&array[..], &kind, &count.to_le_bytes(), items].concat()
}

/// What a header says of a tensor; `extents` begin with the fastest.
fn tensor_of(name: &str, extents: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let mut bytes = string(name);
    bytes.extend((extents.len() as u32).to_le_bytes());
    bytes.extend(extents.iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend(kind.to_le_bytes());
    bytes.extend(offset.to_le_bytes());
    bytes
}

/// A layer whose weight is one tensor of the file, in its blocks.
fn packed(key: &str, layouts: &[Layout], products: BlockProducts) -> Linear<Flex> {
    let device = Default::default();
    let mut file = golden(TYPES);
    file.tensors.retain(|name, _| name == key);
    let [rows, columns] = file.tensors[key].shape[..] else {
        panic!("{key} is a matrix");
    };
    let mut layer = Linear::new(&mut Init::new(None, &device), columns, rows).with_bias(false);
    let mut map = KeyMap::new("test", &[], &[]);
    map.rename("weight", key.to_string());
    map.lay("weight", layouts);
    let may_stay = [layer.matrix().id()].into();
    let options = LoadOptions::strict(DType::F32);
    let loaded = load_packed(layer, &file, &[map], &options, &may_stay, products);
    let (mut layer, matrices) = loaded.unwrap_or_else(|e| panic!("{key}: {e}"));
    assert_eq!(matrices.len(), 1, "{key}");
    // The numbers themselves are nowhere.
    assert_eq!(layer.weight.dims(), [0, 0], "{key}");
    layer.matrix().pack(&matrices);
    layer
}

#[test]
fn packed_matrices_multiply_as_the_numbers_they_stand_for() {
    let device = Default::default();
    let expected = expected(TYPES);
    let blocks = golden(TYPES).tensors;
    // Those at the edges of a type have products beyond f32.
    let fine = |(key, t): &(&String, &LazyTensor)| t.blocks().is_some() && !key.ends_with("edges");
    let blocks = blocks.iter().filter(fine);
    let mut kinds = 0;
    for (key, tensor) in blocks {
        kinds += 1;
        let [rows, columns] = tensor.shape[..] else {
            panic!("{key} is a matrix");
        };
        let weights: Vec<f64> = expected[key].iter::<f64>().collect();
        // A few vectors are multiplied here, many by the backend.
        for (vectors, layouts) in [
            (1, vec![]),
            (3, vec![]),
            (20, vec![]),
            (3, vec![Layout::RotaryPairs { heads: 1 }]),
        ] {
            let numbers: Vec<f32> = (0..vectors * columns)
                .map(|i| ((i * 37 % 101) as f32 / 50.0 - 1.0) * (1.0 + (i % 7) as f32))
                .collect();
            let x = Tensor::<Flex, 2>::from_data(
                TensorData::new(numbers.clone(), [vectors, columns]),
                &device,
            );
            let product = |products| {
                let y = packed(key, &layouts, products).forward(x.clone());
                y.into_data().to_vec::<f32>().expect("f32")
            };
            let (exact, fast) = (product(BlockProducts::Exact), product(BlockProducts::Fast));
            for (i, (exact, fast)) in exact.iter().zip(&fast).enumerate() {
                let (v, r) = (i / rows, i % rows);
                let stored = match layouts.is_empty() {
                    true => r,
                    false => 2 * (r % (rows / 2)) + r / (rows / 2),
                };
                let row = &weights[stored * columns..(stored + 1) * columns];
                let x = &numbers[v * columns..(v + 1) * columns];
                let want: f64 = row.iter().zip(x).map(|(w, x)| w * f64::from(*x)).sum();
                let size: f64 = row
                    .iter()
                    .zip(x)
                    .map(|(w, x)| (w * f64::from(*x)).abs())
                    .sum();
                let off = (f64::from(*exact) - want).abs();
                assert!(
                    off <= 1e-6 * size,
                    "{key} {vectors} {i}: {exact} for {want}"
                );
                // A number is at most half a step away, and 127 steps are the largest of its 32.
                let steps = x.chunks(32).zip(row.chunks(32)).map(|(x, row)| {
                    let largest = x.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
                    f64::from(largest) / 254.0 * row.iter().map(|w| w.abs()).sum::<f64>()
                });
                let most = steps.sum::<f64>() + 1e-6 * size;
                let off = (f64::from(*fast) - want).abs();
                assert!(off <= most, "{key} {vectors} {i}: fast {fast} for {want}");
            }
            assert_eq!(
                exact == fast,
                vectors == 20,
                "{key}: fast is another way for few vectors"
            );
        }
    }
    assert_eq!(kinds, 13);
}
