//! The network on flex in f32 against burn-ndarray in f64, and that a difference is found and placed.

use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Tensor, TensorData};
use burn_zoo_checkpoint::Tensors;
use burn_zoo_core::{CollectStages, Stages};
use burn_zoo_parity::{Inputs, Status, Subject, check_parity};
use own_model::Net;

/// The network; with `wrong` it counts differently on every backend but the reference.
struct Whole {
    wrong: bool,
}

impl Subject for Whole {
    type Model<B: AutodiffBackend> = Net<B>;

    fn build<B: AutodiffBackend>(&self, device: &B::Device) -> Net<B> {
        Net::new(device)
    }

    fn inputs(&self) -> Tensors {
        let pixels: Vec<f64> = (0..2 * 3 * 12 * 12)
            .map(|i| (i * 31 % 101) as f64 / 50.0 - 1.0)
            .collect();
        Tensors::from([(
            "pixels".to_string(),
            TensorData::new(pixels, [2, 3, 12, 12]),
        )])
    }

    fn forward<B: AutodiffBackend>(
        &self,
        model: &Net<B>,
        inputs: &Inputs<'_, B>,
        stages: &mut CollectStages<B>,
    ) -> Tensor<B, 1> {
        let mut features = model.features(inputs.float::<4>("pixels"));
        if self.wrong && !B::name(&features.device()).contains("ndarray") {
            features = features * 1.001;
        }
        stages.stage(
            "features",
            features.clone().flatten(0, 1),
            features.dims().to_vec(),
        );
        model.forward(inputs.float::<4>("pixels")).flatten(0, 1)
    }
}

#[test]
fn backends_agree() {
    let report = check_parity(&Whole { wrong: false })
        .lanes(["flex-f32"])
        .run();
    let report = report.expect("the reference is always there");
    println!("{}", report.markdown());
    report.assert_passed();
}

#[test]
fn a_difference_is_placed() {
    let report = check_parity(&Whole { wrong: true })
        .lanes(["flex-f32"])
        .run();
    let lane = &report.expect("the reference is always there").lanes[0];
    assert_eq!(lane.status, Status::Failed);
    let failed = lane.cases[0].checks.iter().find(|check| !check.passed);
    assert_eq!(
        failed.expect("a failure").first.as_deref(),
        Some("features")
    );
}

#[test]
fn what_is_not_there_is_not_said_to_have_passed() {
    let report = check_parity(&Whole { wrong: false })
        .lanes(["cuda-f32"])
        .run();
    let report = report.expect("the reference is always there");
    assert_eq!(report.lanes[0].status, Status::NotRun);
    assert!(std::panic::catch_unwind(|| report.assert_passed()).is_err());
}
