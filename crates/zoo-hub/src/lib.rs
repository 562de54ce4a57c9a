//! Models from a hub, and published files, downloaded safely.
//!
//! - [`Hub::snapshot`] gives the folder of a model by its [`RepoId`], in the cache that Python's
//!   huggingface_hub uses, laid out as Python lays it out;
//! - [`fetch_published`] gets one file by its hash, for listed models and data sets.
//!
//! Servers are not trusted: what they say becomes a part of a path only after it was checked, a
//! file appears under its name only when it is whole and its hash is right, and a token goes to the
//! hub's own host and to no other.

mod cache;
mod check;
mod choose;
mod client;
mod failure;
mod hub;
mod lock;
mod metadata;
mod progress;
mod published;
mod repo;
mod snapshot;
mod transfer;

pub use client::Timing;
pub use hub::Hub;
pub use progress::Progress;
pub use published::{Published, fetch_published, mirrored};
pub use repo::RepoId;
