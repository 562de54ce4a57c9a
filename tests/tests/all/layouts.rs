//! Parameters that lie otherwise in a file than in the model: transposed, packed, as 1×1 convolutions,
//! and keys that say the same twice.

use burn::module::{Module, Param};
use burn::tensor::{DType, Tensor, TensorData, backend::Backend};
use burn_flex::Flex;
use burn_zoo_checkpoint::{
    KeyMap, Layout, LazyTensors, LoadOptions, Tensors, collect, load_with, read_safetensors, save,
    to_file, write_safetensors,
};
use burn_zoo_core::Error;

/// Grouped-query attention's projections: 4 query rows, 2 key and 2 value rows, 3 inputs.
#[derive(Module, Debug)]
struct Projections<B: Backend> {
    q: Param<Tensor<B, 2>>,
    k: Param<Tensor<B, 2>>,
    v: Param<Tensor<B, 2>>,
    q_bias: Param<Tensor<B, 1>>,
    k_bias: Param<Tensor<B, 1>>,
    v_bias: Param<Tensor<B, 1>>,
    out: Param<Tensor<B, 2>>,
}

fn zeros() -> Projections<Flex> {
    let device = Default::default();
    let matrix = |rows, columns| Param::from_tensor(Tensor::zeros([rows, columns], &device));
    let vector = |rows| Param::from_tensor(Tensor::zeros([rows], &device));
    Projections {
        q: matrix(4, 3),
        k: matrix(2, 3),
        v: matrix(2, 3),
        q_bias: vector(4),
        k_bias: vector(2),
        v_bias: vector(2),
        out: matrix(5, 4),
    }
}

/// As in GPT-2: one transposed matrix for all three, and one bias.
fn map() -> KeyMap {
    let mut map = KeyMap::new("packed", &[("^out", "head")], &[]);
    for (part, at) in [("q", 0), ("k", 4), ("v", 6)] {
        let rows = Layout::Rows { at, of: 8 };
        map.rename(format!("^{part}"), "c_attn.weight");
        map.rename(format!("^{part}_bias"), "c_attn.bias");
        map.lay(part, &[Layout::Transposed, rows]);
        map.lay(format!("{part}_bias"), &[rows]);
    }
    map.lay("out", &[Layout::Pointwise]);
    map.tied = vec![("lm_head.weight", "head")];
    map
}

/// `[3, 8]`: row i, column j holds 10 i + j.
fn file() -> Tensors {
    let packed: Vec<f32> = (0..24).map(|n| (10 * (n / 8) + n % 8) as f32).collect();
    let numbers = |len: usize| (0..len).map(|n| 0.5 + n as f32).collect::<Vec<f32>>();
    Tensors::from([
        ("c_attn.weight".into(), TensorData::new(packed, [3, 8])),
        ("c_attn.bias".into(), TensorData::new(numbers(8), [8])),
        ("head".into(), TensorData::new(numbers(20), [5, 4, 1, 1])),
    ])
}

fn load(tensors: &Tensors) -> Result<Projections<Flex>, Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.safetensors");
    write_safetensors(&path, tensors).expect("writable");
    let lazy = LazyTensors::open(&path)?;
    let options = LoadOptions::strict(DType::F32);
    load_with(zeros(), &lazy, &[map()], &options).map(|(model, _)| model)
}

#[test]
fn symptom_7_packed_and_transposed_rows_come_to_their_places() {
    let model = collect(&load(&file()).expect("it fits"));
    let values = |path: &str| model[path].to_vec::<f32>().expect("f32");
    // Row r of the model is column r of the file.
    let columns = |columns: std::ops::Range<usize>| -> Vec<f32> {
        let row = |r: usize| (0..3).map(move |i| (10 * i + r) as f32);
        columns.flat_map(row).collect()
    };
    assert_eq!(values("q"), columns(0..4));
    assert_eq!(values("k"), columns(4..6));
    assert_eq!(values("v"), columns(6..8));
    assert_eq!(values("q_bias"), [0.5, 1.5, 2.5, 3.5]);
    assert_eq!(values("k_bias"), [4.5, 5.5]);
    assert_eq!(values("v_bias"), [6.5, 7.5]);
    assert_eq!(
        values("out"),
        (0..20).map(|n| 0.5 + n as f32).collect::<Vec<_>>()
    );
}

#[test]
fn what_is_saved_is_what_was_read() {
    let model = load(&file()).expect("it fits");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("again.safetensors");
    save(&model, &path, &map()).expect("writable");
    assert_eq!(read_safetensors(&path).expect("readable"), file());
    assert_eq!(to_file(&collect(&model), &map()), file());
}

#[test]
fn a_packed_tensor_of_another_size_is_refused_in_the_files_shape() {
    let mut tensors = file();
    tensors.insert("c_attn.weight".into(), TensorData::zeros::<f32, _>([3, 9]));
    let error = load(&tensors).expect_err("9 columns are not 8").to_string();
    for word in ["c_attn.weight", "[3, 9]", "[3, 8]"] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn symptom_2_a_tied_key_may_be_there_and_must_be_equal() {
    let mut tensors = file();
    tensors.insert("lm_head.weight".into(), tensors["head"].clone());
    load(&tensors).expect("the same twice");
    tensors.insert(
        "lm_head.weight".into(),
        TensorData::zeros::<f32, _>([5, 4, 1, 1]),
    );
    let error = load(&tensors).expect_err("not the same").to_string();
    assert!(
        error.contains("`lm_head.weight` differs from `head`"),
        "{error}"
    );
}
