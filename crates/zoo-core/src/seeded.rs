//! Bugs that the proofs must find, one at a time.

/// A value, or the wrong one if the seeded bug called `name` is switched on. Without the feature
/// `seeded-bugs`, which only tests have, it is always the right one.
#[inline]
pub fn seeded<T>(name: &'static str, right: T, wrong: impl FnOnce(T) -> T) -> T {
    #[cfg(feature = "seeded-bugs")]
    if switch::is_on(name) {
        return wrong(right);
    }
    let _ = (name, wrong);
    right
}

#[cfg(feature = "seeded-bugs")]
pub use switch::with_seeded_bug;

#[cfg(feature = "seeded-bugs")]
mod switch {
    use std::cell::Cell;

    thread_local! {
        /// The bug that is on, and how often it was met.
        static BUG: Cell<(&'static str, usize)> = const { Cell::new(("", 0)) };
    }

    pub(super) fn is_on(name: &str) -> bool {
        BUG.with(|bug| {
            let (on, met) = bug.get();
            if on == name {
                bug.set((on, met + 1));
            }
            on == name
        })
    }

    /// Runs `f` with this bug on this thread; also gives how often its place was passed.
    pub fn with_seeded_bug<R>(name: &'static str, f: impl FnOnce() -> R) -> (R, usize) {
        struct Off;
        impl Drop for Off {
            fn drop(&mut self) {
                BUG.with(|bug| bug.set(("", 0)));
            }
        }
        let off = Off;
        BUG.with(|bug| bug.set((name, 0)));
        let result = f();
        let met = BUG.with(|bug| bug.get().1);
        drop(off);
        (result, met)
    }
}
