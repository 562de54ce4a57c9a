use burn_zoo_core::{Error, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// How the next token is chosen, in the names and the order of transformers' `generate`: penalty,
/// temperature, `top_k`, `top_p`, `min_p`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Logits are divided by it; 0 takes the likeliest token.
    pub temperature: f64,
    /// Only so many of the likeliest tokens; 0: all.
    pub top_k: usize,
    /// Only the likeliest tokens that together have this probability.
    pub top_p: f64,
    /// Only tokens with this share of the likeliest one's probability.
    pub min_p: f64,
    /// What the logits of tokens that were there are divided by, or multiplied with if below 0 (Keskar et
    /// al. 2019); 1: nothing.
    pub repetition_penalty: f64,
    /// Seed of what is left to chance.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            seed: 0,
        }
    }
}

impl Sampling {
    /// Checks every number.
    ///
    /// # Errors
    /// Names the option that cannot be used.
    pub fn validate(&self) -> Result<()> {
        let checks = [
            (
                "--temperature",
                self.temperature,
                (0.0..=1000.0).contains(&self.temperature),
            ),
            ("--top-p", self.top_p, self.top_p > 0.0 && self.top_p <= 1.0),
            ("--min-p", self.min_p, (0.0..=1.0).contains(&self.min_p)),
            (
                "--repetition-penalty",
                self.repetition_penalty,
                self.repetition_penalty > 0.0 && self.repetition_penalty.is_finite(),
            ),
        ];
        match checks.into_iter().find(|(.., fine)| !fine) {
            Some((option, value, _)) => {
                Err(Error::usage(option, format!("{value} cannot be used")))
            }
            None => Ok(()),
        }
    }
}

/// Chooses tokens of one text.
#[derive(Clone, Debug)]
pub struct Sampler {
    sampling: Sampling,
    rng: ChaCha8Rng,
}

impl Sampler {
    /// For text number `row` of a batch.
    ///
    /// # Errors
    /// If an option cannot be used.
    pub fn new(sampling: Sampling, row: u64) -> Result<Self> {
        sampling.validate()?;
        let mut rng = ChaCha8Rng::seed_from_u64(sampling.seed);
        rng.set_stream(row);
        Ok(Self { sampling, rng })
    }

    /// The next token, from the logits of all and the tokens that were there.
    ///
    /// # Errors
    /// If no logit is a finite number.
    pub fn next(&mut self, mut logits: Vec<f32>, before: &[usize]) -> Result<usize> {
        let o = self.sampling;
        if o.repetition_penalty != 1.0 {
            let mut before = before.to_vec();
            before.sort_unstable();
            before.dedup();
            for id in before {
                if let Some(logit) = logits.get_mut(id) {
                    let penalty = o.repetition_penalty as f32;
                    *logit = if *logit < 0.0 {
                        *logit * penalty
                    } else {
                        *logit / penalty
                    };
                }
            }
        }
        let highest = logits.iter().copied().enumerate();
        let highest = highest.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let Some((likeliest, top)) = highest.filter(|(_, top)| top.is_finite()) else {
            let message =
                "gives scores that are not finite: its weights are damaged or it diverged";
            return Err(Error::usage("the model", message));
        };
        if o.temperature == 0.0 {
            return Ok(likeliest);
        }
        let weight = |logit: &f32| f64::from(logit - top) / o.temperature;
        let mut tokens: Vec<(usize, f64)> = logits
            .iter()
            .map(|logit| weight(logit).exp())
            .enumerate()
            .collect();
        tokens.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if o.top_k > 0 {
            tokens.truncate(o.top_k);
        }
        if o.top_p < 1.0 {
            let whole: f64 = tokens.iter().map(|t| t.1).sum();
            let mut so_far = 0.0;
            // The token that crosses the line is the last one kept.
            let kept = tokens.iter().take_while(|t| {
                let before = so_far;
                so_far += t.1 / whole;
                before < o.top_p
            });
            let kept = kept.count().max(1);
            tokens.truncate(kept);
        }
        if o.min_p > 0.0 {
            let least = o.min_p * tokens[0].1;
            tokens.retain(|t| t.1 >= least);
        }
        let whole: f64 = tokens.iter().map(|t| t.1).sum();
        let mut left = self.rng.random::<f64>() * whole;
        for (id, weight) in &tokens {
            left -= weight;
            if left < 0.0 {
                return Ok(*id);
            }
        }
        Ok(tokens[tokens.len() - 1].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sampling: Sampling, logits: &[f32], before: &[usize]) -> Vec<usize> {
        let mut counts = vec![0; logits.len()];
        for row in 0..4000 {
            let mut sampler = Sampler::new(sampling, row).expect("valid");
            counts[sampler.next(logits.to_vec(), before).expect("finite")] += 1;
        }
        counts
    }

    const LOGITS: [f32; 4] = [1.0, 3.0, 2.0, 3.0];

    #[test]
    fn the_likeliest_token_is_the_first_of_equals() {
        assert_eq!(counts(Sampling::default(), &LOGITS, &[]), [0, 4000, 0, 0]);
    }

    #[test]
    fn frequencies_follow_the_probabilities() {
        let warm = Sampling {
            temperature: 1.0,
            ..Sampling::default()
        };
        let whole: f64 = LOGITS.iter().map(|l| f64::from(*l).exp()).sum();
        for (count, logit) in counts(warm, &LOGITS, &[]).iter().zip(LOGITS) {
            let want = f64::from(logit).exp() / whole * 4000.0;
            // Five standard deviations of a binomial.
            assert!(
                (*count as f64 - want).abs() < 5.0 * want.sqrt(),
                "{count} {want}"
            );
        }
        for narrow in [
            Sampling { top_k: 2, ..warm },
            Sampling {
                top_p: 0.79,
                ..warm
            },
            Sampling { min_p: 0.5, ..warm },
        ] {
            let counts = counts(narrow, &LOGITS, &[]);
            assert!(
                counts[0] == 0 && counts[2] == 0 && counts[1] > 0 && counts[3] > 0,
                "{narrow:?}"
            );
        }
    }

    #[test]
    fn what_was_there_is_less_likely() {
        let fined = Sampling {
            repetition_penalty: 2.0,
            ..Sampling::default()
        };
        assert_eq!(counts(fined, &LOGITS, &[1, 3, 1])[2], 4000);
        assert_eq!(counts(fined, &[-1.0, -1.5], &[0])[1], 4000);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let option = Sampling {
            top_p: 0.0,
            ..Sampling::default()
        };
        let error = Sampler::new(option, 0)
            .expect_err("no token is left")
            .to_string();
        assert!(error.contains("--top-p"), "{error}");
        let mut sampler = Sampler::new(Sampling::default(), 0).expect("valid");
        assert!(sampler.next(vec![f32::NAN; 3], &[]).is_err());
    }
}
