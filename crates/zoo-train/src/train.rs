use crate::checkpoint::{Checkpoint, State, sweep};
use crate::ema::Ema;
use crate::metrics::{History, Row};
use crate::progress::{Display, Position, ProgressKind};
use crate::recipe::Recipe;
use crate::run_dir::RunDir;
use crate::schedule::learning_rate;
use crate::task::Task;
use crate::tensorboard::write_events;
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Tensor};
use burn_zoo_checkpoint::{KeyMap, Tensors, collect, load, read_safetensors, to_file};
use burn_zoo_core::{CollectStages, Error, Result};
use burn_zoo_optim::{Optimizer, clip_global_norm, collect_gradients, global_norm, number};
use std::collections::BTreeMap;
use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What a run needs beside its model.
pub struct TrainInput<'a, B: AutodiffBackend> {
    /// The recipe.
    pub recipe: &'a Recipe,
    /// The run's folder.
    pub run: &'a RunDir,
    /// Continue from the last checkpoint.
    pub resume: bool,
    /// Names in weight files.
    pub key_map: &'a KeyMap,
    /// Where to compute.
    pub device: &'a B::Device,
    /// How progress is shown.
    pub progress: ProgressKind,
    /// Set by whoever wants the run to save and stop.
    pub interrupt: Arc<AtomicBool>,
}

/// How a run ended.
pub struct Outcome<M> {
    /// The model of the best checkpoint (averaged, where the recipe says so), for evaluation.
    pub model: M,
    /// Steps made.
    pub step: usize,
    /// Step of the checkpoint that `model` is.
    pub best_step: usize,
    /// Its score on the validation part, if there is one: accuracy, or the loss with a minus before it.
    pub best_score: Option<f64>,
    /// Seconds of training.
    pub seconds: f64,
    /// Whether the run was stopped before its end; it can be continued.
    pub interrupted: bool,
    /// Rows of `metrics.csv`.
    pub rows: Vec<Row>,
}

/// Trains `model` to the end of its recipe, or until it is interrupted.
///
/// Checkpoints are written every `checkpoint_every` steps and after every epoch. With `resume` the
/// run goes on from the last one exactly as if it had never stopped, if the number of threads is
/// the same.
///
/// # Errors
/// If data cannot be read, a file cannot be written, or loss or gradient are no longer finite.
pub fn train<B, M, T>(model: M, task: &T, input: TrainInput<B>) -> Result<Outcome<M::InnerModule>>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    T: Task<B, M>,
{
    let recipe = input.recipe;
    recipe.validate()?;
    let mut session = Session::start(model, task, &input)?;
    // A panic or error must leave the terminal usable: the display is closed before either leaves.
    let mut display = Display::new(input.progress, task.unit())?;
    let ended = session.run(&mut display);
    display.finish();
    let interrupted = ended?;
    session.finish(interrupted)
}

struct Session<'a, B: AutodiffBackend, M: AutodiffModule<B>, T> {
    input: &'a TrainInput<'a, B>,
    task: &'a T,
    model: M,
    optimizer: Optimizer<B>,
    ema: Option<Ema<B::InnerBackend>>,
    history: History,
    state: State,
    /// Seconds of earlier parts of the run.
    before: f64,
    started: Instant,
}

impl<'a, B, M, T> Session<'a, B, M, T>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    T: Task<B, M>,
{
    fn start(model: M, task: &'a T, input: &'a TrainInput<'a, B>) -> Result<Self> {
        let recipe = input.recipe;
        if task.batches() < recipe.accumulate {
            let message = format!(
                "{} is more than the {} batches of an epoch",
                recipe.accumulate,
                task.batches()
            );
            return Err(Error::usage("--accumulate", message));
        }
        let mut optimizer = Optimizer::new(recipe.optimizer, recipe.decay_norms_and_biases);
        let mut ema = (recipe.ema_decay > 0.0).then(|| Ema::new(recipe.ema_decay));
        let csv = input.run.file("metrics.csv");
        let (model, state, history) = if input.resume {
            // No file is changed before everything in the checkpoint was found good.
            let Checkpoint { path, state } = Checkpoint::last(input.run)?;
            check_position(&path, &state, recipe, task.batches() / recipe.accumulate)?;
            let model = restore(model, &mut optimizer, &mut ema, input, &path, state.step)?;
            sweep(input.run)?;
            let history = History::resume(&csv, state.step)?;
            (model, state, history)
        } else {
            let state = State {
                step: 0,
                epoch: 0,
                batch: 0,
                seconds: 0.0,
                best: None,
                top_score: None,
                threads: recipe.threads,
            };
            (model, state, History::create(&csv)?)
        };
        if state.threads != recipe.threads {
            burn_zoo_core::note!(
                "warning: the run used {} threads and goes on with {}: sums are added in another order, so it will not be bit-equal",
                state.threads,
                recipe.threads
            );
        }
        Ok(Self {
            input,
            task,
            model,
            optimizer,
            ema,
            history,
            before: state.seconds,
            state: State {
                threads: recipe.threads,
                ..state
            },
            started: Instant::now(),
        })
    }

    /// Trains; `true` if it was interrupted.
    fn run(&mut self, display: &mut Display) -> Result<bool> {
        while self.state.step < self.steps() {
            if !self.epoch(display)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Trains to the end of the epoch; `false` if it was interrupted.
    fn epoch(&mut self, display: &mut Display) -> Result<bool> {
        let recipe = self.input.recipe;
        let batches = self.batches();
        let mut batches_iter = self
            .task
            .epoch(self.state.epoch, self.state.batch * recipe.accumulate);
        let mut shown = Instant::now();
        let mut waited = 0.0;
        let mut items = 0;
        let rows_every = (batches.min(self.steps()) / 50).max(1);
        loop {
            let asked = Instant::now();
            let group = batches_iter.by_ref().take(recipe.accumulate);
            let group = group.collect::<Result<Vec<_>>>()?;
            waited += asked.elapsed().as_secs_f64();
            items += group
                .iter()
                .map(|batch| self.task.count(batch))
                .sum::<usize>();
            let mut row = self.step(&group, batches)?;
            self.state.batch += 1;
            let last = self.state.batch == batches || self.state.step == self.steps();
            if self.state.step.is_multiple_of(rows_every) || last {
                let elapsed = shown.elapsed().as_secs_f64().max(1e-9);
                row.items_per_second = items as f64 / elapsed;
                row.input_wait = (waited / elapsed).min(1.0);
                row.seconds = self.seconds();
                display.train(&self.position(batches), &row);
                self.history.push(row)?;
                (shown, waited, items) = (Instant::now(), 0.0, 0);
            }
            let stop = self.stopped(display);
            if !last && (stop || self.state.step.is_multiple_of(recipe.checkpoint_every)) {
                self.save()?;
            }
            if stop && !last {
                return Ok(false);
            }
            if last {
                break;
            }
        }
        self.end_epoch(display)?;
        Ok(!self.stopped(display) || self.state.step == self.steps())
    }

    /// Steps of the whole run.
    fn steps(&self) -> usize {
        self.input.recipe.steps(self.batches())
    }

    /// Groups of batches that an epoch has whole: each is one step.
    fn batches(&self) -> usize {
        self.task.batches() / self.input.recipe.accumulate
    }

    fn stopped(&self, display: &Display) -> bool {
        self.input.interrupt.load(Ordering::SeqCst) || display.stopped()
    }

    fn end_epoch(&mut self, display: &mut Display) -> Result<()> {
        let at = self.position(self.batches());
        if let Some(found) = self.task.validate(&self.averaged())? {
            let row = Row {
                step: self.state.step,
                epoch: self.state.epoch + 1,
                split: "valid".into(),
                loss: found.loss,
                accuracy: found.accuracy,
                lr: 0.0,
                grad_norm: 0.0,
                items_per_second: 0.0,
                input_wait: 0.0,
                seconds: self.seconds(),
            };
            display.valid(&at, &row);
            self.history.push(row)?;
            let top = self
                .state
                .top_score
                .map_or(found.score, |top| top.max(found.score));
            self.state.top_score = Some(top);
            if found.score >= top - found.margin {
                self.state.best = Some((found.score, self.state.step));
            }
        }
        let events = self.input.run.file("events.out.tfevents.0");
        write_events(&events, &self.history.rows)?;
        self.state.epoch += 1;
        self.state.batch = 0;
        self.save()?;
        Ok(())
    }

    /// One optimizer step, with the mean of the gradients of some batches.
    fn step(&mut self, group: &[T::Batch], batches: usize) -> Result<Row> {
        let recipe = self.input.recipe;
        let share = 1.0 / group.len().max(1) as f64;
        let (mut loss_value, mut right, mut targets) = (0.0, 0.0, 0);
        let mut grads = BTreeMap::new();
        for (i, batch) in group.iter().enumerate() {
            // What is dropped is a function of seed and batch, so that a resumed run drops the same.
            let number_of_batch = self.state.step * recipe.accumulate + i;
            let seed = recipe.seed.rotate_left(32) ^ number_of_batch as u64;
            B::seed(self.input.device, seed);
            let pass = self.task.forward(&self.model, batch, None)?;
            let loss = number(pass.loss.clone());
            if !loss.is_finite() {
                let what = format!("the loss is {loss}; {}", self.first_bad_stage(batch)?);
                return Err(self.diverged(&what));
            }
            loss_value += loss * share;
            right += number(pass.right);
            targets += pass.targets;
            let of_batch = collect_gradients::<B, M>(&self.model, pass.loss.backward());
            if group.len() == 1 {
                grads = of_batch;
                break;
            }
            for (path, grad) in of_batch {
                let grad = grad * share;
                let sum = match grads.remove(&path) {
                    Some(sum) => sum + grad,
                    None => grad,
                };
                grads.insert(path, sum);
            }
        }
        let norm = global_norm::<B>(&grads);
        if !norm.is_finite() {
            let bad = |(path, grad): (&String, &Tensor<B::InnerBackend, 1>)| {
                (!all_finite(grad.clone())).then(|| format!("`{path}`"))
            };
            let bad: Vec<String> = grads.iter().filter_map(bad).collect();
            let named = match bad.first() {
                Some(first) => format!(
                    "{} of {} gradients are not finite, such as that of {first}",
                    bad.len(),
                    grads.len()
                ),
                None => "each gradient is finite, their sum of squares is not".into(),
            };
            return Err(self.diverged(&format!("the gradient's norm is {norm}; {named}")));
        }
        if recipe.clip_norm > 0.0 {
            clip_global_norm::<B>(&mut grads, norm, recipe.clip_norm);
        }
        let lr = learning_rate(recipe, self.state.step, self.steps(), batches);
        self.model = self.optimizer.step(self.model.clone(), grads, lr);
        self.state.step += 1;
        if let Some(ema) = &mut self.ema {
            ema.update(&self.model.valid(), self.state.step);
        }
        Ok(Row {
            step: self.state.step,
            epoch: self.state.epoch + 1,
            split: "train".into(),
            loss: loss_value,
            accuracy: right / targets.max(1) as f64,
            lr,
            grad_norm: norm,
            items_per_second: 0.0,
            input_wait: 0.0,
            seconds: 0.0,
        })
    }

    /// Runs the forward pass again and names the stage where the numbers went wrong.
    fn first_bad_stage(&self, batch: &T::Batch) -> Result<String> {
        let mut stages = CollectStages::new();
        let pass = self.task.forward(&self.model, batch, Some(&mut stages))?;
        let mut stages = stages.0.into_iter();
        let first = stages.find(|(_, flat, _)| !all_finite(flat.clone()));
        Ok(match first {
            Some((name, _, _)) => {
                format!("stage `{name}` is the first with a value that is not finite")
            }
            None if !all_finite(pass.logits) => {
                "the head's logits are the first that are not finite".into()
            }
            None => "every stage is finite".into(),
        })
    }

    /// Says what happened and which checkpoint is still good.
    fn diverged(&self, what: &str) -> Error {
        let good = match Checkpoint::last(self.input.run) {
            Ok(checkpoint) => format!("the last good checkpoint is {}", checkpoint.path.display()),
            Err(_) => "there is no checkpoint yet".into(),
        };
        Error::Training {
            step: self.state.step + 1,
            message: format!(
                "{what}; {good}. A lower --lr, a longer --warmup-epochs or --clip-norm may help"
            ),
        }
    }

    fn save(&mut self) -> Result<()> {
        self.state.seconds = self.seconds();
        let map = self.input.key_map;
        // As files have them: what is packed there is one tensor.
        let named = |tensors: Tensors| to_file(&tensors, map);
        let model = named(collect(&self.model));
        let ema = self
            .ema
            .as_ref()
            .map(|_| named(collect(&self.averaged())))
            .unwrap_or_default();
        let optimizer = self.optimizer.tensors();
        Checkpoint::save(self.input.run, &self.state, &model, &optimizer, &ema)?;
        let best = self.state.best.map(|(_, step)| step);
        Checkpoint::prune(self.input.run, self.input.recipe.keep_checkpoints, best)
    }

    /// The model that is evaluated.
    fn averaged(&self) -> M::InnerModule {
        let model = self.model.valid();
        match &self.ema {
            Some(ema) => ema.apply(model),
            None => model,
        }
    }

    fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }

    fn position(&self, batches: usize) -> Position {
        Position {
            epoch: self.state.epoch + 1,
            epochs: self.input.recipe.epochs,
            batch: self.state.batch,
            batches,
            batch_size: self.input.recipe.batch_size,
            step: self.state.step,
        }
    }

    fn finish(self, interrupted: bool) -> Result<Outcome<M::InnerModule>> {
        let best_step = self.state.best.map_or(self.state.step, |(_, step)| step);
        let model = if best_step == self.state.step || interrupted {
            self.averaged()
        } else {
            let path = Checkpoint::weights(self.input.run, best_step);
            load(
                self.model.valid(),
                &path,
                from_ref(self.input.key_map),
                DType::F32,
            )?
        };
        Ok(Outcome {
            model,
            step: self.state.step,
            best_step,
            best_score: self.state.best.map(|(score, _)| score),
            seconds: self.seconds(),
            interrupted,
            rows: self.history.rows,
        })
    }
}

fn all_finite<B: Backend>(flat: Tensor<B, 1>) -> bool {
    flat.into_data().iter::<f32>().all(f32::is_finite)
}

/// Checks that a checkpoint's numbers fit each other and the data.
fn check_position(path: &Path, state: &State, recipe: &Recipe, batches: usize) -> Result<()> {
    let State {
        step, epoch, batch, ..
    } = *state;
    // A run may end within an epoch.
    let ended = Some(step) == recipe.max_steps && batch == 0;
    if ended || (batch < batches && epoch * batches + batch == step) {
        return Ok(());
    }
    let message =
        format!("step {step} is not batch {batch} of epoch {epoch} with {batches} batches each");
    Err(Error::malformed(path.join("state.json"), message))
}

/// Puts back weights, optimizer state and average of the checkpoint in folder `path`.
fn restore<B: AutodiffBackend, M: AutodiffModule<B>>(
    model: M,
    optimizer: &mut Optimizer<B>,
    ema: &mut Option<Ema<B::InnerBackend>>,
    input: &TrainInput<B>,
    path: &Path,
    step: usize,
) -> Result<M> {
    let file = path.join("model.safetensors");
    let model = load(model, &file, from_ref(input.key_map), DType::F32)?;
    let file = path.join("optimizer.safetensors");
    optimizer.restore(read_safetensors(&file)?, step, &model, &file)?;
    if let Some(ema) = ema {
        let file = path.join("ema.safetensors");
        ema.restore(&load(
            model.valid(),
            &file,
            from_ref(input.key_map),
            DType::F32,
        )?);
    }
    Ok(model)
}
