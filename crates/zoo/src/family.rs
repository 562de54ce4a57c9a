/// What the registry knows of every family, from one line for each: a feature of the same name, the
/// crate, its configuration (`ModelConfig`, with `num_channels`, `num_classes` and `validate`) and
/// its model (`PretrainedModel`, `ImageClassifier`).
macro_rules! families {
    ($($(#[$about:meta])* $feature:literal => $variant:ident($krate:ident, $config:ident, $model:ident),)*) => {
        /// The configuration of a model of any family; in JSON `model_type` says which.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "model_type", rename_all = "lowercase")]
        pub enum AutoConfig {
            $($(#[$about])* #[cfg(feature = $feature)] $variant($krate::$config),)*
        }

        /// Every listed model that is compiled in.
        pub fn models() -> Vec<Entry> {
            #[allow(unused_mut)]
            let mut entries = Vec::new();
            $(#[cfg(feature = $feature)]
            entries.extend($krate::$config::presets().iter().map(|(preset, config)| Entry {
                preset: preset.clone(),
                config: AutoConfig::$variant(config.clone()),
            }));)*
            entries
        }

        impl AutoConfig {
            /// The same network for other images and classes.
            pub fn adapted(self, channels: usize, classes: usize) -> Self {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(mut config) => {
                        config.num_channels = channels;
                        config.num_classes = classes;
                        AutoConfig::$variant(config)
                    })*
                }
            }

            /// Classes of its head.
            pub fn num_classes(&self) -> usize {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(config) => config.num_classes,)*
                }
            }

            /// Channels of its input.
            pub fn num_channels(&self) -> usize {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(config) => config.num_channels,)*
                }
            }

            /// Checks that the sizes make a model.
            ///
            /// # Errors
            /// Names the field that cannot be used.
            pub fn validate(&self) -> Result<()> {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(config) => config.validate(),)*
                }
            }

            /// The spellings of its weights in files.
            pub fn key_maps(&self) -> Vec<KeyMap> {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(config) => config.key_maps(),)*
                }
            }

            /// Path of its head's weight, whose first size is the number of classes.
            pub(crate) fn head(&self) -> &'static str {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(_) => $krate::$config::HEAD,)*
                }
            }

            /// Runs `f` with a model of this configuration: its weights are drawn from `seed`, or
            /// left unfilled where they will come from a file.
            ///
            /// # Errors
            /// If the configuration makes no model.
            pub fn with_model<B: AutodiffBackend, F: WithModel<B>>(
                &self,
                seed: Option<u64>,
                device: &B::Device,
                f: F,
            ) -> Result<F::Output> {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(config) => {
                        let model = $krate::$model::<B>::build(config, seed, device)?;
                        Ok(f.run(model, config.key_maps()))
                    })*
                }
            }
        }

        impl<B: Backend> AutoModel<B> {
            /// A model of this configuration with these weights, or random ones.
            ///
            /// # Errors
            /// If the configuration makes no model, or the weights are not this model's.
            pub fn new(
                config: &AutoConfig,
                weights: Option<&LazyTensors>,
                dtype: DType,
                device: &B::Device,
            ) -> Result<Self> {
                let seed = weights.is_none().then_some(0);
                match config {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(config) => {
                        let model = $krate::$model::<B>::build(config, seed, device)?;
                        match weights {
                            Some(weights) => {
                                let maps = config.key_maps();
                                Ok(Self::of(load_with(model, weights, &maps, &LoadOptions::strict(dtype))?.0))
                            }
                            None => Ok(Self::of(model)),
                        }
                    })*
                }
            }
        }
    };
}
pub(crate) use families;
