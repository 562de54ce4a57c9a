//! Options and helpers that commands share.

use burn::tensor::{DType, backend::Backend};
use burn_zoo::{BackendKind, DeviceSpec};
use burn_zoo_checkpoint::BlockProducts;
use burn_zoo_core::{Error, Result};
use comfy_table::{Table, presets::UTF8_FULL_CONDENSED};
use std::io::IsTerminal;

/// Where to compute.
#[derive(clap::Args, Clone, Debug)]
pub struct BackendArgs {
    /// flex, ndarray, wgpu or cuda [default: the first that is compiled in]
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Number of the backend's device
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub device: usize,
}

impl BackendArgs {
    pub fn spec(&self) -> Result<DeviceSpec> {
        let name = self
            .backend
            .as_deref()
            .unwrap_or(BackendKind::default_name());
        Ok(DeviceSpec {
            backend: name.parse()?,
            index: self.device,
        })
    }
}

/// A dtype by name that the backend computes in.
pub fn dtype<B: Backend>(name: &str, device: &B::Device) -> Result<DType> {
    const NAMES: [(&str, DType); 4] = [
        ("f32", DType::F32),
        ("f64", DType::F64),
        ("bf16", DType::BF16),
        ("f16", DType::F16),
    ];
    let found = NAMES.iter().find(|n| n.0 == name);
    let Some((_, dtype)) = found else {
        return Err(Error::unknown("dtype", name, NAMES.iter().map(|n| n.0)));
    };
    if !B::supports_dtype(device, *dtype) {
        return Err(Error::Device {
            backend: B::name(device),
            message: format!("does not compute in {name}; choose another --dtype"),
        });
    }
    Ok(*dtype)
}

/// How matrices in quantised blocks are used.
#[derive(clap::Args, Clone, Debug)]
pub struct BlockArgs {
    /// What is done with quantised matrices of a GGUF file: exact keeps their blocks and multiplies in f32, fast
    /// with activations rounded to 8 bits, unpacked makes them numbers of --dtype; auto is exact on a CPU in f32
    /// and unpacked elsewhere
    #[arg(long, default_value = "auto", value_name = "HOW")]
    blocks: String,
}

impl BlockArgs {
    /// How blocks are multiplied, or nothing where they are unpacked.
    pub fn products(&self, spec: DeviceSpec, dtype: DType) -> Result<Option<BlockProducts>> {
        let on_cpu = matches!(spec.backend, BackendKind::Flex | BackendKind::NdArray);
        match self.blocks.as_str() {
            "auto" => Ok((on_cpu && dtype == DType::F32).then_some(BlockProducts::Exact)),
            "exact" => Ok(Some(BlockProducts::Exact)),
            "fast" if dtype != DType::F32 => {
                Err(Error::usage("--blocks", "fast is for --dtype f32"))
            }
            "fast" => Ok(Some(BlockProducts::Fast)),
            "unpacked" => Ok(None),
            other => Err(Error::unknown(
                "blocks",
                other,
                ["auto", "exact", "fast", "unpacked"],
            )),
        }
    }
}

/// Limits the threads that compute; must come before anything is computed.
pub fn set_threads(threads: Option<usize>) -> Result<usize> {
    if let Some(threads) = threads.filter(|n| *n == 0 || *n > 1024) {
        return Err(Error::usage(
            "--threads",
            format!("must be 1 to 1024, got {threads}"),
        ));
    }
    let asked = std::env::var("RAYON_NUM_THREADS")
        .ok()
        .and_then(|n| n.parse().ok());
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads
        .or(asked.filter(|n| *n > 0))
        .unwrap_or_else(available);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    // This thread takes part, so that what it hands out begins at once. Not if it were the only one: what another thread
    // hands out would wait for it.
    let pool = if threads > 1 {
        pool.use_current_thread()
    } else {
        pool
    };
    // Asked for twice in one process, the first number stays.
    let _ = pool.build_global();
    Ok(rayon::current_num_threads())
}

/// An empty table in the house style.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(header);
    table
}

/// A progress bar on a terminal, nothing elsewhere.
pub fn bar(len: usize, what: &str) -> indicatif::ProgressBar {
    if !std::io::stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    let bar = indicatif::ProgressBar::new(len as u64);
    let style = indicatif::ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.set_message(what.to_string());
    bar
}

/// A bar of bytes on a terminal, nothing elsewhere.
pub fn bytes_bar(len: Option<u64>, done: u64) -> indicatif::ProgressBar {
    if !std::io::stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    let bar = indicatif::ProgressBar::no_length();
    let mut template = "{bytes} {bytes_per_sec}";
    if let Some(len) = len {
        bar.set_length(len);
        template = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    }
    if let Ok(style) = indicatif::ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    // What was there before does not count as speed.
    bar.set_position(done);
    bar.reset_eta();
    bar
}

/// Prints a value as JSON.
pub fn print_json(value: &serde_json::Value) {
    burn_zoo_core::say!("{value:#}");
}

/// Bytes in MiB.
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64)
}
