use std::cell::Cell;

/// What ran on this thread inside [`count`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Floating-point operations of matrix products and convolutions of the forward pass, a
    /// multiply-add being two. Element-wise work is not counted, as PyTorch's flop counter does.
    pub flops: u64,
    /// Elements that convolutions, norms, activations and pools produced.
    pub activations: u64,
    /// Calls that took a backend's fast path.
    pub fast: u64,
    /// Calls of functions that have a fast path but took the generic form.
    pub generic: u64,
}

thread_local! {
    static COUNTS: Cell<Counts> = const {
        Cell::new(Counts { flops: 0, activations: 0, fast: 0, generic: 0 })
    };
}

/// Runs `f` and says what it computed on this thread.
pub fn count<T>(f: impl FnOnce() -> T) -> (T, Counts) {
    let before = COUNTS.get();
    let value = f();
    let after = COUNTS.get();
    let counts = Counts {
        flops: after.flops - before.flops,
        activations: after.activations - before.activations,
        fast: after.fast - before.fast,
        generic: after.generic - before.generic,
    };
    (value, counts)
}

pub(crate) fn add_flops(flops: u64) {
    update(|c| c.flops += flops);
}

pub(crate) fn add_activations(elements: usize) {
    update(|c| c.activations += elements as u64);
}

#[cfg(feature = "flex")]
pub(crate) fn took_fast_path() {
    update(|c| c.fast += 1);
}

pub(crate) fn took_generic_path() {
    update(|c| c.generic += 1);
}

fn update(f: impl FnOnce(&mut Counts)) {
    let mut counts = COUNTS.get();
    f(&mut counts);
    COUNTS.set(counts);
}
