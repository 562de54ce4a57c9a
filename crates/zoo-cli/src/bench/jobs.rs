use super::formula::{numbers, weight, whole};
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend, BackendTypes};
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_zoo::{AutoConfig, WithBackend, WithModel, find};
use burn_zoo_checkpoint::{KeyMap, Tensors, file_shapes, load_tensors};
use burn_zoo_core::{Arguments, Error, Flat, Mode, Network, Result};
use burn_zoo_ops::{
    AttentionMask, Conv2dOptions, MaskOptions, attention, conv2d, count, cross_entropy, linear,
};
use burn_zoo_optim::{Optimizer, OptimizerSpec, collect_gradients};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// Something that is timed.
pub struct Job {
    /// The name that `--job` takes.
    pub name: &'static str,
    /// What it is, in words.
    pub about: &'static str,
    work: Work,
}

#[derive(Clone, Copy)]
enum Work {
    Matmul(usize),
    /// Input and output channels, and the side of an image, of a 3×3 convolution.
    Conv([usize; 4]),
    /// Batch, heads, sequence, size of a head.
    Attention([usize; 4]),
    /// A listed image model, with its keys in one of its spellings, on `[batch, 3, side, side]`.
    Images(&'static str, Spelling, [usize; 2], Pass),
    /// A GPT of layers, heads, size and vocabulary, on `[batch, sequence]`.
    Gpt([usize; 4], [usize; 2], Pass),
    /// A BERT of layers, heads and size, on `[batch, sequence]`.
    Bert([usize; 3], [usize; 2]),
}

/// Whose names the weights have: the place in a model's list of maps.
#[derive(Clone, Copy)]
enum Spelling {
    Torchvision,
    Timm,
}

#[derive(Clone, Copy)]
enum Pass {
    Infer,
    Sgd,
    AdamW,
}

const fn job(name: &'static str, about: &'static str, work: Work) -> Job {
    Job { name, about, work }
}

/// All jobs.
pub const JOBS: [Job; 17] = [
    job(
        "matmul-1024",
        "a product of two matrices of 1024 × 1024",
        Work::Matmul(1024),
    ),
    job(
        "conv3x3-8x64x56",
        "a 3×3 convolution of 64 channels to 64, 8 × 56 × 56",
        Work::Conv([8, 64, 64, 56]),
    ),
    job(
        "attention-causal-4x6x256x64",
        "causal attention, batch 4, 6 heads of 64, 256 tokens",
        Work::Attention([4, 6, 256, 64]),
    ),
    job(
        "resnet18-infer-b1",
        "ResNet-18 on an image of 224 × 224",
        Work::Images("resnet18", Spelling::Torchvision, [1, 224], Pass::Infer),
    ),
    job(
        "resnet18-infer-b8",
        "ResNet-18 on 8 images of 224 × 224",
        Work::Images("resnet18", Spelling::Torchvision, [8, 224], Pass::Infer),
    ),
    job(
        "resnet18-cifar-train-b16",
        "a step of SGD of ResNet-18 for CIFAR on 16 images of 32 × 32",
        Work::Images("resnet18_cifar", Spelling::Torchvision, [16, 32], Pass::Sgd),
    ),
    job(
        "gpt-4x128-train-b12",
        "a step of AdamW of a GPT of 4 layers of 128, 12 × 64 tokens",
        Work::Gpt([4, 4, 128, 65], [12, 64], Pass::AdamW),
    ),
    job(
        "gpt-6x384-train-b4",
        "a step of AdamW of a GPT of 6 layers of 384, 4 × 256 tokens",
        Work::Gpt([6, 6, 384, 65], [4, 256], Pass::AdamW),
    ),
    job(
        "resnet50-infer-b1",
        "ResNet-50 on an image of 224 × 224",
        Work::Images("resnet50", Spelling::Torchvision, [1, 224], Pass::Infer),
    ),
    job(
        "resnet50-infer-b8",
        "ResNet-50 on 8 images of 224 × 224",
        Work::Images("resnet50", Spelling::Torchvision, [8, 224], Pass::Infer),
    ),
    job(
        "mobilenet_v2-infer-b1",
        "MobileNetV2 on an image of 224 × 224",
        Work::Images("mobilenet_v2", Spelling::Torchvision, [1, 224], Pass::Infer),
    ),
    job(
        "mobilenet_v2-infer-b8",
        "MobileNetV2 on 8 images of 224 × 224",
        Work::Images("mobilenet_v2", Spelling::Torchvision, [8, 224], Pass::Infer),
    ),
    job(
        "efficientnet_lite0-infer-b1",
        "EfficientNet-Lite0 on an image of 224 × 224",
        Work::Images(
            "tf_efficientnet_lite0",
            Spelling::Timm,
            [1, 224],
            Pass::Infer,
        ),
    ),
    job(
        "gpt-6x384-infer-b4",
        "a GPT of 6 layers of 384 on 4 × 256 tokens",
        Work::Gpt([6, 6, 384, 65], [4, 256], Pass::Infer),
    ),
    job(
        "gpt2-124m-train-b1x256",
        "a step of AdamW of GPT-2 124M on 256 tokens",
        Work::Gpt([12, 12, 768, 50_257], [1, 256], Pass::AdamW),
    ),
    job(
        "minilm-l6-infer-b1",
        "MiniLM of 6 layers on a text of 128 tokens",
        Work::Bert([6, 12, 384], [1, 128]),
    ),
    job(
        "minilm-l6-infer-b32",
        "MiniLM of 6 layers on 32 texts of 128 tokens",
        Work::Bert([6, 12, 384], [32, 128]),
    ),
];

/// The job called `name`.
pub fn find_job(name: &str) -> Result<&'static Job> {
    let found = JOBS.iter().find(|job| job.name == name);
    found.ok_or_else(|| Error::unknown("job", name, JOBS.iter().map(|job| job.name)))
}

/// What was measured.
pub struct Measured {
    /// Seconds of each run, in order of size.
    pub seconds: Vec<f64>,
    /// What came out, to be compared with other programs': the mean and the root of the mean square of a
    /// result, or the losses of the first three steps.
    pub result: Vec<f64>,
    /// Functions that took the generic form.
    pub generic: u64,
}

/// Runs a job so often, or for so long.
pub struct Timed {
    pub job: &'static Job,
    pub runs: Option<usize>,
}

impl WithBackend for Timed {
    type Output = Result<Measured>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Self::Output {
        let plain = |shape: &[usize], name: &str| {
            let data = TensorData::new(numbers(name, shape.iter().product()), shape.to_vec());
            Flat::<B::InnerBackend>::of(Tensor::<_, 1>::from_data(flat(data), &device))
        };
        match self.job.work {
            Work::Matmul(size) => {
                let x = plain(&[size, size], "x").values.reshape([size, size]);
                let w = plain(&[size, size], "w").values.reshape([size, size]);
                self.forward::<B>(&device, || Flat::of(linear(x.clone(), w.clone(), None)))
            }
            Work::Conv([batch, input, output, side]) => {
                let shape = [batch, input, side, side];
                let x = plain(&shape, "x").values.reshape(shape);
                let shape = [output, input, 3, 3];
                let w = plain(&shape, "w").values.reshape(shape);
                let options = Conv2dOptions {
                    padding: [1, 1],
                    ..Conv2dOptions::default()
                };
                self.forward::<B>(&device, || {
                    Flat::of(conv2d(x.clone(), w.clone(), None, options))
                })
            }
            Work::Attention(shape) => {
                let [q, k, v] =
                    ["q", "k", "v"].map(|name| plain(&shape, name).values.reshape(shape));
                let scale = (shape[3] as f64).powf(-0.5);
                self.forward::<B>(&device, || {
                    let mask = AttentionMask::new(MaskOptions {
                        causal: true,
                        window: None,
                        past: 0,
                        attention_mask: None,
                    });
                    let inputs = (q.clone(), k.clone(), v.clone());
                    let y = attention(inputs.0, inputs.1, inputs.2, &mask, scale, None);
                    // Heads beside each other, as the next product takes them.
                    Flat::of(y.swap_dims(1, 2))
                })
            }
            Work::Images(preset, spelling, [batch, side], pass) => {
                let config = find(preset)?.config;
                let shape = [batch, 3, side, side];
                let pixels = numbers("pixel_values", shape.iter().product());
                let inputs = [("pixel_values", TensorData::new(pixels, shape))];
                self.model::<B>(
                    &config,
                    spelling as usize,
                    inputs.into(),
                    batch,
                    pass,
                    &device,
                )
            }
            Work::Gpt([layers, heads, size, vocabulary], [batch, sequence], pass) => {
                let config = json!({
                    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": vocabulary,
                    "n_positions": sequence, "n_layer": layers, "n_head": heads, "n_embd": size,
                    "activation_function": "gelu", "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
                    "tie_word_embeddings": false,
                });
                let config = AutoConfig::from_json(&config)?;
                let ids = whole("input_ids", batch * sequence, vocabulary);
                let inputs = [("input_ids", TensorData::new(ids, [batch, sequence]))];
                self.model::<B>(&config, 0, inputs.into(), batch * sequence, pass, &device)
            }
            Work::Bert([layers, heads, size], [batch, sequence]) => {
                let vocabulary = 30_522;
                let config = json!({
                    "model_type": "bert", "architectures": ["BertModel"], "vocab_size": vocabulary,
                    "num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": size,
                    "intermediate_size": 4 * size,
                });
                let config = AutoConfig::from_json(&config)?;
                let ids = whole("input_ids", batch * sequence, vocabulary);
                let inputs = [("input_ids", TensorData::new(ids, [batch, sequence]))];
                self.model::<B>(
                    &config,
                    0,
                    inputs.into(),
                    batch * sequence,
                    Pass::Infer,
                    &device,
                )
            }
        }
    }
}

fn flat(mut data: TensorData) -> TensorData {
    data.shape = [data.num_elements()].into();
    data
}

impl Timed {
    /// Times `f`, and looks at its result once.
    fn forward<B: AutodiffBackend>(
        &self,
        device: &B::Device,
        mut f: impl FnMut() -> Flat<B::InnerBackend>,
    ) -> Result<Measured> {
        let (first, counts) = count(&mut f);
        let values: Vec<f64> = first.values.into_data().iter::<f64>().collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
        let seconds = self.time::<B>(device, || {
            f();
            Ok(())
        })?;
        Ok(Measured {
            seconds,
            result: vec![mean, square.sqrt()],
            generic: counts.generic,
        })
    }

    /// Runs `f` a few times, and then measures it as often as was asked for, or for five seconds.
    fn time<B: AutodiffBackend>(
        &self,
        device: &B::Device,
        mut f: impl FnMut() -> Result<()>,
    ) -> Result<Vec<f64>> {
        const ENOUGH: Duration = Duration::from_secs(5);
        let mut once = || {
            let start = Instant::now();
            f()?;
            B::sync(device).map_err(|e| Error::Device {
                backend: B::name(device),
                message: e.to_string(),
            })?;
            Ok::<_, Error>(start.elapsed())
        };
        for _ in 0..3 {
            once()?;
        }
        let (mut seconds, mut all) = (Vec::new(), Duration::ZERO);
        let goes_on = |runs: usize, all: Duration| match self.runs {
            Some(wanted) => runs < wanted,
            None => runs < 5 || (all < ENOUGH && runs < 1000),
        };
        while goes_on(seconds.len(), all) {
            let took = once()?;
            all += took;
            seconds.push(took.as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        Ok(seconds)
    }

    fn model<B: AutodiffBackend>(
        &self,
        config: &AutoConfig,
        spelling: usize,
        inputs: Vec<(&'static str, TensorData)>,
        rows: usize,
        pass: Pass,
        device: &B::Device,
    ) -> Result<Measured> {
        let inputs = inputs.into_iter().map(|(name, data)| (name.into(), data));
        let with = OnModel::<B> {
            timed: self,
            spelling,
            inputs: inputs.collect(),
            rows,
            pass,
            device,
        };
        config.with_model::<B, _>(None, device, with)?
    }
}

struct OnModel<'a, B: Backend> {
    timed: &'a Timed,
    /// Which of the model's maps names its weights.
    spelling: usize,
    inputs: Tensors,
    /// Rows of the logits.
    rows: usize,
    pass: Pass,
    device: &'a B::Device,
}

impl<B: AutodiffBackend> WithModel<B> for OnModel<'_, B> {
    type Output = Result<Measured>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + Network<B>,
        M::InnerModule: Network<B::InnerBackend>,
    {
        let from = Path::new(self.timed.job.name);
        let key_maps = &key_maps[self.spelling..=self.spelling];
        let shapes = file_shapes(&model, &key_maps[0]);
        let weights: Tensors = shapes
            .into_iter()
            .map(|(key, shape)| (key.clone(), weight(&key, &shape)))
            .collect();
        let model = load_tensors(model, &weights, from, key_maps, DType::F32)?;
        let optimizer = match self.pass {
            Pass::Infer => {
                let model = model.valid();
                let declared = model.arguments();
                let arguments =
                    Arguments::read(&declared, &self.inputs, from, DType::F32, self.device)?;
                // The first call says whether it can be called.
                model.run(&arguments, Mode::Eval, None)?;
                let run = || model.run(&arguments, Mode::Eval, None).expect("as before");
                return self.timed.forward::<B>(self.device, run);
            }
            Pass::Sgd => OptimizerSpec::sgd(0.9, 0.0, false),
            Pass::AdamW => OptimizerSpec::adamw(1e-2),
        };
        let lr = match self.pass {
            Pass::AdamW => 1e-3,
            _ => 1e-2,
        };
        let mut optimizer = Optimizer::<B>::new(optimizer, true);
        let arguments = Arguments::read(
            &model.arguments(),
            &self.inputs,
            from,
            DType::F32,
            self.device,
        )?;
        // Taken out and put back: weights that nothing else holds are changed in place.
        let mut model = Some(model);
        let mut classes = 0;
        let mut labels: Option<Tensor<B, 1, Int>> = None;
        let (mut losses, mut generic) = (Vec::new(), 0);
        let mut step = || -> Result<()> {
            let (done, counts) = count(|| -> Result<()> {
                let now = model.take().expect("put back after every step");
                let logits = now.run(&arguments, Mode::Train, None)?;
                let labels = labels.get_or_insert_with(|| {
                    classes = logits.shape.last().copied().unwrap_or(1);
                    let labels = whole("labels", self.rows, classes);
                    Tensor::from_data(labels.as_slice(), self.device)
                });
                let logits = logits.values.reshape([self.rows, classes]);
                let loss = cross_entropy(logits, labels.clone(), 0.0);
                if losses.len() < 3 {
                    losses.extend(loss.to_data().iter::<f64>());
                }
                let grads = collect_gradients::<B, M>(&now, loss.backward());
                model = Some(optimizer.step(now, grads, lr));
                Ok(())
            });
            generic = counts.generic;
            done
        };
        let seconds = self.timed.time::<B>(self.device, &mut step)?;
        Ok(Measured {
            seconds,
            result: losses,
            generic,
        })
    }
}
