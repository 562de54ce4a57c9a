use crate::{OptimizerSpec, trainable};
use burn::module::{AutodiffModule, Param};
use burn::tensor::{DType, Tensor, backend::AutodiffBackend};
use burn_zoo_checkpoint::{FlatGradients, ParamMapper, Tensors, map_params};
use burn_zoo_core::{Error, Result};
use burn_zoo_ops::{AdamW, Sgd, adamw_step, sgd_step};
use std::collections::BTreeMap;
use std::path::Path;

type Flat<B> = Tensor<<B as AutodiffBackend>::InnerBackend, 1>;

/// Names of the state tensors, as PyTorch's.
const NAMES: [&str; 3] = ["exp_avg", "exp_avg_sq", "momentum_buffer"];

/// AdamW or SGD over the parameters of a module, with state by parameter path.
pub struct Optimizer<B: AutodiffBackend> {
    spec: OptimizerSpec,
    decay_norms_and_biases: bool,
    /// Updates made so far.
    step: usize,
    state: BTreeMap<String, Flat<B>>,
}

impl<B: AutodiffBackend> Optimizer<B> {
    /// An optimizer that has made no step. Without `decay_norms_and_biases`, parameters of one
    /// dimension have no weight decay.
    pub fn new(spec: OptimizerSpec, decay_norms_and_biases: bool) -> Self {
        Self {
            spec,
            decay_norms_and_biases,
            step: 0,
            state: BTreeMap::new(),
        }
    }

    /// Updates every parameter that has a gradient.
    pub fn step<M: AutodiffModule<B>>(&mut self, model: M, grads: FlatGradients<B>, lr: f64) -> M {
        self.step += 1;
        let mut mapper = Mapper {
            optimizer: self,
            grads,
            lr,
        };
        map_params(model, &mut mapper)
    }

    /// The state of every parameter under `PATH.NAME`.
    pub fn tensors(&self) -> Tensors {
        let entries = self.state.iter();
        entries
            .map(|(name, t)| (name.clone(), t.to_data()))
            .collect()
    }

    /// Puts back what [`tensors`](Self::tensors) gave after `step` updates of `model`.
    ///
    /// # Errors
    /// If an entry is missing, misshapen or of no parameter of the model.
    pub fn restore<M: AutodiffModule<B>>(
        &mut self,
        mut tensors: Tensors,
        step: usize,
        model: &M,
        path: &Path,
    ) -> Result<()> {
        let wanted: &[&str] = match self.spec {
            OptimizerSpec::AdamW { .. } => &NAMES[..2],
            OptimizerSpec::Sgd { momentum: 0.0, .. } => &[],
            OptimizerSpec::Sgd { .. } => &NAMES[2..],
        };
        let device = &model.devices()[0];
        for (parameter, len) in trainable(model) {
            for name in wanted {
                let key = format!("{parameter}.{name}");
                let Some(data) = tensors.remove(&key) else {
                    return Err(Error::MissingKey {
                        path: path.to_path_buf(),
                        key,
                        shape: vec![len],
                        nearest: Vec::new(),
                    });
                };
                if data.shape.to_vec() != [len] || data.dtype != DType::F32 {
                    return Err(Error::Shape {
                        path: path.to_path_buf(),
                        key: format!("{key} ({:?})", data.dtype),
                        wanted: vec![len],
                        found: data.shape.to_vec(),
                    });
                }
                let state = Tensor::from_data(data, (device, DType::F32));
                self.state.insert(key, state);
            }
        }
        if let Some(key) = tensors.into_keys().next() {
            return Err(Error::UnexpectedKey {
                path: path.to_path_buf(),
                key,
                nearest: Vec::new(),
            });
        }
        self.step = step;
        Ok(())
    }

    fn update(
        &mut self,
        path: &str,
        param: Flat<B>,
        grad: Flat<B>,
        lr: f64,
        decays: bool,
    ) -> Flat<B> {
        let [first, second, buffer] = NAMES.map(|name| format!("{path}.{name}"));
        let keep = |decay: f64| if decays { decay } else { 0.0 };
        match self.spec {
            OptimizerSpec::AdamW {
                beta1,
                beta2,
                eps,
                weight_decay,
            } => {
                let config = AdamW {
                    betas: (beta1, beta2),
                    eps,
                    weight_decay: keep(weight_decay),
                };
                let state = self.state.remove(&first).zip(self.state.remove(&second));
                let (param, m, v) = adamw_step(param, grad, state, self.step, lr, &config);
                self.state.insert(first, m);
                self.state.insert(second, v);
                param
            }
            OptimizerSpec::Sgd {
                momentum,
                weight_decay,
                nesterov,
            } => {
                let config = Sgd {
                    momentum,
                    weight_decay: keep(weight_decay),
                    nesterov,
                };
                let state = self.state.remove(&buffer);
                let (param, state) = sgd_step(param, grad, state, lr, &config);
                self.state.extend(state.map(|state| (buffer, state)));
                param
            }
        }
    }
}

struct Mapper<'a, B: AutodiffBackend> {
    optimizer: &'a mut Optimizer<B>,
    grads: FlatGradients<B>,
    lr: f64,
}

impl<B: AutodiffBackend> ParamMapper<B> for Mapper<'_, B> {
    fn map<const D: usize>(
        &mut self,
        path: String,
        param: Param<Tensor<B, D>>,
    ) -> Param<Tensor<B, D>> {
        let Some(grad) = self.grads.remove(&path) else {
            return param;
        };
        let (id, tensor, mapper) = param.consume();
        let tracked = tensor.is_require_grad();
        let shape = tensor.shape();
        let flat = tensor.inner().reshape([shape.num_elements()]);
        let decays = D > 1 || self.optimizer.decay_norms_and_biases;
        let updated = self.optimizer.update(&path, flat, grad, self.lr, decays);
        let tensor = Tensor::from_inner(updated.reshape(shape)).set_require_grad(tracked);
        Param::from_mapped_value(id, tensor, mapper)
    }
}
