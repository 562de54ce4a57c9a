//! Errors between tensors, relative to the reference's norm.

use burn::tensor::TensorData;
use burn_zoo_checkpoint::Tensors;
use burn_zoo_parity::{norm, relative_error};

/// The worst relative error over a set of tensors and where it was.
#[derive(Clone, Debug, Default)]
pub struct Worst {
    /// ‖got − want‖ / ‖want‖, the largest.
    pub error: f64,
    /// Name of that tensor.
    pub name: String,
    /// Tensors compared.
    pub count: usize,
}

impl Worst {
    /// Compares one tensor; `floor` is the least norm that is divided by.
    ///
    /// # Panics
    /// If the shapes differ.
    pub fn add(&mut self, name: &str, got: &TensorData, want: &TensorData, floor: f64) {
        assert_eq!(got.shape, want.shape, "shape of {name}");
        let error = relative_error(got, want, floor);
        if error >= self.error {
            self.error = error;
            self.name = name.to_string();
        }
        self.count += 1;
    }

    /// Compares two sets of tensors, which must have the same names. The floor is `floor` of the
    /// largest norm: what is pure rounding beside the rest is not compared with itself.
    ///
    /// # Panics
    /// If names or shapes differ.
    pub fn of(got: &Tensors, want: &Tensors, floor: f64) -> Self {
        let names = |t: &Tensors| t.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(got), names(want), "the same tensors");
        assert!(!want.is_empty(), "something must be compared");
        let largest = want.values().map(norm).fold(0.0, f64::max);
        let mut worst = Self::default();
        for (name, want) in want {
            worst.add(name, &got[name], want, floor * largest);
        }
        worst
    }

    /// Fails when the error is above `limit`.
    ///
    /// # Panics
    /// With the name of the worst tensor.
    pub fn assert_within(&self, limit: f64, what: &str) {
        println!(
            "{what}: worst of {} is {:.2e} at {}",
            self.count, self.error, self.name
        );
        assert!(
            self.error <= limit,
            "{what}: {:.3e} > {limit:.0e} at {}",
            self.error,
            self.name
        );
    }
}
