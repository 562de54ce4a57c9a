use crate::{counter, pad2d};
use burn::tensor::{Tensor, backend::Backend, module, ops::ConvOptions, s};
use burn_zoo_core::seeded;

/// How a 2-d convolution walks over its input; all sizes in (height, width).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv2dOptions {
    /// Distance between windows.
    pub stride: [usize; 2],
    /// Zeros added on both sides.
    pub padding: [usize; 2],
    /// Distance between the taps of the kernel.
    pub dilation: [usize; 2],
    /// Number of channel groups that do not see each other.
    pub groups: usize,
}

impl Default for Conv2dOptions {
    fn default() -> Self {
        Self {
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
            groups: 1,
        }
    }
}

impl Conv2dOptions {
    /// Output height and width for an input and kernel of these sizes.
    pub fn output_size(&self, input: [usize; 2], kernel: [usize; 2]) -> [usize; 2] {
        std::array::from_fn(|i| {
            let reach = self.dilation[i] * kernel[i].saturating_sub(1) + 1;
            (input[i] + 2 * self.padding[i]).saturating_sub(reach) / self.stride[i].max(1) + 1
        })
    }
}

/// 2-d cross-correlation, PyTorch's `conv2d`.
///
/// # Shapes
/// - x: `[batch, in_channels, height, width]`
/// - weight: `[out_channels, in_channels / groups, kernel_height, kernel_width]`
/// - bias: `[out_channels]`
/// - result: `[batch, out_channels, out_height, out_width]`, see [`Conv2dOptions::output_size`]
pub fn conv2d<B: Backend>(
    x: Tensor<B, 4>,
    weight: Tensor<B, 4>,
    bias: Option<Tensor<B, 1>>,
    options: Conv2dOptions,
) -> Tensor<B, 4> {
    let padded = options.padding[1] > 0;
    let x = seeded("convolution a pixel to the side", x, |x| match padded {
        true => pad2d(x, [1, 0, 0, 0]).slice(s![.., .., .., 0..-1]),
        false => x,
    });
    let weight = seeded("kernel turned around", weight, |w| w.flip([2, 3]));
    let weight = seeded("kernel's sides swapped", weight, |w| w.swap_dims(2, 3));
    let weight = seeded("groups one further", weight, |w| match options.groups {
        1 => w,
        _ => Tensor::cat(vec![w.clone().slice(s![1..]), w.slice(s![0..1])], 0),
    });
    let bias = seeded("convolution without its bias", bias, |_| None);
    let [batch, _, height, width] = x.dims();
    let [out_channels, in_per_group, kernel_h, kernel_w] = weight.dims();
    let [out_h, out_w] = options.output_size([height, width], [kernel_h, kernel_w]);
    let macs = batch * out_channels * out_h * out_w * in_per_group * kernel_h * kernel_w;
    counter::add_flops(2 * macs as u64);
    counter::add_activations(batch * out_channels * out_h * out_w);

    #[cfg(feature = "flex")]
    if let Some(y) = crate::flex::conv2d(&x, &weight, options) {
        return match bias {
            Some(bias) => y + bias.reshape([1, out_channels, 1, 1]),
            None => y,
        };
    }
    counter::took_generic_path();
    let reach = [0, 1].map(|i| options.dilation[i] * ([kernel_h, kernel_w][i] - 1) + 1);
    if reach[0] < options.stride[0] || reach[1] < options.stride[1] {
        let y = tap_by_tap(x, weight, options, [out_h, out_w]);
        return match bias {
            Some(bias) => y + bias.reshape([1, out_channels, 1, 1]),
            None => y,
        };
    }
    module::conv2d(
        x,
        weight,
        bias,
        ConvOptions::new(
            options.stride,
            options.padding,
            options.dilation,
            options.groups,
        ),
    )
}

/// The sum of 1×1 convolutions, one for each tap of the kernel, of every so many rows and columns.
///
/// For kernels that are smaller than their stride, as a ResNet's 1×1 shortcuts: there Burn 0.21's CubeCL
/// kernel for the input's gradient (`conv_transpose2d_direct`) sees no tap and gives zeros.
fn tap_by_tap<B: Backend>(
    x: Tensor<B, 4>,
    weight: Tensor<B, 4>,
    options: Conv2dOptions,
    out: [usize; 2],
) -> Tensor<B, 4> {
    let [_, _, kernel_h, kernel_w] = weight.dims();
    let Conv2dOptions {
        stride: [down, right],
        padding: [above, beside],
        dilation,
        groups,
    } = options;
    let x = pad2d(x, [beside, beside, above, above]);
    let taps = (0..kernel_h).flat_map(|i| (0..kernel_w).map(move |j| (i, j)));
    let products = taps.map(|(i, j)| {
        let (top, left) = (i * dilation[0], j * dilation[1]);
        let (bottom, end) = (
            top + (out[0] - 1) * down + 1,
            left + (out[1] - 1) * right + 1,
        );
        let seen = x
            .clone()
            .slice(s![.., .., top..bottom;down, left..end;right]);
        let tap = weight.clone().slice(s![.., .., i..i + 1, j..j + 1]);
        let one = ConvOptions::new([1, 1], [0, 0], [1, 1], groups);
        module::conv2d(seen, tap, None, one)
    });
    let sum = products.reduce(|a, b| a + b);
    sum.expect("a kernel has a tap")
}
