//! The fast paths on flex against the generic forms on burn-ndarray in f64: values and gradients
//! over random sizes, strides and layouts.
//!
//! The limit is 2e-5 of the largest value, about 170 units of f32's rounding.

mod common;

use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Tensor};
use burn_flex::Flex;
use burn_zoo_ops::{Activation, Conv2dOptions, Counts};
use burn_zoo_ops::{batch_norm_eval, batch_norm_train, conv2d, count, max_pool2d};
use common::{Fast, Truth, close, close_sums, gradient, leaf, values};
use proptest::prelude::*;

/// Output, input gradient and weight gradient of a convolution.
fn convolve<B: AutodiffBackend>(
    x: [usize; 4],
    weight: [usize; 4],
    options: Conv2dOptions,
    transposed: bool,
    seed: u64,
    dtype: DType,
) -> [Vec<f64>; 3] {
    let [batch, channels, height, width] = x;
    let leaf_shape = if transposed {
        [batch, channels, width, height]
    } else {
        x
    };
    let input = leaf::<B, 4>(leaf_shape, seed, dtype);
    let kernel = leaf::<B, 4>(weight, seed + 1, dtype);
    let seen = if transposed {
        input.clone().swap_dims(2, 3)
    } else {
        input.clone()
    };
    let y = conv2d(seen, kernel.clone(), None, options);
    let side = leaf::<B, 4>(y.dims(), seed + 2, dtype);
    let grads = (y.clone() * side).sum().backward();
    [
        values(&y),
        gradient(&input, &grads),
        gradient(&kernel, &grads),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn conv2d_equals_the_generic_form(
        (batch, groups, in_group, out_group) in (1usize..6, 1usize..4, 1usize..4, 1usize..5),
        (height, width) in (1usize..14, 1usize..14),
        (kernel_h, kernel_w) in (1usize..5, 1usize..5),
        stride in (1usize..4, 1usize..4),
        padding in (0usize..4, 0usize..4),
        dilation in (1usize..3, 1usize..3),
        transposed: bool,
        seed in 0u64..1000,
    ) {
        let options = Conv2dOptions {
            stride: stride.into(),
            padding: padding.into(),
            dilation: dilation.into(),
            groups,
        };
        let fits = |size: usize, pad: usize, dilation: usize, kernel: usize| size + 2 * pad > dilation * (kernel - 1);
        prop_assume!(fits(height, padding.0, dilation.0, kernel_h));
        prop_assume!(fits(width, padding.1, dilation.1, kernel_w));
        let x = [batch, groups * in_group, height, width];
        let weight = [groups * out_group, in_group, kernel_h, kernel_w];
        let (fast, counts) = count(|| convolve::<Fast>(x, weight, options, transposed, seed, DType::F32));
        prop_assert_eq!((counts.fast, counts.generic), (1, 0));
        let (truth, counts) = count(|| convolve::<Truth>(x, weight, options, transposed, seed, DType::F64));
        prop_assert_eq!((counts.fast, counts.generic), (0, 1));
        close("output", &fast[0], &truth[0])?;
        close("input gradient", &fast[1], &truth[1])?;
        let [out_h, out_w] = options.output_size([height, width], [kernel_h, kernel_w]);
        close_sums("weight gradient", &fast[2], &truth[2], batch * out_h * out_w)?;
    }

    #[test]
    fn minimal_filtering_equals_the_generic_form(
        batch in 3usize..6,
        (inputs, outputs) in (16usize..24, 16usize..24),
        (height, width) in (14usize..24, 14usize..40),
        padding in (0usize..3, 0usize..3),
        seed in 0u64..1000,
    ) {
        let options = Conv2dOptions {
            padding: padding.into(),
            ..Conv2dOptions::default()
        };
        let (x, weight) = ([batch, inputs, height, width], [outputs, inputs, 3, 3]);
        let fast = convolve::<Fast>(x, weight, options, false, seed, DType::F32);
        let truth = convolve::<Truth>(x, weight, options, false, seed, DType::F64);
        close("output", &fast[0], &truth[0])?;
        close("input gradient", &fast[1], &truth[1])?;
        let [out_h, out_w] = options.output_size([height, width], [3, 3]);
        close_sums("weight gradient", &fast[2], &truth[2], batch * out_h * out_w)?;
    }

    #[test]
    fn max_pool2d_equals_the_generic_form(
        (batch, channels) in (1usize..4, 1usize..4),
        (height, width) in (1usize..14, 1usize..14),
        kernel_size in 1usize..5,
        stride in 1usize..4,
        padding in 0usize..3,
        seed in 0u64..1000,
    ) {
        prop_assume!(2 * padding <= kernel_size && kernel_size <= 2 * padding + height.min(width));
        let shape = [batch, channels, height, width];
        let (fast, counts) = count(|| pool::<Fast>(shape, [kernel_size, stride, padding], seed, DType::F32));
        prop_assert_eq!((counts.fast, counts.generic), (1, 0));
        let truth = pool::<Truth>(shape, [kernel_size, stride, padding], seed, DType::F64);
        close("output", &fast[0], &truth[0])?;
        close("input gradient", &fast[1], &truth[1])?;
    }

    #[test]
    fn batch_norm_equals_the_generic_form(
        (batch, channels) in (1usize..6, 1usize..9),
        (height, width) in (1usize..14, 1usize..14),
        offset in -4.0f64..4.0,
        seed in 0u64..1000,
    ) {
        prop_assume!(batch * height * width >= 4);
        let shape = [batch, channels, height, width];
        let fast = normalise::<Fast>(shape, offset, seed, DType::F32);
        let truth = normalise::<Truth>(shape, offset, seed, DType::F64);
        let terms = batch * height * width;
        for (i, what, terms) in [
            (0, "output", 0), (1, "mean", 0), (2, "variance", 0), (3, "dx", 0), (4, "dweight", terms),
            (5, "dbias", terms), (6, "evaluation", 0),
        ] {
            close_sums(what, &fast[i], &truth[i], terms)?;
        }
    }
}

/// Output and input gradient of a pooling.
fn pool<B: AutodiffBackend>(
    shape: [usize; 4],
    [kernel_size, stride, padding]: [usize; 3],
    seed: u64,
    dtype: DType,
) -> [Vec<f64>; 2] {
    let x = leaf::<B, 4>(shape, seed, dtype);
    let y = max_pool2d(x.clone(), kernel_size, stride, padding);
    let side = leaf::<B, 4>(y.dims(), seed + 1, dtype);
    let grads = (y.clone() * side).sum().backward();
    [values(&y), gradient(&x, &grads)]
}

#[test]
fn the_largest_of_what_is_no_number_is_none_either() {
    let numbers = [1.0, f32::NAN, 3.0, 0.0, 5.0, 2.0, f32::INFINITY, 7.0, 8.0];
    let x = Tensor::<Fast, 1>::from_floats(numbers, &Default::default()).reshape([1, 1, 3, 3]);
    let y = values(&max_pool2d(x, 2, 1, 0));
    assert!(y[0].is_nan() && y[1].is_nan());
    assert_eq!(y[2..], [f64::INFINITY, 8.0]);
}

fn normalise<B: AutodiffBackend>(
    shape: [usize; 4],
    offset: f64,
    seed: u64,
    dtype: DType,
) -> [Vec<f64>; 7] {
    let channels = [shape[1]];
    let x = leaf::<B, 4>(shape, seed, dtype);
    let weight = leaf::<B, 1>(channels, seed + 1, dtype);
    let bias = leaf::<B, 1>(channels, seed + 2, dtype);
    let (y, mean, var) = batch_norm_train(x.clone() + offset, weight.clone(), bias.clone(), 1e-5);
    let side = leaf::<B, 4>(shape, seed + 3, dtype);
    let grads = (y.clone() * side).sum().backward();
    let plain = |t: Tensor<B, 1>| t.inner();
    let eval = batch_norm_eval(
        x.clone().inner() + offset,
        plain(mean.clone()),
        plain(var.clone()),
        plain(weight.clone()),
        plain(bias.clone()),
        1e-5,
    );
    [
        values(&y),
        values(&mean),
        values(&var),
        gradient(&x, &grads),
        gradient(&weight, &grads),
        gradient(&bias, &grads),
        eval.into_data().iter::<f64>().collect(),
    ]
}

#[test]
fn sizes_that_are_split_over_tiles_and_parts_agree() {
    // More columns than a tile holds, and a batch that does not divide by the threads.
    let options = Conv2dOptions {
        padding: [1, 1],
        ..Default::default()
    };
    for (x, weight) in [
        ([1, 8, 40, 40], [16, 8, 3, 3]),
        ([3, 8, 40, 40], [16, 8, 3, 3]),
        ([5, 300, 3, 3], [8, 300, 3, 3]),
        ([7, 4, 12, 12], [4, 4, 3, 3]),
    ] {
        let fast = convolve::<Fast>(x, weight, options, false, 9, DType::F32);
        let truth = convolve::<Truth>(x, weight, options, false, 9, DType::F64);
        for i in 0..3 {
            close(&format!("{x:?} part {i}"), &fast[i], &truth[i]).expect("equal");
        }
    }
}

#[test]
fn kernels_that_see_nothing_but_zeros_agree() {
    for (x, weight, stride, padding, dilation) in [
        ([1, 2, 7, 1], [1, 2, 1, 2], [4, 8], [3, 3], [2, 1]),
        ([1, 3, 3, 3], [1, 3, 1, 1], [4, 7], [2, 2], [1, 3]),
        ([1, 2, 4, 1], [2, 2, 1, 1], [5, 5], [2, 2], [1, 1]),
        ([1, 2, 1, 1], [2, 2, 1, 2], [1, 4], [0, 9], [1, 17]),
    ] {
        let options = Conv2dOptions {
            stride,
            padding,
            dilation,
            groups: 1,
        };
        let fast = convolve::<Fast>(x, weight, options, false, 9, DType::F32);
        let truth = convolve::<Truth>(x, weight, options, false, 9, DType::F64);
        for i in 0..3 {
            close(&format!("{options:?} part {i}"), &fast[i], &truth[i]).expect("equal");
        }
    }
}

#[test]
fn the_same_input_gives_the_same_bits() {
    let options = Conv2dOptions {
        padding: [1, 1],
        ..Default::default()
    };
    let run = || convolve::<Fast>([5, 6, 20, 20], [7, 6, 3, 3], options, false, 3, DType::F32);
    let first = run();
    for _ in 0..20 {
        assert_eq!(run(), first);
    }
}

#[test]
fn other_dtypes_take_the_generic_form() {
    let options = Conv2dOptions::default();
    let run = |batch, dtype| {
        count(|| convolve::<Fast>([batch, 2, 4, 4], [3, 2, 1, 1], options, false, 1, dtype))
    };
    let (
        _,
        Counts {
            fast,
            generic,
            flops,
            ..
        },
    ) = run(2, DType::F64);
    assert_eq!((fast, generic), (0, 1));
    assert_eq!(flops, 2 * 2 * 3 * 16 * 2);
}

#[test]
fn a_weight_that_needs_no_gradient_gets_none() {
    let device = Default::default();
    let x = leaf::<Fast, 4>([2, 3, 5, 5], 1, DType::F32);
    let weight = Tensor::<Fast, 4>::ones([4, 3, 3, 3], &device);
    let y = conv2d(x.clone(), weight.clone(), None, Conv2dOptions::default());
    let grads = y.sum().backward();
    assert!(x.grad(&grads).is_some());
    assert!(weight.grad(&grads).is_none());
}

#[test]
fn activations_equal_the_generic_form_and_keep_nan() {
    use Activation::*;
    fn both<B: AutodiffBackend>(activation: Activation, dtype: DType) -> [Vec<f64>; 2] {
        // Numbers to both sides of every corner; laid out as they come, and transposed.
        let x = leaf::<B, 4>([3, 5, 7, 200], 5, dtype);
        let side = leaf::<B, 4>([3, 5, 200, 7], 6, dtype);
        let y = activation.forward((x.clone() * 8.0).swap_dims(2, 3));
        let grads = (y.clone() * side).sum().backward();
        [values(&y), gradient(&x, &grads)]
    }
    for activation in [
        Relu,
        Relu6,
        Silu,
        HardSwish,
        HardSigmoid,
        Sigmoid,
        Tanh,
        Gelu,
        GeluTanh,
        QuickGelu,
    ] {
        let (fast, counts) = count(|| both::<Fast>(activation, DType::F32));
        assert_eq!((counts.fast, counts.generic), (1, 0));
        let truth = both::<Truth>(activation, DType::F64);
        for i in 0..2 {
            close(&format!("{activation:?}"), &fast[i], &truth[i]).expect("equal");
        }
        let special = Tensor::<Flex, 1>::from_floats(
            [f32::NAN, f32::INFINITY, -1e30, -0.0],
            &Default::default(),
        );
        let y: Vec<f32> = activation
            .forward(special)
            .into_data()
            .iter::<f32>()
            .collect();
        let at_zero = match activation {
            HardSigmoid | Sigmoid => 0.5,
            _ => 0.0,
        };
        let far_below = match activation {
            Tanh => -1.0,
            _ => 0.0,
        };
        assert!(
            y[0].is_nan() && y[2] == far_below && y[3] == at_zero,
            "{activation:?} {y:?}"
        );
    }
}

#[test]
fn channels_that_do_not_fit_are_refused_as_by_the_generic_form() {
    let run = |channels: usize, groups: usize| {
        std::panic::catch_unwind(|| {
            let device = Default::default();
            let x = Tensor::<Flex, 4>::ones([2, channels, 5, 5], &device);
            let weight = Tensor::<Flex, 4>::ones([4, 3, 3, 3], &device);
            let options = Conv2dOptions {
                groups,
                ..Default::default()
            };
            conv2d(x, weight, None, options).dims()
        })
    };
    assert!(run(3, 1).is_ok());
    for (channels, groups) in [(1, 1), (5, 1), (3, 2)] {
        assert!(
            run(channels, groups).is_err(),
            "{channels} channels in {groups} groups"
        );
    }
}

#[test]
fn batch_norm_in_evaluation_mode_has_the_generic_forms_gradients() {
    fn all<B: AutodiffBackend>(dtype: DType) -> [Vec<f64>; 6] {
        let shape = [3, 5, 7, 6];
        let x = leaf::<B, 4>(shape, 1, dtype);
        let [mean, var, weight, bias] = [2, 3, 4, 5].map(|seed| leaf::<B, 1>([5], seed, dtype));
        let spread = var.clone() * var.clone() + 0.5;
        let y = batch_norm_eval(
            x.clone(),
            mean.clone(),
            spread,
            weight.clone(),
            bias.clone(),
            1e-5,
        );
        let side = leaf::<B, 4>(shape, 6, dtype);
        let grads = (y.clone() * side).sum().backward();
        [
            values(&y),
            gradient(&x, &grads),
            gradient(&mean, &grads),
            gradient(&var, &grads),
            gradient(&weight, &grads),
            gradient(&bias, &grads),
        ]
    }
    let (fast, counts) = count(|| all::<Fast>(DType::F32));
    assert_eq!((counts.fast, counts.generic), (1, 0));
    let truth = all::<Truth>(DType::F64);
    for i in 0..6 {
        close(&format!("value {i}"), &fast[i], &truth[i]).expect("equal");
    }
}
