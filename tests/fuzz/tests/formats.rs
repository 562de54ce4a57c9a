//! A target per format. `BURN_ZOO_FUZZ_SECONDS` says how long each runs (2 without it).

use burn_zoo_fuzz::{Seeds, mutated, read_whole};
use peak_alloc::PeakAlloc;
use std::cell::Cell;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory is counted for the whole process: one target at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Every tensor that is read may take this many bytes of its own.
const MOST_TENSOR: usize = 1 << 14;

/// What opening may take beside the file: buffers of readers, the path for every tensor.
const CONSTANT: usize = 128 << 10;

/// Tries mutated files. Memory may grow to `multiple` times the file, a tensor and a copy of it, and a
/// constant.
fn target(
    seeds: Seeds,
    multiple: usize,
    write: impl Fn(&Path, &[u8]) -> std::path::PathBuf + std::panic::RefUnwindSafe,
) {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let seconds = std::env::var("BURN_ZOO_FUZZ_SECONDS").ok();
    let seconds = seconds.and_then(|s| s.parse().ok()).unwrap_or(2);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (files, refused, worst) = (Cell::new(0u64), Cell::new(0u64), Cell::new(0f64));
    let started = Instant::now();
    let cells = std::panic::AssertUnwindSafe((&files, &refused, &worst));
    bolero::check!()
        .with_test_time(Duration::from_secs(seconds))
        .with_iterations(usize::MAX)
        .with_type::<(u8, Vec<(u8, u32, u64)>)>()
        .for_each(|(which, changes)| {
            let (files, refused, worst) = *cells;
            // Few changes, so that some files are still whole enough to be read.
            let most = 1 + usize::from(which / 64);
            let changes = &changes[..changes.len().min(most)];
            let bytes = mutated(&seeds, *which, changes);
            let path = write(folder.path(), &bytes);
            let before = PeakAlloc.current_usage();
            PeakAlloc.reset_peak_usage();
            let read = read_whole(&path, MOST_TENSOR);
            let taken = PeakAlloc.peak_usage().saturating_sub(before);
            let allowed = multiple * bytes.len() + 2 * MOST_TENSOR + CONSTANT;
            assert!(
                taken <= allowed,
                "{taken} bytes of memory for a file of {}: at most {allowed} are allowed",
                bytes.len()
            );
            files.set(files.get() + 1);
            refused.set(refused.get() + u64::from(read.is_none()));
            worst.set(worst.get().max(taken as f64 / allowed as f64));
        });
    println!(
        "{} files tried in {:.0} s, {} refused when opened; memory at most {:.2} of what is allowed",
        files.get(),
        started.elapsed().as_secs_f64(),
        refused.get(),
        worst.get()
    );
    assert!(
        refused.get() > 0 && refused.get() < files.get(),
        "both kinds must come up"
    );
}

fn one_file(folder: &Path, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.join("weights");
    std::fs::write(&path, bytes).expect("writable");
    path
}

#[test]
fn safetensors() {
    let seeds = [
        "checkpoints/expected.safetensors",
        "forward/resnet_model/input.safetensors",
        "checkpoints/gguf_expected.safetensors",
    ];
    target(Seeds::golden(&seeds), 16, one_file);
}

#[test]
fn pytorch() {
    let seeds = [
        "checkpoints/zip.pth",
        "checkpoints/legacy.pth",
        "checkpoints/dtypes.pth",
        "checkpoints/strided.pth",
        "checkpoints/strided_legacy.pth",
        "checkpoints/nested.pth",
        "checkpoints/whole_module.pth",
        "checkpoints/hostile.pth",
    ];
    target(Seeds::golden(&seeds), 64, one_file);
}

#[test]
fn gguf() {
    let seeds = [
        "checkpoints/gguf_types.gguf",
        "checkpoints/gguf_shapes.gguf",
        "checkpoints/gguf_unsupported.gguf",
    ];
    target(Seeds::golden(&seeds), 32, one_file);
}

/// The index is mutated; its shards are there.
#[test]
fn index_of_shards() {
    let shard = Seeds::golden(&["checkpoints/expected.safetensors"]);
    let shard = mutated(&shard, 0, &[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("whole"), &shard).expect("writable");
    let opened = burn_zoo_checkpoint::LazyTensors::open(&folder.path().join("whole"));
    let keys: Vec<String> = opened.expect("valid").tensors.into_keys().collect();
    let index = |name: &dyn Fn(usize) -> String| {
        let entries = keys.iter().enumerate();
        let entries: Vec<String> = entries
            .map(|(i, key)| format!("{key:?}: {:?}", name(i)))
            .collect();
        format!(
            "{{\"metadata\": {{\"total_size\": 1}}, \"weight_map\": {{{}}}}}",
            entries.join(", ")
        )
    };
    let seeds = Seeds::of(vec![
        index(&|_| "model-1.safetensors".into()).into_bytes(),
        index(&|i| format!("model-{}.safetensors", 1 + i % 2)).into_bytes(),
        index(&|i| ["../model-1.safetensors", "model-1.safetensors"][i % 2].into()).into_bytes(),
    ]);
    target(seeds, 16, move |folder, bytes| {
        for name in ["model-1.safetensors", "model-2.safetensors"] {
            let path = folder.join(name);
            if !path.exists() {
                std::fs::write(path, &shard).expect("writable");
            }
        }
        let path = folder.join("model.safetensors.index.json");
        std::fs::write(&path, bytes).expect("writable");
        path
    });
}
