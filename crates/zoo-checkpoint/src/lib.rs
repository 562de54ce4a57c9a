//! Strict loading and saving of model weights by name.
//!
//! A model's parameters are known by their path (`layer1.0.conv1.weight`). A [`KeyMap`] says what
//! each is called in a file and which keys of a file are dropped, and why. [`load`] succeeds only
//! when every parameter found its key, in its shape, and no key is left over.

mod file;
mod key_map;
mod module;
mod walk;

pub use file::{Tensors, read_safetensors, write_atomically, write_safetensors};
pub use key_map::KeyMap;
pub use module::{collect, load, load_tensors, save};
pub use walk::{ParamMapper, ParamVisitor, map_params, visit_params};
