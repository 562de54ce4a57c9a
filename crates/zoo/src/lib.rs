//! Every listed model behind one registry, and the choice of backend at run time.
//!
//! - [`models`] lists the presets of every family that is compiled in;
//! - [`AutoConfig`] and [`AutoModel`] make any of them;
//! - [`Pretrained`] opens a folder or file with weights, [`forward`] runs it on named tensors,
//!   [`export()`] writes it as its upstream has it;
//! - with the feature `verify`, `run_lane` compares every family with its upstream on a lane;
//! - [`with_backend`] runs code that is generic over the backend on the one a user names.

mod auto;
mod card;
mod export;
mod family;
mod forward;
mod pretrained;
mod text;
#[cfg(feature = "verify")]
mod verify;

pub use auto::{AutoConfig, AutoModel, Entry, ImageShape, WithClassifier, WithModel, find, models};
pub use burn_zoo_backend::{BackendKind, DeviceSpec, WithBackend, with_backend};
pub use card::ModelCard;
pub use export::{ExportOptions, export, upstreams};
pub use forward::forward;
pub use pretrained::Pretrained;
pub use text::{WithCausalLm, WithDecoder};
#[cfg(feature = "verify")]
pub use verify::{fixtures, reference_cases, run_lane};
