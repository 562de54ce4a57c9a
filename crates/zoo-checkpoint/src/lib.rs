//! Strict loading and saving of model weights by name.
//!
//! A model's parameters are known by their path (`layers.0.0.conv1.weight`). A [`KeyMap`] says what
//! each is called in a kind of file and which keys of a file are dropped, and why. [`load`] succeeds
//! only when every parameter found its key, in its shape, and no key is left over.
//!
//! Files are mapped into memory and read tensor by tensor: safetensors, one file or sharded, GGUF, and
//! with the feature `pth` PyTorch's own.

mod atomic;
mod convert;
mod gguf;
mod gradients;
mod key_map;
mod layout;
mod lazy;
mod load;
mod memory;
mod model;
mod packed;
mod pytorch;
mod safetensors_file;
mod save;
mod sharded;
mod walk;

pub use atomic::write_atomically;
pub use gguf::{BlockType, GgufTokenType, GgufTokenizer, MetadataArray, MetadataValue};
pub use gradients::{FlatGradients, collect_gradients};
pub use key_map::KeyMap;
pub use layout::Layout;
pub use lazy::{LazyTensor, LazyTensors};
pub use load::{LoadOptions, LoadReport, load, load_packed, load_tensors, load_with};
pub use model::{ClassifierConfig, ModelConfig, PretrainedModel, new_head};
pub use packed::{BlockProducts, PackedMatrices};
pub use safetensors_file::{read_safetensors, write_safetensors};
pub use save::{collect, file_shapes, save, save_folder, to_file};
pub use walk::{ParamMapper, ParamVisitor, map_params, visit_params};

/// Named tensors in memory.
pub type Tensors = std::collections::BTreeMap<String, burn::tensor::TensorData>;
