use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What a file must hash to.
#[derive(Clone, Debug)]
pub(crate) enum Check {
    /// SHA-256 of the contents, or its first digits.
    Sha256(String),
    /// Git's name of a blob: SHA-1 of `blob LENGTH`, a zero byte and the contents.
    GitBlob(String),
}

impl Check {
    /// What an entity tag of the hub promises. It becomes the name of a file, so anything but 40 or
    /// 64 lower-case hexadecimal digits is none.
    pub fn of_etag(etag: &str) -> Option<Self> {
        match etag.len() {
            _ if !is_hex(etag) => None,
            40 => Some(Self::GitBlob(etag.into())),
            64 => Some(Self::Sha256(etag.into())),
            _ => None,
        }
    }

    /// What is wrong with the file, if anything is.
    pub fn mismatch(&self, path: &Path) -> std::io::Result<Option<String>> {
        let mut file = File::open(path)?;
        let (name, wanted, found) = match self {
            Self::Sha256(wanted) => ("SHA-256", wanted, digest(Sha256::new(), &mut file)?),
            Self::GitBlob(wanted) => {
                let head = format!("blob {}\0", file.metadata()?.len());
                let hash = Sha1::new().chain_update(head);
                ("git's SHA-1", wanted, digest(hash, &mut file)?)
            }
        };
        // An empty promise would be kept by any file.
        if !wanted.is_empty() && found.starts_with(wanted.as_str()) {
            return Ok(None);
        }
        Ok(Some(format!(
            "wrong contents: {name} {found}, wanted {wanted}; the file was removed"
        )))
    }
}

/// Whether all of it is lower-case hexadecimal digits.
pub(crate) fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn digest(mut hash: impl Digest, file: &mut File) -> std::io::Result<String> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_git_and_of_sha256() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "hello\n").expect("writable");
        // `git hash-object` and `sha256sum` of the same file.
        for good in [
            "ce013625030ba8dba906f756967f9e9ca394464a",
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
        ] {
            let check = Check::of_etag(good).expect("a hash");
            assert_eq!(check.mismatch(&path).expect("readable"), None);
            let bad = Check::of_etag(&good.replace('0', "1")).expect("a hash");
            assert!(bad.mismatch(&path).expect("readable").is_some());
        }
        let prefix = Check::Sha256("5891b5b5".into());
        assert_eq!(prefix.mismatch(&path).expect("readable"), None);
        let nothing = Check::Sha256(String::new());
        assert!(nothing.mismatch(&path).expect("readable").is_some());
    }

    #[test]
    fn an_entity_tag_that_is_no_hash_is_refused() {
        let long = "a".repeat(64);
        for bad in ["", "../../x", "abc", &long.to_uppercase(), &"é".repeat(32)] {
            assert!(Check::of_etag(bad).is_none(), "{bad}");
        }
        assert!(Check::of_etag(&long).is_some());
    }
}
