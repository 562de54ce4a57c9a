//! Comparing backends on a module that is not the zoo's.

use crate::compare::{Check, Comparison, Group, Kind};
use crate::lane::Lane;
use crate::report::{CaseReport, LaneReport, Report, Status};
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_zoo_backend::{WithBackend, on_lane};
use burn_zoo_checkpoint::{KeyMap, Tensors, collect, load_tensors};
use burn_zoo_core::{CollectStages, Error, Result};
use burn_zoo_optim::{Optimizer, OptimizerSpec, collect_gradients};
use std::path::Path;
use std::slice::from_ref;
use std::time::Instant;

/// A module and what is computed with it. Random layers (dropout) must be off: each backend draws its own
/// numbers.
pub trait Subject {
    /// The module on a backend.
    type Model<B: AutodiffBackend>: AutodiffModule<B>;

    /// Makes the module. Its weights on the reference lane are copied to the other lanes.
    fn build<B: AutodiffBackend>(&self, device: &B::Device) -> Self::Model<B>;

    /// Its inputs by name; floating-point ones become the lane's type.
    fn inputs(&self) -> Tensors;

    /// Runs the module and gives its output, flattened. Intermediate values that `stages` gets, by
    /// [`Stages::stage`](burn_zoo_core::Stages::stage) or [`record`](burn_zoo_core::record), are compared
    /// too, and name the place where a lane departs.
    fn forward<B: AutodiffBackend>(
        &self,
        model: &Self::Model<B>,
        inputs: &Inputs<'_, B>,
        stages: &mut CollectStages<B>,
    ) -> Tensor<B, 1>;
}

/// The inputs of a [`Subject`] on a device.
pub struct Inputs<'a, B: AutodiffBackend> {
    tensors: &'a Tensors,
    dtype: DType,
    device: &'a B::Device,
}

impl<B: AutodiffBackend> Inputs<'_, B> {
    /// The floating-point input called `name`.
    ///
    /// # Panics
    /// If there is none, or it has another rank.
    pub fn float<const D: usize>(&self, name: &str) -> Tensor<B, D> {
        let data = self.data(name).convert_dtype(self.dtype);
        Tensor::from_data(data, (self.device, self.dtype))
    }

    /// The integer input called `name`.
    ///
    /// # Panics
    /// If there is none, or it has another rank.
    pub fn int<const D: usize>(&self, name: &str) -> Tensor<B, D, Int> {
        Tensor::from_data(self.data(name), self.device)
    }

    fn data(&self, name: &str) -> TensorData {
        let found = self.tensors.get(name);
        found
            .unwrap_or_else(|| panic!("the subject has no input `{name}`"))
            .clone()
    }
}

/// Compares a module on the reference lane, burn-ndarray in f64, with other lanes: see
/// [`Parity::lanes`] and [`Parity::run`].
pub fn check_parity<S: Subject>(subject: &S) -> Parity<'_, S> {
    Parity {
        subject,
        lanes: Vec::new(),
    }
}

/// A comparison to come.
pub struct Parity<'a, S> {
    subject: &'a S,
    lanes: Vec<String>,
}

impl<S: Subject> Parity<'_, S> {
    /// The lanes, by the names in [`LANES`](crate::LANES). The feature of this crate that is called as a
    /// lane's backend brings that backend.
    #[must_use]
    pub fn lanes<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.lanes.extend(names.into_iter().map(String::from));
        self
    }

    /// Runs the lanes one after another: stages, output, the gradient of every parameter and the weights
    /// after one step. A lane whose backend or device is not there is reported as not run.
    ///
    /// # Errors
    /// If a lane is unknown, or the reference cannot be computed.
    pub fn run(self) -> Result<Report> {
        let lanes = self.lanes.iter().map(|name| Lane::find(name));
        let lanes = lanes.collect::<Result<Vec<_>>>()?;
        let reference = Lane::reference();
        let exact = self.measure(reference, None)?;
        let mut report = Report::new(String::new());
        for lane in lanes {
            let started = Instant::now();
            let measured = match self.measure(lane, Some(&exact)) {
                Err(error @ Error::Device { .. }) => {
                    report
                        .lanes
                        .push(LaneReport::not_run(lane.name, error.to_string()));
                    continue;
                }
                measured => measured?,
            };
            let checks = measured.against(&exact, lane);
            let case = CaseReport {
                case: "module".into(),
                fast: measured.counts.fast,
                generic: measured.counts.generic,
                seconds: started.elapsed().as_secs_f64(),
                checks,
            };
            report.lanes.push(LaneReport {
                lane: lane.name.into(),
                status: if case.passed() {
                    Status::Passed
                } else {
                    Status::Failed
                },
                reason: None,
                seconds: case.seconds,
                cases: vec![case],
            });
        }
        Ok(report)
    }

    fn measure(&self, lane: Lane, exact: Option<&Own>) -> Result<Own> {
        let run = OnLane {
            subject: self.subject,
            dtype: lane.dtype,
            weights: exact.map(|exact| &exact.weights),
        };
        let (own, counts) = burn_zoo_ops::count(|| on_lane(lane.backend, lane.fused, 0, run));
        Ok(Own { counts, ..own?? })
    }
}

/// What a module computed.
#[derive(Clone, Debug, Default)]
struct Own {
    /// What it started with.
    weights: Tensors,
    /// `stage.NAME`, `output`, `grad.PATH`, `step.PATH`.
    tensors: Tensors,
    stages: Vec<String>,
    counts: burn_zoo_ops::Counts,
}

impl Own {
    fn against(&self, exact: &Self, lane: Lane) -> Vec<Check> {
        let limits = lane.limits(None);
        let group = |kind, what, prefix, floor| Group::new("", "L4", kind, what, prefix, floor);
        let groups = [
            group(Kind::Outputs, "stages", "stage.", 0.0),
            group(Kind::Outputs, "output", "output", 0.0),
            group(Kind::Gradients, "gradients", "grad.", 1e-4),
            group(Kind::Steps, "weights after a step", "step.", 1e-3),
        ];
        let there = groups
            .into_iter()
            .filter(|g| g.what != "stages" || !exact.stages.is_empty());
        let order = |g: &Group| (g.what == "stages").then_some(&self.stages);
        there
            .map(|g| {
                let order = order(&g);
                Comparison::new(&g, &self.tensors, &exact.tensors, limits)
                    .check("L4", order, lane.dtype)
            })
            .collect()
    }
}

struct OnLane<'a, S> {
    subject: &'a S,
    dtype: DType,
    weights: Option<&'a Tensors>,
}

impl<S: Subject> WithBackend for OnLane<'_, S> {
    type Output = Result<Own>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        if !B::supports_dtype(&device, self.dtype) {
            return Err(Error::Device {
                backend: B::name(&device),
                message: format!("does not compute in {:?} on this device", self.dtype),
            });
        }
        let model = self.subject.build::<B>(&device);
        let weights = self.weights.cloned().unwrap_or_else(|| collect(&model));
        let (from, map) = (Path::new("the reference lane"), KeyMap::default());
        let model = load_tensors(model, &weights, from, from_ref(&map), self.dtype)?;
        let tensors = self.subject.inputs();
        let inputs = Inputs {
            tensors: &tensors,
            dtype: self.dtype,
            device: &device,
        };
        let mut stages = CollectStages::new();
        let output = self.subject.forward(&model, &inputs, &mut stages);
        let mut own = Own {
            weights,
            ..Own::default()
        };
        let keep = |name: String, data: TensorData, own: &mut Own| {
            if data.dtype != self.dtype {
                let message = format!("`{name}` is {:?}, not {:?}", data.dtype, self.dtype);
                return Err(Error::malformed("the subject", message));
            }
            if data.num_elements() == 0 || own.tensors.contains_key(&name) {
                let message = format!("`{name}` is empty, or there are two of that name");
                return Err(Error::malformed("the subject", message));
            }
            own.tensors.insert(name, data);
            Ok(())
        };
        for (name, flat, _) in stages.0 {
            keep(format!("stage.{name}"), flat.into_data(), &mut own)?;
            own.stages.push(name);
        }
        keep("output".into(), output.to_data(), &mut own)?;
        // A weighted sum, so that no two outputs weigh the same.
        let [len] = output.dims();
        let side: Vec<f64> = (0..len)
            .map(|i| ((i * 7919 + 13) % 101) as f64 / 50.0 - 1.0)
            .collect();
        let side = TensorData::new(side, [len]).convert_dtype(self.dtype);
        let side = Tensor::from_data(side, (&device, self.dtype));
        let grads = collect_gradients::<B, _>(&model, (output * side).sum().backward());
        for (path, grad) in &grads {
            keep(format!("grad.{path}"), grad.to_data(), &mut own)?;
        }
        let mut optimizer = Optimizer::<B>::new(OptimizerSpec::sgd(0.0, 0.0, false), false);
        let stepped = collect(&optimizer.step(model, grads, 1e-2));
        for (path, data) in stepped {
            keep(format!("step.{path}"), data, &mut own)?;
        }
        Ok(own)
    }
}
