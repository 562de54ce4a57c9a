use burn_zoo_core::{Error, Result};
use flate2::read::GzDecoder;
use std::io::Read;
use std::path::Path;

/// Names of the corpora.
pub const CORPORA: [&str; 2] = ["kjv", "text-file"];

/// The largest text that is read whole; larger ones come as a file of tokens.
const MOST_BYTES: u64 = 1 << 30;

static KJV: &[u8] = include_bytes!("../data/kjv.txt.gz");

/// A text to learn from.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// Its name.
    pub name: String,
    /// The text.
    pub text: String,
    /// Where it is from, and its terms.
    pub attribution: String,
}

impl Corpus {
    /// The corpus called `name`; `file` is the text of `text-file`.
    ///
    /// # Errors
    /// If there is none of this name, or the file cannot be read, is empty, too large or no UTF-8.
    pub fn open(name: &str, file: Option<&Path>) -> Result<Self> {
        match (name, file) {
            ("kjv", None) => {
                let mut text = String::new();
                let read = GzDecoder::new(KJV).read_to_string(&mut text);
                read.map_err(Error::io("kjv.txt.gz", "read"))?;
                Ok(Self {
                    name: name.into(),
                    text,
                    attribution: "King James Version of the Bible (1611), out of copyright".into(),
                })
            }
            ("kjv", Some(_)) => Err(Error::usage(
                "--data-dir",
                "the text `kjv` is bundled; a file is for text-file",
            )),
            ("text-file", Some(path)) => Self::from_file(path),
            ("text-file", None) => Err(Error::usage(
                "--data-dir",
                "text-file wants the path of a text",
            )),
            (other, _) => Err(Error::unknown("text", other, CORPORA)),
        }
    }

    fn from_file(path: &Path) -> Result<Self> {
        let file = std::fs::File::open(path).map_err(Error::io(path, "read"))?;
        let mut bytes = Vec::new();
        let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(Error::io(path, "read"))?;
        if bytes.len() as u64 > MOST_BYTES {
            let message =
                "has more than 1 GiB: make a file of tokens from it, which is mapped into memory";
            return Err(Error::malformed(path, message));
        }
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Error::malformed(path, format!("is no UTF-8 text: byte {at} is not"))
        })?;
        if text.trim().is_empty() {
            return Err(Error::malformed(path, "holds no text"));
        }
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into();
        Ok(Self {
            name,
            text,
            attribution: path.display().to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Corpus;

    #[test]
    fn the_bundled_text_is_whole() {
        let kjv = Corpus::open("kjv", None).expect("bundled");
        assert!(
            kjv.text
                .starts_with("In the beginning God created the heaven and the earth.\n")
        );
        assert!(kjv.text.ends_with("be with you all. Amen.\n"));
        assert_eq!(
            kjv.text.lines().filter(|line| !line.is_empty()).count(),
            31_102
        );
    }

    #[test]
    fn what_is_no_text_is_named() {
        let work = tempfile::tempdir().expect("a folder");
        let path = work.path().join("x.txt");
        for (bytes, words) in [(&b"ab\xff"[..], "byte 2"), (b" \n", "no text")] {
            std::fs::write(&path, bytes).expect("writable");
            let error = Corpus::open("text-file", Some(&path))
                .expect_err("no text")
                .to_string();
            assert!(error.contains(words) && error.contains("x.txt"), "{error}");
        }
        assert!(
            Corpus::open("kjb", None)
                .expect_err("unknown")
                .to_string()
                .contains("kjv")
        );
    }
}
