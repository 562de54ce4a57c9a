//! What holds for every file that is written: it is read again, bit for bit.

use burn::tensor::{DType, TensorData};
use burn_zoo_checkpoint::{
    KeyMap, Layout, LazyTensors, Tensors, read_safetensors, to_file, write_safetensors,
};
use proptest::prelude::*;

fn dtype() -> impl Strategy<Value = DType> {
    prop_oneof![
        Just(DType::F64),
        Just(DType::F32),
        Just(DType::F16),
        Just(DType::BF16),
        Just(DType::I64),
        Just(DType::U8),
    ]
}

/// Any bytes are numbers of any of these types; shapes may be empty or have zeros.
fn tensor() -> impl Strategy<Value = TensorData> {
    (dtype(), prop::collection::vec(0usize..5, 0..4)).prop_flat_map(|(dtype, shape)| {
        let bytes = shape.iter().product::<usize>() * dtype.size();
        prop::collection::vec(any::<u8>(), bytes)
            .prop_map(move |bytes| TensorData::from_bytes_vec(bytes, shape.clone(), dtype))
    })
}

fn tensors() -> impl Strategy<Value = Tensors> {
    let key = "[a-zA-Z0-9_.é\"\\\\ ]{1,12}";
    prop::collection::btree_map(key, tensor(), 0..6)
}

/// Comparing as bytes: NaN is not equal to itself.
fn same(a: &TensorData, b: &TensorData) -> bool {
    a.shape == b.shape && a.dtype == b.dtype && a.as_bytes() == b.as_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_written_is_read(tensors in tensors()) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("weights.safetensors");
        write_safetensors(&path, &tensors).expect("writable");
        let read = read_safetensors(&path).expect("just written");
        prop_assert_eq!(read.keys().collect::<Vec<_>>(), tensors.keys().collect::<Vec<_>>());
        for (key, data) in &tensors {
            prop_assert!(same(data, &read[key]), "{}", key);
        }
        let opened = LazyTensors::open(&path).expect("just written");
        for (key, data) in &tensors {
            let numbers = opened.tensors[key].read_as(key, DType::F64);
            prop_assert_eq!(numbers.is_ok(), data.dtype.is_float(), "{}", key);
        }
    }

    /// A packed, transposed projection comes apart and goes together again.
    #[test]
    fn packed_rows_go_where_they_came_from(
        (rows, columns) in (prop::collection::vec(1usize..5, 1..4), 1usize..5),
    ) {
        let of: usize = rows.iter().sum();
        let mut map = KeyMap::new("packed", &[], &[]);
        let mut parts = Tensors::new();
        let mut at = 0;
        for (i, n) in rows.iter().enumerate() {
            let name = format!("part{i}");
            map.rename(format!("^{name}"), "whole");
            map.lay(name.clone(), &[Layout::Transposed, Layout::Rows { at, of }]);
            let numbers = (0..n * columns).map(|k| (at * columns + k) as f32).collect::<Vec<_>>();
            parts.insert(name, TensorData::new(numbers, [*n, columns]));
            at += n;
        }
        let stored = to_file(&parts, &map);
        prop_assert_eq!(stored.len(), 1);
        let whole = &stored["whole"];
        prop_assert_eq!(&whole.shape[..], &[columns, of][..]);
        // Row r, column c of the parts is r · columns + c; the file has it transposed.
        let values = whole.to_vec::<f32>().expect("f32");
        for r in 0..of {
            for c in 0..columns {
                prop_assert_eq!(values[c * of + r], (r * columns + c) as f32);
            }
        }
    }
}
