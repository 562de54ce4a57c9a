use crate::metrics::Row;
use burn::data::dataloader::Progress;
use burn_train::Interrupter;
use burn_train::metric::{
    MetricAttributes, MetricDefinition, MetricEntry, MetricId, NumericAttributes, NumericEntry,
    SerializedEntry,
};
use burn_train::renderer::tui::TuiMetricsRendererWrapper;
use burn_train::renderer::{
    MetricState, MetricsRenderer, MetricsRendererTraining, ProgressType, TrainingProgress,
};
use burn_zoo_core::{Error, Result};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressKind {
    /// burn-train's dashboard on a terminal, lines otherwise.
    Auto,
    /// burn-train's dashboard.
    Dashboard,
    /// One line every two seconds and after every epoch.
    Lines,
}

/// A flag that Ctrl-C (or a request to terminate) sets. A second Ctrl-C ends the process at once.
pub fn interrupt_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    let installed = ctrlc::set_handler(move || {
        if set.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        burn_zoo_core::note!("stopping after this step; press Ctrl-C again to stop at once");
    });
    // A process that has a handler already keeps it; the run then ends as that handler says.
    drop(installed);
    flag
}

/// Where a run is.
pub(crate) struct Position {
    pub epoch: usize,
    pub epochs: usize,
    pub batch: usize,
    pub batches: usize,
    pub batch_size: usize,
    pub step: usize,
}

/// Shows a run to a person.
pub(crate) enum Display {
    Dashboard {
        renderer: TuiMetricsRendererWrapper,
        interrupter: Interrupter,
        keys: KeySignals,
    },
    Lines {
        last: Instant,
        /// What is counted.
        unit: &'static str,
    },
}

const METRICS: [(&str, bool); 4] = [
    ("Loss", false),
    ("Accuracy", true),
    ("Learning rate", true),
    ("Throughput", true),
];

impl Display {
    pub fn new(kind: ProgressKind, unit: &'static str) -> Result<Self> {
        // The dashboard draws on the output and reads keys from the input.
        let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        if kind == ProgressKind::Dashboard && !terminal {
            return Err(Error::usage("--progress", "the dashboard needs a terminal"));
        }
        if kind == ProgressKind::Lines || !terminal {
            return Ok(Display::Lines {
                last: Instant::now(),
                unit,
            });
        }
        let interrupter = Interrupter::new();
        let mut renderer = TuiMetricsRendererWrapper::new(interrupter.clone(), None);
        for (name, higher_is_better) in METRICS {
            renderer.register_metric(MetricDefinition {
                metric_id: id(name),
                name: name.into(),
                description: None,
                attributes: MetricAttributes::Numeric(NumericAttributes {
                    unit: None,
                    higher_is_better,
                }),
            });
        }
        Ok(Display::Dashboard {
            renderer,
            interrupter,
            keys: KeySignals::default(),
        })
    }

    /// Whether the person asked the dashboard to stop.
    pub fn stopped(&self) -> bool {
        match self {
            Display::Dashboard { interrupter, .. } => interrupter.should_stop(),
            Display::Lines { .. } => false,
        }
    }

    pub fn train(&mut self, at: &Position, row: &Row) {
        match self {
            Display::Dashboard {
                renderer,
                interrupter,
                keys,
            } => {
                keys.keep();
                let (progress, indicators) = position(at);
                guarded(interrupter, || {
                    states(row, 4).for_each(|state| renderer.update_train(state));
                    renderer.render_train(progress, indicators);
                });
            }
            Display::Lines { last, unit } => {
                if last.elapsed() >= Duration::from_secs(2) {
                    *last = Instant::now();
                    burn_zoo_core::say!(
                        "epoch {:>3}/{} step {:>6}  loss {:.4}  accuracy {:5.1} %  lr {:.2e}  {:.0} {}/s",
                        at.epoch,
                        at.epochs,
                        row.step,
                        row.loss,
                        100.0 * row.accuracy,
                        row.lr,
                        row.items_per_second,
                        unit
                    );
                }
            }
        }
    }

    pub fn valid(&mut self, at: &Position, row: &Row) {
        match self {
            Display::Dashboard {
                renderer,
                interrupter,
                ..
            } => {
                let (progress, indicators) = position(at);
                guarded(interrupter, || {
                    states(row, 2).for_each(|state| renderer.update_valid(state));
                    renderer.render_valid(progress, indicators);
                });
            }
            Display::Lines { last, .. } => {
                *last = Instant::now();
                burn_zoo_core::say!(
                    "epoch {:>3}/{} done: validation loss {:.4}  accuracy {:5.2} %  ({:.0} s)",
                    at.epoch,
                    at.epochs,
                    row.loss,
                    100.0 * row.accuracy,
                    row.seconds
                );
            }
        }
    }

    /// Gives the terminal back.
    pub fn finish(self) {
        if let Display::Dashboard { mut renderer, .. } = self {
            // The dashboard is closed whether or not it can say so.
            let _ = renderer.on_train_end(None);
        }
    }
}

/// Runs `f`; the dashboard's "kill" is a panic, here it is a request to save and stop.
fn guarded(interrupter: &Interrupter, f: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err() {
        interrupter.stop(Some("the dashboard ended"));
    }
}

fn id(name: &str) -> MetricId {
    MetricId::new(Arc::new(name.to_string()))
}

fn states(row: &Row, count: usize) -> impl Iterator<Item = MetricState> {
    let values = [row.loss, 100.0 * row.accuracy, row.lr, row.items_per_second];
    METRICS
        .into_iter()
        .zip(values)
        .take(count)
        .map(|((name, _), value)| {
            let text = SerializedEntry::new(format!("{value:.4}"), value.to_string());
            MetricState::Numeric(MetricEntry::new(id(name), text), NumericEntry::Value(value))
        })
}

fn position(at: &Position) -> (TrainingProgress, Vec<ProgressType>) {
    let epochs = Progress::new(at.epoch, at.epochs);
    let items = Progress::new(at.batch * at.batch_size, at.batches * at.batch_size);
    let indicators = vec![
        ProgressType::Detailed {
            tag: "Epoch".into(),
            progress: epochs.clone(),
        },
        ProgressType::Value {
            tag: "Step".into(),
            value: at.step,
        },
        ProgressType::Detailed {
            tag: "Items".into(),
            progress: items.clone(),
        },
    ];
    let progress = TrainingProgress {
        progress: Some(items),
        global_progress: epochs,
        iteration: Some(at.step),
    };
    (progress, indicators)
}

/// Lets Ctrl-C stay a signal while the dashboard has the terminal in raw mode, in which it would
/// otherwise arrive as a key that the dashboard ignores.
#[derive(Default)]
pub(crate) struct KeySignals {
    checked: Option<Instant>,
}

impl KeySignals {
    fn keep(&mut self) {
        if self
            .checked
            .is_some_and(|at| at.elapsed() < Duration::from_millis(500))
        {
            return;
        }
        self.checked = Some(Instant::now());
        #[cfg(unix)]
        {
            use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
            let stdin = rustix::stdio::stdin();
            if let Ok(mut modes) = tcgetattr(stdin)
                && !modes.local_modes.contains(LocalModes::ISIG)
            {
                modes.local_modes |= LocalModes::ISIG;
                // Where this fails, `q` in the dashboard still stops the run.
                let _ = tcsetattr(stdin, OptionalActions::Now, &modes);
            }
        }
    }
}
