use crate::fixture::{Fixture, group};
use crate::lane::Limits;
use crate::measure::{Measured, OPTIMIZERS, takes};
use burn::tensor::{DType, TensorData};
use burn_zoo_checkpoint::Tensors;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What kind of tensors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Keys and shapes of the weights.
    Loading,
    /// Stages, logits, losses and running statistics.
    Outputs,
    /// Gradients.
    Gradients,
    /// Losses and weights of ten optimizer steps.
    Steps,
}

/// One comparison of a set of tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// The rung of the ladder: L0 loading, L1 outputs, L2 gradients, L3 optimizer steps, L4 backends.
    pub rung: String,
    /// The kind of tensors.
    pub kind: Kind,
    /// What was compared.
    pub what: String,
    /// Tensors compared.
    pub tensors: usize,
    /// The relative error ‖got − want‖ / ‖want‖: the largest of all tensors, in half types that of all
    /// together. Not finite, it is [`f64::MAX`].
    pub error: f64,
    /// The largest error that passes.
    pub limit: f64,
    /// The error in units of the type's rounding.
    pub units: f64,
    /// The tensor with the largest error.
    pub worst: String,
    /// The first stage of the forward pass whose own error is above the limit.
    pub first: Option<String>,
    /// The error of each stage, in the order of the forward pass, where stages are what is compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// Why nothing could be compared.
    pub message: Option<String>,
    /// Whether it passed.
    pub passed: bool,
}

/// One stage of the forward pass.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// ‖got − want‖ / ‖want‖.
    pub error: f64,
}

impl Check {
    /// L0: loading is strict, so that it came to an end says that every key was used and fits.
    pub fn loaded(fixture: &Fixture) -> Self {
        Self {
            rung: "L0".into(),
            kind: Kind::Loading,
            what: "keys and shapes".into(),
            tensors: fixture.group("model.").len(),
            error: 0.0,
            limit: 0.0,
            units: 0.0,
            worst: String::new(),
            first: None,
            stages: Vec::new(),
            message: None,
            passed: true,
        }
    }

    /// Something that could not be compared.
    pub fn failed(rung: &str, kind: Kind, what: &str, message: String) -> Self {
        Self {
            rung: rung.into(),
            kind,
            what: what.into(),
            tensors: 0,
            error: f64::MAX,
            limit: 0.0,
            units: f64::MAX,
            worst: String::new(),
            first: None,
            stages: Vec::new(),
            message: Some(message),
            passed: false,
        }
    }
}

/// Which tensors are compared together, on which rung and how.
pub(crate) struct Group {
    /// The part of the run that gives them.
    part: &'static str,
    rung: &'static str,
    kind: Kind,
    pub what: String,
    prefix: String,
    /// What they are compared with, where that has another name.
    wanted: Option<&'static str>,
    /// The least norm that an error is divided by, as a share of the largest: what is pure rounding beside
    /// the rest is not compared with itself.
    floor: f64,
}

impl Group {
    pub(crate) fn new(
        part: &'static str,
        rung: &'static str,
        kind: Kind,
        what: &str,
        prefix: &str,
        floor: f64,
    ) -> Self {
        Self {
            part,
            rung,
            kind,
            what: what.into(),
            prefix: prefix.into(),
            wanted: None,
            floor,
        }
    }

    fn limit(&self, limits: Limits) -> f64 {
        match self.kind {
            Kind::Gradients => limits.gradients,
            Kind::Steps if self.what.contains("weights") => limits.weights,
            _ => limits.outputs,
        }
    }
}

fn groups() -> Vec<Group> {
    use Kind::{Gradients, Outputs, Steps};
    let group = Group::new;
    let plain = group(
        "eval",
        "L1",
        Outputs,
        "logits without stages",
        "eval.plain",
        0.0,
    );
    let mut groups = vec![
        Group {
            wanted: Some("eval.logits"),
            ..plain
        },
        group("eval", "L1", Outputs, "stages", "eval.stage.", 0.0),
        group("eval", "L1", Outputs, "logits", "eval.logits", 0.0),
        group("eval", "L2", Gradients, "gradients", "eval.grad.", 1e-4),
        group(
            "train",
            "L1",
            Outputs,
            "training logits",
            "train.logits",
            0.0,
        ),
        group("train", "L1", Outputs, "training loss", "train.loss", 0.0),
        group(
            "train",
            "L2",
            Gradients,
            "training gradients",
            "train.grad.",
            1e-4,
        ),
        group(
            "train",
            "L1",
            Outputs,
            "running statistics",
            "train.stats.",
            0.0,
        ),
    ];
    for (name, ..) in OPTIMIZERS {
        let (losses, weights) = (format!("{name}.losses"), format!("{name}.model."));
        groups.push(group(
            name,
            "L3",
            Steps,
            &format!("{name} losses"),
            &losses,
            0.0,
        ));
        groups.push(group(
            name,
            "L3",
            Steps,
            &format!("{name} weights"),
            &weights,
            1e-3,
        ));
    }
    groups
}

/// Compares what a model gave in `dtype` with its upstream's results, which are the fixture's own, or with
/// the `reference` of an exact backend, which makes it rung L4.
pub fn compare(
    got: &Measured,
    fixture: &Fixture,
    reference: Option<&Tensors>,
    dtype: DType,
    limits: Limits,
) -> Vec<Check> {
    let idle = without_effect(&fixture.group("train.grad."));
    let idle_in_eval = without_effect(&fixture.group("eval.grad."));
    let has_statistics = fixture
        .group("model.")
        .keys()
        .any(|key| key.contains("running_"));
    let mut checks = Vec::new();
    for of in groups() {
        let absent = of.what == "running statistics" && !has_statistics;
        if absent || !takes(fixture, dtype, of.part) {
            continue;
        }
        let wanted = match (reference, &fixture.steps, of.part) {
            (Some(reference), ..) => reference,
            (None, Some(steps), part) if !matches!(part, "eval" | "train") => steps,
            _ => &fixture.tensors,
        };
        let rung = if reference.is_some() { "L4" } else { of.rung };
        let mut comparison = Comparison::new(&of, &got.tensors, wanted, limits);
        if of.kind == Kind::Gradients {
            let idle = match of.part {
                "train" => &idle,
                _ => &idle_in_eval,
            };
            checks.extend(comparison.take_idle(rung, idle));
        }
        if of.part == "adamw" {
            comparison.leave_out(&still(&fixture.group("train.grad.")));
        }
        if of.what.ends_with(" weights") {
            // AdamW makes steps of rounding as large as any, and the norms' means take up where they went.
            let drifts = of.part == "adamw" && !idle.is_empty();
            let left_out =
                |key: &String| idle.contains(key) || (drifts && key.ends_with("running_mean"));
            comparison.got.retain(|key, _| !left_out(key));
            comparison.want.retain(|key, _| !left_out(key));
        }
        let order = (of.what == "stages").then_some(&got.stages);
        checks.push(comparison.check(rung, order, dtype));
    }
    checks
}

/// The tensors of one group, from both sides.
pub(crate) struct Comparison<'a> {
    of: &'a Group,
    got: Tensors,
    want: Tensors,
    limit: f64,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(of: &'a Group, got: &Tensors, want: &Tensors, limits: Limits) -> Self {
        Self {
            of,
            got: group(got, &of.prefix),
            want: group(want, of.wanted.unwrap_or(&of.prefix)),
            limit: of.limit(limits),
        }
    }

    /// Takes out the numbers that are marked, by key.
    fn leave_out(&mut self, still: &BTreeMap<String, Vec<bool>>) {
        for side in [&mut self.got, &mut self.want] {
            for (key, out) in still {
                let Some(data) = side
                    .get_mut(key)
                    .filter(|data| data.num_elements() == out.len())
                else {
                    continue;
                };
                let kept = data.iter::<f64>().zip(out).filter(|(_, out)| !**out);
                let kept: Vec<f64> = kept.map(|(number, _)| number).collect();
                let count = kept.len();
                *data = TensorData::new(kept, [count]);
            }
        }
    }

    /// Takes out gradients that nothing depends on, and checks that they are as small as rounding.
    fn take_idle(&mut self, rung: &str, idle: &[String]) -> Option<Check> {
        let largest = self.want.values().map(norm).fold(0.0, f64::max);
        let mut worst = (0.0, String::new());
        for key in idle {
            self.want.remove(key);
            let size = self.got.remove(key).as_ref().map_or(f64::MAX, norm);
            let size = finite(size / largest);
            if size >= worst.0 {
                worst = (size, key.clone());
            }
        }
        let limit = self.limit / 200.0;
        (!idle.is_empty()).then(|| Check {
            rung: rung.into(),
            kind: Kind::Gradients,
            what: "gradients without effect".into(),
            tensors: idle.len(),
            error: worst.0,
            limit,
            units: 0.0,
            worst: worst.1,
            first: None,
            stages: Vec::new(),
            message: None,
            passed: worst.0 <= limit,
        })
    }

    pub(crate) fn check(&self, rung: &str, order: Option<&Vec<String>>, dtype: DType) -> Check {
        let of = self.of;
        if let Some(message) = self.mismatch() {
            return Check::failed(rung, of.kind, &of.what, message);
        }
        let largest = self.want.values().map(norm).fold(0.0, f64::max);
        let least = of.floor * largest;
        let error = |key: &String| relative_error(&self.got[key], &self.want[key], least);
        let errors = self.want.keys().map(|key| (error(key), key));
        let worst = errors.max_by(|a, b| a.0.total_cmp(&b.0));
        let (mut largest, worst) = worst.map_or((f64::MAX, ""), |(e, key)| (e, key.as_str()));
        if dtype.size() == 2 {
            let square = |v: f64| v * v;
            let off = self
                .want
                .iter()
                .map(|(key, want)| square(distance(&self.got[key], want)));
            let whole: f64 = self.want.values().map(|want| square(norm(want))).sum();
            largest = finite((off.sum::<f64>() / whole).sqrt());
        }
        let stages = order.into_iter().flatten().map(|name| Stage {
            name: name.clone(),
            error: error(name),
        });
        let stages: Vec<Stage> = stages.collect();
        let first = stages.iter().find(|stage| stage.error > self.limit);
        Check {
            rung: rung.into(),
            kind: of.kind,
            what: of.what.clone(),
            tensors: self.want.len(),
            error: largest,
            limit: self.limit,
            units: (largest / rounding(dtype)).min(f64::MAX),
            worst: match worst {
                "" => of.what.clone(),
                key => key.into(),
            },
            first: first.map(|stage| stage.name.clone()),
            stages,
            message: None,
            passed: largest <= self.limit,
        }
    }

    /// Says which tensor is missing, unexpected or misshapen.
    fn mismatch(&self) -> Option<String> {
        if self.want.is_empty() {
            return Some("there is nothing to compare with".into());
        }
        if let Some(key) = self.want.keys().find(|key| !self.got.contains_key(*key)) {
            return Some(format!("`{key}` is missing"));
        }
        if let Some(key) = self.got.keys().find(|key| !self.want.contains_key(*key)) {
            return Some(format!("`{key}` is not expected"));
        }
        let misshapen = |(key, want): (&String, &TensorData)| {
            let got = &self.got[key].shape;
            (*got != want.shape).then(|| format!("`{key}` is {got:?}, not {:?}", want.shape))
        };
        self.want.iter().find_map(misshapen)
    }
}

/// Half the distance from 1 to the next number of a type.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON / 2.0,
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        _ => f64::from(f32::EPSILON) / 2.0,
    }
}

/// The biases whose gradients in f64 are nothing but rounding beside the others: between two batch norms
/// with nothing but a 1×1 convolution in between, a bias has no effect in training.
fn without_effect(grads: &Tensors) -> Vec<String> {
    let largest = grads.values().map(norm).fold(0.0, f64::max);
    let idle = grads
        .iter()
        .filter(|(key, grad)| key.ends_with(".bias") && norm(grad) < 1e-12 * largest);
    idle.map(|(key, _)| key.clone()).collect()
}

/// Which numbers of biases have gradients that in f64 are nothing but rounding beside the others, in tensors
/// where not all are so: the biases of keys in a packed projection. AdamW makes steps of rounding.
fn still(grads: &Tensors) -> BTreeMap<String, Vec<bool>> {
    let largest = grads.values().map(norm).fold(0.0, f64::max);
    let biases = grads.iter().filter(|(key, _)| key.ends_with(".bias"));
    let still = biases.map(|(key, grad)| {
        let still = grad
            .iter::<f64>()
            .map(|number| number.abs() < 1e-12 * largest);
        (key.clone(), still.collect::<Vec<bool>>())
    });
    still
        .filter(|(_, still)| still.iter().any(|s| *s) && !still.iter().all(|s| *s))
        .collect()
}

/// ‖got − want‖ / ‖want‖, where `least` is the least that is divided by; [`f64::MAX`] if that is no finite
/// number. Both must have the same shape.
pub fn relative_error(got: &TensorData, want: &TensorData, least: f64) -> f64 {
    finite(distance(got, want) / norm(want).max(least).max(f64::MIN_POSITIVE))
}

/// The square root of the sum of squares.
pub fn norm(data: &TensorData) -> f64 {
    data.iter::<f64>().map(|v| v * v).sum::<f64>().sqrt()
}

fn distance(got: &TensorData, want: &TensorData) -> f64 {
    let pairs = got.iter::<f64>().zip(want.iter::<f64>());
    pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

fn finite(error: f64) -> f64 {
    if error.is_finite() { error } else { f64::MAX }
}
