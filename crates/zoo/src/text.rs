//! Models of text by their tasks.

use crate::{AutoConfig, Pretrained};
use burn::module::AutodiffModule;
use burn::tensor::DType;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn_zoo_checkpoint::{
    BlockProducts, KeyMap, LoadOptions, ModelConfig, PretrainedModel, load_packed, load_with,
};
use burn_zoo_core::{Error, Result};
use burn_zoo_nn::{CausalLm, Matrix};

/// Code that trains a decoder.
pub trait WithDecoder<B: AutodiffBackend> {
    /// What it gives.
    type Output;

    /// Runs with a new model and the spellings of its weights in files; the first is written.
    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + CausalLm<B>,
        M::InnerModule: CausalLm<B::InnerBackend>;
}

impl AutoConfig {
    /// A decoder for another vocabulary, and for sequences of at least this length.
    ///
    /// # Errors
    /// If it is no decoder.
    pub fn with_vocabulary(self, vocab_size: usize, length: usize) -> Result<Self> {
        match self {
            #[cfg(feature = "gpt2")]
            AutoConfig::Gpt2(mut config) => {
                config.vocab_size = vocab_size;
                config.n_positions = config.n_positions.max(length);
                Ok(AutoConfig::Gpt2(config))
            }
            #[cfg(feature = "llama")]
            AutoConfig::Llama(mut config) => {
                config.vocab_size = vocab_size;
                config.max_position_embeddings = config.max_position_embeddings.max(length);
                Ok(AutoConfig::Llama(config))
            }
            _ => Err(no_decoder()),
        }
    }

    /// The longest sequence that an encoder takes; None for other models.
    pub fn max_length(&self) -> Option<usize> {
        match self {
            #[cfg(feature = "bert")]
            AutoConfig::Bert(config) => Some(config.max_length()),
            #[allow(unreachable_patterns)]
            _ => None,
        }
    }

    /// An encoder that tells so many classes of texts apart. A new one gets a vocabulary, which is so many
    /// tokens and the padding's, and places for sequences of `length`.
    ///
    /// # Errors
    /// If it is no encoder.
    pub fn classifying_texts(
        self,
        classes: usize,
        length: usize,
        new: Option<(usize, usize)>,
    ) -> Result<Self> {
        match self {
            #[cfg(feature = "bert")]
            AutoConfig::Bert(mut config) => {
                config.head = burn_zoo_nn::TextHead::SequenceClassification;
                config.num_labels = classes;
                if let Some((vocab_size, pad)) = new {
                    config.vocab_size = vocab_size;
                    config.pad_token_id = Some(pad);
                    config.max_position_embeddings += length.saturating_sub(config.max_length());
                }
                Ok(AutoConfig::Bert(config))
            }
            #[allow(unreachable_patterns)]
            _ => Err(Error::usage("the model", "is no encoder of text")),
        }
    }

    /// Runs `f` with a decoder whose weights are drawn from `seed`, or left unfilled.
    ///
    /// # Errors
    /// If it is no decoder, or the configuration makes no model.
    pub fn with_decoder<B: AutodiffBackend, F: WithDecoder<B>>(
        &self,
        seed: Option<u64>,
        device: &B::Device,
        f: F,
    ) -> Result<F::Output> {
        match self {
            #[cfg(feature = "gpt2")]
            AutoConfig::Gpt2(config) if config.head == burn_zoo_nn::TextHead::CausalLm => {
                let model = burn_zoo_gpt2::Gpt2::<B>::build(config, seed, device)?;
                Ok(f.run(model, config.key_maps()))
            }
            #[cfg(feature = "llama")]
            AutoConfig::Llama(config) if config.head == burn_zoo_nn::TextHead::CausalLm => {
                let model = burn_zoo_llama::Llama::<B>::build(config, seed, device)?;
                Ok(f.run(model, config.key_maps()))
            }
            _ => Err(no_decoder()),
        }
    }
}

fn no_decoder() -> Error {
    Error::usage("the model", "does not continue text: it has no such head")
}

/// Code that is generic over the decoder.
pub trait WithCausalLm<B: Backend> {
    /// What it gives.
    type Output;

    /// Runs with a model that holds its weights.
    fn run<M: CausalLm<B>>(self, model: M) -> Self::Output;
}

impl Pretrained {
    /// Runs `f` with the decoder that continues text, its weights as `dtype`; matrices that are in blocks in
    /// their file stay so, if it is said how they are multiplied.
    ///
    /// # Errors
    /// If it is no such model, or the weights are not this model's.
    pub fn with_causal_lm<B: Backend, F: WithCausalLm<B>>(
        &self,
        dtype: DType,
        products: Option<BlockProducts>,
        device: &B::Device,
        f: F,
    ) -> Result<F::Output> {
        match &self.card.model {
            #[cfg(feature = "gpt2")]
            AutoConfig::Gpt2(config) if config.head == burn_zoo_nn::TextHead::CausalLm => Ok(
                f.run(self.decoder::<B, burn_zoo_gpt2::Gpt2<B>>(config, dtype, products, device)?)
            ),
            #[cfg(feature = "llama")]
            AutoConfig::Llama(config) if config.head == burn_zoo_nn::TextHead::CausalLm => Ok(f
                .run(
                    self.decoder::<B, burn_zoo_llama::Llama<B>>(config, dtype, products, device)?,
                )),
            _ => Err(no_decoder()),
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

    fn decoder<B: Backend, M: PretrainedModel<B> + CausalLm<B>>(
        &self,
        config: &M::Config,
        dtype: DType,
        products: Option<BlockProducts>,
        device: &B::Device,
    ) -> Result<M> {
        let Some(products) = products else {
            return self.filled(config, dtype, device);
        };
        let mut model = M::build(config, None, device)?;
        let may_stay = model.matrices().iter().map(Matrix::id).collect();
        let (maps, options) = (config.key_maps(), LoadOptions::strict(dtype));
        let loaded = load_packed(model, &self.weights, &maps, &options, &may_stay, products)?;
        let (mut model, packed) = loaded;
        model.matrices().into_iter().for_each(|m| m.pack(&packed));
        Ok(model)
    }

    fn filled<B: Backend, M: PretrainedModel<B>>(
        &self,
        config: &M::Config,
        dtype: DType,
        device: &B::Device,
    ) -> Result<M> {
        let model = M::build(config, None, device)?;
        let options = LoadOptions::strict(dtype);
        Ok(load_with(model, &self.weights, &config.key_maps(), &options)?.0)
    }
}
