//! The command line as a user meets it: results, JSON and exit codes.

use crate::common::*;

#[test]
fn list_names_every_preset() {
    let list = json(&run(&["list", "--json"]).stdout);
    let names: Vec<&str> = list
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|p| p["name"].as_str())
        .collect();
    for name in [
        "resnet18",
        "resnet152",
        "resnext101_32x8d",
        "wide_resnet101_2",
        "resnet110",
        "resnet18_cifar",
    ] {
        assert!(names.contains(&name), "{name} is missing from {names:?}");
    }
    assert!(run(&["list"]).stdout.contains("wide_resnet50_2"));
}

#[test]
fn the_readme_holds_the_table_of_models() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md"))
        .expect("a README");
    let table = run(&["list", "--markdown"]).stdout;
    assert!(
        readme.contains(table.trim()),
        "put the output of `zoo list --markdown` into README.md"
    );
}

#[test]
fn info_gives_parameters_flops_memory_input_licence_and_source() {
    let info = json(&run(&["info", "resnet18", "--json"]).stdout);
    assert_eq!(info["flops_forward"], 3_628_146_688u64);
    assert_eq!(info["preset"]["num_parameters"], 11_689_512);
    assert_eq!(info["weight_bytes_f32"], 4 * 11_689_512);
    assert_eq!(info["preset"]["license"], "BSD-3-Clause");
    assert_eq!(info["preset"]["preprocessing"]["crop"], 224);
    let text = run(&["info", "resnet20"]);
    assert_eq!(text.code, 0);
    for word in ["parameters", "FLOPs", "memory", "input", "licence", "paper"] {
        assert!(text.stdout.contains(word), "{word}: {}", text.stdout);
    }
}

#[test]
fn every_command_has_examples_in_its_help() {
    for command in ["list", "info", "train", "eval", "predict", "fetch"] {
        let help = run(&[command, "--help"]);
        assert_eq!(help.code, 0);
        assert!(
            help.stdout.contains("Examples:"),
            "{command}: {}",
            help.stdout
        );
    }
}

/// What the README's first command does, without the example's words around it.
#[test]
fn the_main_job_learns_the_digits() {
    let folder = temp();
    let out = text(&folder.path().join("run"));
    let trained = run(&["train", "--out", &out, "--json"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let found = json(&trained.stdout);
    let accuracy = found["test_accuracy"].as_f64().expect("a number");
    assert!(accuracy >= 0.98 && found["test_count"] == 359, "{found}");
}

#[test]
fn a_trained_model_is_evaluated_and_predicts_a_file_several_and_a_folder() {
    let folder = temp();
    let out = text(&folder.path().join("run"));
    let trained = run(&short_run(&out, &["--epochs", "3"]));
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    for file in [
        "recipe.json",
        "metrics.csv",
        "config.json",
        "model.safetensors",
        "evaluation.json",
        "report.html",
        "command.txt",
        "events.out.tfevents.0",
    ] {
        assert!(
            folder.path().join("run").join(file).is_file(),
            "{file} is missing"
        );
    }
    let html = std::fs::read_to_string(folder.path().join("run/report.html")).expect("a report");
    assert_eq!(html.matches("<svg").count(), 4, "four charts");
    assert!(html.contains("<h2>Confusion matrix"), "a matrix");
    let checkpoints = std::fs::read_dir(folder.path().join("run/checkpoints")).expect("a folder");
    let kept: Vec<_> = checkpoints
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert!(
        !kept.is_empty()
            && kept
                .iter()
                .all(|step| step.join("model.safetensors").is_file())
    );
    // What a person is told at the end, without colours where nobody looks.
    for words in [
        "everything is in",
        "next:",
        "some test images: ",
        "test accuracy",
    ] {
        assert!(
            trained.stdout.contains(words),
            "{words}: {}",
            trained.stdout
        );
    }
    assert!(!trained.stdout.contains('\x1b'), "{}", trained.stdout);
    assert!(
        html.matches("data:image/png;base64,").count() >= 24,
        "a sheet of predictions"
    );
    assert!(!html.contains("<script"), "no scripts in a report");

    // The same evaluation by itself.
    let eval = json(&run(&["eval", &out, "--json"]).stdout);
    let saved =
        json(&std::fs::read_to_string(folder.path().join("run/evaluation.json")).expect("saved"));
    assert_eq!(eval["accuracy"], saved["accuracy"]);
    assert_eq!(eval["confusion"], saved["confusion"]);
    assert!(eval["accuracy"].as_f64().expect("a number") > 0.5, "{eval}");

    // Files that hold the test images get the classes the evaluation found.
    let images = folder.path().join("images");
    std::fs::create_dir(&images).expect("a folder");
    let data = digits();
    let files: Vec<String> = (0..3)
        .map(|i| {
            let path = images.join(format!("{i}.png"));
            write_png(data.test.as_ref(), i, 1, &path);
            text(&path)
        })
        .collect();
    let predict = |inputs: &[&str]| {
        let mut args = vec!["predict", &out, "--json", "--top", "2"];
        args.extend(inputs);
        json(&run(&args).stdout)
    };
    let all = predict(&[&files[0], &files[1], &files[2]]);
    assert_eq!(all, predict(&[&text(&images)]), "a folder gives its files");
    assert_eq!(
        all[1],
        predict(&[&files[1]])[0],
        "a file alone gives the same"
    );
    for i in 0..3 {
        let top = all[i]["top"].as_array().expect("a list");
        assert_eq!(top.len(), 2);
        assert_eq!(top[0]["label"], saved["predictions"][i][0]);
    }
    assert!(run(&["predict", &out, &files[0]]).stdout.contains('%'));

    // Other dtypes give nearly the same probabilities.
    let f64 = json(&run(&["predict", &out, &files[0], "--json", "--dtype", "f64"]).stdout);
    let (a, b) = (&f64[0]["top"][0], &all[0]["top"][0]);
    assert_eq!(a["label"], b["label"]);
    let difference =
        a["probability"].as_f64().expect("a number") - b["probability"].as_f64().expect("a number");
    assert!(difference.abs() < 1e-4, "{a} {b}");
}

#[test]
fn an_image_folder_is_trained_on() {
    let folder = temp();
    let data = folder.path().join("data");
    digit_folder(&data, 3, 20);
    let out = text(&folder.path().join("run"));
    let args = [
        "train",
        "--model",
        "resnet20",
        "--dataset",
        "image-folder",
        "--data-dir",
        &text(&data),
        "--image-size",
        "16",
        "--epochs",
        "2",
        "--batch-size",
        "8",
        "--out",
        &out,
        "--json",
    ];
    let trained = run(&args);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let result = json(trained.stdout.split_once("\n{").map_or("", |_| {
        &trained.stdout[trained.stdout.rfind("\n{").expect("JSON")..]
    }));
    assert_eq!(result["test_count"], 12);
    let card =
        json(&std::fs::read_to_string(folder.path().join("run/config.json")).expect("a card"));
    assert_eq!(card["class_names"][2], "digit 2");
}

#[test]
fn sets_in_mnists_and_cifars_form_are_trained_on_from_a_folder() {
    let folder = temp();
    let mnist = folder.path().join("mnist");
    idx_set(&mnist, 40);
    let cifar = folder.path().join("cifar");
    std::fs::create_dir(&cifar).expect("a folder");
    for name in [
        "data_batch_1",
        "data_batch_2",
        "data_batch_3",
        "data_batch_4",
        "data_batch_5",
        "test_batch",
    ] {
        let bytes: Vec<u8> = (0..10u8)
            .flat_map(|label| {
                std::iter::once(label).chain((0..3072).map(move |i| (i % 200) as u8 + label))
            })
            .collect();
        std::fs::write(cifar.join(format!("{name}.bin")), bytes).expect("writable");
    }
    for (dataset, data) in [
        ("fashion-mnist", &mnist),
        ("mnist", &mnist),
        ("cifar10", &cifar),
    ] {
        let out = text(&folder.path().join(format!("run-{dataset}")));
        let args = [
            "train",
            "--model",
            "resnet20",
            "--dataset",
            dataset,
            "--data-dir",
            &text(data),
            "--epochs",
            "1",
            "--batch-size",
            "16",
            "--out",
            &out,
        ];
        let trained = run(&args);
        assert_eq!(trained.code, 0, "{dataset}: {}", trained.stderr);
    }
}
