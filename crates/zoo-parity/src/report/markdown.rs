use super::{LaneReport, Report, Status};
use crate::compare::Kind;
use crate::lane::Lane;
use std::fmt::Write;

/// The columns.
const KINDS: [Kind; 4] = [Kind::Loading, Kind::Outputs, Kind::Gradients, Kind::Steps];

impl Report {
    /// A table of families by lanes with the largest error of each rung, and what was not run or failed.
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| lane | model | compared with | keys | outputs | gradients | ten steps |\n|---|---|---|---|---|---|---|\n",
        );
        for lane in &self.lanes {
            let with = match lane.lane == Lane::reference().name {
                true => "upstream (L0 to L3)".to_string(),
                false => format!("{} (L4)", Lane::reference().name),
            };
            for (family, kinds) in Report::families(lane) {
                let cell = |kind| match kinds.get(&kind) {
                    None => "–".to_string(),
                    Some(0.0) if kind == Kind::Loading => "all".into(),
                    Some(error) if *error == f64::MAX => "∞".into(),
                    Some(error) => format!("{error:.0e}"),
                };
                let cells = KINDS.map(cell).join(" | ");
                let _ = writeln!(text, "| {} | {family} | {with} | {cells} |", lane.lane);
            }
        }
        text.push('\n');
        for lane in self.with(Status::Failed) {
            for case in lane.cases.iter().filter(|case| !case.passed()) {
                for check in case.checks.iter().filter(|check| !check.passed) {
                    let _ = writeln!(
                        text,
                        "- **failed**: {} {}: {}",
                        lane.lane,
                        case.case,
                        check.sentence()
                    );
                }
            }
            if let Some(reason) = &lane.reason {
                let _ = writeln!(text, "- **failed**: {}: {reason}", lane.lane);
            }
        }
        for lane in self.with(Status::NotRun) {
            let reason = lane.reason.as_deref().unwrap_or_default();
            let _ = writeln!(text, "- not run: {}: {reason}", lane.lane);
        }
        let _ = writeln!(text, "\n{} ({})", self.summary(), self.origin());
        text
    }

    /// A table of the families: the largest error of each rung against upstream, and the lanes that agree.
    pub fn ladder(&self) -> String {
        let mut text = String::from(
            "| family | L0 keys | L1 outputs | L2 gradients | L3 ten steps | L4: lanes that agree with it |\n|---|---|---|---|---|---|\n",
        );
        let Some((exact, others)) = self.lanes.split_first() else {
            return text;
        };
        for (family, kinds) in Report::families(exact) {
            let cell = |kind| match kinds.get(&kind) {
                None => "–".to_string(),
                Some(0.0) if kind == Kind::Loading => "all".into(),
                Some(error) if *error == f64::MAX => "∞".into(),
                Some(error) => format!("{error:.0e}"),
            };
            let cells = KINDS.map(cell).join(" | ");
            let cases = |lane: &LaneReport| {
                let of = lane.cases.iter().filter(|case| case.family() == family);
                of.filter(|case| case.passed()).count()
            };
            let all = exact
                .cases
                .iter()
                .filter(|case| case.family() == family)
                .count();
            let agrees = |lane: &&LaneReport| cases(lane) == all;
            let lanes = others.iter().filter(agrees).map(|lane| lane.lane.as_str());
            let lanes = lanes.collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "| {family} | {cells} | {lanes} |");
        }
        text
    }
}
