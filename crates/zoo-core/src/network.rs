use crate::{Error, Mode, Result, Stages};
use burn::module::Module;
use burn::tensor::{DType, Int, Tensor, TensorData, backend::Backend};
use std::collections::BTreeMap;
use std::path::Path;

/// Any model as its upstream's class sees it: named arguments in, a primary output and named stages
/// out. `zoo forward` and the proofs run every family through this.
pub trait Network<B: Backend>: Module<B> {
    /// What the forward pass takes, in upstream's names.
    fn arguments(&self) -> Vec<Argument>;

    /// The class's primary output: `logits`, or what it has in their place.
    ///
    /// Every intermediate stage is handed to `stages` where one is given; the result is the same
    /// with and without it.
    ///
    /// # Errors
    /// If sizes of the arguments do not fit together, or are more than the model takes.
    fn run(
        &self,
        arguments: &Arguments<B>,
        mode: Mode,
        stages: Option<&mut dyn Stages<B>>,
    ) -> Result<Flat<B>>;

    /// Which stages upstream's class gives out, and under which names. Where none is primary, the
    /// primary output is called `logits`.
    fn upstream_outputs(&self) -> Vec<UpstreamOutput> {
        Vec::new()
    }
}

/// A stage that upstream's class gives out.
#[derive(Clone, Debug)]
pub struct UpstreamOutput {
    /// Upstream's name for it, such as `hidden_states.0`.
    pub name: String,
    /// The stage's name here.
    pub stage: String,
    /// How many sizes upstream's value has; those that the stage lacks are 1 and come last.
    pub rank: usize,
    /// Whether it is the class's primary output, in place of `logits`.
    pub primary: bool,
}

/// A tensor of any rank: its values in a row, and its shape.
#[derive(Clone, Debug)]
pub struct Flat<B: Backend> {
    /// The values, the last dimension the fastest.
    pub values: Tensor<B, 1>,
    /// The sizes.
    pub shape: Vec<usize>,
}

impl<B: Backend> Flat<B> {
    /// The same values.
    pub fn of<const D: usize>(tensor: Tensor<B, D>) -> Self {
        let shape = tensor.dims().to_vec();
        Self {
            values: tensor.reshape([shape.iter().product::<usize>()]),
            shape,
        }
    }

    /// The same values, where the rank is `D`.
    pub fn tensor<const D: usize>(&self) -> Option<Tensor<B, D>> {
        let shape: [usize; D] = self.shape.as_slice().try_into().ok()?;
        Some(self.values.clone().reshape(shape))
    }
}

/// What a forward pass takes under a name.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Upstream's name, such as `pixel_values`.
    pub name: &'static str,
    /// What its elements are.
    pub kind: ArgumentKind,
    /// Its sizes, as `("batch", None)` or `("channels", Some(3))`.
    pub shape: Vec<(&'static str, Option<usize>)>,
    /// Whether it must be there.
    pub required: bool,
}

/// What the elements of an [`Argument`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Floating-point numbers.
    Float,
    /// Whole numbers of `0..below`.
    Int {
        /// The first number that is too large.
        below: usize,
    },
}

impl Argument {
    /// `pixel_values` with these channels.
    pub fn pixel_values(channels: usize) -> Self {
        Self {
            name: "pixel_values",
            kind: ArgumentKind::Float,
            shape: vec![
                ("batch", None),
                ("channels", Some(channels)),
                ("height", None),
                ("width", None),
            ],
            required: true,
        }
    }

    /// Whole numbers below `below`, one for each token: `[batch, sequence]`.
    pub fn tokens(name: &'static str, below: usize) -> Self {
        Self {
            name,
            kind: ArgumentKind::Int { below },
            shape: vec![("batch", None), ("sequence", None)],
            required: name == "input_ids",
        }
    }

    /// Says what is wrong with `data`.
    fn check(&self, data: &TensorData) -> std::result::Result<(), String> {
        let (name, shape) = (self.name, &data.shape[..]);
        let sizes = self.shape.iter().zip(shape);
        let fits = |((_, wanted), found): (&(&str, Option<usize>), &usize)| {
            *found > 0 && wanted.is_none_or(|wanted| wanted == *found)
        };
        if shape.len() != self.shape.len() || !sizes.into_iter().all(fits) {
            let size = |(name, size): &(&str, Option<usize>)| match size {
                Some(size) => size.to_string(),
                None => (*name).to_string(),
            };
            let wanted: Vec<String> = self.shape.iter().map(size).collect();
            return Err(format!(
                "`{name}` has shape {shape:?}, the model wants [{}]",
                wanted.join(", ")
            ));
        }
        match self.kind {
            ArgumentKind::Float if !data.dtype.is_float() => Err(format!(
                "`{name}` holds {:?}, not floating-point numbers",
                data.dtype
            )),
            ArgumentKind::Int { .. } if data.dtype.is_float() => Err(format!(
                "`{name}` holds {:?}, not whole numbers",
                data.dtype
            )),
            ArgumentKind::Float => Ok(()),
            ArgumentKind::Int { below } => {
                let outside = |n: &i64| !usize::try_from(*n).is_ok_and(|n| n < below);
                match data.iter::<i64>().find(outside) {
                    Some(n) => Err(format!(
                        "`{name}` holds {n}, the model takes 0 to {}",
                        below - 1
                    )),
                    None => Ok(()),
                }
            }
        }
    }
}

/// The arguments of one forward pass. Whole numbers stay on the CPU until a model asks for them.
#[derive(Clone, Debug)]
pub struct Arguments<B: Backend> {
    /// Floating-point arguments by name.
    pub floats: BTreeMap<&'static str, Flat<B>>,
    ints: BTreeMap<&'static str, TensorData>,
    device: B::Device,
}

impl<B: Backend> Arguments<B> {
    /// No arguments, on a device.
    pub fn new(device: &B::Device) -> Self {
        Self {
            floats: BTreeMap::new(),
            ints: BTreeMap::new(),
            device: device.clone(),
        }
    }

    /// The arguments of `model` from tensors of these names; floating-point ones become `dtype`.
    ///
    /// # Errors
    /// If one is missing, unknown, misshapen or out of range; `from` is the file that is named then.
    pub fn read(
        declared: &[Argument],
        tensors: &BTreeMap<String, TensorData>,
        from: &Path,
        dtype: DType,
        device: &B::Device,
    ) -> Result<Self> {
        let name = |argument: &Argument| argument.name;
        let known: Vec<&str> = declared.iter().map(name).collect();
        if let Some(other) = tensors.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(Error::unknown("input", other, known));
        }
        let mut arguments = Self::new(device);
        for argument in declared {
            let Some(data) = tensors.get(argument.name) else {
                if argument.required {
                    let message = format!("has no tensor `{}`", argument.name);
                    return Err(Error::malformed(from, message));
                }
                continue;
            };
            let checked = argument.check(data);
            checked.map_err(|message| Error::malformed(from, message))?;
            match argument.kind {
                ArgumentKind::Float => arguments.set_float(argument.name, data.clone(), dtype),
                ArgumentKind::Int { .. } => {
                    let data = data.clone().convert_dtype(DType::I64);
                    arguments.ints.insert(argument.name, data);
                }
            }
        }
        Ok(arguments)
    }

    fn set_float(&mut self, name: &'static str, data: TensorData, dtype: DType) {
        let shape = data.shape.to_vec();
        let mut data = data.convert_dtype(dtype);
        data.shape = [shape.iter().product::<usize>()].into();
        let values = Tensor::from_data(data, (&self.device, dtype));
        self.floats.insert(name, Flat { values, shape });
    }

    /// The floating-point argument called `name`, of rank `D`.
    ///
    /// # Errors
    /// If it is not there.
    pub fn float<const D: usize>(&self, name: &str) -> Result<Tensor<B, D>> {
        let found = self.floats.get(name).and_then(Flat::tensor);
        found.ok_or_else(|| Error::usage(name, format!("is needed, with {D} sizes")))
    }

    /// The whole numbers called `name`, on the CPU.
    pub fn ints(&self, name: &str) -> Option<&TensorData> {
        self.ints.get(name)
    }

    /// The whole numbers called `name`, one for each token, on the device.
    pub fn tokens(&self, name: &str) -> Option<Tensor<B, 2, Int>> {
        let data = self.ints.get(name)?;
        Some(Tensor::from_data(data.clone(), &self.device))
    }
}
