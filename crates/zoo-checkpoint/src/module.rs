use crate::{KeyMap, ParamMapper, ParamVisitor, Tensors};
use crate::{map_params, read_safetensors, visit_params, write_safetensors};
use burn::module::{Module, Param};
use burn::tensor::{DType, Tensor, TensorData, backend::Backend};
use burn_zoo_core::{Error, Result, nearest};
use std::collections::BTreeSet;
use std::path::Path;

/// Every float parameter and running statistic of `module` by its path.
pub fn collect<B: Backend, M: Module<B>>(module: &M) -> Tensors {
    struct Collector(Tensors);
    impl<B: Backend> ParamVisitor<B> for Collector {
        fn visit<const D: usize>(&mut self, path: String, param: &Param<Tensor<B, D>>) {
            self.0.insert(path, param.val().into_data());
        }
    }
    let mut collector = Collector(Tensors::new());
    visit_params(module, &mut collector);
    collector.0
}

/// Writes the weights of `module` to a safetensors file in upstream's names.
pub fn save<B: Backend, M: Module<B>>(module: &M, path: &Path, map: &KeyMap) -> Result<()> {
    let tensors = collect(module);
    let named: Tensors = tensors
        .into_iter()
        .map(|(name, data)| (map.key(&name), data))
        .collect();
    write_safetensors(path, &named)
}

/// Fills `module` from a safetensors file; the parameters become `dtype`.
///
/// # Errors
/// The first key that is missing, misshapen or not part of the model, with the nearest name.
pub fn load<B: Backend, M: Module<B>>(
    module: M,
    path: &Path,
    map: &KeyMap,
    dtype: DType,
) -> Result<M> {
    load_tensors(module, read_safetensors(path)?, path, map, dtype)
}

/// [`load`] from tensors already read; `path` is only named in errors.
pub fn load_tensors<B: Backend, M: Module<B>>(
    module: M,
    tensors: Tensors,
    path: &Path,
    map: &KeyMap,
    dtype: DType,
) -> Result<M> {
    let mut loader = Loader {
        path,
        map,
        dtype,
        unused: tensors
            .keys()
            .filter(|key| !map.drops(key))
            .cloned()
            .collect(),
        tensors,
        missing: Vec::new(),
        error: None,
        wanted: BTreeSet::new(),
    };
    let module = map_params(module, &mut loader);
    loader.finish()?;
    Ok(module)
}

struct Loader<'a> {
    path: &'a Path,
    map: &'a KeyMap,
    dtype: DType,
    tensors: Tensors,
    unused: BTreeSet<String>,
    missing: Vec<(String, Vec<usize>)>,
    error: Option<Error>,
    wanted: BTreeSet<String>,
}

impl Loader<'_> {
    fn take(&mut self, parameter: &str, shape: Vec<usize>) -> Option<TensorData> {
        let key = self.map.key(parameter);
        self.wanted.insert(key.clone());
        let Some(data) = self.tensors.remove(&key) else {
            self.missing.push((key, shape));
            return None;
        };
        self.unused.remove(&key);
        if data.shape.to_vec() != shape {
            self.error.get_or_insert(Error::Shape {
                path: self.path.to_path_buf(),
                key,
                wanted: shape,
                found: data.shape.to_vec(),
            });
            return None;
        }
        if !data.dtype.is_float() {
            self.error.get_or_insert(Error::malformed(
                self.path,
                format!(
                    "key `{key}` holds {:?}, the model wants floating-point numbers",
                    data.dtype
                ),
            ));
            return None;
        }
        Some(data.convert_dtype(self.dtype))
    }

    fn finish(self) -> Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let path = self.path.to_path_buf();
        if let Some((key, shape)) = self.missing.into_iter().next() {
            let nearest = nearest(&key, self.unused.iter().map(String::as_str));
            return Err(Error::MissingKey {
                nearest: nearest.map(String::from).into_iter().collect(),
                path,
                key,
                shape,
            });
        }
        if let Some(key) = self.unused.into_iter().next() {
            let nearest = nearest(&key, self.wanted.iter().map(String::as_str));
            return Err(Error::UnexpectedKey {
                nearest: nearest.map(String::from).into_iter().collect(),
                path,
                key,
            });
        }
        Ok(())
    }
}

impl<B: Backend> ParamMapper<B> for Loader<'_> {
    fn map<const D: usize>(
        &mut self,
        path: String,
        param: Param<Tensor<B, D>>,
    ) -> Param<Tensor<B, D>> {
        let (id, tensor, mapper) = param.consume();
        let tensor = match self.take(&path, tensor.dims().to_vec()) {
            Some(data) => {
                let loaded = Tensor::from_data(data, (&tensor.device(), self.dtype));
                loaded.set_require_grad(tensor.is_require_grad())
            }
            None => tensor,
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}
