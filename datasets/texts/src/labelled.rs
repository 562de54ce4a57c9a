use burn_zoo_core::{Error, Result};
use flate2::read::GzDecoder;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use std::io::Read;
use std::path::Path;

/// Names of the sets of labelled texts.
pub const LABELLED: [&str; 2] = ["verses", "labelled-file"];

/// The largest file that is read.
const MOST_BYTES: u64 = 1 << 30;

static VERSES: &[u8] = include_bytes!("../data/verses.csv.gz");

/// Texts of some classes, in three parts.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// Its name.
    pub name: String,
    /// Names of the classes.
    pub class_names: Vec<String>,
    /// Texts with their classes, to learn from.
    pub train: Vec<(String, usize)>,
    /// To choose the best checkpoint by.
    pub valid: Vec<(String, usize)>,
    /// To measure with.
    pub test: Vec<(String, usize)>,
    /// Where they are from, and their terms.
    pub attribution: String,
}

/// A line of a file.
#[derive(Deserialize)]
struct Entry {
    text: String,
    label: Label,
}

/// A class by its name or number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Label {
    Name(String),
    Number(u64),
}

impl Labelled {
    /// The set called `name`; `file` is that of `labelled-file`: CSV with the columns `text` and `label`, or JSON
    /// lines with those keys. A tenth of each class is held out for validation (`valid_fraction`), and a tenth for
    /// the test.
    ///
    /// # Errors
    /// If there is none of this name, or the file cannot be read or is malformed.
    pub fn open(name: &str, file: Option<&Path>, valid_fraction: f64) -> Result<Self> {
        let (entries, name, attribution) = match (name, file) {
            ("verses", None) => {
                let mut text = String::new();
                let read = GzDecoder::new(VERSES).read_to_string(&mut text);
                read.map_err(Error::io("verses.csv.gz", "read"))?;
                let about = "verses of the King James Version (1611), out of copyright";
                (
                    csv(&text, Path::new("verses.csv.gz"))?,
                    name.to_string(),
                    about.to_string(),
                )
            }
            ("verses", Some(_)) => {
                return Err(Error::usage(
                    "--data-dir",
                    "`verses` is bundled; a file is for labelled-file",
                ));
            }
            ("labelled-file", Some(path)) => {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                (
                    entries(path)?,
                    name.into_owned(),
                    path.display().to_string(),
                )
            }
            ("labelled-file", None) => {
                return Err(Error::usage(
                    "--data-dir",
                    "labelled-file wants the path of a CSV or JSON-lines file",
                ));
            }
            (other, _) => return Err(Error::unknown("set of texts", other, LABELLED)),
        };
        Self::split(entries, name, attribution, valid_fraction)
    }

    fn split(
        entries: Vec<Entry>,
        name: String,
        attribution: String,
        valid_fraction: f64,
    ) -> Result<Self> {
        let label = |entry: &Entry| match &entry.label {
            Label::Name(name) => name.clone(),
            Label::Number(number) => number.to_string(),
        };
        let mut class_names: Vec<String> = entries.iter().map(label).collect();
        class_names.sort();
        class_names.dedup();
        if class_names.len() < 2 {
            return Err(Error::malformed(&name, "holds fewer than two classes"));
        }
        let mut by_class = vec![Vec::new(); class_names.len()];
        for entry in entries {
            let class = class_names
                .binary_search(&label(&entry))
                .unwrap_or_default();
            by_class[class].push(entry.text);
        }
        let mut set = Self {
            name,
            class_names,
            train: Vec::new(),
            valid: Vec::new(),
            test: Vec::new(),
            attribution,
        };
        // The same parts in every run.
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        for (class, mut texts) in by_class.into_iter().enumerate() {
            texts.shuffle(&mut rng);
            let share = |fraction: f64| (texts.len() as f64 * fraction).round() as usize;
            let (valid, test) = (share(valid_fraction), share(0.1).max(1));
            for (i, text) in texts.into_iter().enumerate() {
                let part = match i {
                    i if i < test => &mut set.test,
                    i if i < test + valid => &mut set.valid,
                    _ => &mut set.train,
                };
                part.push((text, class));
            }
        }
        if set.train.is_empty() {
            return Err(Error::malformed(
                &set.name,
                "holds too few texts to learn from",
            ));
        }
        Ok(set)
    }
}

fn entries(path: &Path) -> Result<Vec<Entry>> {
    let file = std::fs::File::open(path).map_err(Error::io(path, "read"))?;
    let mut text = String::new();
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    read.map_err(Error::io(path, "read"))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Error::malformed(path, "has more than 1 GiB"));
    }
    match text.trim_start().starts_with('{') {
        true => json_lines(&text, path),
        false => csv(&text, path),
    }
}

fn json_lines(text: &str, path: &Path) -> Result<Vec<Entry>> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let entry = |(i, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|e| Error::malformed(path, format!("line {}: {e}", i + 1)))
    };
    lines.map(entry).collect()
}

fn csv(text: &str, path: &Path) -> Result<Vec<Entry>> {
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let entries = reader.deserialize::<Entry>();
    entries
        .map(|entry| entry.map_err(|e| Error::malformed(path, e.to_string())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Labelled;

    #[test]
    fn every_class_is_in_every_part_and_no_text_is_in_two() {
        let set = Labelled::open("verses", None, 0.1).expect("bundled");
        assert_eq!(
            set.class_names,
            ["Genesis", "Matthew", "Proverbs", "Psalms", "Romans"]
        );
        assert_eq!(
            (set.train.len(), set.valid.len(), set.test.len()),
            (1680, 210, 210)
        );
        for part in [&set.train, &set.valid, &set.test] {
            let of = |class| part.iter().filter(|(_, c)| *c == class).count();
            assert!((0..5).all(|class| of(class) == part.len() / 5));
        }
    }

    #[test]
    fn files_of_both_kinds_are_read_and_faults_are_named() {
        let work = tempfile::tempdir().expect("a folder");
        let path = work.path().join("x.txt");
        let open = |text: &str| {
            std::fs::write(&path, text).expect("writable");
            Labelled::open("labelled-file", Some(&path), 0.2)
        };
        let csv = open("text,label\n\"a, b\",1\nc,0\nd,1\ne,0\n").expect("a CSV");
        assert_eq!(
            (
                csv.class_names.len(),
                csv.train.len() + csv.test.len() + csv.valid.len()
            ),
            (2, 4)
        );
        let lines =
            "{\"text\": \"a\", \"label\": \"x\"}\n{\"text\": \"b\", \"label\": \"y\"}\n".repeat(3);
        assert_eq!(open(&lines).expect("JSON lines").class_names, ["x", "y"]);
        for (text, words) in [
            ("text,klass\na,1\n", "label"),
            (
                "{\"text\": \"a\", \"label\": \"x\"}\n{\"text\": 3}\n",
                "line 2",
            ),
            ("text,label\na,1\nb,1\n", "two classes"),
        ] {
            let error = open(text).expect_err("malformed").to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
