//! The fast paths of language models on flex against the generic forms on burn-ndarray in f64.

mod common;

use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_flex::Flex;
use burn_ndarray::NdArray;
use burn_zoo_ops::{
    AdamW, AttentionMask, MaskOptions, Sgd, adamw_step, attention, count, cross_entropy,
    layer_norm, linear, rms_norm, sgd_step,
};
use common::{Fast, Truth, close, close_beside, close_sums, gradient, leaf, leaf_around, values};
use proptest::prelude::*;

/// Which keys are seen, and how inputs lie in memory.
#[derive(Clone, Debug)]
struct Case {
    batch: usize,
    shared: usize,
    group: usize,
    queries: usize,
    past: usize,
    head_dim: usize,
    causal: bool,
    window: Option<usize>,
    /// Of each sequence, so many first or last keys are padding.
    padding: Option<(Vec<usize>, bool)>,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (1usize..4, 1usize..4, 1usize..4, 1usize..9);
    let places = (prop_oneof![1usize..12, 60usize..150], 0usize..9);
    let mask = (any::<bool>(), proptest::option::of(1usize..20));
    let padding = proptest::option::of((proptest::collection::vec(0usize..200, 3), any::<bool>()));
    (sizes, places, mask, padding, 0u64..1000).prop_map(
        |((batch, shared, group, head_dim), (queries, past), (causal, window), padding, seed)| {
            Case {
                batch,
                shared,
                group,
                queries,
                past,
                head_dim,
                causal,
                window,
                padding,
                seed,
            }
        },
    )
}

/// The result, and the gradients of queries, keys and values.
fn attend<B: AutodiffBackend>(case: &Case, dtype: DType) -> [Vec<f64>; 4] {
    let device = Default::default();
    let keys = case.past + case.queries;
    // As projections give them: heads side by side.
    let input = |rows: usize, heads: usize, seed: u64| {
        leaf::<B, 4>(
            [case.batch, rows, heads, case.head_dim],
            case.seed + seed,
            dtype,
        )
    };
    let query = input(case.queries, case.shared * case.group, 0);
    let [key, value] = [1, 2].map(|seed| input(keys, case.shared, seed));
    let padding = case.padding.as_ref().map(|(counts, left)| {
        let counts = (0..case.batch).map(|n| counts[n % counts.len()] % (keys + 1));
        let seen = counts.flat_map(|count| {
            (0..keys).map(move |key| match left {
                true => i64::from(key >= count),
                false => i64::from(key < keys - count),
            })
        });
        let data = TensorData::new(seen.collect::<Vec<i64>>(), [case.batch, keys]);
        Tensor::<B, 2, Int>::from_data(data, &device)
    });
    let mask = AttentionMask::new(MaskOptions {
        causal: case.causal,
        window: case.window,
        past: case.past,
        attention_mask: padding,
    });
    let heads = |x: &Tensor<B, 4>| x.clone().swap_dims(1, 2);
    // Large enough that softmax is no mean.
    let y = attention(
        heads(&query) * 4.0,
        heads(&key),
        heads(&value),
        &mask,
        0.7,
        None,
    );
    let side = leaf::<B, 4>(y.dims(), case.seed + 3, dtype);
    let grads = (y.clone() * side).sum().backward();
    [
        values(&y),
        gradient(&query, &grads),
        gradient(&key, &grads),
        gradient(&value, &grads),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn attention_equals_the_generic_form(case in cases()) {
        let (fast, counts) = count(|| attend::<Fast>(&case, DType::F32));
        prop_assert_eq!((counts.fast, counts.generic), (1, 0));
        let (truth, counts) = count(|| attend::<Truth>(&case, DType::F64));
        prop_assert_eq!((counts.fast, counts.generic), (0, 1));
        for (i, what) in ["output", "dq", "dk", "dv"].into_iter().enumerate() {
            close_sums(what, &fast[i], &truth[i], if i == 0 { 0 } else { case.head_dim })?;
        }
    }

    #[test]
    fn linear_equals_the_generic_form(
        (rows, inputs, outputs) in (1usize..150, 1usize..40, 1usize..40),
        bias: bool,
        transposed: bool,
        seed in 0u64..1000,
    ) {
        let fast = project::<Fast>([rows, inputs, outputs], bias, transposed, seed, DType::F32);
        let truth = project::<Truth>([rows, inputs, outputs], bias, transposed, seed, DType::F64);
        close_sums("output", &fast[0], &truth[0], inputs)?;
        close_sums("dx", &fast[1], &truth[1], outputs)?;
        close_sums("dweight", &fast[2], &truth[2], rows)?;
        close_sums("dbias", &fast[3], &truth[3], rows)?;
    }

    #[test]
    fn norms_over_features_equal_the_generic_form(
        (rows, features) in (1usize..100, 4usize..80),
        offset in -4.0f64..4.0,
        transposed: bool,
        seed in 0u64..1000,
    ) {
        let fast = normalise::<Fast>([rows, features], offset, transposed, seed, DType::F32);
        let truth = normalise::<Truth>([rows, features], offset, transposed, seed, DType::F64);
        for (i, (fast, truth)) in fast.iter().zip(&truth).enumerate() {
            let terms = if matches!(i, 2 | 3 | 6) { rows } else { 0 };
            close_sums(&format!("value {i}"), fast, truth, terms)?;
        }
    }

    #[test]
    fn cross_entropy_equals_the_generic_form(
        (rows, classes) in (1usize..40, 1usize..90),
        label_smoothing in prop_oneof![Just(0.0), 0.0..0.9],
        transposed: bool,
        seed in 0u64..1000,
    ) {
        let fast = lose::<Fast>([rows, classes], label_smoothing, transposed, seed, DType::F32);
        let truth = lose::<Truth>([rows, classes], label_smoothing, transposed, seed, DType::F64);
        close("loss", &fast[0], &truth[0])?;
        // Where a class is certain the gradient is a difference of nearly equal numbers.
        close_beside("dlogits", &fast[1], &truth[1], 3.0 / rows as f64)?;
    }
}

fn project<B: AutodiffBackend>(
    [rows, inputs, outputs]: [usize; 3],
    with_bias: bool,
    transposed: bool,
    seed: u64,
    dtype: DType,
) -> [Vec<f64>; 4] {
    let x = turned::<B>([rows, inputs], transposed, seed, dtype);
    let weight = turned::<B>([outputs, inputs], transposed, seed + 1, dtype);
    let bias = leaf::<B, 1>([outputs], seed + 2, dtype);
    let added = with_bias.then(|| bias.clone());
    let (y, counts) = count(|| linear(x.1.clone(), weight.1.clone(), added));
    assert_eq!(counts.fast, u64::from(dtype == DType::F32));
    let side = leaf::<B, 2>(y.dims(), seed + 3, dtype);
    let grads = (y.clone() * side).sum().backward();
    let of_bias = match with_bias {
        true => gradient(&bias, &grads),
        false => Vec::new(),
    };
    [
        values(&y),
        gradient(&x.0, &grads),
        gradient(&weight.0, &grads),
        of_bias,
    ]
}

/// A leaf, and the same as a matrix of this shape that lies in memory as it is or transposed.
fn turned<B: AutodiffBackend>(
    shape: [usize; 2],
    transposed: bool,
    seed: u64,
    dtype: DType,
) -> (Tensor<B, 2>, Tensor<B, 2>) {
    turned_around(0.0, shape, transposed, seed, dtype)
}

/// The same with numbers around `middle`.
fn turned_around<B: AutodiffBackend>(
    middle: f64,
    [rows, columns]: [usize; 2],
    transposed: bool,
    seed: u64,
    dtype: DType,
) -> (Tensor<B, 2>, Tensor<B, 2>) {
    if transposed {
        let x = leaf_around::<B, 2>(middle, [columns, rows], seed, dtype);
        (x.clone(), x.transpose())
    } else {
        let x = leaf_around::<B, 2>(middle, [rows, columns], seed, dtype);
        (x.clone(), x)
    }
}

fn normalise<B: AutodiffBackend>(
    shape: [usize; 2],
    offset: f64,
    transposed: bool,
    seed: u64,
    dtype: DType,
) -> Vec<Vec<f64>> {
    // A backward pass uses up what it went through.
    let x = || turned_around::<B>(offset, shape, transposed, seed, dtype);
    let [weight, bias] = [1, 2].map(|i| leaf::<B, 1>([shape[1]], seed + i, dtype));
    let side = leaf::<B, 2>(shape, seed + 3, dtype);
    let (leaf, seen) = x();
    let (y, counts) = count(|| layer_norm(seen, weight.clone(), bias.clone(), 1e-5));
    assert_eq!(counts.fast, u64::from(dtype == DType::F32));
    let grads = (y.clone() * side.clone()).sum().backward();
    let mut all = vec![
        values(&y),
        gradient(&leaf, &grads),
        gradient(&weight, &grads),
        gradient(&bias, &grads),
    ];
    let (leaf, seen) = x();
    let (y, counts) = count(|| rms_norm(seen, weight.clone(), 1e-5));
    assert_eq!(counts.fast, u64::from(dtype == DType::F32));
    let grads = (y.clone() * side).sum().backward();
    all.extend([
        values(&y),
        gradient(&leaf, &grads),
        gradient(&weight, &grads),
    ]);
    all
}

fn lose<B: AutodiffBackend>(
    shape: [usize; 2],
    label_smoothing: f64,
    transposed: bool,
    seed: u64,
    dtype: DType,
) -> [Vec<f64>; 2] {
    let [rows, classes] = shape;
    let logits = turned::<B>(shape, transposed, seed, dtype);
    let targets = (0..rows).map(|i| ((i as u64 * 31 + seed) % classes as u64) as i64);
    let targets = targets.collect::<Vec<i64>>();
    let targets = Tensor::<B, 1, Int>::from_data(targets.as_slice(), &Default::default());
    let loss = cross_entropy(logits.1 * 20.0, targets, label_smoothing);
    let grads = (loss.clone() * 3.0).backward();
    [values(&loss), gradient(&logits.0, &grads)]
}

/// A few steps of each optimizer, from tensors that are shared and tensors that are not.
#[test]
fn optimizers_equal_their_generic_forms_and_change_nothing_that_is_shared() {
    fn steps<B: Backend>(dtype: DType) -> Vec<Vec<f64>> {
        let device = Default::default();
        let numbers = |salt: usize| {
            let values: Vec<f64> = (0..35_000)
                .map(|i| f64::from((i * 7919 + salt * 13) as u32 % 101) / 64.0 - 0.75)
                .collect();
            Tensor::<B, 1>::from_data(
                TensorData::new(values, [35_000]).convert_dtype(dtype),
                (&device, dtype),
            )
        };
        let host = |x: &Tensor<B, 1>| x.to_data().iter::<f64>().collect::<Vec<f64>>();
        let config = AdamW {
            weight_decay: 0.1,
            ..AdamW::default()
        };
        let before = numbers(0);
        let (mut param, mut state) = (before.clone(), None);
        for step in 1..5 {
            let (next, m, v) = adamw_step(
                param.clone(),
                numbers(step),
                state.clone(),
                step,
                1e-2,
                &config,
            );
            (param, state) = (next, Some((m, v)));
        }
        let (m, v) = state.expect("four steps");
        let mut all = vec![host(&param), host(&m), host(&v), host(&before)];
        for nesterov in [false, true] {
            let config = Sgd {
                momentum: 0.9,
                weight_decay: 0.1,
                nesterov,
            };
            let (mut param, mut buffer) = (before.clone(), None);
            for step in 1..5 {
                (param, buffer) = sgd_step(param, numbers(step), buffer, 1e-2, &config);
            }
            all.extend([
                host(&param),
                host(&buffer.expect("momentum")),
                host(&before),
            ]);
        }
        all
    }
    let (fast, counts) = count(|| steps::<Flex>(DType::F32));
    assert_eq!((counts.fast, counts.generic), (4 + 2 * 4, 0));
    let truth = steps::<NdArray<f64>>(DType::F64);
    for (i, (fast, truth)) in fast.iter().zip(&truth).enumerate() {
        close(&format!("value {i}"), fast, truth).expect("equal");
    }
}

#[test]
fn the_same_input_gives_the_same_bits() {
    let case = Case {
        batch: 2,
        shared: 2,
        group: 2,
        queries: 130,
        past: 3,
        head_dim: 8,
        causal: true,
        window: None,
        padding: None,
        seed: 5,
    };
    let run = || {
        let normed = normalise::<Fast>([150, 64], 1.0, false, 3, DType::F32);
        let projected = project::<Fast>([150, 64, 48], true, false, 3, DType::F32);
        (attend::<Fast>(&case, DType::F32), normed, projected)
    };
    let first = run();
    for _ in 0..10 {
        assert!(run() == first);
    }
}

#[test]
fn what_is_no_number_stays_so_and_extremes_are_right() {
    let device = Default::default();
    let row = |values: [f32; 4]| Tensor::<Flex, 2>::from_floats([values], &device);
    let numbers = |x: Tensor<Flex, 2>| x.into_data().iter::<f32>().collect::<Vec<f32>>();
    let (ones, zeros) = (
        Tensor::<Flex, 1>::ones([4], &device),
        Tensor::<Flex, 1>::zeros([4], &device),
    );
    for bad in [f32::NAN, f32::INFINITY] {
        let x = row([1.0, bad, 2.0, 3.0]);
        let y = layer_norm(x.clone(), ones.clone(), zeros.clone(), 1e-5);
        assert!(numbers(y).iter().all(|v| v.is_nan()));
        let y = numbers(rms_norm(x, ones.clone(), 1e-5));
        assert!(y.iter().any(|v| v.is_nan()), "{y:?}");
    }
    let y = layer_norm(row([1e18, -1e18, 1e18, -1e18]), ones.clone(), zeros, 1e-5);
    assert_eq!(numbers(y), [1.0, -1.0, 1.0, -1.0]);
    let target = Tensor::<Flex, 1, Int>::from_data([1], &device);
    let loss = |values: [f32; 4]| {
        let loss = cross_entropy(row(values), target.clone(), 0.0);
        loss.into_scalar()
    };
    assert!(loss([0.0, f32::NAN, 0.0, 0.0]).is_nan());
    assert_eq!(loss([-1e30, 1e30, 0.0, 0.0]), 0.0);
    assert_eq!(
        loss([f32::NEG_INFINITY, 5.0, f32::NEG_INFINITY, -1e30]),
        0.0
    );
    assert_eq!(loss([0.0, -1e4, f32::NEG_INFINITY, -1e30]), 1e4);
}
