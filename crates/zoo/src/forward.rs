use crate::{Pretrained, WithModel};
use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Tensor, TensorData};
use burn_zoo_checkpoint::{
    KeyMap, LoadOptions, Tensors, collect, collect_gradients, load_with, to_file,
};
use burn_zoo_core::{Arguments, CollectStages, Error, Flat, Mode, Network, Result};
use std::path::Path;

/// Runs a pretrained model in evaluation mode on tensors named as upstream's arguments and gives
/// tensors named as upstream's outputs: `logits`, `hidden_states.0`…
///
/// With `grad_output` among the inputs, shaped as the primary output, the gradient of
/// `sum(primary · grad_output)` is given for every parameter, as `grad.KEY` with the checkpoint's key.
///
/// # Errors
/// If the weights are not this model's, or an input is missing, unknown or misshapen; `inputs_from`
/// is the file that is named then.
pub fn forward<B: AutodiffBackend>(
    pretrained: &Pretrained,
    inputs: &Tensors,
    inputs_from: &Path,
    dtype: DType,
    device: &B::Device,
) -> Result<Tensors> {
    let run = Run::<B> {
        pretrained,
        inputs,
        inputs_from,
        dtype,
        device,
    };
    pretrained.card.model.with_model(None, device, run)?
}

struct Run<'a, B: AutodiffBackend> {
    pretrained: &'a Pretrained,
    inputs: &'a Tensors,
    inputs_from: &'a Path,
    dtype: DType,
    device: &'a B::Device,
}

impl<B: AutodiffBackend> WithModel<B> for Run<'_, B> {
    type Output = Result<Tensors>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + Network<B>,
        M::InnerModule: Network<B::InnerBackend>,
    {
        let mut inputs = self.inputs.clone();
        let side = inputs.remove("grad_output");
        let declared = model.arguments();
        let known = declared.iter().map(|argument| argument.name);
        let known: Vec<&str> = known.chain(["grad_output"]).collect();
        if let Some(other) = inputs.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(Error::unknown("input", other, known));
        }
        let (from, dtype) = (self.inputs_from, self.dtype);
        let arguments = Arguments::read(&declared, &inputs, from, dtype, self.device)?;
        let options = LoadOptions::strict(dtype);
        let (model, report) = load_with(model, &self.pretrained.weights, &key_maps, &options)?;

        let mut stages = CollectStages::new();
        let ran = model.run(&arguments, Mode::Eval, Some(&mut stages));
        let output = ran.map_err(|e| Error::malformed(from, e.to_string()))?;
        let mut primary = Flat {
            shape: output.shape.clone(),
            values: output.values.clone(),
        };
        let mut outputs = Tensors::new();
        let mut named = false;
        for output in model.upstream_outputs() {
            let Some((_, values, shape)) = stages.0.iter().find(|s| s.0 == output.stage) else {
                continue;
            };
            let mut shape = shape.clone();
            shape.resize(output.rank.max(shape.len()), 1);
            outputs.insert(output.name.clone(), shaped(values.to_data(), &shape));
            if output.primary {
                named = true;
                let values = values.clone();
                primary = Flat { values, shape };
            }
        }
        if !named {
            let logits = shaped(primary.values.to_data(), &primary.shape);
            outputs.insert("logits".into(), logits);
        }
        if let Some(side) = side {
            let found = side.shape.to_vec();
            if found != primary.shape || !side.dtype.is_float() {
                let message = format!(
                    "`grad_output` has shape {found:?} of {:?}, the primary output {:?} of floating-point numbers",
                    side.dtype, primary.shape
                );
                return Err(Error::malformed(from, message));
            }
            let flat = shaped(side, &[found.iter().product()]).convert_dtype(dtype);
            let side = Tensor::<B, 1>::from_data(flat, (self.device, dtype));
            let grads = (primary.values * side).sum().backward();
            let map = key_maps.iter().find(|map| map.name == report.spelling);
            let map = map.unwrap_or(&key_maps[0]);
            let mut found = collect_gradients::<B, M>(&model, grads);
            let mut by_path = Tensors::new();
            for (path, value) in collect(&model) {
                // Running statistics are no parameters; a parameter without effect has zeros.
                if path.ends_with(".running_mean") || path.ends_with(".running_var") {
                    continue;
                }
                let shape = value.shape.to_vec();
                let grad = match found.remove(&path) {
                    Some(grad) => grad.into_data(),
                    None => TensorData::zeros::<f32, _>(shape.clone()).convert_dtype(self.dtype),
                };
                by_path.insert(path, shaped(grad, &shape));
            }
            let by_key = to_file(&by_path, map).into_iter();
            outputs.extend(by_key.map(|(key, grad)| (format!("grad.{key}"), grad)));
        }
        Ok(outputs)
    }
}

fn shaped(mut data: TensorData, shape: &[usize]) -> TensorData {
    data.shape = shape.to_vec().into();
    data
}
