use std::path::{Path, PathBuf};

/// Result with the zoo's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong, always with the file, key or option it is about and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option or field has a value that cannot be used.
    #[error("{option}: {message}")]
    Usage {
        /// The option as the user types it, or the field's name.
        option: String,
        /// What is wrong and what is accepted.
        message: String,
    },
    /// A name that is not known.
    #[error("unknown {what} `{name}`{}", suggest_or_list(.suggestions, .choices))]
    Unknown {
        /// The kind of name: model, data set, backend…
        what: &'static str,
        /// What was asked for.
        name: String,
        /// The known names most like it.
        suggestions: Vec<String>,
        /// All known names, where they are few.
        choices: Vec<String>,
    },
    /// The operating system refused an operation on a file.
    #[error("{}: cannot {action}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried, as in "read" or "create the folder".
        action: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is there but its contents are not what they must be.
    #[error("{}: {message}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was found and what was wanted.
        message: String,
    },
    /// A file or folder that is needed is absent.
    #[error("{} not found: {hint}", .path.display())]
    NotFound {
        /// What was looked for.
        path: PathBuf,
        /// How to get it.
        hint: String,
    },
    /// A server refused, or what it gave cannot be used.
    #[error("{url}: {message}")]
    Download {
        /// What was asked for.
        url: String,
        /// What was answered and what to do.
        message: String,
    },
    /// A weight that the model needs is not in the file.
    #[error("{}: key `{key}` {shape:?} is missing{}", .path.display(), suggest(.nearest))]
    MissingKey {
        /// The weights file.
        path: PathBuf,
        /// The key that was wanted.
        key: String,
        /// Its shape.
        shape: Vec<usize>,
        /// The key in the file most like it, unless that belongs to another parameter.
        nearest: Vec<String>,
    },
    /// The file holds a key that the model has no place for.
    #[error("{}: key `{key}` is not part of this model{}", .path.display(), suggest(.nearest))]
    UnexpectedKey {
        /// The weights file.
        path: PathBuf,
        /// The key that was found.
        key: String,
        /// The model's key most like it.
        nearest: Vec<String>,
    },
    /// A weight has another shape than the model's.
    #[error("{}: key `{key}` has shape {found:?}, the model wants {wanted:?}", .path.display())]
    Shape {
        /// The weights file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The model's shape.
        wanted: Vec<usize>,
        /// The file's shape.
        found: Vec<usize>,
    },
    /// The backend or device cannot be used here.
    #[error("backend {backend}: {message}")]
    Device {
        /// Name of the backend.
        backend: String,
        /// What is missing and what to do.
        message: String,
    },
    /// Training had to stop.
    #[error("training stopped at step {step}: {message}")]
    Training {
        /// The optimizer step, from 1.
        step: usize,
        /// Why, and which checkpoint is good.
        message: String,
    },
}

impl Error {
    /// An [`Error::Usage`].
    pub fn usage(option: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Usage {
            option: option.into(),
            message: message.into(),
        }
    }

    /// An [`Error::Io`], for use with `map_err`.
    pub fn io(path: impl AsRef<Path>, action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Error::Io {
            path,
            action,
            source,
        }
    }

    /// An [`Error::Malformed`].
    pub fn malformed(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        Error::Malformed {
            path: path.as_ref().to_path_buf(),
            message: message.into(),
        }
    }

    /// An [`Error::Download`].
    pub fn download(url: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Download {
            url: url.into(),
            message: message.into(),
        }
    }

    /// An [`Error::Unknown`] with the known names nearest to `name`.
    pub fn unknown<'a>(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let owned = |names: Vec<&str>| names.into_iter().map(String::from).collect();
        Error::Unknown {
            what,
            name: name.to_string(),
            suggestions: owned(crate::similar(name, known.iter().copied(), 3)),
            choices: owned(if known.len() <= 8 { known } else { Vec::new() }),
        }
    }

    /// The exit code of a program that ends with this error: 2 for wrong usage, 1 otherwise.
    pub fn exit_code(&self) -> i32 {
        match self {
            Error::Usage { .. } | Error::Unknown { .. } => 2,
            _ => 1,
        }
    }
}

fn suggest_or_list(suggestions: &[String], choices: &[String]) -> String {
    match (suggestions, choices) {
        ([], [_, ..]) => format!(" (known: `{}`)", choices.join("`, `")),
        _ => suggest(suggestions),
    }
}

fn suggest(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!(" (did you mean `{one}`?)"),
        many => format!(" (did you mean one of `{}`?)", many.join("`, `")),
    }
}
