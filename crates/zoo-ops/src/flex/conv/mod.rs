//! 2-d convolution: as products of matrices that are packed straight from the images; 3×3 ones of stride 1 by minimal
//! filtering, where that is faster; and where every channel is its own group, tap by tap.

mod depthwise;
mod padded;
mod products;
mod winograd;

use super::{contiguous, float, from_vec, is_f32, kind, run, slice, tensor};
use crate::{Conv2dOptions, counter};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use burn_autodiff::{
    checkpoint::base::Checkpointer,
    grads::Gradients,
    ops::{Backward, Ops},
};
use burn_flex::{Flex, FlexTensor};
use std::cell::RefCell;

/// [`crate::conv2d`] without bias.
pub(crate) fn conv2d<B: Backend>(
    x: &Tensor<B, 4>,
    weight: &Tensor<B, 4>,
    options: Conv2dOptions,
) -> Option<Tensor<B, 4>> {
    let geometry = Geometry::new(x.dims(), weight.dims(), options);
    let fits = || is_f32(x) && is_f32(weight) && geometry.fits(weight.dims()[1]);
    if kind::<B>().is_none() || !fits() {
        return None;
    }
    counter::took_fast_path();
    let inputs = [float(x.clone()), float(weight.clone())];
    let y = run::<B, _, 2>(Conv2d, inputs, |[x, weight]| {
        let (x, weight) = (contiguous(x), contiguous(weight));
        let y = geometry.forward(slice(&x), slice(&weight));
        let [height, width] = geometry.output;
        let shape = [geometry.batch, geometry.out_channels, height, width];
        (from_vec(y, &shape), (geometry, x, weight))
    });
    Some(tensor(y))
}

/// Sizes of one 2-d convolution.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    batch: usize,
    in_channels: usize,
    out_channels: usize,
    input: [usize; 2],
    kernel: [usize; 2],
    output: [usize; 2],
    options: Conv2dOptions,
}

impl Geometry {
    fn new(x: [usize; 4], weight: [usize; 4], options: Conv2dOptions) -> Self {
        let (input, kernel) = ([x[2], x[3]], [weight[2], weight[3]]);
        Self {
            batch: x[0],
            in_channels: x[1],
            out_channels: weight[0],
            input,
            kernel,
            output: options.output_size(input, kernel),
            options,
        }
    }

    /// Whether a weight with `in_group` input channels fits the input, and no size is zero.
    fn fits(&self, in_group: usize) -> bool {
        let Conv2dOptions {
            stride,
            padding,
            dilation,
            groups,
        } = self.options;
        let reaches = |i: usize| {
            self.kernel[i] > 0
                && stride[i] > 0
                && dilation[i] * (self.kernel[i] - 1) < self.input[i] + 2 * padding[i]
        };
        groups > 0
            && self.in_channels == in_group * groups
            && self.out_channels.is_multiple_of(groups)
            && self.batch * self.in_channels * self.out_channels * self.plane() > 0
            && reaches(0)
            && reaches(1)
    }

    fn in_group(&self) -> usize {
        self.in_channels / self.options.groups
    }

    fn out_group(&self) -> usize {
        self.out_channels / self.options.groups
    }

    fn method(&self) -> Method {
        if self.in_group() == 1 && self.out_group() == 1 {
            Method::Depthwise
        } else if self.is_minimal() {
            Method::Minimal
        } else {
            Method::Products
        }
    }

    /// Taps of a kernel.
    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    fn positions(&self) -> usize {
        self.output[0] * self.output[1]
    }

    fn plane(&self) -> usize {
        self.input[0] * self.input[1]
    }

    fn x_image(&self) -> usize {
        self.in_channels * self.plane()
    }

    fn y_image(&self) -> usize {
        self.out_channels * self.positions()
    }

    fn forward(&self, x: &[f32], weight: &[f32]) -> Vec<f32> {
        let mut y = vec![0.0; self.batch * self.y_image()];
        match self.method() {
            Method::Depthwise => depthwise::forward(self, x, weight, &mut y),
            Method::Minimal => winograd::forward(self, x, weight, &mut y),
            Method::Products => products::forward(self, x, weight, &mut y),
        }
        y
    }

    fn input_gradient(&self, weight: &[f32], dy: &[f32]) -> Vec<f32> {
        let mut dx = vec![0.0; self.batch * self.x_image()];
        match self.method() {
            Method::Depthwise => depthwise::input_gradient(self, weight, dy, &mut dx),
            Method::Minimal => winograd::input_gradient(self, weight, dy, &mut dx),
            Method::Products => products::input_gradient(self, weight, dy, &mut dx),
        }
        dx
    }

    fn weight_gradient(&self, x: &[f32], dy: &[f32]) -> Vec<f32> {
        match self.method() {
            Method::Depthwise => depthwise::weight_gradient(self, x, dy),
            Method::Minimal => winograd::weight_gradient(self, x, dy),
            Method::Products => products::weight_gradient(self, x, dy),
        }
    }
}

/// How a convolution is computed.
enum Method {
    Depthwise,
    Minimal,
    Products,
}

thread_local! {
    /// Reused between calls: fresh pages would cost more than what is written to them.
    static SCRATCH: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

fn with_scratch<T>(f: impl FnOnce(&mut [Vec<f32>; 2]) -> T) -> T {
    // A parallel product may make this thread run another part of the same convolution.
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => f(&mut scratch),
        Err(_) => f(&mut [Vec::new(), Vec::new()]),
    })
}

/// Backward of a convolution without bias.
#[derive(Debug)]
struct Conv2d;

impl Backward<Flex, 2> for Conv2d {
    type State = (Geometry, FlexTensor, FlexTensor);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = contiguous(grads.consume::<Flex>(&ops.node));
        let (g, x, weight) = ops.state;
        let [node_x, node_weight] = ops.parents;
        if let Some(node) = node_x {
            let dx = g.input_gradient(slice(&weight), slice(&dy));
            let shape = [g.batch, g.in_channels, g.input[0], g.input[1]];
            grads.register::<Flex>(node.id, from_vec(dx, &shape));
        }
        if let Some(node) = node_weight {
            let dw = g.weight_gradient(slice(&x), slice(&dy));
            let shape = [g.out_channels, g.in_group(), g.kernel[0], g.kernel[1]];
            grads.register::<Flex>(node.id, from_vec(dw, &shape));
        }
    }
}
