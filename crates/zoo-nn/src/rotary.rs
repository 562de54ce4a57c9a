use burn::tensor::{DType, Tensor, TensorData, backend::Backend};
use burn_zoo_core::{Error, Result, seeded};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::f64::consts::{PI, TAU};

/// How rotary positions reach beyond the context a model was trained on, in the names and with the
/// formulas of transformers' `modeling_rope_utils`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "lowercase", deny_unknown_fields)]
pub enum RopeScaling {
    /// As trained (Su et al. 2021).
    Default,
    /// Positions are divided by `factor` (Chen et al. 2023, arXiv:2306.15595).
    Linear {
        /// What they are divided by.
        factor: f64,
    },
    /// In sequences longer than `max_position_embeddings` the base grows with the length (NTK-aware).
    Dynamic {
        /// How far the context is stretched.
        factor: f64,
        /// The context the model was trained on.
        max_position_embeddings: usize,
    },
    /// Slow angles are interpolated, fast ones are not, with a ramp between (Peng et al. 2023,
    /// arXiv:2309.00071).
    Yarn {
        /// How far the context is stretched.
        factor: f64,
        /// What cosine and sine are multiplied with.
        attention_factor: f64,
        /// Turns within the context above which nothing is interpolated.
        beta_fast: f64,
        /// Turns within the context below which everything is interpolated.
        beta_slow: f64,
        /// The context the model was trained on.
        original_max_position_embeddings: usize,
        /// Whether the ramp's ends are whole numbers.
        truncate: bool,
    },
    /// As `Yarn`, with a ramp over wavelengths (Llama 3.1).
    Llama3 {
        /// How far the context is stretched.
        factor: f64,
        /// Turns within the context below which everything is interpolated.
        low_freq_factor: f64,
        /// Turns within the context above which nothing is interpolated.
        high_freq_factor: f64,
        /// The context the model was trained on.
        original_max_position_embeddings: usize,
    },
}

/// Rotary positions of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rope {
    /// The base of the angles, 10,000 in the paper.
    pub rope_theta: f64,
    /// How they reach beyond the context of the training.
    pub scaling: RopeScaling,
}

impl Rope {
    /// From a `config.json`: `rope_parameters`, or `rope_theta` and `rope_scaling` as older ones have it.
    ///
    /// # Errors
    /// If the kind of scaling is unknown or lacks a number.
    pub fn from_transformers(json: &Value, max_position_embeddings: usize) -> Result<Self> {
        // The older name comes first, as in transformers.
        let parameters = ["rope_scaling", "rope_parameters"].map(|key| &json[key]);
        let some = |value: &&Value| value.as_object().is_some_and(|fields| !fields.is_empty());
        let found = parameters.into_iter().find(some);
        let none = Value::Object(Default::default());
        let p = found.unwrap_or(&none);
        let fields = p.as_object().into_iter().flat_map(|fields| fields.values());
        if fields.into_iter().any(Value::is_object) {
            let message = "other positions for other kinds of layers are not supported";
            return Err(Error::usage("rope_parameters", message));
        }
        let number = |key: &str| p[key].as_f64().filter(|v| v.is_finite());
        let needed = |key: &str| match number(key).filter(|v| *v > 0.0) {
            Some(value) => Ok(value),
            None => Err(Error::usage(
                format!("rope_parameters.{key}"),
                format!("wants a number above 0, got {}", p[key]),
            )),
        };
        let rope_theta = match number("rope_theta").or(json["rope_theta"].as_f64()) {
            Some(theta) if theta.is_finite() && theta > 0.0 => theta,
            Some(theta) => {
                let message = format!("wants a number above 0, got {theta}");
                return Err(Error::usage("rope_theta", message));
            }
            None => 10_000.0,
        };
        let partial = number("partial_rotary_factor").or(json["partial_rotary_factor"].as_f64());
        if partial.is_some_and(|share| share != 1.0) {
            let message = "only whole heads are rotated here";
            return Err(Error::usage("partial_rotary_factor", message));
        }
        let size = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
        // Some name the context of the training beside the parameters, which comes first then.
        let original = || {
            let beside = size(&json["original_max_position_embeddings"]);
            let inside = || size(&p["original_max_position_embeddings"]);
            beside.or_else(inside).unwrap_or(max_position_embeddings)
        };
        let kind = p["rope_type"].as_str().or(p["type"].as_str());
        let scaling = match kind.unwrap_or("default") {
            "default" => RopeScaling::Default,
            "linear" => RopeScaling::Linear {
                factor: needed("factor")?,
            },
            "dynamic" => RopeScaling::Dynamic {
                factor: needed("factor")?,
                max_position_embeddings,
            },
            "yarn" => {
                let original = original();
                let factor = match p["factor"].is_null() {
                    true => max_position_embeddings as f64 / original as f64,
                    false => needed("factor")?,
                };
                let scale = |weight: f64| match factor {
                    factor if factor <= 1.0 => 1.0,
                    factor => 0.1 * weight * factor.ln() + 1.0,
                };
                let above_0 = |key: &str| number(key).filter(|v| *v != 0.0);
                let stated = number("attention_factor");
                let attention_factor = match (stated, above_0("mscale"), above_0("mscale_all_dim"))
                {
                    (Some(stated), ..) => stated,
                    (None, Some(one), Some(all)) => scale(one) / scale(all),
                    _ => scale(1.0),
                };
                RopeScaling::Yarn {
                    factor,
                    attention_factor,
                    beta_fast: above_0("beta_fast").unwrap_or(32.0),
                    beta_slow: above_0("beta_slow").unwrap_or(1.0),
                    original_max_position_embeddings: original,
                    truncate: p["truncate"].as_bool().unwrap_or(true),
                }
            }
            "llama3" => RopeScaling::Llama3 {
                factor: needed("factor")?,
                low_freq_factor: needed("low_freq_factor")?,
                high_freq_factor: needed("high_freq_factor")?,
                original_max_position_embeddings: original(),
            },
            other => {
                let known = ["default", "linear", "dynamic", "yarn", "llama3"];
                return Err(Error::unknown("rope_type", other, known));
            }
        };
        Ok(Self {
            rope_theta,
            scaling,
        })
    }

    /// `rope_theta` and `rope_scaling` of a `config.json`, which older and newer versions of transformers read.
    pub fn to_transformers(&self) -> [(&'static str, Value); 2] {
        let scaling = match self.scaling {
            RopeScaling::Default => Value::Null,
            // The context of the training is the configuration's.
            RopeScaling::Dynamic { factor, .. } => {
                json!({ "rope_type": "dynamic", "factor": factor })
            }
            other => json!(other),
        };
        [
            ("rope_theta", json!(self.rope_theta)),
            ("rope_scaling", scaling),
        ]
    }

    /// Angle per position of each pair of a head's numbers, and what cosine and sine are multiplied with,
    /// for sequences of this length.
    fn frequencies(&self, head_dim: usize, length: usize) -> (Vec<f64>, f64) {
        let dim = head_dim as f64;
        let powers = |base: f64| {
            let pair = move |i: usize| base.powf(-((2 * i) as f64) / dim);
            (0..head_dim / 2).map(pair).collect::<Vec<f64>>()
        };
        let plain = powers(self.rope_theta);
        match self.scaling {
            RopeScaling::Default => (plain, 1.0),
            RopeScaling::Linear { factor } => (plain.iter().map(|v| v / factor).collect(), 1.0),
            RopeScaling::Dynamic {
                factor,
                max_position_embeddings,
            } => {
                let most = max_position_embeddings as f64;
                let length = most.max(length as f64);
                let grown = (factor * length / most - (factor - 1.0)).powf(dim / (dim - 2.0));
                (powers(self.rope_theta * grown), 1.0)
            }
            RopeScaling::Yarn {
                factor,
                attention_factor,
                beta_fast,
                beta_slow,
                original_max_position_embeddings,
                truncate,
            } => {
                let context = original_max_position_embeddings as f64;
                // The pair that turns so often within the context.
                let pair = |turns: f64| {
                    dim * (context / (turns * TAU)).ln() / (2.0 * self.rope_theta.ln())
                };
                let (mut low, mut high) = (pair(beta_fast), pair(beta_slow));
                if truncate {
                    (low, high) = (low.floor(), high.ceil());
                }
                (low, high) = (low.max(0.0), high.min(dim - 1.0));
                if low == high {
                    high += 0.001;
                }
                let mixed = plain.iter().enumerate().map(|(i, v)| {
                    let interpolated = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
                    v / factor * interpolated + v * (1.0 - interpolated)
                });
                (mixed.collect(), attention_factor)
            }
            RopeScaling::Llama3 {
                factor,
                low_freq_factor,
                high_freq_factor,
                original_max_position_embeddings,
            } => {
                let context = original_max_position_embeddings as f64;
                let scaled = |v: &f64| {
                    let turns = context * v / (2.0 * PI);
                    if turns < low_freq_factor {
                        v / factor
                    } else if turns > high_freq_factor {
                        *v
                    } else {
                        let share =
                            (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                        (1.0 - share) * v / factor + share * v
                    }
                };
                (plain.iter().map(scaled).collect(), 1.0)
            }
        }
    }

    /// Cosine and sine for [`rotate`](burn_zoo_ops::rotate) of tokens at these positions, a row for each
    /// sequence or one for all.
    ///
    /// # Shapes
    /// - results: `[rows, 1, sequence, head_dim / 2]`
    pub fn table<B: Backend>(
        &self,
        positions: &[Vec<usize>],
        head_dim: usize,
        dtype: DType,
        device: &B::Device,
    ) -> [Tensor<B, 4>; 2] {
        let last = positions
            .iter()
            .flatten()
            .max()
            .copied()
            .unwrap_or_default();
        let (frequencies, factor) = self.frequencies(head_dim, last + 1);
        let frequencies = seeded("rotary angles of the next pair", frequencies, |mut all| {
            all.rotate_left(1);
            all
        });
        let factor = seeded("YaRN without its attention factor", factor, |_| 1.0);
        let sequence = positions.first().map_or(0, Vec::len);
        let shape = [positions.len(), 1, sequence, head_dim / 2];
        let table = |f: fn(f64) -> f64| {
            let mut values = Vec::with_capacity(shape.iter().product());
            for position in positions.iter().flatten() {
                let position = seeded("rotary positions from 1", *position as f64, |p| p + 1.0);
                values.extend(frequencies.iter().map(|v| f(position * v) * factor));
            }
            let data = TensorData::new(values, shape).convert_dtype(dtype);
            Tensor::from_data(data, (device, dtype))
        };
        [table(f64::cos), table(f64::sin)]
    }
}
