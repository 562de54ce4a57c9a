//! The proofs find every seeded bug and raise no false alarm.
//!
//! Each bug is switched on by its name (`burn_zoo_core::seeded`), every case is run on burn-ndarray in
//! f64 and compared with upstream. What is printed says for each where it was first seen, how large it is
//! there, and whether flex in f32 would have seen it too.

use burn::backend::Autodiff;
use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, TensorData};
use burn_flex::Flex;
use burn_ndarray::NdArray;
use burn_zoo::{AutoConfig, WithModel, fixtures};
use burn_zoo_checkpoint::{KeyMap, Tensors};
use burn_zoo_core::{Network, with_seeded_bug};
use burn_zoo_parity::{Check, Fixture, Lane, Measured, compare, measure};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A bug, and the check that must find it.
const BUGS: [(&str, &str); 58] = [
    ("ReLU6 without its 6", "stages"),
    ("SiLU as quick GELU", "stages"),
    ("hard swish as SiLU", "stages"),
    ("hard sigmoid as sigmoid", "stages"),
    ("sigmoid as hard sigmoid", "stages"),
    ("GELU by a tangent", "stages"),
    ("quick GELU for GELU", "stages"),
    ("derivative of GELU by a tangent", "gradients"),
    ("training norm's eps a tenth", "training logits"),
    ("norm's eps a tenth", "stages"),
    ("norm's eps outside of the root", "stages"),
    ("norm without its mean", "stages"),
    ("norm without its bias", "stages"),
    ("convolution a pixel to the side", "stages"),
    ("kernel turned around", "stages"),
    ("kernel's sides swapped", "stages"),
    ("groups one further", "stages"),
    ("convolution without its bias", "stages"),
    ("linear layer without its bias", "logits"),
    ("weight of a square layer transposed", "stages"),
    ("largest for the mean", "stages"),
    ("loss summed over the batch", "training loss"),
    ("smoothing over the other classes", "training loss"),
    ("AdamW's eps as Burn's", "adamw weights"),
    ("AdamW's decay in the gradient", "adamw weights"),
    ("AdamW's step from 2", "adamw weights"),
    ("AdamW without decay", "adamw weights"),
    ("SGD without decay", "sgd weights"),
    ("SGD's first gradient dampened", "sgd weights"),
    ("SGD without Nesterov", "sgd_clip weights"),
    ("clipping without its 1e-6", "sgd_clip weights"),
    ("clipping each gradient by itself", "sgd_clip weights"),
    ("running variance biased", "running statistics"),
    ("momentum the other way", "running statistics"),
    ("odd zero on the left", "stages"),
    ("squeeze and excitation left out", "stages"),
    ("input not added", "stages"),
    ("shortcut left out", "stages"),
    ("bottleneck strides where the other does", "stages"),
    ("norm without its weight", "stages"),
    ("a causal mask that shows the next token", "stages"),
    ("a window one wider", "stages"),
    ("padding that is seen", "stages"),
    ("attention without its scale", "stages"),
    ("query heads of another group", "stages"),
    ("queries and keys swapped", "stages"),
    ("rotary positions of neighbours", "stages"),
    ("rotary angles of the next pair", "stages"),
    ("YaRN without its attention factor", "stages"),
    ("learned positions from 1", "stages"),
    ("segments left out", "stages"),
    ("gate and up swapped", "stages"),
    ("layer norm's eps a tenth", "stages"),
    ("layer norm with the unbiased variance", "stages"),
    ("layer norm without its bias", "stages"),
    ("RMS norm's eps a tenth", "stages"),
    ("RMS norm that takes the mean away", "stages"),
    ("a padding row that is trained", "gradients"),
];

struct Run<'a>(&'a Fixture, DType);

impl<B: AutodiffBackend> WithModel<B> for Run<'_> {
    type Output = burn_zoo_core::Result<Measured>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + Network<B>,
        M::InnerModule: Network<B::InnerBackend>,
    {
        measure(model, &key_maps, self.0, self.1, &Default::default())
    }
}

pub fn measured<B: AutodiffBackend>(fixture: &Fixture, dtype: DType) -> Measured {
    let config = AutoConfig::from_json(&fixture.config).expect("a configuration");
    let device = Default::default();
    let ran = config.with_model::<B, _>(Some(1), &device, Run(fixture, dtype));
    ran.expect("a valid configuration").expect("every key fits")
}

pub fn exact(fixture: &Fixture) -> Vec<Check> {
    let lane = Lane::find("ndarray-f64").expect("a lane");
    let measured = measured::<Autodiff<NdArray>>(fixture, lane.dtype);
    compare(
        &measured,
        fixture,
        None,
        lane.dtype,
        lane.limits(Some(fixture)),
    )
}

/// flex in f32 against these results.
fn fast(fixture: &Fixture, reference: &Tensors) -> Vec<Check> {
    let lane = Lane::find("flex-f32").expect("a lane");
    let measured = measured::<Autodiff<Flex>>(fixture, lane.dtype);
    compare(
        &measured,
        fixture,
        Some(reference),
        lane.dtype,
        lane.limits(Some(fixture)),
    )
}

fn upstream(fixture: &Fixture) -> Tensors {
    let mut all = fixture.tensors.clone();
    all.extend(fixture.steps.clone().unwrap_or_default());
    all
}

/// How a bug was found, as docs/results/mutations.json keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    bug: String,
    /// The first case that shows it.
    case: String,
    check: String,
    /// The first stage that departs, or the worst tensor.
    place: String,
    error: f64,
    limit: f64,
    /// Whether flex in f32 would have seen it.
    seen_in_f32: bool,
}

impl Found {
    /// Everything but the size of the error, which another machine may round otherwise.
    fn is_like(&self, other: &Self) -> bool {
        let same_case = self.bug == other.bug && self.case == other.case;
        let same_place = self.check == other.check && self.place == other.place;
        same_case && same_place && self.seen_in_f32 == other.seen_in_f32
    }
}

/// A table of docs.
pub fn markdown(found: &[Found]) -> String {
    let head =
        "| bug | found by | where | error (limit in f64) | flex in f32 |\n|---|---|---|---|---|\n";
    let row = |f: &Found| {
        let sees = if f.seen_in_f32 { "sees it" } else { "does not" };
        let (case, check, place) = (&f.case, &f.check, &f.place);
        let (error, limit) = (f.error, f.limit);
        format!(
            "| {} | {case} {check} | `{place}` | {error:.1e} (limit {limit:.0e}) | {sees} |\n",
            f.bug
        )
    };
    found
        .iter()
        .map(row)
        .fold(head.into(), |text, row| text + &row)
}

/// The first case that passes the bug's place and finds it by this check, and whether flex in f32 would have
/// seen it in one too.
fn find_bug(bug: &'static str, by: &str, cases: &[Fixture]) -> Result<Found, String> {
    let (mut passed, mut others, mut found) = (Vec::new(), Vec::new(), None);
    for fixture in cases {
        let (checks, met) = with_seeded_bug(bug, || exact(fixture));
        if met == 0 {
            continue;
        }
        passed.push(fixture);
        let failed: Vec<Check> = checks.into_iter().filter(|check| !check.passed).collect();
        if let Some(check) = failed.iter().find(|check| check.what == by) {
            found = Some((fixture, check.clone()));
            break;
        }
        others.extend(failed.into_iter().map(|check| check.what));
    }
    if passed.is_empty() {
        return Err("its place is not passed in any case".into());
    }
    let Some((fixture, check)) = found else {
        return Err(format!("not found by {by}, only by {others:?}"));
    };
    let place = check.first.as_deref().unwrap_or(&check.worst);
    if place.is_empty() || (by == "stages") != check.first.is_some() {
        return Err(format!("found by {by}, but not where: {check:?}"));
    }
    // Of all cases, since another may show it more.
    let after = cases.iter().skip_while(|case| case.name != fixture.name);
    let sees = passed.into_iter().chain(after.skip(1)).any(|fixture| {
        let (checks, _) = with_seeded_bug(bug, || fast(fixture, &upstream(fixture)));
        checks.iter().any(|check| !check.passed)
    });
    Ok(Found {
        bug: bug.into(),
        case: fixture.name.clone(),
        check: by.into(),
        place: place.into(),
        error: check.error,
        limit: check.limit,
        seen_in_f32: sees,
    })
}

#[test]
fn every_seeded_bug_is_found_by_name_of_its_place() {
    let cases = fixtures(&[]).expect("they are embedded");
    // A bug is switched on for a thread.
    let [one, two] = [0, 1].map(|half| BUGS.into_iter().skip(half).step_by(2));
    let search = |bugs: &mut dyn Iterator<Item = (&'static str, &'static str)>| {
        bugs.map(|(bug, by)| (bug, find_bug(bug, by, &cases)))
            .collect::<Vec<_>>()
    };
    let mut found: Vec<_> = std::thread::scope(|scope| {
        let other = scope.spawn(|| search(&mut { two }));
        let mut found = search(&mut { one });
        found.extend(other.join().expect("it ends"));
        found
    });
    found.sort_by_key(|(bug, _)| BUGS.iter().position(|(listed, _)| listed == bug));
    let missed: Vec<_> = found.iter().filter(|(_, found)| found.is_err()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let found: Vec<Found> = found.into_iter().filter_map(|(_, f)| f.ok()).collect();
    let path = crate::repository::root().join("docs/results/mutations.json");
    if std::env::var_os("BURN_ZOO_UPDATE").is_some() {
        let json = serde_json::to_string_pretty(&found).expect("JSON");
        std::fs::write(&path, json + "\n").expect("writable");
        return;
    }
    let expected = std::fs::read_to_string(&path).expect("part of the repository");
    let expected: Vec<Found> = serde_json::from_str(&expected).expect("a list");
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!(found.is_like(expected), "{found:?}, expected {expected:?}");
    }
}

/// The same case with other numbers: those of each tensor in another order, and new inputs.
fn shuffled(fixture: &Fixture, seed: u64) -> Fixture {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut other = fixture.clone();
    other.steps = None;
    for data in other.tensors.values_mut() {
        if data.dtype == DType::F64 {
            let mut numbers: Vec<f64> = data.iter::<f64>().collect();
            numbers.shuffle(&mut rng);
            *data = TensorData::new(numbers, data.shape.clone());
        }
    }
    for (name, input) in &mut other.tensors {
        if name.starts_with("input.") && input.dtype == DType::F64 {
            let draw = |_| rng.random_range(-2.0..2.0);
            let numbers: Vec<f64> = input.iter::<f64>().map(draw).collect();
            *input = TensorData::new(numbers, input.shape.clone());
        }
    }
    other
}

#[test]
fn two_hundred_clean_runs_raise_no_alarm() {
    let cases = fixtures(&[]).expect("they are embedded");
    let mut alarms = Vec::new();
    for seed in 0..200 {
        let fixture = shuffled(&cases[seed as usize % cases.len()], seed);
        let reference = measured::<Autodiff<NdArray>>(&fixture, DType::F64);
        let checks = fast(&fixture, &reference.tensors);
        let alarm = checks.into_iter().filter(|check| !check.passed);
        alarms.extend(alarm.map(|check| format!("{seed} {}: {}", fixture.name, check.sentence())));
    }
    assert!(alarms.is_empty(), "{alarms:#?}");
}

/// What is no number is an error that can be written and read again.
#[test]
fn nan_fails_and_survives_json() {
    let fixture = &fixtures(&["mobilenet".into()]).expect("embedded")[0];
    let lane = Lane::reference();
    let mut measured = Measured {
        tensors: upstream(fixture),
        ..Measured::default()
    };
    let logits = measured.tensors["eval.logits"].clone();
    measured.tensors.insert("eval.plain".into(), logits.clone());
    let checks = |measured: &Measured| {
        let limits = lane.limits(Some(fixture));
        compare(measured, fixture, None, lane.dtype, limits)
    };
    assert!(
        checks(&measured).iter().all(|check| check.passed),
        "upstream is itself"
    );
    let mut numbers: Vec<f64> = logits.iter::<f64>().collect();
    numbers[0] = f64::NAN;
    let nan = TensorData::new(numbers, logits.shape);
    measured.tensors.insert("eval.logits".into(), nan);
    let checks = checks(&measured);
    let failed: Vec<&Check> = checks.iter().filter(|check| !check.passed).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let json = serde_json::to_string(failed[0]).expect("JSON");
    let read: Check = serde_json::from_str(&json).expect("the same");
    assert_eq!((read.what.as_str(), read.error), ("logits", f64::MAX));
}
