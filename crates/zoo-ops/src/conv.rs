use crate::counter;
use burn::tensor::{Tensor, backend::Backend, module, ops::ConvOptions};

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
    let [batch, _, height, width] = x.dims();
    let [out_channels, in_per_group, kernel_h, kernel_w] = weight.dims();
    let [out_h, out_w] = options.output_size([height, width], [kernel_h, kernel_w]);
    let macs = batch * out_channels * out_h * out_w * in_per_group * kernel_h * kernel_w;
    counter::add_flops(2 * macs as u64);
    counter::add_activations(batch * out_channels * out_h * out_w);

    #[cfg(feature = "flex")]
    let (x, weight) = match crate::flex::conv2d(x, weight, options) {
        Ok(y) => {
            return match bias {
                Some(bias) => y + bias.reshape([1, out_channels, 1, 1]),
                None => y,
            };
        }
        Err(inputs) => inputs,
    };
    counter::took_generic_path();
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
