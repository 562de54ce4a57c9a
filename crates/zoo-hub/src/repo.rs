use burn_zoo_core::{Error, Result};

/// A model on a hub: `ORG/NAME`, or `NAME` alone for a few old ones, at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoId {
    name: String,
    revision: String,
}

impl RepoId {
    /// Reads `org/name`, `org/name@revision`, or either after `hf:`. Without a revision it is
    /// `main`.
    ///
    /// # Errors
    /// If it is not a name or revision that the hub allows.
    pub fn parse(text: &str) -> Result<Self> {
        let id = text.strip_prefix("hf:").unwrap_or(text);
        let (name, revision) = id.split_once('@').unwrap_or((id, "main"));
        check_name(name).map_err(|message| Error::usage(quoted(text), message))?;
        Self {
            name: name.into(),
            revision: "main".into(),
        }
        .at(revision)
    }

    /// Whether a user's text can only mean a model on a hub, if it is no path: `hf:…`, or
    /// `org/name` with no ending of a weights file.
    pub fn is_meant(text: &str) -> bool {
        const FILES: [&str; 7] = ["safetensors", "pth", "pt", "bin", "gguf", "json", "ckpt"];
        if text.starts_with("hf:") {
            return true;
        }
        let name = text.split_once('@').map_or(text, |(name, _)| name);
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        name.contains('/') && !FILES.contains(&ending) && check_name(name).is_ok()
    }

    /// The same model at a branch, tag or commit.
    ///
    /// # Errors
    /// If it is no name of a revision.
    pub fn at(mut self, revision: &str) -> Result<Self> {
        // It becomes a path below `refs/`; branches may have slashes.
        let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with('.');
        let fine = revision.len() <= 250
            && revision.split('/').all(part)
            && !revision.contains("..")
            && !revision.contains(['\\', ':', '?', '*', '[', '~', '^', ' ', '@', '#', '%', '"'])
            && !revision.chars().any(char::is_control);
        if !fine {
            let message = "is no branch, tag or commit of a model";
            return Err(Error::usage(quoted(revision), message));
        }
        self.revision = revision.into();
        Ok(self)
    }

    /// `org/name`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Branch, tag or commit.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The name of its folder in the cache.
    pub(crate) fn folder(&self) -> String {
        format!("models--{}", self.name.replace('/', "--"))
    }
}

impl std::fmt::Display for RepoId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.revision.as_str() {
            "main" => f.write_str(&self.name),
            revision => write!(f, "{}@{revision}", self.name),
        }
    }
}

/// huggingface_hub's rules.
fn check_name(name: &str) -> std::result::Result<(), String> {
    let part = |part: &str| {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let edge = |c: char| matches!(c, '-' | '.');
        !part.is_empty()
            && part.chars().all(fine)
            && !part.starts_with(edge)
            && !part.ends_with(edge)
    };
    let parts = name.split('/').count();
    let fine = parts <= 2
        && name.len() <= 96
        && name.split('/').all(part)
        && !name.contains("--")
        && !name.contains("..")
        && !name.ends_with(".git");
    match fine {
        true => Ok(()),
        false => Err(
            "is no model of a hub: it wants ORG/NAME of letters, digits, `-`, `_` and `.`".into(),
        ),
    }
}

fn quoted(text: &str) -> String {
    format!("`{text}`")
}

/// Checks a file's name that a server gave: relative, without `..`, a file on every system.
pub(crate) fn is_safe_file(name: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    name.len() <= 1024
        && name.split('/').all(part)
        && !name.contains(['\\', ':'])
        && !name.chars().any(char::is_control)
}

/// The text as a part of an address; slashes stay where `keep` says so.
pub(crate) fn encoded(text: &str, keep_slashes: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(byte as char)
            }
            b'/' if keep_slashes => out.push('/'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_revisions_are_read() {
        let repo = RepoId::parse("microsoft/resnet-50").expect("a name");
        assert_eq!(
            (repo.name(), repo.revision()),
            ("microsoft/resnet-50", "main")
        );
        assert_eq!(repo.folder(), "models--microsoft--resnet-50");
        let repo = RepoId::parse("hf:gpt2@refs/pr/3").expect("a name");
        assert_eq!((repo.name(), repo.revision()), ("gpt2", "refs/pr/3"));
        assert_eq!(repo.to_string(), "gpt2@refs/pr/3");
        assert_eq!(encoded(repo.revision(), false), "refs%2Fpr%2F3");
        assert_eq!(encoded("a b/ü.json", true), "a%20b/%C3%BC.json");
    }

    #[test]
    fn names_that_would_leave_the_cache_are_refused() {
        let long = "x".repeat(97);
        for bad in [
            "",
            "/",
            "a/",
            "/a",
            "a/b/c",
            "../a",
            "a/..",
            "a..b/c",
            "a--b/c",
            "-a/b",
            "a/b.git",
            "a/b c",
            "a\\b",
            "a/b\n",
            "ü/b",
            &long,
            "a/b@",
            "a/b@..",
            "a/b@x/../y",
            "a/b@/x",
            "a/b@x\\y",
            "a/b@x\ny",
            "a/b@.hidden",
            "a/b@x//y",
        ] {
            assert!(RepoId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn paths_are_not_taken_for_models() {
        for path in [
            "./a/b",
            "/a/b",
            "a/b/c",
            "a/",
            "resnet18",
            "runs/w.pth",
            "a/w.safetensors",
        ] {
            assert!(!RepoId::is_meant(path), "{path}");
        }
        for id in ["a/b", "a/b@v1.0", "hf:gpt2", "timm/resnet18.a1_in1k"] {
            assert!(RepoId::is_meant(id), "{id}");
        }
    }

    #[test]
    fn a_servers_file_names_stay_in_their_folder() {
        for bad in [
            "",
            "../x",
            "a/../x",
            "/etc/passwd",
            "a\\b",
            "C:x",
            "a\nb",
            "a//b",
            "./a",
            "..",
        ] {
            assert!(!is_safe_file(bad), "{bad:?}");
        }
        for good in ["config.json", "a/b.json", ".gitattributes", "a..b"] {
            assert!(is_safe_file(good), "{good}");
        }
    }
}
