//! Models from a hub: the cache's layout, offline, and that a model is the same from there.
#![cfg(unix)]

use crate::common::*;
use crate::server::*;
use burn_zoo_checkpoint::read_safetensors;
use burn_zoo_hub::{Hub, Progress, RepoId, Timing};
use burn_zoo_mobilenet::{MobileNet, MobileNetConfig, ModelConfig, PretrainedModel};
use burn_zoo_tests::golden;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The hub at `address` with a cache in `folder`, and little patience.
pub fn hub(address: &str, folder: &Path) -> Hub {
    Hub {
        endpoint: address.into(),
        cache: folder.join("hub"),
        token: None,
        offline: false,
        timing: Timing {
            connect: Duration::from_secs(5),
            response: Duration::from_secs(5),
            stall: Duration::from_millis(400),
            retries: 0,
            first_wait: Duration::from_millis(10),
            longest_wait: Duration::from_secs(2),
        },
    }
}

/// The snapshot's folder or the error's text, and all that was told.
pub fn snapshot(hub: &Hub) -> (Result<PathBuf, String>, Vec<String>) {
    let mut notes = Vec::new();
    let repo = RepoId::parse("org/tiny").expect("a name");
    let found = hub.snapshot(&repo, &mut |progress| {
        if let Progress::Note(line) = progress {
            notes.push(line);
        }
    });
    (found.map_err(|e| e.to_string()), notes)
}

pub fn fetched(hub: &Hub) -> PathBuf {
    snapshot(hub).0.expect("a good server")
}

pub fn refused(hub: &Hub, words: &[&str]) {
    let error = snapshot(hub).0.expect_err("a bad server");
    for word in words {
        assert!(error.contains(word), "should say `{word}`: {error}");
    }
}

/// The command with its hub and cache in `folder`.
pub fn zoo_with(address: &str, folder: &Path, args: &[&str]) -> assert_cmd::Command {
    let mut command = zoo(args);
    command
        .env("HF_ENDPOINT", address)
        .env("HF_HUB_CACHE", folder.join("hub"));
    command
}

fn links(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let link = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let target = std::fs::read_link(&path).expect("a link");
        let name = path.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), text(&target))
    };
    let mut links: Vec<_> = entries.map(link).collect();
    links.sort();
    links
}

#[test]
fn a_snapshot_has_pythons_layout_and_is_not_downloaded_again() {
    let work = temp();
    let model = Model::tiny();
    let served = model.clone();
    let server = Server::start(move |request, _| served.answer(request));
    let hub = hub(&server.address, work.path());
    let folder = fetched(&hub);

    let root = work.path().join("hub/models--org--tiny");
    assert_eq!(folder, root.join("snapshots").join(COMMIT));
    let blob = |name: &str| {
        (
            name.to_string(),
            format!("../../blobs/{}", model.etag(name)),
        )
    };
    assert_eq!(
        links(&folder),
        [blob("config.json"), blob("model.safetensors")]
    );
    let at = |path: &str| std::fs::read(root.join(path)).expect(path);
    assert_eq!(at("refs/main"), COMMIT.as_bytes());
    let etag = model.etag("model.safetensors");
    assert_eq!(at(&format!("blobs/{etag}")), model.weights());
    let lock = format!("hub/.locks/models--org--tiny/{etag}.lock");
    assert!(work.path().join(lock).is_file());
    let blobs = std::fs::read_dir(root.join("blobs")).expect("a folder");
    assert_eq!(blobs.count(), 2, "and nothing incomplete");

    let before = server.requests().len();
    assert_eq!(fetched(&hub), folder);
    let again = server.requests().split_off(before);
    assert_eq!(again.len(), 1, "only which commit `main` is now: {again:?}");
    assert!(again[0].path.starts_with("/api/"));
}

#[test]
fn revisions_have_their_own_references() {
    let work = temp();
    let model = Model::tiny();
    let server = Server::start(move |request, _| model.answer(request));
    let hub = hub(&server.address, work.path());
    for revision in ["refs/pr/1", COMMIT] {
        let repo = RepoId::parse(&format!("org/tiny@{revision}")).expect("a name");
        hub.snapshot(&repo, &mut |_| {}).expect("a good server");
    }
    let list = &server.requests()[0].path;
    assert_eq!(list, "/api/models/org/tiny/revision/refs%2Fpr%2F1");
    let refs = work.path().join("hub/models--org--tiny/refs");
    let written: Vec<_> = contents(&refs).into_iter().map(|(path, _)| path).collect();
    assert_eq!(written, [refs.join("refs/pr/1")], "a commit needs none");
}

#[test]
fn two_processes_download_a_file_once() {
    let work = temp();
    let model = Model::tiny();
    let heads = AtomicUsize::new(0);
    let server = Server::start(move |request, _| {
        if request.is("HEAD", "model.safetensors") {
            heads.fetch_add(1, Ordering::Relaxed);
        }
        if request.is("GET", "model.safetensors") {
            // The other process knows of the file, and comes to its lock.
            let started = Instant::now();
            while heads.load(Ordering::Relaxed) < 2 && started.elapsed().as_secs() < 20 {
                std::thread::sleep(Duration::from_millis(10));
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        model.answer(request)
    });
    let mut ended = Vec::new();
    std::thread::scope(|scope| {
        let run = || ended_of(&server.address, work.path());
        let both = [scope.spawn(run), scope.spawn(run)];
        ended.extend(both.map(|thread| thread.join().expect("no panic")));
    });
    for one in &ended {
        assert_eq!(one.code, 0, "{}", one.stderr);
    }
    assert_eq!(server.count("GET", "model.safetensors"), 1);
    let waited = |e: &Ended| e.stderr.contains("waiting for another process");
    assert!(ended.iter().any(waited), "one had to wait");
}

fn ended_of(address: &str, folder: &Path) -> Ended {
    ended(&mut zoo_with(
        address,
        folder,
        &["fetch", "org/tiny", "--json"],
    ))
}

#[test]
fn offline_the_cache_must_do_and_says_so_where_it_cannot() {
    let work = temp();
    let model = Model::tiny();
    let server = Server::start(move |request, _| model.answer(request));
    let online = hub(&server.address, work.path());
    let offline = Hub {
        offline: true,
        ..online.clone()
    };
    refused(&offline, &["not found", "zoo fetch org/tiny"]);
    assert!(server.requests().is_empty());
    let folder = fetched(&online);
    let before = server.requests().len();
    assert_eq!(fetched(&offline), folder);
    assert_eq!(server.requests().len(), before);

    // A hub that cannot be reached is no reason to fail.
    let gone = hub("http://127.0.0.1:9", work.path());
    let (found, notes) = snapshot(&gone);
    assert_eq!(found, Ok(folder.clone()));
    assert!(
        notes[0].contains("the copy in the cache is used"),
        "{notes:?}"
    );

    // Half a snapshot is none.
    std::fs::remove_file(folder.join("model.safetensors")).expect("there");
    refused(
        &offline,
        &["model.safetensors not found", "zoo fetch org/tiny"],
    );
}

/// Python's newer clients keep a blob once for all models, in `blobs` of the cache itself.
#[test]
fn blobs_that_models_share_are_in_the_cache_too() {
    let work = temp();
    let model = Model::tiny();
    let etag = model.etag("model.safetensors");
    let server = Server::start(move |request, _| model.answer(request));
    let hub = hub(&server.address, work.path());
    let folder = fetched(&hub);
    let shared = work.path().join("hub/blobs/ab");
    std::fs::create_dir_all(&shared).expect("a folder");
    let blob = work.path().join("hub/models--org--tiny/blobs").join(etag);
    std::fs::rename(&blob, shared.join("abcd")).expect("movable");
    std::os::unix::fs::symlink("../../blobs/ab/abcd", &blob).expect("links");
    refused(&hub, &["leads out of its folder"]);
    let marker = work.path().join("hub/blobs/.huggingface-shared-blobs");
    std::fs::write(marker, "1\n").expect("writable");
    assert_eq!(fetched(&hub), folder);
}

#[test]
fn shards_come_with_their_index() {
    let work = temp();
    let index = r#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}"#;
    let model = Model::of([
        ("model.safetensors.index.json", index.into()),
        ("model-1.safetensors", vec![1; 10]),
        ("model-2.safetensors", vec![2; 20]),
        ("model-3.safetensors", vec![3; 30]),
        ("pytorch_model.bin", vec![4; 40]),
    ]);
    let server = Server::start(move |request, _| model.answer(request));
    let hub = hub(&server.address, work.path());
    let names: Vec<_> = links(&fetched(&hub)).into_iter().map(|l| l.0).collect();
    let wanted = [
        "model-1.safetensors",
        "model-2.safetensors",
        "model.safetensors.index.json",
    ];
    assert_eq!(names, wanted);
}

/// A small ResNet that transformers wrote, from a hub.
#[test]
fn a_model_of_a_hub_is_the_same_as_its_folder() {
    let work = temp();
    let at = golden::folder("forward").join("resnet_bottleneck_v1");
    let read = |name: &str| std::fs::read(at.join(name)).expect("a fixture");
    let model = Model::of([
        ("config.json", read("config.json")),
        ("model.safetensors", read("model.safetensors")),
    ]);
    let server = Server::start(move |request, _| model.answer(request));
    let input = text(&at.join("input.safetensors"));
    let forward = |checkpoint: &str, more: &[&str]| {
        let out = text(&work.path().join("out.safetensors"));
        let mut args = vec!["forward", "--checkpoint", checkpoint];
        args.extend(["--input", &input, "--output", &out, "--grad"]);
        args.extend(more);
        let ended = ended(&mut zoo_with(&server.address, work.path(), &args));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let outputs = read_safetensors(Path::new(&out)).expect("just written");
        (outputs, ended.stderr)
    };
    let (folder, _) = forward(&text(&at), &[]);
    let (hub, said) = forward("org/tiny", &[]);
    assert_eq!(hub, folder);
    assert!(
        said.contains("downloading org/tiny model.safetensors"),
        "{said}"
    );
    assert!(said.contains(&server.address), "{said}");
    let before = server.requests().len();
    let (offline, said) = forward("hf:org/tiny@main", &["--offline"]);
    assert_eq!(offline, folder);
    assert_eq!((server.requests().len(), said.as_str()), (before, ""));

    let info = ["info", "org/tiny", "--json", "--offline"];
    let info = ended(&mut zoo_with(&server.address, work.path(), &info));
    assert_eq!(info.code, 0, "{}", info.stderr);
    assert!(json(&info.stdout)["num_parameters"].as_u64() > Some(0));
}

/// A small ResNet for grey images that transformers wrote, with a new last layer.
#[test]
fn a_model_of_a_hub_or_folder_is_trained_on() {
    let work = temp();
    let at = golden::folder("forward").join("resnet_basic");
    let read = |name: &str| std::fs::read(at.join(name)).expect("a fixture");
    let model = Model::of([
        ("config.json", read("config.json")),
        ("model.safetensors", read("model.safetensors")),
    ]);
    let server = Server::start(move |request, _| model.answer(request));
    let runs = work.path().join("runs");
    let train = |model: &str, more: &[&str]| {
        let mut args = vec!["train", "--model", model, "--epochs", "1", "--threads", "2"];
        args.extend(more);
        let mut command = zoo_with(&server.address, work.path(), &args);
        ended(command.current_dir(work.path()))
    };
    let refused = train("org/tiny", &[]);
    let words = ["[10", "[3", "--allow-missing 'classifier.1.*'"];
    fails_as(refused, &["train --model org/tiny"], 2, &words);
    assert!(!runs.exists(), "nothing is begun");

    let trained = train("org/tiny", &["--allow-missing", "classifier.1.*"]);
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let new = "new: classifier.1.bias [10] (the file has [3])";
    assert!(trained.stdout.contains(new), "{}", trained.stdout);
    let run = runs.join("tiny-digits-1");
    let recipe = std::fs::read_to_string(run.join("recipe.json")).expect("a recipe");
    let recipe = json(&recipe);
    assert_eq!(recipe["model"], "org/tiny");
    assert_eq!(recipe["weights"], "org/tiny");
    assert_eq!(recipe["model_config"]["num_classes"], 10);

    // The run itself is a model to go on from, whole this time.
    let again = train("runs/tiny-digits-1", &[]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stdout.contains("nothing is new"), "{}", again.stdout);
    assert!(runs.join("tiny-digits-1-digits-1/report.html").is_file());

    let both = train("org/tiny", &["--weights", "resnet18"]);
    fails_as(
        both,
        &["--model and --weights"],
        2,
        &["--weights", "its own"],
    );
    let file = text(&at.join("model.safetensors"));
    fails_as(train(&file, &[]), &["a file"], 2, &["--model", "--weights"]);
    let alone = train("resnet20", &["--allow-missing", "fc.*"]);
    fails_as(alone, &["no weights"], 2, &["--allow-missing", "--weights"]);
}

#[test]
fn fetch_says_where_a_model_is() {
    let work = temp();
    let model = Model::tiny();
    let server = Server::start(move |request, _| model.answer(request));
    let fetch = |args: &[&str]| ended(&mut zoo_with(&server.address, work.path(), args));
    let said = fetch(&["fetch", "org/tiny", "--revision", "v1.0", "--json"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let said = json(&said.stdout);
    assert_eq!(said["bytes"], 100_002);
    assert_eq!(said["files"][1]["file"], "model.safetensors");
    let path = said["path"].as_str().expect("a path");
    assert!(path.ends_with(&format!("snapshots/{COMMIT}")), "{path}");
    let said = fetch(&["fetch", "org/tiny@v1.0", "--offline"]);
    assert!(said.stdout.contains("model.safetensors"), "{}", said.stdout);
    let said = fetch(&["fetch", path]);
    assert!(said.stdout.starts_with(path), "a folder is where it is");

    let fails = |args: &[&str], code, words: &[&str]| fails_as(fetch(args), args, code, words);
    fails(
        &["fetch", "resnet18", "--revision", "x"],
        2,
        &["--revision"],
    );
    fails(&["fetch", "hf:a/b/c"], 2, &["`hf:a/b/c`", "ORG/NAME"]);
    fails(&["fetch", "org/tiny@../x"], 2, &["no branch"]);
    fails(&["fetch", "resnet20"], 2, &["no weights are published"]);
    fails(&["fetch", "resnet1"], 2, &["unknown model"]);
    fails(
        &["fetch", "no/such/folder"],
        1,
        &["no/such/folder not found"],
    );
    let words = ["org/other", "not a folder here"];
    fails(&["fetch", "org/other"], 1, &words);
}

#[test]
fn published_weights_are_found_in_the_cache_and_checked() {
    let work = temp();
    let server = Server::start(|_, _| Reply::ok(b"something else"));
    let run = |args: &[&str]| {
        let mut command = zoo(args);
        command
            .env("BURN_ZOO_CACHE", work.path())
            .env("BURN_ZOO_MIRROR", &server.address);
        ended(&mut command)
    };
    let name = "mobilenet_v3_small";
    let args = ["fetch", name];
    let words = ["wrong contents", "/weights/mobilenet_v3_small-", ".pth"];
    fails_as(run(&args), &args, 1, &words);
    let left = contents(work.path());
    assert!(
        left.iter()
            .all(|(path, _)| path.extension() == Some("lock".as_ref()))
    );
    let args = ["fetch", name, "--offline"];
    fails_as(run(&args), &args, 1, &["zoo fetch mobilenet_v3_small"]);

    let device = Default::default();
    let (preset, config) = MobileNetConfig::preset(name).expect("listed");
    let url = preset.weights.expect("published").url;
    let file = url.rsplit('/').next().expect("a name");
    MobileNet::<burn_flex::Flex>::new(&config, 5, &device)
        .expect("a preset")
        .save(&work.path().join("weights").join(file))
        .expect("writable");
    let picture = text(&work.path().join("picture.png"));
    image::RgbImage::from_fn(64, 64, |x, y| image::Rgb([x as u8, y as u8, 9]))
        .save(&picture)
        .expect("writable");
    let before = server.requests().len();
    let ended = run(&["predict", name, &picture, "--json"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(server.requests().len(), before);
    let top = &json(&ended.stdout)[0]["top"];
    assert_eq!(top.as_array().map(Vec::len), Some(5));
}
