//! Models of text by their tasks.

use crate::{AutoConfig, Pretrained};
use burn::tensor::{DType, backend::Backend};
use burn_zoo_checkpoint::{LoadOptions, PretrainedModel, load_with};
use burn_zoo_core::{Error, Result};
use burn_zoo_nn::CausalLm;

/// Code that is generic over the decoder.
pub trait WithCausalLm<B: Backend> {
    /// What it gives.
    type Output;

    /// Runs with a model that holds its weights.
    fn run<M: CausalLm<B>>(self, model: M) -> Self::Output;
}

impl Pretrained {
    /// Runs `f` with the decoder that continues text, its weights as `dtype`.
    ///
    /// # Errors
    /// If it is no such model, or the weights are not this model's.
    pub fn with_causal_lm<B: Backend, F: WithCausalLm<B>>(
        &self,
        dtype: DType,
        device: &B::Device,
        f: F,
    ) -> Result<F::Output> {
        match &self.card.model {
            #[cfg(feature = "gpt2")]
            AutoConfig::Gpt2(config) if config.head == burn_zoo_nn::TextHead::CausalLm => {
                Ok(f.run(self.filled::<B, burn_zoo_gpt2::Gpt2<B>>(config, dtype, device)?))
            }
            #[cfg(feature = "llama")]
            AutoConfig::Llama(config) if config.head == burn_zoo_nn::TextHead::CausalLm => {
                Ok(f.run(self.filled::<B, burn_zoo_llama::Llama<B>>(config, dtype, device)?))
            }
            _ => Err(Error::usage(
                "the model",
                "does not continue text: it has no such head",
            )),
        }
    }

    /// The encoder, its weights as `dtype`.
    ///
    /// # Errors
    /// If it is no encoder, or the weights are not this model's.
    #[cfg(feature = "bert")]
    pub fn encoder<B: Backend>(
        &self,
        dtype: DType,
        device: &B::Device,
    ) -> Result<(burn_zoo_bert::Bert<B>, &burn_zoo_bert::BertConfig)> {
        match &self.card.model {
            AutoConfig::Bert(config) => Ok((self.filled(config, dtype, device)?, config)),
            #[allow(unreachable_patterns)]
            _ => Err(Error::usage("the model", "is no encoder of text")),
        }
    }

    fn filled<B: Backend, M: PretrainedModel<B>>(
        &self,
        config: &M::Config,
        dtype: DType,
        device: &B::Device,
    ) -> Result<M> {
        use burn_zoo_checkpoint::ModelConfig;
        let model = M::build(config, None, device)?;
        let options = LoadOptions::strict(dtype);
        Ok(load_with(model, &self.weights, &config.key_maps(), &options)?.0)
    }
}
