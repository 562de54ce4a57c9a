use crate::{Conv2d, ConvNorm, ConvNormOptions, Init, Padding, stochastic_depth};
use burn::module::Module;
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{Mode, seeded};
use burn_zoo_ops::{Activation, global_avg_pool2d};

/// Squeeze and excitation: channels are weighed by a small network that sees their means (Hu et al.
/// 2017, arXiv:1709.01507).
///
/// `y = x · gate(W₂ act(W₁ mean(x) + b₁) + b₂)`
#[derive(Module, Debug)]
pub struct SqueezeExcite<B: Backend> {
    fc1: Conv2d<B>,
    fc2: Conv2d<B>,
    #[module(skip)]
    options: SqueezeExciteOptions,
}

/// Sizes of a [`SqueezeExcite`].
#[derive(Clone, Copy, Debug)]
pub struct SqueezeExciteOptions {
    /// Channels of the network's middle.
    pub squeeze: usize,
    /// Its activation.
    pub activation: Activation,
    /// What makes weights of its output.
    pub gate: Activation,
}

impl<B: Backend> SqueezeExcite<B> {
    /// For `channels` channels.
    pub fn new(init: &mut Init<B>, channels: usize, options: SqueezeExciteOptions) -> Self {
        let mut fc =
            |from, to| Conv2d::new(init, [from, to], 1, Default::default()).with_bias(init);
        Self {
            fc1: fc(channels, options.squeeze),
            fc2: fc(options.squeeze, channels),
            options,
        }
    }

    /// `[batch, channels, height, width]` to the same shape.
    pub fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        let [batch, channels, ..] = x.dims();
        let mean = global_avg_pool2d(x.clone()).reshape([batch, channels, 1, 1]);
        let middle = self.options.activation.forward(self.fc1.forward(mean));
        let gate = self.options.gate.forward(self.fc2.forward(middle));
        x * seeded("squeeze and excitation left out", gate, |gate| {
            gate * 0.0 + 1.0
        })
    }
}

/// Sizes of an [`InvertedResidual`].
#[derive(Clone, Copy, Debug)]
pub struct InvertedResidualOptions {
    /// Input and output channels.
    pub channels: [usize; 2],
    /// Channels in between; equal to the input's, there is no expansion.
    pub expanded: usize,
    /// Side of the depthwise (or fused) kernel.
    pub kernel_size: usize,
    /// Its stride.
    pub stride: usize,
    /// One full convolution in place of expansion and depthwise convolution (EfficientNetV2).
    pub fused: bool,
    /// Squeeze and excitation after the depthwise convolution.
    pub squeeze_excite: Option<SqueezeExciteOptions>,
    /// The block's activation; there is none after the projection, but in a fused block that does
    /// not expand.
    pub activation: Activation,
    /// How inputs are padded.
    pub padding: Padding,
    /// The norms' eps.
    pub eps: f64,
    /// The norms' momentum.
    pub momentum: f64,
    /// Probability that an image goes past the block in training, where its input is added.
    pub stochastic_depth_prob: f64,
}

/// MBConv: expand, filter each channel, project, and add the input where the shape stays
/// (Sandler et al. 2018, arXiv:1801.04381); or Fused-MBConv (Tan and Le 2021, arXiv:2104.00298).
///
/// `y = x + project(se(depthwise(expand(x))))`, fused `y = x + project(fused(x))`
#[derive(Module, Debug)]
pub struct InvertedResidual<B: Backend> {
    expand: Option<ConvNorm<B>>,
    /// The depthwise convolution, or the fused one.
    filter: ConvNorm<B>,
    se: Option<SqueezeExcite<B>>,
    /// Absent in a fused block that does not expand.
    project: Option<ConvNorm<B>>,
    residual: bool,
    stochastic_depth_prob: f64,
}

impl<B: Backend> InvertedResidual<B> {
    /// With kaiming-normal weights.
    pub fn new(init: &mut Init<B>, options: InvertedResidualOptions) -> Self {
        let InvertedResidualOptions {
            channels: [input, output],
            expanded,
            ..
        } = options;
        let expands = expanded != input;
        let conv = |channels, activation| ConvNormOptions {
            padding: options.padding,
            eps: options.eps,
            momentum: options.momentum,
            activation,
            ..ConvNormOptions::new(channels)
        };
        let act = Some(options.activation);
        let to = if options.fused && !expands {
            output
        } else {
            expanded
        };
        let from = if options.fused { input } else { expanded };
        let filter = ConvNormOptions {
            kernel_size: options.kernel_size,
            stride: options.stride,
            groups: if options.fused { 1 } else { expanded },
            ..conv([from, to], act)
        };
        Self {
            expand: (expands && !options.fused)
                .then(|| ConvNorm::new(init, conv([input, expanded], act))),
            filter: ConvNorm::new(init, filter),
            se: options
                .squeeze_excite
                .map(|se| SqueezeExcite::new(init, to, se)),
            project: (expands || !options.fused)
                .then(|| ConvNorm::new(init, conv([to, output], None))),
            residual: options.stride == 1 && input == output,
            stochastic_depth_prob: options.stochastic_depth_prob,
        }
    }

    /// `[batch, in, height, width]` to `[batch, out, height', width']`.
    pub fn forward(&self, x: Tensor<B, 4>, mode: Mode) -> Tensor<B, 4> {
        let mut y = x.clone();
        if let Some(expand) = &self.expand {
            y = expand.forward(y, mode);
        }
        y = self.filter.forward(y, mode);
        if let Some(se) = &self.se {
            y = se.forward(y);
        }
        if let Some(project) = &self.project {
            y = project.forward(y, mode);
        }
        match seeded("input not added", self.residual, |_| false) {
            true => x + stochastic_depth(y, self.stochastic_depth_prob, mode),
            false => y,
        }
    }
}

/// The parts of an [`InvertedResidual`] and what timm calls them: each kind of block (`InvertedResidual`,
/// `DepthwiseSeparableConv`, `EdgeResidual`, `ConvBnAct`) has names of its own, and numbers its norms.
pub fn timm_names(fused: bool, expands: bool) -> Vec<(String, String)> {
    let convs: &[(&str, &str)] = match (fused, expands) {
        (true, false) => &[("filter", "conv")],
        (true, true) => &[("filter", "conv_exp"), ("project", "conv_pwl")],
        (false, false) => &[("filter", "conv_dw"), ("project", "conv_pw")],
        (false, true) => &[
            ("expand", "conv_pw"),
            ("filter", "conv_dw"),
            ("project", "conv_pwl"),
        ],
    };
    let mut names = vec![
        ("se.fc1".into(), "se.conv_reduce".into()),
        ("se.fc2".into(), "se.conv_expand".into()),
    ];
    for (i, (part, conv)) in convs.iter().enumerate() {
        names.push((format!("{part}.conv"), conv.to_string()));
        names.push((format!("{part}.norm"), format!("bn{}", i + 1)));
    }
    names
}
