//! `zoo verify` on the CPU's lanes, and that nothing is listed without its proofs.

use crate::common::*;
use burn::module::AutodiffModule;
use burn::tensor::DType;
use burn_flex::Flex;
use burn_zoo::{AutoConfig, WithModel, fixtures, models};
use burn_zoo_checkpoint::{KeyMap, LazyTensors, LoadOptions, load_with, write_safetensors};
use burn_zoo_core::Network;
use burn_zoo_parity::{LANES, LaneReport, OPTIMIZERS, Report, Status};
use std::collections::BTreeSet;
use std::sync::LazyLock;

type B = burn::backend::Autodiff<Flex>;

/// One run of every lane for all tests of this file.
static REPORT: LazyLock<Report> = LazyLock::new(|| {
    let ended = run(&["verify", "--json"]);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    serde_json::from_value(json(&ended.stdout)).expect("a report")
});

fn lane(name: &str) -> &'static LaneReport {
    let found = REPORT.lanes.iter().find(|lane| lane.lane == name);
    found.expect("every lane is in the report")
}

#[test]
fn every_lane_of_the_cpu_passes() {
    let all: usize = fixtures(&[]).expect("they are embedded").len();
    for name in LANES.map(|lane| lane.name) {
        let lane = lane(name);
        if name.starts_with("ndarray") || name.starts_with("flex") {
            assert_eq!(lane.status, Status::Passed, "{name}");
            assert_eq!(lane.cases.len(), all, "{name}");
        } else {
            // Not in this program, and so never said to have passed.
            assert_eq!(lane.status, Status::NotRun, "{name}");
            assert!(
                lane.reason
                    .as_ref()
                    .is_some_and(|r| r.contains("--features"))
            );
        }
    }
}

#[test]
fn fast_paths_are_what_is_compared_on_flex_in_f32_and_nowhere_else() {
    for case in &lane("flex-f32").cases {
        assert!(
            case.generic == 0 && case.fast > 0,
            "{} {}",
            case.case,
            case.generic
        );
    }
    for name in [
        "ndarray-f64",
        "ndarray-f32",
        "flex-f64",
        "flex-bf16",
        "flex-f16",
    ] {
        for case in &lane(name).cases {
            assert!(case.fast == 0, "{name} {}", case.case);
        }
    }
}

/// A family is listed with every rung: L0 to L3 against upstream, and L4.
#[test]
fn no_family_is_listed_without_a_fixture_for_every_rung() {
    let listed: BTreeSet<&str> = models().iter().map(|entry| entry.preset.family).collect();
    let rungs = |lane: &'static LaneReport, family: &'static str| -> BTreeSet<&str> {
        let checks = lane.of(family).flat_map(|case| &case.checks);
        checks.map(|check| check.rung.as_str()).collect()
    };
    for family in listed {
        let upstream = rungs(lane("ndarray-f64"), family);
        assert_eq!(
            upstream,
            BTreeSet::from(["L0", "L1", "L2", "L3"]),
            "{family}"
        );
        for lane in REPORT.with(Status::Passed).skip(1) {
            assert!(rungs(lane, family).contains("L4"), "{} {family}", lane.lane);
        }
        // Each optimizer in f64, and in f32 in some case.
        for name in ["ndarray-f64", "flex-f32"] {
            let checks = lane(name).of(family).flat_map(|case| &case.checks);
            let whats: BTreeSet<&str> = checks.map(|check| check.what.as_str()).collect();
            for (optimizer, ..) in OPTIMIZERS {
                assert!(
                    whats.contains(format!("{optimizer} weights").as_str()),
                    "{name} {family}"
                );
            }
        }
    }
}

/// Loads weights strictly and gives the spelling that was recognised.
struct Load<'a>(&'a LazyTensors);

impl WithModel<B> for Load<'_> {
    type Output = &'static str;

    fn run<M>(self, model: M, key_maps: Vec<KeyMap>) -> &'static str
    where
        M: AutodiffModule<B> + Network<B>,
        M::InnerModule: Network<Flex>,
    {
        let options = LoadOptions::strict(DType::F64);
        let loaded = load_with(model, self.0, &key_maps, &options);
        loaded.expect("every key fits").1.spelling
    }
}

#[test]
fn every_spelling_is_told_apart() {
    let work = temp();
    let file = work.path().join("weights.safetensors");
    for fixture in fixtures(&[]).expect("they are embedded") {
        write_safetensors(&file, &fixture.group("model.")).expect("writable");
        let tensors = LazyTensors::open(&file).expect("just written");
        let config = AutoConfig::from_json(&fixture.config).expect("a configuration");
        let device = Default::default();
        let spelling = config.with_model::<B, _>(None, &device, Load(&tensors));
        let spelling = spelling.expect("a valid configuration");
        assert_eq!(spelling, fixture.spelling, "{}", fixture.name);
    }
}

#[test]
fn a_lane_that_must_run_and_does_not_is_told_from_a_failure() {
    let args = [
        "verify",
        "mobilenet",
        "--lane",
        "cuda-f32",
        "--require",
        "cuda-f32",
    ];
    fails(&args, 3, &["cuda-f32", "was required and not run"]);
    fails(
        &["verify", "--require", "cuda-f23"],
        2,
        &["unknown lane `cuda-f23`"],
    );
    fails(&["verify", "resnett"], 2, &["unknown model `resnett`"]);
    fails(&["verify", "--backend", "flux"], 2, &["unknown backend"]);
    fails(&["verify", "--dtype", "f23"], 2, &["unknown dtype"]);
    fails(
        &["verify", "--baseline", "/nonexistent"],
        1,
        &["/nonexistent"],
    );
}

#[test]
fn reports_are_written_and_an_older_one_is_compared_with() {
    let work = temp();
    let folder = work.path().join("report");
    let dir = text(&folder);
    let args = [
        "verify",
        "mobilenet",
        "--lane",
        "flex-f32",
        "--report",
        &dir,
    ];
    let first = run(&args);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("written");
    let page = read("verify.html");
    for words in [
        "flex-f32",
        "mobilenet/v2",
        "id=\"flex-f32/mobilenet/v3\"",
        "hsl(",
        "<summary>stages in the order of the forward pass</summary>",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(read("verify.md").contains("| flex-f32 | mobilenet |"));
    assert!(read("junit.xml").contains("<testcase name=\"mobilenet/v2\""));
    // An older run that was ten thousand times better, and one check more.
    let mut older: Report = serde_json::from_str(&read("verify.json")).expect("a report");
    older.lanes[1].cases[0].checks[1].error /= 1e4;
    let mut more = older.lanes[1].cases[0].checks[1].clone();
    more.what = "something".into();
    older.lanes[1].cases[0].checks.push(more);
    let path = work.path().join("older.json");
    let json = serde_json::to_string(&older).expect("JSON");
    std::fs::write(&path, json).expect("writable");
    let second = run(&[
        "verify",
        "mobilenet",
        "--lane",
        "flex-f32",
        "--baseline",
        &text(&path),
    ]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    let worse: Vec<&str> = second
        .stdout
        .lines()
        .filter(|line| line.starts_with("worse: "))
        .collect();
    assert_eq!(worse.len(), 2, "{worse:?}");
    assert!(
        worse
            .iter()
            .any(|line| line.contains("something: compared before, not now"))
    );
}

#[test]
fn every_reference_file_is_embedded() {
    let on_disk = |family: &str| {
        let folder = burn_zoo_tests::golden::folder(family);
        let names = std::fs::read_dir(folder).expect("a folder");
        let names = names.map(|entry| entry.expect("an entry").file_name());
        let names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        let cases = names.iter().filter(|name| name.ends_with(".safetensors"));
        cases
            .filter(|name| !name.ends_with(".steps.safetensors"))
            .count()
    };
    let families: BTreeSet<&str> = models().iter().map(|entry| entry.preset.family).collect();
    let all: usize = families.into_iter().map(on_disk).sum();
    assert_eq!(fixtures(&[]).expect("they are embedded").len(), all);
}

/// Half of a lane's selection that leaves nothing is no success, and the number of a GPU none of a CPU.
#[test]
fn a_selection_that_is_empty_is_refused() {
    let none = ["verify", "--lane", "wgpu-f32", "--dtype", "f16"];
    fails(&none, 2, &["--lane", "leave no lane", "flex-f32"]);
    let second = run(&["verify", "mobilenet", "--lane", "flex-f32", "--device", "1"]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    fails(
        &["verify", "--report", "/proc/nowhere"],
        1,
        &["/proc/nowhere"],
    );
}

/// What a lane's process does wrong is a failed lane, by the name of the stage, in every form of the report.
#[test]
fn a_wrong_lane_fails_by_the_name_of_its_stage_and_a_hung_one_is_ended() {
    let work = temp();
    let folder = work.path().join("report");
    let dir = text(&folder);
    let args = [
        "verify",
        "mobilenet",
        "--lane",
        "flex-f32",
        "--report",
        &dir,
    ];
    let wrong = ended(zoo(&args).env("BURN_ZOO_TEST_WRONG_LANE", "flex-f32"));
    assert_eq!(wrong.code, 1, "{}", wrong.stderr);
    assert!(wrong.stdout.contains("1 failed"), "{}", wrong.stdout);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("written");
    let report: Report = serde_json::from_str(&read("verify.json")).expect("a report");
    let lane = report.lanes.iter().find(|lane| lane.lane == "flex-f32");
    let lane = lane.expect("it ran");
    assert_eq!(lane.status, Status::Failed);
    // Where it departs, the stages before and after are in the report too.
    let stages = &lane.failures().find(|(_, check)| check.what == "stages");
    let (_, check) = stages.as_ref().expect("they failed");
    assert!(check.stages.len() > 3, "{:?}", check.stages);
    assert!(check.stages[0].name == "features.0" && check.stages[0].error > check.limit);
    let firsts = lane
        .failures()
        .filter_map(|(_, check)| check.first.as_deref());
    assert!(firsts.into_iter().any(|first| first == "features.0"));
    assert!(wrong.stdout.contains("features.0"), "{}", wrong.stdout);
    assert!(read("junit.xml").contains("<failure"), "for a CI server");
    assert!(read("verify.md").contains("failed"), "for a pull request");
    assert!(read("verify.html").contains("failed"), "for people");

    let args = [
        "verify",
        "mobilenet",
        "--lane",
        "flex-f32",
        "--timeout",
        "2",
    ];
    let hung = ended(zoo(&args).env("BURN_ZOO_TEST_HANGING_LANE", "flex-f32"));
    assert_eq!(hung.code, 1, "{}", hung.stderr);
    assert!(
        hung.stdout
            .contains("flex-f32 hung: it said nothing for 2 s after 0 of"),
        "{}",
        hung.stdout
    );
}
