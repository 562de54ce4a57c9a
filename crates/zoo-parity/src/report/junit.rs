use super::{Report, Status};
use crate::compare::Check;
use burn_zoo_core::{Error, Result};
use quick_junit::{NonSuccessKind, Report as JUnit, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

impl Report {
    /// A suite for every lane and a test for every case; a lane that was not run is skipped.
    ///
    /// # Errors
    /// If the XML cannot be written.
    pub fn junit(&self) -> Result<String> {
        let mut junit = JUnit::new("zoo verify");
        for lane in &self.lanes {
            let mut suite = TestSuite::new(&lane.lane);
            for case in &lane.cases {
                let mut status = TestCaseStatus::success();
                if !case.passed() {
                    let lines: Vec<String> = case.failed().map(Check::sentence).collect();
                    status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status.set_message(lines.join("; "));
                }
                let mut test = TestCase::new(&case.case, status);
                test.set_time(Duration::from_secs_f64(case.seconds));
                suite.add_test_case(test);
            }
            if let Some(reason) = &lane.reason {
                let mut status = match lane.status {
                    Status::NotRun => TestCaseStatus::skipped(),
                    _ => TestCaseStatus::non_success(NonSuccessKind::Error),
                };
                status.set_message(reason.as_str());
                suite.add_test_case(TestCase::new("the lane", status));
            }
            junit.add_test_suite(suite);
        }
        junit
            .to_string()
            .map_err(|e| Error::malformed("JUnit", e.to_string()))
    }
}
