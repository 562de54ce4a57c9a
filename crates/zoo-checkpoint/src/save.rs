use crate::safetensors_file::{Outgoing, write};
use crate::sharded::write_folder;
use crate::{KeyMap, Layout, ParamVisitor, Tensors, visit_params};
use burn::module::{Module, Param};
use burn::tensor::{DType, Tensor, TensorData, backend::Backend};
use burn_zoo_core::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// Every float parameter and running statistic of `module` by its path.
pub fn collect<B: Backend, M: Module<B>>(module: &M) -> Tensors {
    outgoing(module, &KeyMap::default())
        .into_iter()
        .map(|tensor| (tensor.key, (tensor.data)()))
        .collect()
}

/// Writes the weights of `module` to a safetensors file in the map's names.
///
/// # Errors
/// If the file cannot be written; nothing is left half-written.
pub fn save<B: Backend, M: Module<B>>(module: &M, path: &Path, map: &KeyMap) -> Result<()> {
    write(path, whole(module, map))
}

/// Writes the weights of `module` into `folder`: as `model.safetensors`, or in shards of at most
/// `most_bytes` with their index.
///
/// # Errors
/// If a file cannot be written; the index comes last, so a folder with one is whole.
pub fn save_folder<B: Backend, M: Module<B>>(
    module: &M,
    folder: &Path,
    map: &KeyMap,
    most_bytes: usize,
) -> Result<()> {
    write_folder(folder, whole(module, map), most_bytes)
}

/// The parameters of a module, and the counters that PyTorch's batch norms have beside their running
/// statistics: they hold nothing (0), but upstream's loaders ask for them.
fn whole<B: Backend, M: Module<B>>(module: &M, map: &KeyMap) -> Vec<Outgoing<'static>> {
    let mut tensors = outgoing(module, map);
    if map.drops(COUNTER) {
        let norms = tensors
            .iter()
            .filter_map(|t| t.key.strip_suffix("running_mean"));
        let counters: Vec<_> = norms.map(|norm| format!("{norm}{COUNTER}")).collect();
        tensors.extend(counters.into_iter().map(|key| Outgoing {
            key,
            shape: Vec::new(),
            dtype: DType::I64,
            data: Box::new(|| TensorData::new(vec![0i64], [0; 0])),
        }));
    }
    tensors
}

const COUNTER: &str = "num_batches_tracked";

/// The parameters of a module, read from its device one by one as they are written.
fn outgoing<B: Backend, M: Module<B>>(module: &M, map: &KeyMap) -> Vec<Outgoing<'static>> {
    struct Visitor<'a>(Vec<Part<'static>>, &'a KeyMap);
    impl<B: Backend> ParamVisitor<B> for Visitor<'_> {
        fn visit<const D: usize>(&mut self, path: String, param: &Param<Tensor<B, D>>) {
            let tensor = param.val();
            let layouts = self.1.layout(&path).to_vec();
            self.0.push(Part {
                key: self.1.key(&path),
                shape: tensor.dims().to_vec(),
                dtype: tensor.dtype(),
                layouts,
                data: Box::new(move || tensor.to_data()),
            });
        }
    }
    let mut visitor = Visitor(Vec::new(), map);
    visit_params(module, &mut visitor);
    stored(visitor.0)
}

/// A parameter on its way into a file.
pub(crate) struct Part<'a> {
    pub key: String,
    pub shape: Vec<usize>,
    pub dtype: DType,
    pub layouts: Vec<Layout>,
    pub data: Box<dyn Fn() -> TensorData + 'a>,
}

/// Tensors as they lie in a file, packed ones put together.
pub(crate) fn stored(parts: Vec<Part<'_>>) -> Vec<Outgoing<'_>> {
    let mut order = Vec::new();
    let mut packed: BTreeMap<String, Vec<Part<'_>>> = BTreeMap::new();
    for part in parts {
        let group = packed.entry(part.key.clone()).or_default();
        if group.is_empty() {
            order.push(part.key.clone());
        }
        group.push(part);
    }
    let outgoing = order.into_iter().filter_map(|key| {
        let mut group = packed.remove(&key)?;
        group.sort_by_key(|part| match part.layouts.last() {
            Some(Layout::Rows { at, .. }) => *at,
            _ => 0,
        });
        let (shape, dtype) = (
            Layout::stored(&group[0].layouts, &group[0].shape),
            group[0].dtype,
        );
        let data = move || {
            let parts = group.iter().map(|part| (part.data)()).collect();
            Layout::store(&group[0].layouts, parts)
        };
        Some(Outgoing {
            key,
            shape,
            dtype,
            data: Box::new(data),
        })
    });
    outgoing.collect()
}

/// The shapes of the tensors that [`save`] writes, by the file's keys.
pub fn file_shapes<B: Backend, M: Module<B>>(
    module: &M,
    map: &KeyMap,
) -> BTreeMap<String, Vec<usize>> {
    let outgoing = outgoing(module, map).into_iter();
    outgoing.map(|tensor| (tensor.key, tensor.shape)).collect()
}

/// Tensors by the paths of their parameters as tensors by the file's keys, as they lie there.
pub fn to_file(tensors: &Tensors, map: &KeyMap) -> Tensors {
    let part = |(path, data): (&String, &TensorData)| Part {
        key: map.key(path),
        shape: data.shape.to_vec(),
        dtype: data.dtype,
        layouts: map.layout(path).to_vec(),
        data: Box::new({
            let data = data.clone();
            move || data.clone()
        }),
    };
    let parts: Vec<Part<'static>> = tensors.iter().map(part).collect();
    let stored = stored(parts).into_iter();
    stored.map(|out| (out.key, (out.data)())).collect()
}
