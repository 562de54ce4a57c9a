use crate::memory::refuse_too_much;
use crate::packed::{BlockProducts, PackedBlocks, PackedMatrices};
use crate::{
    KeyMap, Layout, LazyTensors, ParamMapper, ParamVisitor, Tensors, map_params, visit_params,
};
use burn::module::{Module, Param, ParamId};
use burn::tensor::{DType, Tensor, TensorData, backend::Backend};
use burn_zoo_core::{Error, Result, nearest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// How a file's tensors become a module's.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The type of the parameters in memory, whatever the file's.
    pub dtype: DType,
    /// Keys that may be missing or have another shape, as for a new head: `*` stands for any text.
    pub allow_missing: Vec<String>,
}

impl LoadOptions {
    /// Strict: every key must fit.
    pub fn strict(dtype: DType) -> Self {
        Self {
            dtype,
            allow_missing: Vec::new(),
        }
    }
}

/// What [`load_with`] did.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Whose spelling of the keys the file has.
    pub spelling: &'static str,
    /// Tensors that were read.
    pub loaded: usize,
    /// Keys of parameters that kept their initial values, and why.
    pub initialised: Vec<String>,
    /// Keys of the file that were not needed.
    pub dropped: Vec<String>,
}

/// Fills `module` from a weights file or folder; the parameters become `dtype`.
///
/// # Errors
/// The first key that is missing, misshapen or not part of the model, with the nearest name. Keys
/// are checked, and memory is estimated, before any tensor is read.
pub fn load<B: Backend, M: Module<B>>(
    module: M,
    path: &Path,
    maps: &[KeyMap],
    dtype: DType,
) -> Result<M> {
    let options = LoadOptions::strict(dtype);
    load_with(module, &LazyTensors::open(path)?, maps, &options).map(|(module, _)| module)
}

/// [`load`] from opened tensors, with options and a report.
///
/// # Errors
/// As [`load`].
pub fn load_with<B: Backend, M: Module<B>>(
    module: M,
    tensors: &LazyTensors,
    maps: &[KeyMap],
    options: &LoadOptions,
) -> Result<(M, LoadReport)> {
    let plan = Plan::of_lazy::<B, M>(&module, tensors, maps, options)?;
    plan.fill_lazily(module, tensors, options.dtype)
}

/// [`load_with`] for a model whose matrices `may_stay` are kept in the blocks of the file, if they are in
/// blocks there: their parameters become empty, and the matrices are to be put in their places.
///
/// # Errors
/// As [`load`].
pub fn load_packed<B: Backend, M: Module<B>>(
    module: M,
    tensors: &LazyTensors,
    maps: &[KeyMap],
    options: &LoadOptions,
    may_stay: &BTreeSet<ParamId>,
    products: BlockProducts,
) -> Result<(M, PackedMatrices)> {
    let mut plan = Plan::of_lazy::<B, M>(&module, tensors, maps, options)?;
    let mut packed = PackedMatrices::new();
    for (path, id) in ids(&module) {
        let Some(fill) = plan.fills.get_mut(&path).filter(|_| may_stay.contains(&id)) else {
            continue;
        };
        let rows = fill.shape.first().copied().unwrap_or_default();
        let matrix = match (
            tensors.tensors.get(&fill.key),
            Layout::order(&fill.layouts, rows),
        ) {
            (Some(tensor), Some(order)) => PackedBlocks::new(tensor, order, products),
            _ => None,
        };
        if let Some(matrix) = matrix {
            fill.stays_packed = true;
            packed.insert(id, Arc::new(matrix));
        }
    }
    let (module, _) = plan.fill_lazily(module, tensors, options.dtype)?;
    Ok((module, packed))
}

/// [`load`] from tensors already read; `path` is only named in errors.
///
/// # Errors
/// As [`load`].
pub fn load_tensors<B: Backend, M: Module<B>>(
    module: M,
    tensors: &Tensors,
    path: &Path,
    maps: &[KeyMap],
    dtype: DType,
) -> Result<M> {
    let shapes = tensors.iter();
    let shapes = shapes.map(|(key, data)| (key.as_str(), &data.shape[..]));
    let options = LoadOptions::strict(dtype);
    let plan = Plan::new::<B, M>(&module, path, shapes.collect(), maps, &options)?;
    let read = |key: &str| {
        let data = tensors[key].clone();
        if !data.dtype.is_float() {
            return Err(no_float(path, key, data.dtype));
        }
        Ok(data.convert_dtype(dtype))
    };
    plan.fill(module, path, dtype, read)
        .map(|(module, _)| module)
}

/// Which key fills which parameter: made, and checked whole, before anything is read.
struct Plan {
    fills: BTreeMap<String, Fill>,
    /// Keys that must hold the same.
    tied: Vec<(&'static str, &'static str)>,
    report: LoadReport,
}

/// Where a parameter comes from.
struct Fill {
    key: String,
    layouts: Vec<Layout>,
    shape: Vec<usize>,
    /// Whether the file's blocks take the parameter's place.
    stays_packed: bool,
}

impl Plan {
    fn of_lazy<B: Backend, M: Module<B>>(
        module: &M,
        tensors: &LazyTensors,
        maps: &[KeyMap],
        options: &LoadOptions,
    ) -> Result<Self> {
        let shapes = tensors.tensors.iter();
        let shapes = shapes.map(|(key, tensor)| (key.as_str(), tensor.shape.as_slice()));
        Self::new::<B, M>(module, &tensors.path, shapes.collect(), maps, options)
    }

    fn new<B: Backend, M: Module<B>>(
        module: &M,
        path: &Path,
        found: BTreeMap<&str, &[usize]>,
        maps: &[KeyMap],
        options: &LoadOptions,
    ) -> Result<Self> {
        let wanted = shapes(module);
        let fitting = |map: &&KeyMap| {
            let keys = wanted.keys().map(|path| map.key(path));
            keys.filter(|key| found.contains_key(key.as_str())).count()
        };
        // The first of those that fit best, so that a family's usual spelling is its first.
        let Some(map) = maps.iter().rev().max_by_key(fitting) else {
            return Err(Error::malformed(path, "the model has no names for files"));
        };
        let mut plan = Self {
            fills: BTreeMap::new(),
            tied: Vec::new(),
            report: LoadReport {
                spelling: map.name,
                ..Default::default()
            },
        };
        let may_miss = |key: &str| options.allow_missing.iter().any(|p| matches(p, key));
        let mut unused: BTreeSet<&str> = found.keys().copied().collect();
        let mut missing = Vec::new();
        for (parameter, shape) in &wanted {
            let key = map.key(parameter);
            unused.remove(key.as_str());
            let layouts = map.layout(parameter).to_vec();
            let stored = Layout::stored(&layouts, shape);
            match found.get(key.as_str()) {
                Some(there) if *there == stored => {
                    let shape = shape.clone();
                    let fill = Fill {
                        key,
                        layouts,
                        shape,
                        stays_packed: false,
                    };
                    plan.fills.insert(parameter.clone(), fill);
                }
                Some(there) if may_miss(&key) => plan
                    .report
                    .initialised
                    .push(format!("{key} {stored:?} (the file has {there:?})")),
                Some(there) => {
                    return Err(Error::Shape {
                        path: path.to_path_buf(),
                        key,
                        wanted: stored,
                        found: there.to_vec(),
                    });
                }
                None if may_miss(&key) => plan
                    .report
                    .initialised
                    .push(format!("{key} {stored:?} (not in the file)")),
                None => missing.push((key, stored)),
            }
        }
        for (again, key) in &map.tied {
            if unused.contains(again) && found.contains_key(key) {
                plan.tied.push((again, key));
                unused.remove(again);
            }
        }
        unused.retain(|key| {
            let drops = map.drops(key);
            if drops {
                plan.report.dropped.push(key.to_string());
            }
            !drops
        });
        let path = path.to_path_buf();
        if let Some((key, shape)) = missing.into_iter().next() {
            let nearest = nearest(&key, unused.iter().copied());
            return Err(Error::MissingKey {
                nearest: nearest.map(String::from).into_iter().collect(),
                path,
                key,
                shape,
            });
        }
        if let Some(key) = unused.into_iter().next() {
            let keys: Vec<String> = wanted.keys().map(|path| map.key(path)).collect();
            let nearest = nearest(key, keys.iter().map(String::as_str));
            return Err(Error::UnexpectedKey {
                nearest: nearest.map(String::from).into_iter().collect(),
                path,
                key: key.to_string(),
            });
        }
        plan.report.loaded = plan.fills.len();
        Ok(plan)
    }

    /// Refuses what memory cannot hold.
    fn check_memory(&self, path: &Path, dtype: DType) -> Result<()> {
        let unpacked = self.fills.values().filter(|fill| !fill.stays_packed);
        let numbers = unpacked.map(|fill| fill.shape.iter().map(|n| *n as u128).product::<u128>());
        refuse_too_much(path, numbers.sum::<u128>() * dtype.size() as u128)
    }

    fn fill_lazily<B: Backend, M: Module<B>>(
        self,
        module: M,
        tensors: &LazyTensors,
        dtype: DType,
    ) -> Result<(M, LoadReport)> {
        let read = |key: &str| match tensors.tensors.get(key) {
            Some(tensor) => tensor.read_as(key, dtype),
            None => Err(Error::malformed(
                &tensors.path,
                format!("key `{key}` is gone"),
            )),
        };
        self.fill(module, &tensors.path, dtype, read)
    }

    /// Reads the tensors, each into its place.
    fn fill<B: Backend, M: Module<B>>(
        self,
        module: M,
        path: &Path,
        dtype: DType,
        read: impl Fn(&str) -> Result<TensorData>,
    ) -> Result<(M, LoadReport)> {
        struct Mapper<'a, F> {
            fills: &'a BTreeMap<String, Fill>,
            dtype: DType,
            read: F,
            error: Option<Error>,
        }
        impl<B: Backend, F: Fn(&str) -> Result<TensorData>> ParamMapper<B> for Mapper<'_, F> {
            fn map<const D: usize>(
                &mut self,
                path: String,
                param: Param<Tensor<B, D>>,
            ) -> Param<Tensor<B, D>> {
                if self.error.is_some() {
                    return param;
                }
                let (id, tensor, mapper) = param.consume();
                let (device, tracked) = (tensor.device(), tensor.is_require_grad());
                let read = |fill: &Fill| {
                    let data = (self.read)(&fill.key)?;
                    Ok(Layout::load(&fill.layouts, data, &fill.shape))
                };
                let fill = self.fills.get(&path);
                if fill.is_some_and(|fill| fill.stays_packed) {
                    let none = Tensor::zeros([0; D], (&device, self.dtype));
                    return Param::from_mapped_value(id, none, mapper);
                }
                let tensor = match fill.map(read) {
                    Some(Ok(data)) => {
                        // The old values go before the new ones come.
                        drop(tensor);
                        Tensor::from_data(data, (&device, self.dtype)).set_require_grad(tracked)
                    }
                    Some(Err(error)) => {
                        self.error = Some(error);
                        tensor
                    }
                    None => tensor.cast(self.dtype).set_require_grad(tracked),
                };
                Param::from_mapped_value(id, tensor, mapper)
            }
        }
        self.check_memory(path, dtype)?;
        for (again, key) in &self.tied {
            if read(again)? != read(key)? {
                let message = format!(
                    "key `{again}` differs from `{key}`, which it is tied to in this model"
                );
                return Err(Error::malformed(path, message));
            }
        }
        let mut mapper = Mapper {
            fills: &self.fills,
            dtype,
            read,
            error: None,
        };
        let module = map_params(module, &mut mapper);
        match mapper.error {
            Some(error) => Err(error),
            None => Ok((module, self.report)),
        }
    }
}

pub(crate) fn no_float(path: &Path, key: &str, found: DType) -> Error {
    let message = format!("key `{key}` holds {found:?}, the model wants floating-point numbers");
    Error::malformed(path, message)
}

/// The id of every float parameter and running statistic with its path.
fn ids<B: Backend, M: Module<B>>(module: &M) -> Vec<(String, ParamId)> {
    struct Visitor(Vec<(String, ParamId)>);
    impl<B: Backend> ParamVisitor<B> for Visitor {
        fn visit<const D: usize>(&mut self, path: String, param: &Param<Tensor<B, D>>) {
            self.0.push((path, param.id));
        }
    }
    let mut visitor = Visitor(Vec::new());
    visit_params(module, &mut visitor);
    visitor.0
}

/// The shape of every float parameter and running statistic by its path.
fn shapes<B: Backend, M: Module<B>>(module: &M) -> BTreeMap<String, Vec<usize>> {
    struct Visitor(BTreeMap<String, Vec<usize>>);
    impl<B: Backend> ParamVisitor<B> for Visitor {
        fn visit<const D: usize>(&mut self, path: String, param: &Param<Tensor<B, D>>) {
            self.0.insert(path, param.shape().to_vec());
        }
    }
    let mut visitor = Visitor(BTreeMap::new());
    visit_params(module, &mut visitor);
    visitor.0
}

/// Whether `text` fits `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(rest) = text.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else {
        return rest.is_empty();
    };
    let mut rest = rest;
    for piece in middle {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, want) in [
            ("fc.weight", "fc.weight", true),
            ("fc.weight", "fc.weights", false),
            ("fc.*", "fc.bias", true),
            ("fc.*", "my.fc.bias", false),
            ("*.bias", "fc.bias", true),
            ("*fc*", "my.fc.bias", true),
            ("a*b*c", "a.b.b.c", true),
            ("a*b*c", "a.c.b", false),
            ("ab*ba", "aba", false),
            ("*", "anything", true),
            ("", "anything", false),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
    }
}
