use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::{Error, Result, seeded};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// An element-wise function, by the names that configurations of PyTorch models give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Activation {
    /// `max(x, 0)`; its gradient at 0 is 0.
    Relu,
    /// `min(max(x, 0), 6)`; its gradient at both corners is 0.
    Relu6,
    /// `x σ(x)`, also called swish.
    Silu,
    /// `x relu6(x + 3) / 6` (Howard et al. 2019, section 5.2).
    HardSwish,
    /// `relu6(x + 3) / 6`.
    HardSigmoid,
    /// `σ(x) = 1 / (1 + e^-x)`.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `x Φ(x)` with the normal distribution's Φ by `erf`.
    Gelu,
    /// GELU by a hyperbolic tangent (Hendrycks and Gimpel 2016, section 2).
    GeluTanh,
    /// `x σ(1.702 x)`.
    QuickGelu,
}

/// What each is called in the wild; the first name is what is written.
const NAMES: [(&str, Activation); 17] = [
    ("relu", Activation::Relu),
    ("relu6", Activation::Relu6),
    ("silu", Activation::Silu),
    ("swish", Activation::Silu),
    ("hardswish", Activation::HardSwish),
    ("hard_swish", Activation::HardSwish),
    ("hardsigmoid", Activation::HardSigmoid),
    ("hard_sigmoid", Activation::HardSigmoid),
    ("sigmoid", Activation::Sigmoid),
    ("tanh", Activation::Tanh),
    ("gelu", Activation::Gelu),
    ("gelu_python", Activation::Gelu),
    ("gelu_new", Activation::GeluTanh),
    ("gelu_fast", Activation::GeluTanh),
    ("gelu_pytorch_tanh", Activation::GeluTanh),
    ("gelu_python_tanh", Activation::GeluTanh),
    ("quick_gelu", Activation::QuickGelu),
];

/// Multiplied with, since Burn's derivative of a division by a number goes through f32.
const SIXTH: f64 = 1.0 / 6.0;

impl FromStr for Activation {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = NAMES.iter().find(|n| n.0 == name);
        found
            .map(|n| n.1)
            .ok_or_else(|| Error::unknown("activation", name, NAMES.iter().map(|n| n.0)))
    }
}

impl TryFrom<String> for Activation {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        name.parse()
    }
}

impl From<Activation> for String {
    fn from(activation: Activation) -> Self {
        let found = NAMES.iter().find(|n| n.1 == activation);
        found.map_or_else(String::new, |n| n.0.into())
    }
}

impl Activation {
    /// The function of every element, in the tensor's own dtype: Burn's sigmoid goes through f32 on
    /// some backends, and its GELU has another function's gradient.
    pub fn forward<B: Backend, const D: usize>(self, x: Tensor<B, D>) -> Tensor<B, D> {
        crate::counter::add_activations(x.shape().num_elements());
        let activation = self.seeded();
        #[cfg(feature = "flex")]
        let x = match crate::flex::activation(activation, x) {
            Ok(y) => return y,
            Err(x) => x,
        };
        crate::counter::took_generic_path();
        match activation {
            Activation::Relu => burn::tensor::activation::relu(x),
            Activation::Relu6 => relu6(x),
            Activation::Silu => x.clone() * sigmoid(x),
            Activation::HardSwish => x.clone() * (relu6(x + 3.0) * SIXTH),
            Activation::HardSigmoid => relu6(x + 3.0) * SIXTH,
            Activation::Sigmoid => sigmoid(x),
            Activation::Tanh => x.tanh(),
            Activation::Gelu => {
                let half_erf = (x.clone() * std::f64::consts::FRAC_1_SQRT_2).erf() * 0.5;
                let y = x.clone() * (half_erf + 0.5);
                seeded("derivative of GELU by a tangent", y, |y| {
                    let by_tangent = Activation::GeluTanh.forward(x);
                    by_tangent.clone() + (y - by_tangent).detach()
                })
            }
            Activation::GeluTanh => {
                let cubic = x.clone() + x.clone() * x.clone() * x.clone() * 0.044715;
                let half_tanh = (cubic * (2.0 / std::f64::consts::PI).sqrt()).tanh() * 0.5;
                x * (half_tanh + 0.5)
            }
            Activation::QuickGelu => x.clone() * sigmoid(x * 1.702),
        }
    }
}

/// What is taken for one another.
const CONFUSED: [(&str, Activation, Activation); 7] = [
    ("ReLU6 without its 6", Activation::Relu6, Activation::Relu),
    (
        "SiLU as quick GELU",
        Activation::Silu,
        Activation::QuickGelu,
    ),
    (
        "hard swish as SiLU",
        Activation::HardSwish,
        Activation::Silu,
    ),
    (
        "hard sigmoid as sigmoid",
        Activation::HardSigmoid,
        Activation::Sigmoid,
    ),
    (
        "sigmoid as hard sigmoid",
        Activation::Sigmoid,
        Activation::HardSigmoid,
    ),
    ("GELU by a tangent", Activation::Gelu, Activation::GeluTanh),
    (
        "quick GELU for GELU",
        Activation::Gelu,
        Activation::QuickGelu,
    ),
];

impl Activation {
    fn seeded(self) -> Self {
        let confused = CONFUSED.into_iter().filter(|(_, right, _)| *right == self);
        confused.fold(self, |found, (bug, _, wrong)| seeded(bug, found, |_| wrong))
    }
}

/// `σ(x) = (1 + tanh(x / 2)) / 2`, which neither overflows nor leaves the dtype.
fn sigmoid<B: Backend, const D: usize>(x: Tensor<B, D>) -> Tensor<B, D> {
    (x * 0.5).tanh() * 0.5 + 0.5
}

/// Filled, not clamped: what is filled has no gradient, at the corners too.
fn relu6<B: Backend, const D: usize>(x: Tensor<B, D>) -> Tensor<B, D> {
    let (low, high) = (
        x.clone().lower_equal_elem(0.0),
        x.clone().greater_equal_elem(6.0),
    );
    x.mask_fill(low, 0.0).mask_fill(high, 6.0)
}
