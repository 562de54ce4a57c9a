//! The generic convolution where a kernel is smaller than its stride against Burn's own on
//! burn-ndarray in f64, which has no trouble there: values and both gradients.

use burn::backend::Autodiff;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{DType, Tensor, TensorData, module};
use burn_ndarray::NdArray;
use burn_zoo_ops::{Conv2dOptions, conv2d};

type B = Autodiff<NdArray<f64>>;

fn leaf(shape: [usize; 4], seed: usize) -> Tensor<B, 4> {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count)
        .map(|i| ((i * 37 + seed) % 101) as f64 / 50.0 - 1.0)
        .collect();
    let data = TensorData::new(values, shape);
    Tensor::from_data(data, (&Default::default(), DType::F64)).require_grad()
}

/// The result, and the gradients of its sum with weights.
fn all(
    f: impl Fn(Tensor<B, 4>, Tensor<B, 4>) -> Tensor<B, 4>,
    x: [usize; 4],
    w: [usize; 4],
) -> [Vec<f64>; 3] {
    let (x, w) = (leaf(x, 1), leaf(w, 2));
    let y = f(x.clone(), w.clone());
    let grads = (y.clone() * leaf(y.dims(), 3).detach()).sum().backward();
    let numbers = |data: TensorData| data.iter::<f64>().collect();
    [
        numbers(y.into_data()),
        numbers(x.grad(&grads).expect("x takes part").into_data()),
        numbers(w.grad(&grads).expect("w takes part").into_data()),
    ]
}

#[test]
fn symptom_20_shapes_at_the_edge() {
    // Kernel, stride, padding, dilation, groups: kernels smaller than their stride, depthwise ones; the last
    // column differs from the first in some.
    let cases = [
        ([1, 1], [2, 2], [0, 0], [1, 1], 1),
        ([1, 1], [3, 2], [1, 0], [1, 1], 2),
        ([2, 2], [3, 3], [1, 1], [1, 1], 1),
        ([3, 1], [1, 2], [1, 0], [1, 1], 1),
        ([2, 2], [4, 4], [0, 1], [2, 2], 2),
        ([3, 3], [2, 2], [1, 1], [1, 1], 4),
        ([3, 3], [1, 1], [1, 1], [1, 1], 4),
    ];
    for (kernel, stride, padding, dilation, groups) in cases {
        // One image, and one pixel where the kernel fits.
        for (batch, side) in [(2, 5), (2, 8), (1, 9), (1, 1)] {
            let fits = |i: usize| dilation[i] * (kernel[i] - 1) < side + 2 * padding[i];
            if !fits(0) || !fits(1) {
                continue;
            }
            let x = [batch, 4, side, if side == 1 { 1 } else { side + 2 }];
            let w = [12, 4 / groups, kernel[0], kernel[1]];
            let options = Conv2dOptions {
                stride,
                padding,
                dilation,
                groups,
            };
            let plain = ConvOptions::new(stride, padding, dilation, groups);
            let got = all(|x, w| conv2d(x, w, None, options), x, w);
            let want = all(|x, w| module::conv2d(x, w, None, plain.clone()), x, w);
            for (got, want) in got.iter().zip(&want) {
                assert_eq!(got.len(), want.len(), "{options:?}");
                let pairs = got.iter().zip(want);
                let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 1e-12, "{options:?} on {side}: {off:.1e}");
            }
        }
    }
}
