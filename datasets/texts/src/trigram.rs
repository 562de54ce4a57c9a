use burn_zoo_core::{Error, Result};
use std::collections::HashMap;

/// Buckets of how often a context was seen: each has its own weights.
const BUCKETS: usize = 16;

/// An interpolated trigram (Jelinek and Mercer 1980): the probability of a token is a weighted mean of its
/// relative frequencies after two tokens, after one, anywhere, and of a uniform one. The weights depend on how
/// often the context was seen, and are tuned on a part of the text that was not counted.
pub struct Trigram {
    vocab_size: usize,
    /// Of contexts of no, one and two tokens: how often each was seen.
    contexts: [HashMap<u64, u32>; 3],
    /// And with the token that followed.
    followed: [HashMap<u64, u32>; 3],
    weights: [[f64; 4]; BUCKETS],
}

impl Trigram {
    /// Counts `tokens` but for their last tenth, on which the weights are tuned; then counts that too.
    ///
    /// # Errors
    /// If there are too few tokens, or one is `vocab_size` or more.
    pub fn fit(tokens: &[u32], vocab_size: usize) -> Result<Self> {
        if tokens.len() < 100 {
            return Err(Error::usage("--dataset", "too few tokens for a trigram"));
        }
        // Three tokens make one key of 64 bits.
        if vocab_size > 1 << 20 || tokens.iter().any(|id| *id as usize >= vocab_size) {
            return Err(Error::usage(
                "--dataset",
                format!("wants tokens below {vocab_size}"),
            ));
        }
        let (counted, held_out) = tokens.split_at(tokens.len() / 10 * 9);
        let mut trigram = Self {
            vocab_size,
            contexts: Default::default(),
            followed: Default::default(),
            weights: [[0.25; 4]; BUCKETS],
        };
        trigram.count(counted);
        trigram.tune(held_out);
        trigram.count(&tokens[counted.len() - 2..]);
        Ok(trigram)
    }

    fn count(&mut self, tokens: &[u32]) {
        for window in tokens.windows(3) {
            for n in 0..3 {
                *self.contexts[n].entry(key(&window[2 - n..2])).or_default() += 1;
                *self.followed[n].entry(key(&window[2 - n..])).or_default() += 1;
            }
        }
    }

    /// The frequencies of a token after two others, and the bucket of its weights.
    fn parts(&self, window: &[u32]) -> ([f64; 4], usize) {
        let mut parts = [0.0, 0.0, 0.0, 1.0 / self.vocab_size as f64];
        let mut seen = 0;
        for n in 0..3 {
            let context = self.contexts[n]
                .get(&key(&window[2 - n..2]))
                .copied()
                .unwrap_or(0);
            if context > 0 {
                let followed = self.followed[n]
                    .get(&key(&window[2 - n..]))
                    .copied()
                    .unwrap_or(0);
                parts[n] = f64::from(followed) / f64::from(context);
            }
            if n == 2 {
                seen = context;
            }
        }
        (
            parts,
            (u32::BITS - seen.leading_zeros()).min(BUCKETS as u32 - 1) as usize,
        )
    }

    /// Expectation maximisation of the weights.
    fn tune(&mut self, tokens: &[u32]) {
        let seen: Vec<([f64; 4], usize)> =
            tokens.windows(3).map(|window| self.parts(window)).collect();
        for _ in 0..30 {
            let mut shares = [[1e-6; 4]; BUCKETS];
            for (parts, bucket) in &seen {
                let weights = &self.weights[*bucket];
                let weighted: Vec<f64> = parts.iter().zip(weights).map(|(p, w)| p * w).collect();
                let whole: f64 = weighted.iter().sum();
                shares[*bucket]
                    .iter_mut()
                    .zip(&weighted)
                    .for_each(|(s, w)| *s += w / whole);
            }
            for (weights, shares) in self.weights.iter_mut().zip(&shares) {
                let whole: f64 = shares.iter().sum();
                *weights = shares.map(|share| share / whole);
            }
        }
    }

    /// Mean of -log p in nats of every token but the first two.
    pub fn loss(&self, tokens: &[u32]) -> f64 {
        let losses = tokens.windows(3).map(|window| {
            let (parts, bucket) = self.parts(window);
            let p: f64 = parts
                .iter()
                .zip(&self.weights[bucket])
                .map(|(p, w)| p * w)
                .sum();
            -p.ln()
        });
        losses.sum::<f64>() / tokens.len().saturating_sub(2).max(1) as f64
    }
}

/// Up to three tokens as one number; how many there are is known from the table.
fn key(tokens: &[u32]) -> u64 {
    tokens.iter().fold(0, |key, id| key << 21 | u64::from(*id))
}

#[cfg(test)]
mod tests {
    use super::Trigram;

    #[test]
    fn a_source_of_second_order_is_learnt_and_noise_is_not() {
        // x(n) = x(n-1) + x(n-2) mod 7 from (0, 1), with a fault now and then.
        let mut x: Vec<u32> = vec![0, 1];
        let mut noise = 1u64;
        while x.len() < 20_000 {
            noise = noise
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let fault = (noise >> 33).is_multiple_of(10);
            let next = (x[x.len() - 1] + x[x.len() - 2]) % 7;
            x.push(if fault {
                (noise >> 40) as u32 % 7
            } else {
                next
            });
        }
        let (train, valid) = x.split_at(15_000);
        let loss = Trigram::fit(train, 7).expect("enough").loss(valid);
        // 0.9 + 0.1/7 for the right one: its entropy is 0.46 nats.
        let right: f64 = 0.9 + 0.1 / 7.0;
        let entropy = -right * right.ln() - 6.0 * (0.1f64 / 7.0) * (0.1f64 / 7.0).ln();
        assert!((loss - entropy).abs() < 0.03, "{loss} {entropy}");
        assert!(Trigram::fit(train, 6).is_err());
    }
}
