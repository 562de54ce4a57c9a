/// What the registry knows of every family, from one line for each: a feature of the same name, the
/// crate, its configuration (`ModelConfig`, with `validate`) and its model (`PretrainedModel`, `Network`).
/// Families of `images` have a `ClassifierConfig` with `num_channels` and `num_classes`, and an
/// `ImageClassifier`; those of `text` are read from transformers' `config.json`.
macro_rules! families {
    (
        images { $($(#[$about:meta])* $feature:literal => $variant:ident($krate:ident, $config:ident, $model:ident),)* }
        text { $($(#[$t_about:meta])* $t_feature:literal => $t_variant:ident($t_krate:ident, $t_config:ident, $t_model:ident),)* }
    ) => {
        /// The configuration of a model of any family; in JSON `model_type` says which.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "model_type", rename_all = "lowercase")]
        pub enum AutoConfig {
            $($(#[$about])* #[cfg(feature = $feature)] $variant($krate::$config),)*
            $($(#[$t_about])* #[cfg(feature = $t_feature)] $t_variant($t_krate::$t_config),)*
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
            $(#[cfg(feature = $t_feature)]
            entries.extend($t_krate::$t_config::presets().iter().map(|(preset, config)| Entry {
                preset: preset.clone(),
                config: AutoConfig::$t_variant(config.clone()),
            }));)*
            entries
        }

        impl AutoConfig {
            /// The same network for other images and classes.
            ///
            /// # Errors
            /// If it takes no images.
            pub fn adapted(self, shape: ImageShape) -> Result<Self> {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(mut config) => {
                        config.num_channels = shape.num_channels;
                        config.num_classes = shape.num_classes;
                        Ok(AutoConfig::$variant(config))
                    })*
                    #[allow(unreachable_patterns)]
                    other => Err(other.takes_no_images()),
                }
            }

            /// What it takes and tells apart.
            ///
            /// # Errors
            /// If it takes no images.
            pub fn image_shape(&self) -> Result<ImageShape> {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(config) => Ok(ImageShape {
                        num_channels: config.num_channels,
                        num_classes: config.num_classes,
                    }),)*
                    #[allow(unreachable_patterns)]
                    other => Err(other.takes_no_images()),
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
                    $(#[cfg(feature = $t_feature)]
                    AutoConfig::$t_variant(config) => config.validate(),)*
                }
            }

            /// The spellings of its weights in files.
            pub fn key_maps(&self) -> Vec<KeyMap> {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(config) => config.key_maps(),)*
                    $(#[cfg(feature = $t_feature)]
                    AutoConfig::$t_variant(config) => config.key_maps(),)*
                }
            }

            /// Path of an image classifier's last weight, whose first size is the number of classes.
            pub(crate) fn head(&self) -> Option<&'static str> {
                match self {
                    $(#[cfg(feature = $feature)]
                    AutoConfig::$variant(_) => Some($krate::$config::HEAD),)*
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }

            /// From transformers' `config.json`.
            ///
            /// # Errors
            /// If its `model_type` is not known, or a field cannot be used.
            pub fn from_transformers(json: &Value) -> Result<Self> {
                #[allow(unused_mut)]
                let mut known: Vec<&str> = Vec::new();
                let model_type = json["model_type"].as_str().unwrap_or_default();
                #[cfg(feature = "resnet")]
                {
                    known.push("resnet");
                    if model_type == "resnet" {
                        let config = burn_zoo_resnet::ResNetConfig::from_transformers(json)?;
                        return Ok(AutoConfig::ResNet(config));
                    }
                }
                $(#[cfg(feature = $t_feature)]
                {
                    known.extend($t_krate::$t_config::MODEL_TYPES);
                    if $t_krate::$t_config::MODEL_TYPES.contains(&model_type) {
                        let config = $t_krate::$t_config::from_transformers(json)?;
                        return Ok(AutoConfig::$t_variant(config));
                    }
                })*
                // All of them, however many: there is no other place to look them up.
                Err(Error::Unknown {
                    what: "model_type",
                    name: model_type.into(),
                    suggestions: Vec::new(),
                    choices: known.into_iter().map(String::from).collect(),
                })
            }

            /// The `config.json` from which transformers makes the same network.
            ///
            /// # Errors
            /// If transformers has no such network.
            pub fn to_transformers(&self) -> Result<Value> {
                match self {
                    #[cfg(feature = "resnet")]
                    AutoConfig::ResNet(config) => config.to_transformers(),
                    $(#[cfg(feature = $t_feature)]
                    AutoConfig::$t_variant(config) => Ok(config.to_transformers()),)*
                    #[allow(unreachable_patterns)]
                    _ => Err(Error::usage("--to", "transformers has no such model here")),
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
                    $(#[cfg(feature = $t_feature)]
                    AutoConfig::$t_variant(config) => {
                        let model = $t_krate::$t_model::<B>::build(config, seed, device)?;
                        Ok(f.run(model, config.key_maps()))
                    })*
                }
            }

            /// [`AutoConfig::with_model`] for code that asks for an image classifier.
            ///
            /// # Errors
            /// If it takes no images, or the configuration makes no model.
            pub fn with_classifier<B: AutodiffBackend, F: WithClassifier<B>>(
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
                    #[allow(unreachable_patterns)]
                    other => Err(other.takes_no_images()),
                }
            }
        }

        impl<B: Backend> AutoModel<B> {
            /// A model of this configuration with these weights, or random ones.
            ///
            /// # Errors
            /// If it takes no images, the configuration makes no model, or the weights are not this model's.
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
                    #[allow(unreachable_patterns)]
                    other => Err(other.takes_no_images()),
                }
            }
        }
    };
}
pub(crate) use families;
