//! A hub on this machine, for tests: it keeps every request, and can misbehave.
#![cfg(unix)]

use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    headers: BTreeMap<String, String>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn is(&self, method: &str, ending: &str) -> bool {
        self.method == method && self.path.ends_with(ending)
    }
}

/// An answer; what is not said is as it should be.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Only so much of the body is sent before the connection ends.
    pub cut: Option<usize>,
    /// Before the rest after `cut`, or before the end.
    pub stall: Option<Duration>,
    /// Gives no length: the body ends where the connection does.
    pub no_length: bool,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub fn ok(body: &[u8]) -> Self {
        Self {
            body: body.to_vec(),
            ..Self::status(200)
        }
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Answers until the process ends.
pub struct Server {
    pub address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// `answer` is given each request and how many of the same method and path came before.
    pub fn start(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    let before = {
                        let mut kept = kept.lock().expect("no test panics with it");
                        let same =
                            |r: &&Request| r.method == request.method && r.path == request.path;
                        let before = kept.iter().filter(same).count();
                        kept.push(request.clone());
                        before
                    };
                    // A client that hangs up is its own matter.
                    let _ = write(stream, &request, &answer(&request, before));
                });
            }
        });
        Self { address, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests
            .lock()
            .expect("no test panics with it")
            .clone()
    }

    /// How many requests of this method ended so.
    pub fn count(&self, method: &str, ending: &str) -> usize {
        self.requests()
            .iter()
            .filter(|r| r.is(method, ending))
            .count()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_string(), words.next()?.to_string());
    let mut headers = BTreeMap::new();
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_string());
    }
    Some(Request {
        method,
        path,
        headers,
    })
}

fn write(mut stream: TcpStream, request: &Request, reply: &Reply) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Said\r\nConnection: close\r\n", reply.status);
    if !reply.no_length {
        head += &format!("Content-Length: {}\r\n", reply.body.len());
    }
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes())?;
    if request.method == "HEAD" {
        return Ok(());
    }
    let sent = reply.cut.unwrap_or(reply.body.len());
    stream.write_all(&reply.body[..sent])?;
    stream.flush()?;
    if let Some(stall) = reply.stall {
        std::thread::sleep(stall);
    }
    Ok(())
}

/// The files of the model `org/tiny`.
#[derive(Clone)]
pub struct Model {
    pub files: BTreeMap<String, Vec<u8>>,
    /// Where large files are; without, the hub itself has them.
    pub cdn: Option<String>,
}

impl Model {
    pub fn tiny() -> Self {
        let weights: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 251) as u8).collect();
        Self::of([
            ("config.json", b"{}".to_vec()),
            ("README.md", b"not needed".to_vec()),
            ("model.safetensors", weights),
        ])
    }

    pub fn of<const N: usize>(files: [(&str, Vec<u8>); N]) -> Self {
        let files = files.map(|(name, bytes)| (name.to_string(), bytes));
        Self {
            files: files.into(),
            cdn: None,
        }
    }

    pub fn weights(&self) -> &[u8] {
        &self.files["model.safetensors"]
    }

    /// SHA-256 for weights, git's name for everything else.
    pub fn etag(&self, name: &str) -> String {
        let bytes = &self.files[name];
        match name.ends_with(".safetensors") {
            true => hex(&Sha256::digest(bytes)),
            false => {
                let head = format!("blob {}\0", bytes.len());
                hex(&Sha1::new()
                    .chain_update(head)
                    .chain_update(bytes)
                    .finalize())
            }
        }
    }

    /// What a hub answers.
    pub fn answer(&self, request: &Request) -> Reply {
        let path = request.path.as_str();
        if path.starts_with("/api/models/org/tiny/revision/") {
            let names = self.files.keys();
            let siblings: Vec<_> = names.map(|n| serde_json::json!({"rfilename": n})).collect();
            let json = serde_json::json!({"sha": COMMIT, "siblings": siblings});
            return Reply::ok(json.to_string().as_bytes());
        }
        let name = path.strip_prefix(&format!("/org/tiny/resolve/{COMMIT}/"));
        let Some(name) = name.filter(|name| self.files.contains_key(*name)) else {
            return Reply::status(404).with("X-Error-Code", "EntryNotFound");
        };
        let etag = self.etag(name);
        let is_large = name.ends_with(".safetensors");
        let reply = match (&self.cdn, is_large) {
            (Some(cdn), true) => {
                Reply::status(302).with("Location", format!("{cdn}/{name}?signed"))
            }
            _ => self.file(request, name),
        };
        let reply = reply.with("X-Repo-Commit", COMMIT);
        if is_large {
            let size = self.files[name].len().to_string();
            let reply = reply.with("X-Linked-Size", size);
            return reply.with("X-Linked-ETag", format!("\"{etag}\""));
        }
        reply.with("ETag", format!("W/\"{etag}\""))
    }

    /// A file, or the part of it that is asked for.
    pub fn file(&self, request: &Request, name: &str) -> Reply {
        let bytes = &self.files[name];
        let range = request
            .header("range")
            .and_then(|r| r.strip_prefix("bytes="));
        let Some(start) = range
            .and_then(|r| r.strip_suffix('-'))
            .and_then(|r| r.parse().ok())
        else {
            return Reply::ok(bytes);
        };
        let start: usize = start;
        let (last, all) = (bytes.len() - 1, bytes.len());
        let reply = Reply {
            body: bytes[start..].to_vec(),
            ..Reply::status(206)
        };
        reply.with("Content-Range", format!("bytes {start}-{last}/{all}"))
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
