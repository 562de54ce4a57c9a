use crate::fixture::Fixture;
use burn::tensor::DType;
use burn_zoo_core::{Error, Result};

/// A way to compute that is compared with the exact one: a backend, a type, fused kernels or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lane {
    /// `BACKEND-TYPE`, `-unfused` where kernels are not fused.
    pub name: &'static str,
    /// The backend, by the name that `--backend` takes.
    pub backend: &'static str,
    /// The type of every number.
    pub dtype: DType,
    /// Whether a backend that can fuse kernels does.
    pub fused: bool,
}

/// The largest errors that pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Of outputs, stages, losses and running statistics.
    pub outputs: f64,
    /// Of gradients.
    pub gradients: f64,
    /// Of weights after steps.
    pub weights: f64,
}

const fn lane(name: &'static str, backend: &'static str, dtype: DType, fused: bool) -> Lane {
    Lane {
        name,
        backend,
        dtype,
        fused,
    }
}

/// Every lane. The first is the reference: it is compared with upstream, the others with it.
pub const LANES: [Lane; 13] = [
    lane("ndarray-f64", "ndarray", DType::F64, false),
    lane("ndarray-f32", "ndarray", DType::F32, false),
    lane("flex-f32", "flex", DType::F32, false),
    lane("flex-f64", "flex", DType::F64, false),
    lane("flex-bf16", "flex", DType::BF16, false),
    lane("flex-f16", "flex", DType::F16, false),
    lane("wgpu-f32", "wgpu", DType::F32, true),
    lane("wgpu-f32-unfused", "wgpu", DType::F32, false),
    lane("cuda-f32", "cuda", DType::F32, true),
    lane("cuda-f32-unfused", "cuda", DType::F32, false),
    lane("cuda-bf16", "cuda", DType::BF16, true),
    lane("cuda-f16", "cuda", DType::F16, true),
    lane("cuda-bf16-unfused", "cuda", DType::BF16, false),
];

impl Lane {
    /// The lane called `name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(name: &str) -> Result<Self> {
        let found = LANES.iter().find(|lane| lane.name == name).copied();
        found.ok_or_else(|| Error::unknown("lane", name, LANES.iter().map(|lane| lane.name)))
    }

    /// The lane that the others are compared with: burn-ndarray in f64.
    pub fn reference() -> Self {
        LANES[0]
    }

    /// Whether the others are compared with it.
    pub fn is_reference(&self) -> bool {
        *self == LANES[0]
    }

    /// What passes. In f64 and f32 correct code and seeded bugs measure, as `tests/tests/all/mutations.rs`
    /// prints it, on either side of these. In half types the limit is four times upstream's own error of the
    /// same case, or of a usual case where that is less; but never more than half the gradient, where
    /// upstream's has a ReLU that rounding flips.
    pub fn limits(&self, fixture: Option<&Fixture>) -> Limits {
        const BF16: [f64; 2] = [8e-3, 5e-2];
        const F16: [f64; 2] = [1e-3, 2e-2];
        let limits = |outputs, gradients, weights| Limits {
            outputs,
            gradients,
            weights,
        };
        let (name, usual) = match self.dtype {
            DType::F64 => return limits(1e-10, 1e-9, 1e-9),
            DType::BF16 => ("bf16", BF16),
            DType::F16 => ("f16", F16),
            // TF32 has f16's digits, and f32's range.
            DType::F32 if self.backend == "cuda" => ("f16", F16),
            _ => return limits(2e-5, 2e-4, 2e-4),
        };
        let of = |name: &str| {
            let upstream = fixture.and_then(|fixture| fixture.half_errors.get(name));
            upstream.copied().unwrap_or(usual)
        };
        // What flips in one half type may flip in the other.
        let flips = match self.dtype {
            DType::F32 => of(name)[1],
            _ => of("bf16")[1].max(of("f16")[1]),
        };
        let outputs = 4.0 * usual[0].max(of(name)[0]);
        let gradients = 4.0 * usual[1].max(flips);
        limits(outputs.min(0.5), gradients.min(0.5), 1e-2)
    }
}
