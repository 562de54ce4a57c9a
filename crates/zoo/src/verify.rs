//! Every family's cases on a lane: the zoo's side of [`burn_zoo_parity`].

use crate::{AutoConfig, WithBackend, WithModel};
use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, BackendTypes};
use burn_zoo_backend::on_lane;
use burn_zoo_checkpoint::{KeyMap, LazyTensors, Tensors, write_safetensors};
use burn_zoo_core::{Error, Network, Result};
use burn_zoo_golden::Case;
use burn_zoo_parity::{CaseReport, Check, Fixture, Kind, Lane, Measured, compare, measure};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The reference cases of the families called `families`, or of all where none is named, not read yet.
///
/// # Errors
/// If a name is no family's.
pub fn reference_cases(families: &[String]) -> Result<Vec<Case>> {
    let mut cases = burn_zoo_golden::cases();
    let mut known: Vec<&str> = cases.iter().map(|case| case.family).collect();
    known.dedup();
    if let Some(other) = families.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Error::unknown("family", other, known));
    }
    cases.retain(|case| families.is_empty() || families.iter().any(|name| name == case.family));
    Ok(cases)
}

/// What those hold.
///
/// # Errors
/// As [`reference_cases`], or if a file is not what `tools/golden` writes.
pub fn fixtures(families: &[String]) -> Result<Vec<Fixture>> {
    let parse = |case: Case| {
        let name = format!("{}/{}", case.family, case.name);
        Fixture::parse(&name, case.bytes, case.steps)
    };
    reference_cases(families)?.into_iter().map(parse).collect()
}

/// Runs every fixture on a lane and hands over what each gave. The reference lane leaves its results in
/// `work`, where the other lanes find them.
///
/// # Errors
/// If the lane's backend is not in this program or has no device here.
pub fn run_lane(
    lane: Lane,
    device: usize,
    fixtures: &[Fixture],
    work: &Path,
    each: &mut dyn FnMut(CaseReport),
) -> Result<()> {
    let run = RunLane {
        lane,
        fixtures,
        work,
        each,
    };
    on_lane(lane.backend, lane.fused, device, run)?
}

struct RunLane<'a> {
    lane: Lane,
    fixtures: &'a [Fixture],
    work: &'a Path,
    each: &'a mut dyn FnMut(CaseReport),
}

impl WithBackend for RunLane<'_> {
    type Output = Result<()>;

    fn run<B: AutodiffBackend>(self, device: <B as BackendTypes>::Device) -> Result<()> {
        let dtype = self.lane.dtype;
        if !B::supports_dtype(&device, dtype) {
            let message = format!("does not compute in {dtype:?} on this device");
            return Err(Error::Device {
                backend: B::name(&device),
                message,
            });
        }
        for fixture in self.fixtures {
            let started = Instant::now();
            let mut report = CaseReport {
                case: fixture.name.clone(),
                fast: 0,
                generic: 0,
                seconds: 0.0,
                checks: Vec::new(),
            };
            // A panic in a backend is a failure of this case, and no more.
            let ran = catch_unwind(AssertUnwindSafe(|| {
                self.case::<B>(fixture, &device, &mut report)
            }));
            let message = match ran {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(panic) => Some(format!("panicked: {}", panic_message(panic.as_ref()))),
            };
            report
                .checks
                .extend(message.map(|m| Check::failed("L0", Kind::Loading, "the run", m)));
            report.seconds = started.elapsed().as_secs_f64();
            (self.each)(report);
        }
        Ok(())
    }
}

impl RunLane<'_> {
    fn case<B: AutodiffBackend>(
        &self,
        fixture: &Fixture,
        device: &B::Device,
        report: &mut CaseReport,
    ) -> Result<()> {
        let config = AutoConfig::from_json(&fixture.config)
            .map_err(|e| Error::malformed(&fixture.name, e.to_string()))?;
        let dtype = self.lane.dtype;
        let measured = config.with_model::<B, _>(
            Some(1),
            device,
            Measure {
                fixture,
                dtype,
                device,
            },
        )??;
        report.fast = measured.counts.fast;
        report.generic = measured.counts.generic;
        report.checks.push(Check::loaded(fixture));
        let path = self.reference(fixture);
        let limits = self.lane.limits(Some(fixture));
        if self.lane.is_reference() {
            write_safetensors(&path, &measured.tensors)?;
            report
                .checks
                .extend(compare(&measured, fixture, None, dtype, limits));
        } else {
            let reference: Tensors = LazyTensors::open(&path)?.read_all()?;
            report
                .checks
                .extend(compare(&measured, fixture, Some(&reference), dtype, limits));
        }
        Ok(())
    }

    fn reference(&self, fixture: &Fixture) -> PathBuf {
        self.work
            .join(fixture.name.replace('/', "-") + ".safetensors")
    }
}

struct Measure<'a, D> {
    fixture: &'a Fixture,
    dtype: burn::tensor::DType,
    device: &'a D,
}

impl<B: AutodiffBackend> WithModel<B> for Measure<'_, <B as BackendTypes>::Device> {
    type Output = Result<Measured>;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> Self::Output
    where
        M: AutodiffModule<B> + Network<B>,
        M::InnerModule: Network<B::InnerBackend>,
    {
        measure(model, &key_maps, self.fixture, self.dtype, self.device)
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let first = text.and_then(|text| text.lines().next());
    first.unwrap_or("without a message").to_string()
}
