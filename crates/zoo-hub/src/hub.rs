use crate::client::Timing;
use burn_zoo_core::{Error, Result};
use std::path::PathBuf;

/// A hub, the cache for what comes from it, and how to ask it.
#[derive(Clone)]
pub struct Hub {
    /// Its address without a slash at the end.
    pub endpoint: String,
    /// The cache's folder.
    pub cache: PathBuf,
    /// The user's token, sent to the hub's own host alone.
    pub token: Option<String>,
    /// Whether only the cache may be used.
    pub offline: bool,
    /// How long to wait for what.
    pub timing: Timing,
}

impl Hub {
    /// The public hub, or what the environment says, in the variables that Python's client reads:
    ///
    /// - `HF_ENDPOINT`: the address;
    /// - `HF_HUB_CACHE`, `HUGGINGFACE_HUB_CACHE`, `HF_HOME`, `XDG_CACHE_HOME`: the cache;
    /// - `HF_TOKEN`, `HUGGING_FACE_HUB_TOKEN`, or the file that `HF_TOKEN_PATH` or `HF_HOME` has:
    ///   the token; `HF_HUB_DISABLE_IMPLICIT_TOKEN` sends none;
    /// - `HF_HUB_OFFLINE`: no network;
    /// - `HF_HUB_ETAG_TIMEOUT`, `HF_HUB_DOWNLOAD_TIMEOUT`: seconds without an answer or a byte.
    ///
    /// # Errors
    /// If a variable cannot be used.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(&|name| std::env::var(name).ok())
    }

    fn from_variables(get: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let text = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let home = text("HOME").or_else(|| text("USERPROFILE"));
        let path = |name: &str| {
            text(name).map(|value| match (value.strip_prefix("~/"), &home) {
                (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
                _ => PathBuf::from(value),
            })
        };
        let is_set = |name: &str| {
            let value = text(name).unwrap_or_default().to_uppercase();
            ["1", "ON", "YES", "TRUE"].contains(&value.as_str())
        };
        let hf_home = path("HF_HOME").unwrap_or_else(|| {
            let cache = path("XDG_CACHE_HOME")
                .or_else(|| home.as_ref().map(|home| PathBuf::from(home).join(".cache")));
            cache.unwrap_or_default().join("huggingface")
        });
        let token = text("HF_TOKEN")
            .or_else(|| text("HUGGING_FACE_HUB_TOKEN"))
            .or_else(|| {
                let file = path("HF_TOKEN_PATH").unwrap_or_else(|| hf_home.join("token"));
                std::fs::read_to_string(file).ok()
            })
            .map(|token| token.trim().to_string())
            .filter(|token| !token.is_empty() && !is_set("HF_HUB_DISABLE_IMPLICIT_TOKEN"));
        let mut timing = Timing::default();
        for (name, limit) in [
            ("HF_HUB_ETAG_TIMEOUT", &mut timing.response),
            ("HF_HUB_DOWNLOAD_TIMEOUT", &mut timing.stall),
        ] {
            if let Some(seconds) = text(name) {
                let seconds = seconds
                    .trim()
                    .parse()
                    .ok()
                    .filter(|s| (1..=86_400).contains(s));
                let message = "wants a number of seconds from 1 to 86400";
                let seconds = seconds.ok_or_else(|| Error::usage(name, message))?;
                *limit = std::time::Duration::from_secs(seconds);
            }
        }
        Self {
            endpoint: text("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".into()),
            cache: path("HF_HUB_CACHE")
                .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
                .unwrap_or_else(|| hf_home.join("hub")),
            token,
            offline: is_set("HF_HUB_OFFLINE") || is_set("TRANSFORMERS_OFFLINE"),
            timing,
        }
        .checked()
    }

    /// The same hub if its address can be used.
    pub(crate) fn checked(mut self) -> Result<Self> {
        self.endpoint = self.endpoint.trim().trim_end_matches('/').to_string();
        let rest = self
            .endpoint
            .strip_prefix("https://")
            .or_else(|| self.endpoint.strip_prefix("http://"));
        // Messages name the address, so it must hold no password.
        match rest {
            Some(rest) if !rest.is_empty() && !rest.contains(['@', '?', '#', ' ']) => Ok(self),
            _ => Err(Error::usage(
                "HF_ENDPOINT",
                "wants an address that begins with https:// or http://, without a password",
            )),
        }
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("endpoint", &self.endpoint)
            .field("cache", &self.cache)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("offline", &self.offline)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(variables: &[(&str, &str)]) -> Result<Hub> {
        let found = |name: &str| variables.iter().find(|v| v.0 == name).map(|v| v.1.into());
        Hub::from_variables(&found)
    }

    #[test]
    fn the_cache_is_where_python_has_it() {
        let cases: [(&[(&str, &str)], &str); 6] = [
            (&[("HOME", "/u")], "/u/.cache/huggingface/hub"),
            (
                &[("HOME", "/u"), ("XDG_CACHE_HOME", "/x")],
                "/x/huggingface/hub",
            ),
            (&[("HOME", "/u"), ("HF_HOME", "~/hf")], "/u/hf/hub"),
            (&[("HF_HOME", "/h"), ("HF_HUB_CACHE", "/c")], "/c"),
            (&[("HUGGINGFACE_HUB_CACHE", "/d")], "/d"),
            (
                &[("HUGGINGFACE_HUB_CACHE", "/d"), ("HF_HUB_CACHE", "/c")],
                "/c",
            ),
        ];
        for (variables, want) in cases {
            assert_eq!(hub(variables).expect("fine").cache, PathBuf::from(want));
        }
    }

    #[test]
    fn a_token_is_found_and_never_shown() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let at = home.path().to_str().expect("UTF-8");
        std::fs::write(home.path().join("token"), "hf_file\n").expect("writable");
        let with = |more: &[(&str, &str)]| {
            let mut variables = vec![("HF_HOME", at)];
            variables.extend(more);
            hub(&variables).expect("fine")
        };
        assert_eq!(with(&[]).token.as_deref(), Some("hf_file"));
        assert_eq!(
            with(&[("HF_TOKEN", "hf_env ")]).token.as_deref(),
            Some("hf_env")
        );
        assert_eq!(with(&[("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]).token, None);
        assert!(!format!("{:?}", with(&[])).contains("hf_file"));
    }

    #[test]
    fn addresses_and_numbers_that_cannot_be_used_are_named() {
        for (name, value) in [
            ("HF_ENDPOINT", "ftp://x"),
            ("HF_ENDPOINT", "https://"),
            ("HF_ENDPOINT", "https://user:secret@host"),
            ("HF_HUB_DOWNLOAD_TIMEOUT", "soon"),
        ] {
            let error = hub(&[(name, value)]).expect_err(value).to_string();
            assert!(error.contains(name) && !error.contains("secret"), "{error}");
        }
        let hub = hub(&[("HF_ENDPOINT", "http://h:1/"), ("HF_HUB_OFFLINE", "1")]).expect("fine");
        assert_eq!((hub.endpoint.as_str(), hub.offline), ("http://h:1", true));
    }
}
