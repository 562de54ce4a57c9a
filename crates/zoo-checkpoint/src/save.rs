use crate::safetensors_file::{Outgoing, write};
use crate::sharded::write_folder;
use crate::{KeyMap, ParamVisitor, Tensors, visit_params};
use burn::module::{Module, Param};
use burn::tensor::{Tensor, backend::Backend};
use burn_zoo_core::Result;
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
    write(path, outgoing(module, map))
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
    write_folder(folder, outgoing(module, map), most_bytes)
}

/// The parameters of a module, read from its device one by one as they are written.
fn outgoing<B: Backend, M: Module<B>>(module: &M, map: &KeyMap) -> Vec<Outgoing<'static>> {
    struct Visitor<'a>(Vec<Outgoing<'static>>, &'a KeyMap);
    impl<B: Backend> ParamVisitor<B> for Visitor<'_> {
        fn visit<const D: usize>(&mut self, path: String, param: &Param<Tensor<B, D>>) {
            let tensor = param.val();
            self.0.push(Outgoing {
                key: self.1.key(&path),
                shape: tensor.dims().to_vec(),
                dtype: tensor.dtype(),
                data: Box::new(move || tensor.into_data()),
            });
        }
    }
    let mut visitor = Visitor(Vec::new(), map);
    visit_params(module, &mut visitor);
    visitor.0
}
