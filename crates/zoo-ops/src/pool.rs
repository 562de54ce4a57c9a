use burn::tensor::{Tensor, backend::Backend, module};
use burn_zoo_core::seeded;

/// Maximum over windows; padding never wins, as in PyTorch's `MaxPool2d`.
///
/// # Shapes
/// - x: `[batch, channels, height, width]`
/// - result: `[batch, channels, out_height, out_width]`,
///   `out = (in + 2 padding - kernel_size) / stride + 1`
pub fn max_pool2d<B: Backend>(
    x: Tensor<B, 4>,
    kernel_size: usize,
    stride: usize,
    padding: usize,
) -> Tensor<B, 4> {
    let y = pooled(x, kernel_size, stride, padding);
    crate::counter::add_activations(y.shape().num_elements());
    y
}

fn pooled<B: Backend>(
    x: Tensor<B, 4>,
    kernel_size: usize,
    stride: usize,
    padding: usize,
) -> Tensor<B, 4> {
    #[cfg(feature = "flex")]
    if let Some(y) = crate::flex::max_pool2d(&x, kernel_size, stride, padding) {
        return y;
    }
    crate::counter::took_generic_path();
    let [size, strides, zeros] = [kernel_size, stride, padding].map(|n| [n; 2]);
    module::max_pool2d(x, size, strides, zeros, [1, 1], false)
}

/// Mean over height and width: `[batch, channels, height, width]` to `[batch, channels]`.
pub fn global_avg_pool2d<B: Backend>(x: Tensor<B, 4>) -> Tensor<B, 2> {
    let [batch, channels, height, width] = x.dims();
    let x = x.reshape([batch, channels, height * width]);
    let mean = x.clone().mean_dim(2);
    let mean = seeded("largest for the mean", mean, |_| x.max_dim(2));
    mean.reshape([batch, channels])
}

/// Zeros around an image, `[left, right, top, bottom]` of them.
pub fn pad2d<B: Backend>(x: Tensor<B, 4>, [left, right, top, bottom]: [usize; 4]) -> Tensor<B, 4> {
    let beside = |x: Tensor<B, 4>, dim: usize, before: usize, after: usize| {
        if before + after == 0 {
            return x;
        }
        let zeros = |n: usize| {
            let mut dims = x.dims();
            dims[dim] = n;
            Tensor::zeros(dims, (&x.device(), x.dtype()))
        };
        let parts = [zeros(before), x.clone(), zeros(after)];
        Tensor::cat(
            parts.into_iter().filter(|p| p.dims()[dim] > 0).collect(),
            dim,
        )
    };
    let x = beside(x, 3, left, right);
    beside(x, 2, top, bottom)
}
