use burn::module::{Param, ParamId};
use burn::tensor::{DType, Tensor, TensorData, backend::Backend};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Draws initial parameters: the same seed gives the same numbers on every backend.
pub struct Init<'a, B: Backend> {
    device: &'a B::Device,
    /// `None` where the numbers are about to be replaced.
    rng: Option<ChaCha8Rng>,
}

impl<'a, B: Backend> Init<'a, B> {
    /// A source of parameters on `device`, seeded with `seed`. Without a seed it gives zeros, for a
    /// model whose weights come from a file: nothing is drawn, and on the CPU memory is taken only
    /// when it is written to.
    pub fn new(seed: impl Into<Option<u64>>, device: &'a B::Device) -> Self {
        Self {
            device,
            rng: seed.into().map(ChaCha8Rng::seed_from_u64),
        }
    }

    /// The device of the parameters.
    pub fn device(&self) -> &'a B::Device {
        self.device
    }

    /// Normal values with mean 0 and this standard deviation.
    pub fn normal<const D: usize>(&mut self, shape: [usize; D], std: f64) -> Param<Tensor<B, D>> {
        let len: usize = shape.iter().product();
        let Some(rng) = &mut self.rng else {
            return self.constant(shape, 0.0);
        };
        // Box-Muller; each pair of uniforms gives two normals.
        let mut values = Vec::with_capacity(len + 1);
        while values.len() < len {
            let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt() * std;
            let (sin, cos) = (std::f64::consts::TAU * rng.random::<f64>()).sin_cos();
            values.extend([(radius * cos) as f32, (radius * sin) as f32]);
        }
        values.truncate(len);
        self.param(values, shape)
    }

    /// Uniform values in `[-bound, bound)`.
    pub fn uniform<const D: usize>(
        &mut self,
        shape: [usize; D],
        bound: f64,
    ) -> Param<Tensor<B, D>> {
        let len: usize = shape.iter().product();
        let Some(rng) = &mut self.rng else {
            return self.constant(shape, 0.0);
        };
        let draw = |_| ((rng.random::<f64>() * 2.0 - 1.0) * bound) as f32;
        let values = (0..len).map(draw).collect();
        self.param(values, shape)
    }

    /// Kaiming-normal values for a ReLU network, `fan_out` mode (He et al. 2015, eq. 14):
    /// std = sqrt(2 / fan_out).
    pub fn kaiming_fan_out(&mut self, shape: [usize; 4]) -> Param<Tensor<B, 4>> {
        let fan_out = shape[0] * shape[2] * shape[3];
        self.normal(shape, (2.0 / fan_out as f64).sqrt())
    }

    /// The same value everywhere.
    pub fn constant<const D: usize>(&self, shape: [usize; D], value: f32) -> Param<Tensor<B, D>> {
        self.param(vec![value; shape.iter().product()], shape)
    }

    pub(crate) fn tensor<const D: usize>(
        &self,
        values: Vec<f32>,
        shape: [usize; D],
    ) -> Tensor<B, D> {
        // The dtype is stated: the default is one table for the whole process.
        Tensor::from_data(TensorData::new(values, shape), (self.device, DType::F32))
    }

    fn param<const D: usize>(&self, values: Vec<f32>, shape: [usize; D]) -> Param<Tensor<B, D>> {
        Param::initialized(ParamId::new(), self.tensor(values, shape).require_grad())
    }
}
