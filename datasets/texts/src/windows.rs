use crate::Tokens;
use burn_zoo_core::{Error, Result};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::Range;

/// Sequences of tokens, and the tokens that follow each of theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// `[batch, sequence]` token numbers.
    pub inputs: Vec<i64>,
    /// `[batch, sequence]`: the successor of each.
    pub targets: Vec<i64>,
    /// Batch and sequence.
    pub shape: [usize; 2],
}

/// Batches of sequences that lie one after the other in a text, without gaps and padding.
///
/// What batch `b` of epoch `e` holds depends only on seed, `e` and `b`: an epoch begins at another place and
/// has another order than the last. Without a seed the order is the text's, and the last batch may be smaller.
#[derive(Clone, Debug)]
pub struct Windows {
    tokens: Tokens,
    range: Range<usize>,
    sequence: usize,
    batch_size: usize,
    seed: Option<u64>,
}

impl Windows {
    /// Sequences of `sequence` tokens among those of `range`.
    ///
    /// # Errors
    /// If there are too few for a batch.
    pub fn new(
        tokens: Tokens,
        range: Range<usize>,
        sequence: usize,
        batch_size: usize,
        seed: Option<u64>,
    ) -> Result<Self> {
        if sequence == 0 || batch_size == 0 {
            return Err(Error::usage(
                "--batch-size and --sequence-length",
                "must be at least 1",
            ));
        }
        let windows = Self {
            tokens,
            range,
            sequence,
            batch_size,
            seed,
        };
        if windows.batches() == 0 {
            let message = format!(
                "the part has {} tokens, too few for a batch of {batch_size} sequences of {sequence}",
                windows.range.len()
            );
            return Err(Error::usage("--batch-size and --sequence-length", message));
        }
        Ok(windows)
    }

    /// Sequences of an epoch.
    fn sequences(&self) -> usize {
        // With a seed an epoch may begin up to a sequence later.
        let used = match self.seed {
            Some(_) => self.sequence,
            None => 1,
        };
        self.range.len().saturating_sub(used) / self.sequence
    }

    /// Batches of an epoch.
    pub fn batches(&self) -> usize {
        match self.seed {
            Some(_) => self.sequences() / self.batch_size,
            None => self.sequences().div_ceil(self.batch_size),
        }
    }

    /// The batches of epoch `epoch` from `first` on.
    pub fn epoch(
        &self,
        epoch: usize,
        first: usize,
    ) -> impl Iterator<Item = Result<Window>> + use<> {
        let mut starts: Vec<usize> = (0..self.sequences())
            .map(|i| self.range.start + i * self.sequence)
            .collect();
        if let Some(seed) = self.seed {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(epoch as u64);
            let shift = rng.random_range(0..self.sequence);
            starts.iter_mut().for_each(|start| *start += shift);
            starts.shuffle(&mut rng);
        }
        let (windows, batches) = (self.clone(), self.batches());
        (first..batches).map(move |b| windows.batch(&starts, b))
    }

    fn batch(&self, starts: &[usize], b: usize) -> Result<Window> {
        let size = self.batch_size;
        let starts = &starts[b * size..(b * size + size).min(starts.len())];
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for start in starts {
            let tokens = self.tokens.read(*start..start + self.sequence + 1)?;
            inputs.extend(tokens[..self.sequence].iter().map(|id| i64::from(*id)));
            targets.extend(tokens[1..].iter().map(|id| i64::from(*id)));
        }
        Ok(Window {
            inputs,
            targets,
            shape: [starts.len(), self.sequence],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(seed: Option<u64>) -> Windows {
        let tokens = Tokens::new((0..100).collect());
        Windows::new(tokens, 10..95, 7, 3, seed).expect("enough")
    }

    fn all(windows: &Windows, epoch: usize, first: usize) -> Vec<Window> {
        windows
            .epoch(epoch, first)
            .map(|window| window.expect("there"))
            .collect()
    }

    #[test]
    fn without_a_seed_every_token_comes_once_in_order() {
        let found = all(&windows(None), 3, 0);
        let inputs: Vec<i64> = found.iter().flat_map(|w| w.inputs.clone()).collect();
        assert_eq!(inputs, (10..94).collect::<Vec<i64>>());
        assert!(
            found
                .iter()
                .all(|w| w.targets.iter().zip(&w.inputs).all(|(t, i)| *t == i + 1))
        );
        assert_eq!(found.iter().map(|w| w.shape[0]).collect::<Vec<_>>(), [3; 4]);
    }

    #[test]
    fn an_epoch_is_decided_by_seed_and_number_and_can_be_entered_anywhere() {
        let seeded = windows(Some(5));
        let whole = all(&seeded, 1, 0);
        assert_eq!(whole.len(), 3);
        assert_eq!(all(&seeded, 1, 2), whole[2..]);
        assert_ne!(all(&seeded, 2, 0), whole);
        assert_ne!(all(&windows(Some(6)), 1, 0), whole);
        let within = |w: &Window| w.inputs.iter().all(|i| (10..95).contains(i));
        assert!(whole.iter().all(within));
    }

    #[test]
    fn too_little_text_is_an_error() {
        let tokens = Tokens::new((0..20).collect());
        assert!(Windows::new(tokens, 0..20, 7, 3, Some(0)).is_err());
    }
}
