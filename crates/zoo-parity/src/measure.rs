use crate::fixture::{Fixture, get, group};
use burn::module::{AutodiffModule, Module};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_zoo_checkpoint::{KeyMap, Tensors, collect, load_tensors, to_file};
use burn_zoo_core::{Arguments, CollectStages, Error, Flat, Mode, Network, Result, Stages};
use burn_zoo_ops::{Counts, cross_entropy};
use burn_zoo_optim::{Optimizer, OptimizerSpec, clip_global_norm, collect_gradients, global_norm};
use std::path::Path;
use std::slice::from_ref;

/// What a model computed on one backend, in the names of its upstream's keys.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// `eval.stage.NAME`, `eval.logits`, `eval.plain` (the logits where no stages are asked for),
    /// `eval.grad.KEY`, `eval.grad.input.NAME`; `train.logits`, `train.loss`,
    /// `train.grad.KEY`, `train.stats.KEY`; `OPTIMIZER.losses`, `OPTIMIZER.model.KEY`.
    pub tensors: Tensors,
    /// The stages in the order of the forward pass.
    pub stages: Vec<String>,
    /// Which paths functions of zoo-ops took.
    pub counts: Counts,
}

/// Optimizers of ten steps: name, definition, learning rate, largest gradient norm.
pub const OPTIMIZERS: [(&str, OptimizerSpec, f64, Option<f64>); 3] = [
    (
        "adamw",
        OptimizerSpec::AdamW {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 5e-2,
        },
        1e-2,
        None,
    ),
    (
        "sgd",
        OptimizerSpec::Sgd {
            momentum: 0.9,
            weight_decay: 1e-2,
            nesterov: false,
        },
        5e-2,
        None,
    ),
    (
        "sgd_clip",
        OptimizerSpec::Sgd {
            momentum: 0.9,
            weight_decay: 0.0,
            nesterov: true,
        },
        5e-2,
        Some(0.5),
    ),
];

/// Label smoothing of the training pass; the ten steps have none.
const LABEL_SMOOTHING: f64 = 0.1;

/// Runs `model` with the fixture's weights in `dtype` on `device`: an evaluation pass with gradients, and
/// where the type is no half one, a training pass and ten steps of each optimizer, but for what the
/// fixture leaves to f64.
///
/// # Errors
/// If a weight does not fit, or a tensor has another dtype than asked for.
pub fn measure<B, M>(
    model: M,
    maps: &[KeyMap],
    fixture: &Fixture,
    dtype: DType,
    device: &B::Device,
) -> Result<Measured>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + Network<B>,
{
    let map = maps.iter().find(|map| map.name == fixture.spelling);
    let map = map.ok_or_else(|| {
        let known = maps.iter().map(|map| map.name);
        Error::unknown("spelling", &fixture.spelling, known)
    })?;
    let run = Run::<B, M> {
        model: load(model, fixture, map, dtype)?,
        map,
        fixture,
        dtype,
        device,
    };
    let mut measured = Measured::default();
    let (done, counts) = burn_zoo_ops::count(|| run.all(&mut measured));
    done?;
    measured.counts = counts;
    Ok(measured)
}

/// The model with the fixture's weights.
fn load<B: Backend, M: Module<B>>(
    model: M,
    fixture: &Fixture,
    map: &KeyMap,
    dtype: DType,
) -> Result<M> {
    let (weights, from) = (fixture.group("model."), Path::new(&fixture.name));
    load_tensors(model, &weights, from, from_ref(map), dtype)
}

/// Whether a part (`eval`, `train`, an optimizer's name) of a fixture is run in `dtype`: half types only
/// evaluate, and what the fixture leaves to f64 is not run below it.
pub(crate) fn takes(fixture: &Fixture, dtype: DType, part: &str) -> bool {
    let wide = match dtype {
        DType::F64 => true,
        DType::F32 => !fixture.f64_only.iter().any(|name| name == part),
        _ => false,
    };
    let there = fixture.steps.is_some() || matches!(part, "eval" | "train");
    there && (wide || part == "eval")
}

struct Run<'a, B: AutodiffBackend, M> {
    model: M,
    map: &'a KeyMap,
    fixture: &'a Fixture,
    dtype: DType,
    device: &'a B::Device,
}

impl<B, M> Run<'_, B, M>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + Network<B>,
{
    fn all(&self, out: &mut Measured) -> Result<()> {
        self.eval(out)?;
        let takes = |part: &str| takes(self.fixture, self.dtype, part);
        if takes("train") {
            self.train(out)?;
        }
        let Some(steps) = &self.fixture.steps else {
            return Ok(());
        };
        for optimizer in OPTIMIZERS.iter().filter(|(name, ..)| takes(name)) {
            self.ten_steps(steps, optimizer, out)?;
        }
        Ok(())
    }

    fn tensor<const D: usize>(&self, data: &TensorData) -> Tensor<B, D> {
        let data = data.clone().convert_dtype(self.dtype);
        Tensor::from_data(data, (self.device, self.dtype))
    }

    /// The data of a result, which must have the dtype that was asked for.
    fn result<const D: usize>(&self, name: &str, tensor: Tensor<B, D>) -> Result<TensorData> {
        self.typed(name, tensor.dtype())?;
        Ok(tensor.into_data())
    }

    fn typed(&self, name: &str, found: DType) -> Result<()> {
        if found == self.dtype {
            return Ok(());
        }
        let message = format!("{name} is {found:?}, not {:?}", self.dtype);
        Err(Error::malformed(&self.fixture.name, message))
    }

    /// The arguments of a pass: the tensors that begin with `prefix`.
    fn arguments(&self, prefix: &str, tensors: &Tensors) -> Result<Arguments<B>> {
        let from = Path::new(&self.fixture.name);
        let named = group(tensors, prefix);
        Arguments::read(
            &self.model.arguments(),
            &named,
            from,
            self.dtype,
            self.device,
        )
    }

    fn run(
        &self,
        model: &M,
        arguments: &Arguments<B>,
        mode: Mode,
        stages: Option<&mut CollectStages<B>>,
    ) -> Result<Flat<B>> {
        let stages = stages.map(|stages| stages as &mut dyn Stages<B>);
        let ran = model.run(arguments, mode, stages);
        ran.map_err(|e| Error::malformed(&self.fixture.name, e.to_string()))
    }

    /// The data of an output, which must have the dtype that was asked for.
    fn output(&self, name: &str, output: &Flat<B>) -> Result<TensorData> {
        let mut data = self.result(name, output.values.clone())?;
        data.shape = output.shape.clone().into();
        Ok(data)
    }

    fn eval(&self, out: &mut Measured) -> Result<()> {
        let mut arguments = self.arguments("input.", &self.fixture.tensors)?;
        for input in arguments.floats.values_mut() {
            input.values = input.values.clone().require_grad();
        }
        let mut stages = CollectStages::new();
        let logits = self.run(&self.model, &arguments, Mode::Eval, Some(&mut stages))?;
        let plain = self.run(&self.model, &arguments, Mode::Eval, None)?;
        let plain = self.output("logits without stages", &plain)?;
        out.tensors.insert("eval.plain".into(), plain);
        for (name, flat, shape) in stages.0 {
            let mut data = self.result(&name, flat)?;
            data.shape = shape.into();
            out.tensors.insert(format!("eval.stage.{name}"), data);
            out.stages.push(name);
        }
        let data = self.output("logits", &logits)?;
        out.tensors.insert("eval.logits".into(), data);
        let side = flat(self.fixture.get("grad_output")?);
        let grads = (logits.values * self.tensor::<1>(&side)).sum().backward();
        for (name, input) in &arguments.floats {
            let Some(grad) = input.values.grad(&grads) else {
                continue;
            };
            self.typed("the input's gradient", grad.dtype())?;
            let mut data = grad.into_data();
            data.shape = input.shape.clone().into();
            out.tensors.insert(format!("eval.grad.input.{name}"), data);
        }
        self.gradients(&self.model, grads, "eval.grad.", out)
    }

    fn train(&self, out: &mut Measured) -> Result<()> {
        let model = self.model.clone();
        let arguments = self.arguments("input.", &self.fixture.tensors)?;
        let logits = self.run(&model, &arguments, Mode::Train, None)?;
        let loss = self.loss(&logits, self.fixture.get("labels")?, LABEL_SMOOTHING);
        let tensors = &mut out.tensors;
        tensors.insert("train.logits".into(), self.output("logits", &logits)?);
        tensors.insert("train.loss".into(), self.result("loss", loss.clone())?);
        self.gradients(&model, loss.backward(), "train.grad.", out)?;
        let statistics = to_file(&collect(&model), self.map).into_iter();
        let statistics = statistics.filter(|(key, _)| key.contains("running_"));
        out.tensors
            .extend(statistics.map(|(key, data)| (format!("train.stats.{key}"), data)));
        Ok(())
    }

    /// Cross-entropy of the last dimension, with a label for each row of the others.
    fn loss(&self, logits: &Flat<B>, labels: &TensorData, smoothing: f64) -> Tensor<B, 1> {
        let classes = logits.shape.last().copied().unwrap_or(1);
        let rows = logits.values.dims()[0] / classes;
        let targets = Tensor::<B, 1, Int>::from_data(flat(labels), self.device);
        cross_entropy(
            logits.values.clone().reshape([rows, classes]),
            targets,
            smoothing,
        )
    }

    fn ten_steps(
        &self,
        steps: &Tensors,
        (name, spec, lr, clip): &(&str, OptimizerSpec, f64, Option<f64>),
        out: &mut Measured,
    ) -> Result<()> {
        let of = &self.fixture.name;
        let (inputs, labels) = (
            group(steps, "batch.input."),
            get(of, steps, "batch.labels")?,
        );
        // Running statistics are shared by clones of a module.
        let mut model = load(self.model.clone(), self.fixture, self.map, self.dtype)?;
        let mut optimizer = Optimizer::<B>::new(*spec, true);
        let mut losses = Vec::new();
        for i in 0..labels.shape[0] {
            let batch = inputs
                .iter()
                .map(|(name, all)| (name.clone(), item(all, i)));
            let arguments = self.arguments("", &batch.collect())?;
            let logits = self.run(&model, &arguments, Mode::Train, None)?;
            let loss = self.loss(&logits, &item(labels, i), 0.0);
            losses.extend(loss.to_data().iter::<f64>());
            let mut grads = collect_gradients::<B, M>(&model, loss.backward());
            if let Some(max_norm) = clip {
                let norm = global_norm::<B>(&grads);
                clip_global_norm::<B>(&mut grads, norm, *max_norm);
            }
            model = optimizer.step(model, grads, *lr);
        }
        let count = losses.len();
        out.tensors
            .insert(format!("{name}.losses"), TensorData::new(losses, [count]));
        let weights = to_file(&collect(&model), self.map).into_iter();
        out.tensors
            .extend(weights.map(|(key, data)| (format!("{name}.model.{key}"), data)));
        Ok(())
    }

    /// Gradients of every parameter by upstream's key, in the parameter's shape.
    fn gradients(
        &self,
        model: &M,
        grads: B::Gradients,
        prefix: &str,
        out: &mut Measured,
    ) -> Result<()> {
        let parameters = collect(model);
        let mut shaped = Tensors::new();
        for (path, grad) in collect_gradients::<B, M>(model, grads) {
            self.typed(&format!("the gradient of {path}"), grad.dtype())?;
            let mut data = grad.into_data();
            if let Some(parameter) = parameters.get(&path) {
                data.shape = parameter.shape.clone();
            }
            shaped.insert(path, data);
        }
        let named = to_file(&shaped, self.map).into_iter();
        out.tensors
            .extend(named.map(|(key, grad)| (format!("{prefix}{key}"), grad)));
        Ok(())
    }
}

/// The same in one row.
fn flat(data: &TensorData) -> TensorData {
    let mut flat = data.clone();
    flat.shape = [data.num_elements()].into();
    flat
}

/// Item `i` of a tensor whose first dimension counts items.
fn item(all: &TensorData, i: usize) -> TensorData {
    let shape = all.shape[1..].to_vec();
    let bytes = shape.iter().product::<usize>() * all.dtype.size();
    let bytes = all.as_bytes()[i * bytes..(i + 1) * bytes].to_vec();
    TensorData::from_bytes_vec(bytes, shape, all.dtype)
}
