use super::{LaneReport, Report, Status};
use crate::lane::Lane;
use std::fmt::Write;

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
            for (family, cells) in lane.families(0) {
                let cells = cells.join(" | ");
                let _ = writeln!(text, "| {} | {family} | {with} | {cells} |", lane.lane);
            }
        }
        text.push('\n');
        for lane in self.with(Status::Failed) {
            for (case, check) in lane.failures() {
                let said = check.sentence();
                let _ = writeln!(text, "- **failed**: {} {}: {said}", lane.lane, case.case);
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

    /// A table of the families: the largest error of each rung against upstream, the lanes that agree, and the
    /// seconds that all lanes took.
    pub fn ladder(&self) -> String {
        let mut text = String::from(
            "| family | L0 keys | L1 outputs | L2 gradients | L3 ten steps | L4: lanes that agree with it | seconds |\n|---|---|---|---|---|---|---|\n",
        );
        let Some((exact, others)) = self.lanes.split_first() else {
            return text;
        };
        for (family, cells) in exact.families(0) {
            let cells = cells.join(" | ");
            let passed = |lane: &LaneReport| lane.of(family).filter(|case| case.passed()).count();
            let agrees = |lane: &&LaneReport| passed(lane) == exact.of(family).count();
            let lanes = others.iter().filter(agrees).map(|lane| lane.lane.as_str());
            let lanes = lanes.collect::<Vec<_>>().join(", ");
            let lanes_of = self.lanes.iter();
            let seconds: f64 = lanes_of.map(|lane| lane.seconds_of(family)).sum();
            let _ = writeln!(text, "| {family} | {cells} | {lanes} | {seconds:.1} |");
        }
        text
    }
}
