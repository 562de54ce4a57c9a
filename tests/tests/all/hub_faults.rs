//! Hubs that fail, lie or attack: an explanation, nothing half-written, nothing outside the cache.
#![cfg(unix)]

use crate::common::*;
use crate::hub::*;
use crate::server::*;
use burn_zoo_hub::{Hub, Timing};
use std::path::Path;
use std::time::{Duration, Instant};

const WEIGHTS: &str = "/model.safetensors";

/// A hub that has `tiny` and answers as `bend` says where that says something.
fn bent(bend: impl Fn(&Model, &Request, usize) -> Option<Reply> + Send + Sync + 'static) -> Server {
    let model = Model::tiny();
    Server::start(move |request, n| {
        bend(&model, request, n).unwrap_or_else(|| model.answer(request))
    })
}

fn retrying(hub: Hub, retries: u32) -> Hub {
    let timing = Timing {
        retries,
        ..hub.timing
    };
    Hub { timing, ..hub }
}

/// What is left of the weights' blob: the whole one, and the part.
fn blobs(work: &Path) -> (Option<usize>, Option<usize>) {
    let etag = Model::tiny().etag("model.safetensors");
    let blobs = work.join("hub/models--org--tiny/blobs");
    let length = |name: String| {
        let bytes = std::fs::read(blobs.join(name));
        bytes.ok().map(|bytes| bytes.len())
    };
    (length(etag.clone()), length(format!("{etag}.incomplete")))
}

#[test]
fn a_download_that_breaks_off_goes_on_where_it_stopped() {
    let work = temp();
    let server = bent(|model, request, n| {
        let first = request.is("GET", WEIGHTS) && n == 0;
        first.then(|| Reply {
            cut: Some(60_000),
            ..model.answer(request)
        })
    });
    let hub = hub(&server.address, work.path());
    refused(
        &hub,
        &["broke off after 60000 of 100000 bytes", "run again"],
    );
    assert_eq!(blobs(work.path()), (None, Some(60_000)));
    fetched(&hub);
    assert_eq!(blobs(work.path()), (Some(100_000), None));
    let requests = server.requests();
    let ranges: Vec<_> = requests
        .iter()
        .filter(|r| r.is("GET", WEIGHTS))
        .map(|r| r.header("range"))
        .collect();
    assert_eq!(
        ranges,
        [None, Some("bytes=60000-")],
        "only the rest was sent"
    );
}

#[test]
fn symptom_21_a_download_that_breaks_off_is_tried_again_by_itself() {
    let work = temp();
    let server = bent(|model, request, n| {
        (request.is("GET", WEIGHTS) && n < 3).then(|| Reply {
            cut: Some(20_000),
            ..model.answer(request)
        })
    });
    let (found, notes) = snapshot(&retrying(hub(&server.address, work.path()), 3));
    found.expect("the fourth try brings the rest");
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert_eq!(server.count("GET", WEIGHTS), 4);
    assert_eq!(blobs(work.path()), (Some(100_000), None));
}

#[test]
fn wrong_contents_are_never_used() {
    let damaged = |model: &Model, request: &Request, _| {
        let mut reply = model.answer(request);
        let is_body = request.is("GET", WEIGHTS) && !reply.body.is_empty();
        is_body.then(|| {
            reply.body[50_000] ^= 1;
            reply
        })
    };
    let work = temp();
    let server = bent(damaged);
    let at = hub(&server.address, work.path());
    refused(&at, &["wrong contents", "SHA-256", "removed"]);
    assert_eq!(blobs(work.path()), (None, None));

    // In git's own files too.
    let work = temp();
    let server = bent(|model, request, _| {
        let mut reply = model.answer(request);
        reply.body = b"[]".to_vec();
        request.is("GET", "/config.json").then_some(reply)
    });
    refused(
        &hub(&server.address, work.path()),
        &["wrong contents", "SHA-1"],
    );

    // What an earlier try left was damaged: all of it comes once more.
    let work = temp();
    let etag = Model::tiny().etag("model.safetensors");
    let part = work.path().join("hub/models--org--tiny/blobs");
    std::fs::create_dir_all(&part).expect("a folder");
    std::fs::write(part.join(format!("{etag}.incomplete")), [9; 70_000]).expect("writable");
    let server = bent(|_, _, _| None);
    let (found, notes) = snapshot(&hub(&server.address, work.path()));
    let bytes = std::fs::read(found.expect("good").join("model.safetensors"));
    assert_eq!(bytes.expect("there"), Model::tiny().weights());
    assert!(notes[0].contains("starting over"), "{notes:?}");
}

#[test]
fn a_server_that_stalls_is_given_up() {
    let work = temp();
    let server = bent(|model, request, n| {
        (request.is("GET", WEIGHTS) && n == 0).then(|| Reply {
            cut: Some(30_000),
            stall: Some(Duration::from_secs(20)),
            ..model.answer(request)
        })
    });
    let hub = hub(&server.address, work.path());
    let started = Instant::now();
    refused(&hub, &["no bytes for 0.4 s after 30000", "run again"]);
    assert!(started.elapsed() < Duration::from_secs(10));
    fetched(&hub);
    assert_eq!(server.count("GET", WEIGHTS), 2);
}

#[test]
fn a_token_goes_to_the_hub_and_to_no_other_host() {
    let work = temp();
    let model = Model::tiny();
    let there = model.clone();
    // Another port is another host.
    let cdn = Server::start(move |request, _| there.file(request, "model.safetensors"));
    let address = cdn.address.clone();
    let server = Server::start(move |request, _| {
        let cdn = Some(address.clone());
        Model {
            cdn,
            ..model.clone()
        }
        .answer(request)
    });
    let hub = Hub {
        token: Some("hf_secret".into()),
        ..hub(&server.address, work.path())
    };
    fetched(&hub);
    let has = |r: &Request| r.header("authorization") == Some("Bearer hf_secret");
    assert!(server.requests().iter().all(has), "the hub needs it");
    assert_eq!(cdn.requests().len(), 1, "the head is the hub's own");
    assert_eq!(cdn.requests()[0].header("authorization"), None);
    assert_eq!(cdn.requests()[0].path, "/model.safetensors?signed");
}

#[test]
fn redirects_end() {
    let work = temp();
    let server = bent(|_, request, _| {
        let path = request.path.clone();
        request
            .path
            .contains("resolve")
            .then(|| Reply::status(302).with("Location", path))
    });
    refused(
        &hub(&server.address, work.path()),
        &["more than 10 redirects"],
    );
    assert!(server.requests().len() < 20);
    let server = bent(|_, _, _| Some(Reply::status(302)));
    refused(&hub(&server.address, work.path()), &["says not where to"]);
    let server = bent(|_, _, _| Some(Reply::status(302).with("Location", "file:///etc/passwd")));
    refused(&hub(&server.address, work.path()), &["a redirect to"]);
}

/// A hub that answers every question for the list so.
fn answering(status: u16, code: &'static str) -> Server {
    bent(move |_, _, _| Some(Reply::status(status).with("X-Error-Code", code)))
}

#[test]
fn refusals_say_what_helps() {
    let work = temp();
    let cases: [(u16, &str, bool, &[&str]); 9] = [
        (401, "", false, &["401", "private or gated", "HF_TOKEN"]),
        (401, "RepoNotFound", false, &["no such model", "HF_TOKEN"]),
        (401, "", true, &["401", "the token gives access to", "anew"]),
        (401, "GatedRepo", false, &["gated", "its page", "HF_TOKEN"]),
        (
            403,
            "GatedRepo",
            true,
            &["403", "no access", "model's page"],
        ),
        (404, "RepoNotFound", false, &["no such model"]),
        (404, "RevisionNotFound", false, &["no such revision"]),
        (404, "EntryNotFound", false, &["no such file"]),
        (418, "", false, &["refused (418)"]),
    ];
    for (status, code, has_token, words) in cases {
        let server = answering(status, code);
        let hub = Hub {
            token: has_token.then(|| "hf_secret".into()),
            ..retrying(hub(&server.address, work.path()), 3)
        };
        refused(&hub, words);
        assert_eq!(
            server.requests().len(),
            1,
            "{status} does not pass by itself"
        );
    }
}

#[test]
fn busy_and_broken_servers_are_asked_again_for_a_while() {
    let work = temp();
    let server = bent(|_, request, n| {
        let busy = Reply::status(429).with("Retry-After", "1");
        (request.path.contains("/api/") && n == 0).then_some(busy)
    });
    let started = Instant::now();
    let (found, notes) = snapshot(&retrying(hub(&server.address, work.path()), 1));
    found.expect("the second try is answered");
    assert!(started.elapsed() >= Duration::from_secs(1), "as it asked");
    assert!(
        notes[0].contains("429") && notes[0].contains("again in 1 s"),
        "{notes:?}"
    );

    let work = temp();
    let patient = bent(|_, _, _| Some(Reply::status(429).with("Retry-After", "3600")));
    refused(
        &retrying(hub(&patient.address, work.path()), 5),
        &["429", "run again later"],
    );
    assert_eq!(patient.requests().len(), 1, "an hour is too long");

    let broken = bent(|_, _, _| Some(Reply::status(500)));
    refused(
        &retrying(hub(&broken.address, work.path()), 2),
        &["500", "run again later"],
    );
    assert_eq!(broken.requests().len(), 3);
}

#[test]
fn nothing_that_a_server_says_leaves_the_cache() {
    let list = |json: serde_json::Value| {
        move |_: &Model, request: &Request, _: usize| {
            let is_list = request.path.contains("/api/");
            is_list.then(|| Reply::ok(json.to_string().as_bytes()))
        }
    };
    let files = |name: &str| serde_json::json!({"sha": COMMIT, "siblings": [{"rfilename": name}]});
    let header = |name: &'static str, value: &'static str| {
        move |_: &Model, request: &Request, _: usize| {
            let mut reply = Model::tiny().answer(request);
            let is_head = request.is("HEAD", "/config.json");
            reply.headers.retain(|(key, _)| key != name);
            is_head.then(|| reply.with(name, value))
        }
    };
    let servers = [
        (bent(list(files("../x"))), "would leave the cache"),
        (bent(list(files("a/../../x"))), "would leave the cache"),
        (bent(list(files("/etc/passwd"))), "would leave the cache"),
        (bent(list(files("a\\..\\x"))), "would leave the cache"),
        (bent(list(files("a\nb"))), "would leave the cache"),
        (
            bent(list(serde_json::json!({"sha": "../.."}))),
            "names no commit",
        ),
        (bent(list(serde_json::json!([1]))), "not a list"),
        (
            bent(list(serde_json::json!("x".repeat(17 << 20)))),
            "more than",
        ),
        (bent(header("ETag", "\"../../x\"")), "no hash"),
        (bent(header("X-Linked-ETag", "/etc/x")), "no hash"),
        (bent(header("ETag", "\"abc\"")), "no hash"),
        (bent(header("X-Repo-Commit", "../..")), "names no commit"),
        (
            bent(header(
                "X-Repo-Commit",
                "89abcdef0123456789abcdef0123456789abcdef",
            )),
            "is for commit",
        ),
    ];
    for (server, words) in servers {
        let work = temp();
        refused(&hub(&server.address, work.path()), &[words]);
        let left = contents(work.path());
        assert!(left.is_empty(), "{words}: {left:?}");
    }

    let index = r#"{"weight_map": {"a": "../../../../x.safetensors"}}"#;
    let model = Model::of([("model.safetensors.index.json", index.into())]);
    let server = Server::start(move |request, _| model.answer(request));
    let work = temp();
    refused(
        &hub(&server.address, work.path()),
        &["not a plain file name"],
    );
}

#[test]
fn a_link_that_leaves_the_cache_is_refused() {
    let work = temp();
    let server = bent(|_, _, _| None);
    let online = hub(&server.address, work.path());
    let path = fetched(&online).join("config.json");
    std::fs::remove_file(&path).expect("there");
    std::os::unix::fs::symlink("/etc/passwd", &path).expect("links");
    refused(&online, &["leads out of its folder"]);
    let offline = Hub {
        offline: true,
        ..online.clone()
    };
    refused(&offline, &["leads out of its folder"]);
    // A reference is no path either.
    let reference = work.path().join("hub/models--org--tiny/refs/main");
    std::fs::write(reference, "../../../..").expect("writable");
    refused(&offline, &["holds no commit"]);
}

#[test]
fn answers_to_a_part_are_checked() {
    let start = |bend: fn(&Model, &Request, Reply) -> Reply| {
        let work = temp();
        let server = bent(move |model, request, n| {
            let reply = model.answer(request);
            request.is("GET", WEIGHTS).then(|| match n {
                0 => Reply {
                    cut: Some(60_000),
                    ..reply
                },
                1 => bend(model, request, reply),
                _ => reply,
            })
        });
        let hub = hub(&server.address, work.path());
        refused(&hub, &["broke off"]);
        (work, server, hub)
    };
    // The whole file instead of the part: it starts over.
    let (work, server, at) = start(|model, _, reply| Reply {
        status: 200,
        body: model.weights().to_vec(),
        ..reply
    });
    fetched(&at);
    assert_eq!(server.count("GET", WEIGHTS), 2);
    assert_eq!(blobs(work.path()), (Some(100_000), None));
    // Another part.
    let (work, _server, at) = start(|_, _, mut reply| {
        let range = |(name, value): &mut (String, String)| {
            if name == "Content-Range" {
                *value = "bytes 59999-99998/100000".into();
            }
        };
        reply.headers.iter_mut().for_each(range);
        reply
    });
    refused(&at, &["another part than was asked for"]);
    assert_eq!(blobs(work.path()), (None, None));
    fetched(&at);
    // No such part.
    let (work, server, at) = start(|_, _, _| Reply::status(416));
    fetched(&at);
    assert_eq!(server.count("GET", WEIGHTS), 3);
    assert_eq!(blobs(work.path()), (Some(100_000), None));
}

#[test]
fn no_more_is_written_than_was_stated() {
    for no_length in [false, true] {
        let work = temp();
        let server = bent(move |model, request, _| {
            let mut reply = model.answer(request);
            reply.body.extend(vec![0; 1 << 20]);
            request
                .is("GET", WEIGHTS)
                .then_some(Reply { no_length, ..reply })
        });
        refused(
            &hub(&server.address, work.path()),
            &["more than the 100000 bytes"],
        );
        assert_eq!(blobs(work.path()), (None, None));
    }
}

#[test]
fn a_token_is_never_shown() {
    let work = temp();
    for status in [401, 404] {
        let server = answering(status, "");
        let mut command = zoo_with(&server.address, work.path(), &["fetch", "org/tiny"]);
        let ended = ended(command.env("HF_TOKEN", "hf_secret"));
        assert_eq!(ended.code, 1);
        let sent = server.requests()[0]
            .header("authorization")
            .map(String::from);
        assert_eq!(sent.as_deref(), Some("Bearer hf_secret"));
        let said = ended.stdout + &ended.stderr;
        assert!(!said.contains("hf_secret"), "{said}");
    }
}

#[test]
fn proxies_of_the_environment_are_used() {
    let work = temp();
    let proxy = Server::start(|_, _| Reply::status(502));
    let fetch = |no_proxy: &str| {
        let mut command = zoo_with("http://hub.invalid", work.path(), &["fetch", "org/tiny"]);
        command
            .env("HTTP_PROXY", &proxy.address)
            .env("NO_PROXY", no_proxy);
        assert_eq!(ended(&mut command).code, 1);
    };
    fetch("hub.invalid");
    assert!(proxy.requests().is_empty());
    fetch("other.invalid");
    let asked = &proxy.requests()[0].path;
    assert!(asked.contains("hub.invalid"), "{asked}");
}
