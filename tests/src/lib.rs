//! What tests share: the files that `tools/golden/make.py` made with the upstream classes, how tensors are
//! compared, and presets at full size.

pub mod compare;
pub mod golden;
#[cfg(target_os = "linux")]
pub mod loading;
pub mod presets;
