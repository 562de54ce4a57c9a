use crate::check::{Check, is_hex};
use crate::client::{Client, Follow, header};
use crate::failure::{Attempt, Failure};
use ureq::http::Method;

/// What the hub says about a file.
pub(crate) struct Metadata {
    pub commit: String,
    /// The name of its blob.
    pub etag: String,
    pub check: Check,
    pub size: Option<u64>,
}

/// Whether it is the full name of a commit.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && is_hex(text)
}

impl Client {
    /// Asks for a file's head. A large file's is a redirect to another host, whose own tag and
    /// length say nothing about the file.
    pub fn metadata(&self, url: &str) -> Attempt<Metadata> {
        let response = self.send(Method::HEAD, url, None, Follow::SameHost)?;
        let status = response.status();
        if !status.is_success() && !status.is_redirection() {
            return Err(self.refusal(url, &response));
        }
        let get = |name: &str| header(response.headers(), name);
        let commit = get("x-repo-commit").filter(|commit| is_commit(commit));
        let Some(commit) = commit else {
            let message = "the answer names no commit: is HF_ENDPOINT a hub?";
            return Err(Failure::last(url, message));
        };
        let etag = get("x-linked-etag").or_else(|| get("etag").filter(|_| status.is_success()));
        let etag = etag.unwrap_or_default().trim();
        let etag = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
        let Some(check) = Check::of_etag(etag) else {
            let message = "the answer's entity tag is no hash, so the file could not be checked";
            return Err(Failure::last(url, message));
        };
        let size = get("x-linked-size")
            .or_else(|| get("content-length").filter(|_| status.is_success()))
            .and_then(|size| size.trim().parse().ok());
        Ok(Metadata {
            commit: commit.into(),
            etag: etag.into(),
            check,
            size,
        })
    }
}
