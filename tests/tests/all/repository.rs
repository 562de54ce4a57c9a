//! The repository keeps its promises: what pages show is what was built and measured.

use burn_zoo_parity::Report;
use std::fs::read_to_string;
use std::path::PathBuf;

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn the_readmes_program_is_the_one_that_is_built() {
    let readme = read_to_string(root().join("README.md")).expect("a README");
    let program = read_to_string(root().join("tests/consumer/src/main.rs")).expect("the consumer");
    let shown = readme
        .split("```rust\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    assert_eq!(shown, Some(program.as_str()));
}

#[test]
fn every_crate_has_a_description_and_the_workspaces_licence() {
    for group in ["crates", "models", "datasets"] {
        for entry in std::fs::read_dir(root().join(group)).expect("a folder") {
            let path = entry.expect("an entry").path().join("Cargo.toml");
            let text = read_to_string(&path).expect("a manifest");
            assert!(
                text.contains("description = ") && text.contains("license.workspace = true"),
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn every_family_has_an_example_that_cargo_knows() {
    let manifest = read_to_string(root().join("examples/Cargo.toml")).expect("a manifest");
    for entry in std::fs::read_dir(root().join("models")).expect("a folder") {
        let family = entry.expect("an entry").file_name();
        let family = family.to_str().expect("a name");
        let entry = format!("[[example]]\nname = \"{family}\"\npath = \"{family}.rs\"");
        assert!(manifest.contains(&entry), "{family}");
        let path = root().join(format!("examples/{family}.rs"));
        assert!(path.is_file(), "{}", path.display());
    }
}

/// Puts `table` where `page` has it between its markers, if `BURN_ZOO_UPDATE` is set; otherwise it must be
/// there.
fn check_table(page: &str, marker: &str, table: &str) {
    let path = root().join(page);
    let text = read_to_string(&path).expect("a page");
    let (start, end) = (format!("<!-- {marker} -->\n"), "<!-- end -->");
    let (before, rest) = text.split_once(&start).expect("the marker");
    let (shown, after) = rest.split_once(end).expect("the end marker");
    if std::env::var_os("BURN_ZOO_UPDATE").is_some() {
        let text = format!("{before}{start}{table}{end}{after}");
        std::fs::write(&path, text).expect("writable");
        return;
    }
    assert!(
        shown == table,
        "{page} differs from what it says it was generated from: run this test with BURN_ZOO_UPDATE=1"
    );
}

#[test]
fn the_table_of_seeded_bugs_is_what_was_found() {
    let file = "docs/results/mutations.json";
    let json = read_to_string(root().join(file)).expect("a result");
    let found: Vec<crate::mutations::Found> = serde_json::from_str(&json).expect("a list");
    let table = crate::mutations::markdown(&found);
    check_table(
        "docs/src/verify.md",
        &format!("generated from {file}"),
        &table,
    );
}

#[test]
fn the_table_of_times_is_what_was_measured() {
    let file = "docs/results/bench-cpu.json";
    let json = read_to_string(root().join(file)).expect("a result");
    let all: serde_json::Value = serde_json::from_str(&json).expect("a report");
    let number = |row: &serde_json::Value, key: &str| row[key].as_f64().expect("a number");
    let mut table = String::from(
        "| job | zoo, ms | PyTorch, ms | ratio | peak memory, MiB |\n|---|---|---|---|---|\n",
    );
    for row in all["rows"].as_array().expect("rows") {
        let ratios = row["ratios"].as_array().expect("ratios").iter();
        let ratios: Vec<f64> = ratios.filter_map(|ratio| ratio.as_f64()).collect();
        table += &format!(
            "| `{}` | {:.1} | {:.1} | {:.2} ({:.2} to {:.2}) | {:.0} and {:.0} |\n",
            row["job"].as_str().expect("a name"),
            number(row, "zoo_ms"),
            number(row, "pytorch_ms"),
            number(row, "ratio"),
            ratios[0],
            ratios[ratios.len() - 1],
            number(row, "zoo_peak_mb"),
            number(row, "pytorch_peak_mb"),
        );
        assert!(number(row, "results_apart") < 1e-4, "{row}");
    }
    table += &format!(
        "\nGeometric mean of the ratios {:.2}; {}, {} threads, {} rounds, {}, {}.\n",
        number(&all, "geometric_mean"),
        all["machine"].as_str().expect("a machine"),
        all["threads"],
        all["rounds"],
        all["pytorch"].as_str().expect("a version"),
        all["date"].as_str().expect("a date"),
    );
    check_table(
        "docs/src/speed.md",
        &format!("generated from {file}"),
        &table,
    );
}

#[test]
fn tables_of_errors_are_what_zoo_verify_wrote() {
    for name in ["verify-cpu", "verify-lavapipe"] {
        let file = format!("docs/results/{name}.json");
        let json = read_to_string(root().join(&file)).expect("a result");
        let report: Report = serde_json::from_str(&json).expect("a report");
        let marker = format!("generated from {file}");
        check_table("docs/src/verify.md", &marker, &report.markdown());
        if name == "verify-cpu" {
            let marker = format!("ladder {marker}");
            check_table("README.md", &marker, &report.ladder());
        }
    }
}
