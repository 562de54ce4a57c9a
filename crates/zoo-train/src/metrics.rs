use burn_zoo_checkpoint::write_atomically;
use burn_zoo_core::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

const HEADER: &str =
    "step,epoch,split,loss,accuracy,lr,grad_norm,items_per_second,input_wait,seconds";

/// One measurement of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Optimizer steps made.
    pub step: usize,
    /// Epoch, from 1.
    pub epoch: usize,
    /// `train`: one step's batch; `valid`: the whole validation part.
    pub split: String,
    /// Mean cross-entropy.
    pub loss: f64,
    /// Share of targets whose score was the highest.
    pub accuracy: f64,
    /// Learning rate of the step.
    pub lr: f64,
    /// Global norm of the gradient before clipping.
    pub grad_norm: f64,
    /// Images or tokens a second since the last row of this split.
    pub items_per_second: f64,
    /// Share of that time spent waiting for data.
    pub input_wait: f64,
    /// Seconds of training so far, over all resumed parts.
    pub seconds: f64,
}

/// The rows of `metrics.csv`, in memory and on disk.
pub struct History {
    path: PathBuf,
    file: File,
    /// Every row so far.
    pub rows: Vec<Row>,
}

impl History {
    /// Starts `metrics.csv` anew.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        Self::start(path, Vec::new())
    }

    /// Goes on after `step`: what was measured later belongs to steps that will be made again.
    ///
    /// # Errors
    /// If the file cannot be read or is malformed.
    pub fn resume(path: &Path, step: usize) -> Result<Self> {
        let mut rows = Self::read(path)?;
        rows.retain(|row| row.step <= step);
        Self::start(path, rows)
    }

    fn start(path: &Path, rows: Vec<Row>) -> Result<Self> {
        let mut text = format!("{HEADER}\n");
        rows.iter().for_each(|row| text.push_str(&line(row)));
        write_atomically(path, text.as_bytes())?;
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(Error::io(path, "open"))?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            rows,
        })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, row: Row) -> Result<()> {
        let written = self.file.write_all(line(&row).as_bytes());
        written.map_err(Error::io(&self.path, "write"))?;
        self.rows.push(row);
        Ok(())
    }

    /// Reads the rows of a file; a last line that was cut off is left out.
    ///
    /// # Errors
    /// If the file cannot be read or a whole line is malformed.
    pub fn read(path: &Path) -> Result<Vec<Row>> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
        let mut lines = text.split_inclusive('\n').enumerate();
        if lines.next().map(|(_, l)| l.trim_end()) != Some(HEADER) {
            return Err(Error::malformed(
                path,
                format!("does not begin with `{HEADER}`"),
            ));
        }
        lines
            .filter(|(_, line)| line.ends_with('\n'))
            .map(|(i, line)| {
                parse(line.trim_end()).ok_or_else(|| {
                    Error::malformed(path, format!("line {} is not a row of metrics", i + 1))
                })
            })
            .collect()
    }
}

/// Losses, accuracies, rates and norms are written so that reading them gives the same bits; times
/// are rounded.
fn line(r: &Row) -> String {
    format!(
        "{},{},{},{},{},{},{},{:.1},{:.4},{:.3}\n",
        r.step,
        r.epoch,
        r.split,
        r.loss,
        r.accuracy,
        r.lr,
        r.grad_norm,
        r.items_per_second,
        r.input_wait,
        r.seconds
    )
}

fn parse(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |i: usize| fields.get(i)?.parse::<f64>().ok();
    let count = |i: usize| fields.get(i)?.parse::<usize>().ok();
    (fields.len() == 10).then_some(())?;
    Some(Row {
        step: count(0)?,
        epoch: count(1)?,
        split: fields[2].to_string(),
        loss: number(3)?,
        accuracy: number(4)?,
        lr: number(5)?,
        grad_norm: number(6)?,
        items_per_second: number(7)?,
        input_wait: number(8)?,
        seconds: number(9)?,
    })
}
