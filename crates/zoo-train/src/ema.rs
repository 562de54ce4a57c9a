use burn::module::{Module, Param};
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_checkpoint::{ParamMapper, ParamVisitor, map_params, visit_params};
use std::collections::BTreeMap;

/// An exponential moving average of every parameter and running statistic:
/// `average ← d average + (1 - d) value` with `d = min(decay, (1 + t) / (10 + t))` at step `t`, so
/// that the random start is soon forgotten.
pub struct Ema<B: Backend> {
    decay: f64,
    average: BTreeMap<String, Tensor<B, 1>>,
}

impl<B: Backend> Ema<B> {
    /// An average of nothing yet.
    pub fn new(decay: f64) -> Self {
        Self {
            decay,
            average: BTreeMap::new(),
        }
    }

    /// Takes in the values of `model` after step `step`, counted from 1.
    pub fn update<M: Module<B>>(&mut self, model: &M, step: usize) {
        let step = step as f64;
        self.take_in(model, self.decay.min((1.0 + step) / (10.0 + step)));
    }

    /// Makes `model`'s values the average.
    pub fn restore<M: Module<B>>(&mut self, model: &M) {
        self.average.clear();
        self.take_in(model, 0.0);
    }

    fn take_in<M: Module<B>>(&mut self, model: &M, decay: f64) {
        struct Visitor<'a, B: Backend> {
            decay: f64,
            average: &'a mut BTreeMap<String, Tensor<B, 1>>,
        }
        impl<B: Backend> ParamVisitor<B> for Visitor<'_, B> {
            fn visit<const D: usize>(&mut self, path: String, param: &Param<Tensor<B, D>>) {
                let value = param.val();
                let len = value.shape().num_elements();
                let value = value.reshape([len]);
                let average = match self.average.remove(&path) {
                    Some(average) => average * self.decay + value * (1.0 - self.decay),
                    None => value,
                };
                self.average.insert(path, average);
            }
        }
        let average = &mut self.average;
        visit_params(model, &mut Visitor { decay, average });
    }

    /// `model` with the averaged values.
    pub fn apply<M: Module<B>>(&self, model: M) -> M {
        struct Mapper<'a, B: Backend>(&'a BTreeMap<String, Tensor<B, 1>>);
        impl<B: Backend> ParamMapper<B> for Mapper<'_, B> {
            fn map<const D: usize>(
                &mut self,
                path: String,
                param: Param<Tensor<B, D>>,
            ) -> Param<Tensor<B, D>> {
                let (id, value, mapper) = param.consume();
                let value = match self.0.get(&path) {
                    Some(average) => average.clone().reshape(value.shape()),
                    None => value,
                };
                Param::from_mapped_value(id, value, mapper)
            }
        }
        map_params(model, &mut Mapper(&self.average))
    }
}
