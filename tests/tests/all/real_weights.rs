//! L5: published weights on real photos, where `tools/fetch-assets.sh` brought them.
//!
//! Wanted are upstream's classes and probabilities, computed by upstream's own model and torchvision's
//! transforms from the same files; within 0.01.

use crate::common::*;
use std::path::PathBuf;

/// A file that was fetched, or `None` with the reason printed. `BURN_ZOO_REQUIRE=assets` makes its
/// absence a failure.
fn asset(name: &str) -> Option<PathBuf> {
    let folder = match name.ends_with(".pth") {
        true => "weights",
        false => "assets",
    };
    let path = Some(burn_zoo_core::cache_dir().join(folder).join(name));
    match path.filter(|path| path.is_file()) {
        Some(path) => Some(path),
        None => {
            let required = std::env::var("BURN_ZOO_REQUIRE").is_ok_and(|v| v == "assets");
            assert!(!required, "{name} is required and absent");
            println!("not run: {name} is absent; tools/fetch-assets.sh brings it");
            None
        }
    }
}

/// Each photo with upstream's three most probable classes.
type Wanted = [(&'static str, [(usize, f64); 3]); 3];

fn check(model: &str, weights: &str, wanted: Wanted) {
    let Some(weights) = asset(weights) else {
        return;
    };
    let weights = text(&weights);
    for (photo, want) in wanted {
        let Some(photo) = asset(photo) else { return };
        let photo = text(&photo);
        let args = ["predict", model, &photo, "--weights", &weights, "--json"];
        let ended = run(&args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let found = json(&ended.stdout);
        let top = found[0]["top"].as_array().expect("a list");
        for (class, probability) in want {
            // By class: two of the first three may be as good as equal.
            let entry = top[..3].iter().find(|entry| entry["label"] == class);
            let entry = entry.unwrap_or_else(|| panic!("{photo}: no {class} in {found}"));
            let off = entry["probability"].as_f64().expect("a number") - probability;
            println!("{photo}: class {class} is {off:+.4} off");
            assert!(off.abs() < 0.01, "{photo}: {found}");
        }
    }
}

#[test]
fn mobilenet_v2_gives_torchvisions_classes_and_probabilities() {
    let wanted = [
        ("chelsea.png", [(285, 0.7166), (282, 0.1471), (281, 0.1295)]),
        ("coffee.png", [(967, 0.9921), (925, 0.0043), (968, 0.0014)]),
        ("china.jpg", [(698, 0.6922), (663, 0.1684), (832, 0.0298)]),
    ];
    check("mobilenet_v2", "mobilenet_v2-b0353104.pth", wanted);
}

/// Half of that file's tensors are strided.
#[test]
fn efficientnet_lite0_gives_its_ports_classes_and_probabilities() {
    let wanted = [
        ("chelsea.png", [(282, 0.3789), (285, 0.3752), (281, 0.1678)]),
        ("coffee.png", [(967, 0.9567), (968, 0.0136), (925, 0.0069)]),
        ("china.jpg", [(698, 0.3509), (442, 0.1889), (975, 0.0711)]),
    ];
    check(
        "efficientnet-lite0",
        "efficientnet-lite0-57934424.pth",
        wanted,
    );
}
