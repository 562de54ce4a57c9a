use burn::tensor::{Int, Tensor, backend::Backend};
use burn_zoo_core::{Error, Result};
use burn_zoo_nn::rows_at;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// How the vectors of tokens become one vector for the text, as in Sentence-Transformers' `Pooling`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The mean of all tokens that are no padding.
    Mean,
    /// The first token's.
    Cls,
    /// The last token's that is no padding.
    Last,
}

impl FromStr for Pooling {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "mean" => Ok(Pooling::Mean),
            "cls" => Ok(Pooling::Cls),
            "last" => Ok(Pooling::Last),
            other => Err(Error::unknown("pooling", other, ["mean", "cls", "last"])),
        }
    }
}

impl Pooling {
    /// One vector for each text, of length 1 if `normalize`.
    ///
    /// # Shapes
    /// - hidden: `[batch, sequence, hidden_size]`
    /// - mask: `[batch, sequence]`, 0 where a token is padding, which stands on the right
    /// - result: `[batch, hidden_size]`
    pub fn pool<B: Backend>(
        self,
        hidden: Tensor<B, 3>,
        mask: Tensor<B, 2, Int>,
        normalize: bool,
    ) -> Tensor<B, 2> {
        let [batch, sequence, size] = hidden.dims();
        let (device, dtype) = (hidden.device(), hidden.dtype());
        let mask = mask.into_data();
        let vectors = match self {
            Pooling::Mean => {
                let data = mask.convert_dtype(dtype);
                let weights = Tensor::<B, 2>::from_data(data, (&device, dtype));
                let count = weights.clone().sum_dim(1);
                let sum = weights.reshape([batch, 1, sequence]).matmul(hidden);
                sum.reshape([batch, size]) / count.clamp_min(1e-9)
            }
            Pooling::Cls => rows_at(hidden, &vec![0; batch]),
            Pooling::Last => {
                let mask: Vec<i64> = mask.iter::<i64>().collect();
                let last = |row: &[i64]| row.iter().rposition(|there| *there != 0).unwrap_or(0);
                rows_at(hidden, &mask.chunks(sequence).map(last).collect::<Vec<_>>())
            }
        };
        if !normalize {
            return vectors;
        }
        let norm = (vectors.clone() * vectors.clone()).sum_dim(1).sqrt();
        vectors / norm.clamp_min(1e-12)
    }
}
