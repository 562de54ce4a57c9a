//! Comparing: a model with its upstream, and a backend with the exact result.
//!
//! - a [`Fixture`] holds random weights and what the upstream class computed with them in f64;
//! - [`measure`] runs a model on a backend: outputs, every stage, every gradient, a training pass and
//!   ten optimizer steps;
//! - [`compare`] gives a [`Check`] for each kind of tensor, against upstream or against the zoo itself
//!   on the reference [`Lane`], burn-ndarray in f64;
//! - [`check_parity`] does the same for any other module;
//! - a [`Report`] collects the lanes of one run.

mod compare;
mod fixture;
mod lane;
mod measure;
mod own;
mod report;

pub use compare::{Check, Kind, Stage, compare, norm, relative_error};
pub use fixture::Fixture;
pub use lane::{LANES, Lane, Limits};
pub use measure::{Measured, OPTIMIZERS, measure};
pub use own::{Inputs, Parity, Subject, check_parity};
pub use report::{CaseReport, LaneReport, Report, Status};
