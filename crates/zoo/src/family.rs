/// What the registry knows of every family, from one line for each: a feature of the same name, the
/// crate, its configuration and its model. A family's crate has `PRESETS` and `HEAD`; its
/// configuration `num_channels`, `num_classes`, `validate` and `key_maps`; its model `init`.
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
            entries.extend($krate::PRESETS.iter().map(|(preset, config)| Entry {
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
                    AutoConfig::$variant(_) => $krate::HEAD,)*
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
                let mut init = match seed {
                    Some(seed) => Init::<B>::new(seed, device),
                    None => Init::unfilled(device),
                };
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(config) => {
                        let model = $krate::$model::<B>::init(config, &mut init)?;
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
                let mut init = match weights {
                    Some(_) => Init::<B>::unfilled(device),
                    None => Init::new(0, device),
                };
                match config {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(config) => {
                        let model = $krate::$model::<B>::init(config, &mut init)?;
                        match weights {
                            Some(weights) => {
                                Self::loaded(model, weights, &config.key_maps(), dtype)
                            }
                            None => Ok(Self::random(model)),
                        }
                    })*
                }
            }
        }
    };
}
pub(crate) use families;
