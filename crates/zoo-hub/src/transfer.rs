use crate::check::Check;
use crate::client::{Client, Follow, header};
use crate::failure::{Attempt, Failure};
use crate::progress::{Progress, Tell};
use burn_zoo_core::{Error, Result};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;
use ureq::Body;
use ureq::http::{Method, Response};

/// One file to bring.
pub(crate) struct Transfer<'a> {
    pub url: &'a str,
    /// What the user knows it as.
    pub name: &'a str,
    /// The server it comes from.
    pub from: &'a str,
    /// Its exact length, where that is known.
    pub size: Option<u64>,
    /// No more is written, whatever the server says.
    pub most: u64,
    pub check: &'a Check,
    /// Where it is while it is not whole.
    pub part: &'a Path,
    /// Whether a part stays there, for the next run to go on with.
    pub keeps_part: bool,
    pub target: &'a Path,
}

impl Client {
    /// Downloads a file, going on where an earlier try stopped. It gets its name only when it is
    /// whole and its hash is right.
    pub fn download(&self, transfer: &Transfer, tell: &mut Tell) -> Result<()> {
        let t = transfer;
        let read = |e| Error::io(t.part, "read")(e);
        let mut whole = self.retrying(tell, |tell| self.attempt(t, tell))?;
        while let Some(wrong) = t.check.mismatch(t.part).map_err(read)? {
            remove(t.part)?;
            if whole {
                return Err(Error::download(t.url, wrong));
            }
            // The pieces may have been of two different files: once more, in one piece.
            tell(Progress::Note(format!("{}: {wrong}; starting over", t.url)));
            self.retrying(tell, |tell| self.attempt(t, tell))?;
            whole = true;
        }
        // Windows syncs what is open for writing alone.
        let part = OpenOptions::new().write(true).open(t.part);
        part.and_then(|part| part.sync_all())
            .map_err(Error::io(t.part, "write"))?;
        std::fs::rename(t.part, t.target).map_err(Error::io(t.target, "write"))
    }

    /// One request. Says whether all of the file came with it.
    fn attempt(&self, t: &Transfer, tell: &mut Tell) -> Attempt<bool> {
        let mut have = std::fs::metadata(t.part).map_or(0, |m| m.len());
        if have > t.size.unwrap_or(t.most) {
            remove(t.part)?;
            have = 0;
        }
        if have > 0 && Some(have) == t.size {
            return Ok(false);
        }
        let from = (have > 0).then_some(have);
        let response = self.send(Method::GET, t.url, from, Follow::All)?;
        let start = match response.status().as_u16() {
            // Without the part that was asked for, the whole file comes.
            200 => 0,
            206 if have > 0 => {
                if range_start(&response) != Some(have) {
                    remove(t.part)?;
                    let message = "the server gave another part than was asked for; run again";
                    return Err(Failure::last(t.url, message));
                }
                have
            }
            416 if have > 0 => {
                remove(t.part)?;
                return self.attempt(t, tell);
            }
            _ => return Err(self.refusal(t.url, &response)),
        };
        let stated = header(response.headers(), "content-length").and_then(|v| v.parse().ok());
        let total = t
            .size
            .or(stated.map(|bytes: u64| bytes.saturating_add(start)));
        let limit = t.size.unwrap_or(t.most);
        if stated.is_some_and(|bytes| bytes.saturating_add(start) > limit) {
            return Err(too_long(t, limit));
        }
        tell(Progress::Begin {
            name: t.name,
            from: t.from,
            bytes: total,
            done: start,
        });
        let received = self.receive(response, start, total, limit, t, tell);
        tell(Progress::End);
        received.map(|()| start == 0)
    }

    /// Writes a body to the part file from `start` on.
    fn receive(
        &self,
        response: Response<Body>,
        start: u64,
        total: Option<u64>,
        limit: u64,
        t: &Transfer,
        tell: &mut Tell,
    ) -> Attempt<()> {
        let write = |e| Error::io(t.part, "write")(e);
        let mut options = OpenOptions::new();
        options.create(true);
        match start {
            0 => options.write(true).truncate(true),
            _ => options.append(true),
        };
        let mut file = options.open(t.part).map_err(write)?;
        let mut reader = response.into_body().into_reader();
        let mut done = start;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) => return Err(self.broke_off(t, done, total, &e)),
            };
            if done + n as u64 > limit {
                drop(file);
                remove(t.part)?;
                return Err(too_long(t, limit));
            }
            file.write_all(&buffer[..n]).map_err(write)?;
            done += n as u64;
            tell(Progress::More(n as u64));
        }
        match total {
            Some(total) if done < total => {
                let short = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                Err(self.broke_off(t, done, Some(total), &short))
            }
            _ => Ok(()),
        }
    }

    fn broke_off(
        &self,
        t: &Transfer,
        done: u64,
        total: Option<u64>,
        error: &std::io::Error,
    ) -> Failure {
        let inner = error
            .get_ref()
            .and_then(|e| e.downcast_ref::<ureq::Error>());
        let why = match inner {
            Some(ureq::Error::Timeout(_)) => {
                format!("no bytes for {} s", self.timing.stall.as_secs_f64())
            }
            _ => "broke off".into(),
        };
        let of = total.map_or(String::new(), |total| format!(" of {total}"));
        let then = match t.keeps_part {
            true => "; run again, and it goes on from there",
            false => "; run again",
        };
        Failure::passing(t.url, format!("{why} after {done}{of} bytes{then}"), None)
    }
}

fn too_long(t: &Transfer, limit: u64) -> Failure {
    let message = format!("the server gives more than the {limit} bytes that the file may have");
    Failure::last(t.url, message)
}

/// The first byte of the part that an answer says it has.
fn range_start(response: &Response<Body>) -> Option<u64> {
    let range = header(response.headers(), "content-range")?;
    let (start, _) = range.trim().strip_prefix("bytes ")?.split_once('-')?;
    start.trim().parse().ok()
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, "remove")(e)),
        _ => Ok(()),
    }
}
