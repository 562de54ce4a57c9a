//! Image data sets, preprocessing and deterministic loaders.
