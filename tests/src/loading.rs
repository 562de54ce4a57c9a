//! Loading a checkpoint that is large beside everything else: how long it takes, and how much memory of
//! its own the process has meanwhile.

use burn::module::{Module, Param};
use burn::tensor::{DType, Tensor, backend::Backend};
use burn_flex::Flex;
use burn_zoo_checkpoint::{KeyMap, load, save_folder};
use burn_zoo_core::Result;
use burn_zoo_nn::Init;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Matrices of one size.
#[derive(Module, Debug)]
pub struct Stack<B: Backend> {
    weights: Vec<Param<Tensor<B, 2>>>,
}

impl Stack<Flex> {
    /// `count` matrices of `side × side`, unfilled, as every model is before a file fills it.
    fn unfilled(count: usize, side: usize) -> Self {
        let device = Default::default();
        let mut init = Init::new(None, &device);
        Self {
            weights: (0..count).map(|_| init.normal([side, side], 1.0)).collect(),
        }
    }

    /// Matrices of numbers that tell where they are.
    fn filled(count: usize, side: usize) -> Self {
        let device = Default::default();
        let matrix = |i: usize| {
            let row = Tensor::<Flex, 1, burn::tensor::Int>::arange(0..side as i64, &device);
            let row = row.float().div_scalar(side as f64).add_scalar(i as f64);
            row.reshape([1, side]).expand([side, side])
        };
        let weights = (0..count).map(|i| Param::from_tensor(matrix(i).cast(DType::BF16)));
        Self {
            weights: weights.collect(),
        }
    }

    /// The first number of each matrix.
    pub fn firsts(&self) -> Vec<f32> {
        let first = |w: &Param<Tensor<Flex, 2>>| w.val().slice([0..1, 0..1]).into_scalar();
        self.weights.iter().map(first).collect()
    }
}

/// Writes `count` matrices as bf16, in shards of at most `most_bytes`.
///
/// # Errors
/// If they cannot be written.
pub fn write(folder: &Path, count: usize, side: usize, most_bytes: usize) -> Result<()> {
    let stack = Stack::filled(count, side);
    save_folder(&stack, folder, &KeyMap::default(), most_bytes)
}

/// What loading took.
#[derive(Debug)]
pub struct Measured {
    /// Seconds.
    pub seconds: f64,
    /// The most anonymous memory that the process had over what it had before, in bytes.
    pub peak_anonymous: u64,
    /// Bytes of the model in memory.
    pub model_bytes: u64,
}

/// Loads the folder as f32 on flex and looks at the process's `RssAnon` every millisecond.
///
/// # Errors
/// If it cannot be loaded.
///
/// # Panics
/// Where there is no `/proc/self/status`.
pub fn measure(folder: &Path, count: usize, side: usize) -> Result<(Stack<Flex>, Measured)> {
    let before = anonymous();
    let done = Arc::new(AtomicBool::new(false));
    let watch = std::thread::spawn({
        let done = done.clone();
        move || {
            let mut peak = 0;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(anonymous());
                std::thread::sleep(Duration::from_millis(1));
            }
            peak.max(anonymous())
        }
    });
    let started = Instant::now();
    let model = Stack::unfilled(count, side);
    let model = load(model, folder, &[KeyMap::default()], DType::F32);
    let seconds = started.elapsed().as_secs_f64();
    done.store(true, Ordering::Relaxed);
    let peak = watch.join().expect("the watch does not panic");
    let measured = Measured {
        seconds,
        peak_anonymous: peak.saturating_sub(before),
        model_bytes: 4 * (count * side * side) as u64,
    };
    Ok((model?, measured))
}

/// The process's anonymous resident memory in bytes.
fn anonymous() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.expect("a number of KiB") * 1024
}
