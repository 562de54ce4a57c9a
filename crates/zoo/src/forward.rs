use crate::{Pretrained, WithModel};
use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Tensor, TensorData};
use burn_zoo_checkpoint::{
    KeyMap, LoadOptions, Tensors, collect, collect_gradients, load_with, to_file,
};
use burn_zoo_core::{CollectStages, Error, ImageClassifier, Mode, Result};
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

/// A value of any rank: flat, with its shape.
type Value<B> = (Tensor<B, 1>, Vec<usize>);

impl<B: AutodiffBackend> Run<'_, B> {
    /// The input called `name` on the device, flat, with its shape.
    fn input(&self, name: &str) -> Result<Value<B>> {
        let fail = |message: String| Error::malformed(self.inputs_from, message);
        let found = self.inputs.get(name);
        let data = found.ok_or_else(|| fail(format!("has no tensor `{name}`")))?;
        if !data.dtype.is_float() {
            return Err(fail(format!(
                "`{name}` holds {:?}, not floating-point numbers",
                data.dtype
            )));
        }
        let shape = data.shape.to_vec();
        let len = shape.iter().product::<usize>();
        let mut data = data.clone().convert_dtype(self.dtype);
        data.shape = [len].into();
        Ok((Tensor::from_data(data, (self.device, self.dtype)), shape))
    }

    fn pixel_values(&self) -> Result<Tensor<B, 4>> {
        let channels = self.pretrained.card.model.num_channels();
        let (flat, shape) = self.input("pixel_values")?;
        match shape[..] {
            [batch, found, height, width] if found == channels && !shape.contains(&0) => {
                Ok(flat.reshape([batch, found, height, width]))
            }
            _ => Err(Error::malformed(
                self.inputs_from,
                format!(
                    "`pixel_values` has shape {shape:?}, the model wants [batch, {channels}, height, width]"
                ),
            )),
        }
    }
}

impl<B: AutodiffBackend> WithModel<B> for Run<'_, B> {
    type Output = Result<Tensors>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + ImageClassifier<B>,
        M::InnerModule: ImageClassifier<B::InnerBackend>,
    {
        const KNOWN: [&str; 2] = ["pixel_values", "grad_output"];
        if let Some(other) = self.inputs.keys().find(|k| !KNOWN.contains(&k.as_str())) {
            return Err(Error::unknown("input", other, KNOWN));
        }
        let pixel_values = self.pixel_values()?;
        let options = LoadOptions::strict(self.dtype);
        let (model, report) = load_with(model, &self.pretrained.weights, &key_maps, &options)?;

        let mut stages = CollectStages::new();
        let logits = model.logits(pixel_values, Mode::Eval, Some(&mut stages));
        let stage = |name: &str| -> Option<Value<B>> {
            let (_, flat, shape) = stages.0.iter().find(|s| s.0 == name)?;
            Some((flat.clone(), shape.clone()))
        };
        let mut primary = None;
        let mut outputs = Tensors::new();
        for output in model.upstream_outputs() {
            let Some((flat, mut shape)) = stage(&output.stage) else {
                continue;
            };
            shape.resize(output.rank.max(shape.len()), 1);
            outputs.insert(output.name.clone(), shaped(flat.to_data(), &shape));
            if output.primary {
                primary = Some((flat, shape));
            }
        }
        let (flat, shape) = match primary {
            Some(primary) => primary,
            None => {
                let shape = logits.dims().to_vec();
                outputs.insert("logits".into(), logits.to_data());
                (logits.flatten(0, 1), shape)
            }
        };
        if self.inputs.contains_key("grad_output") {
            let (side, found) = self.input("grad_output")?;
            if found != shape {
                let message =
                    format!("`grad_output` has shape {found:?}, the primary output {shape:?}");
                return Err(Error::malformed(self.inputs_from, message));
            }
            let grads = (flat * side).sum().backward();
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
