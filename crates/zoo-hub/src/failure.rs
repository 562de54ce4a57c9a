use burn_zoo_core::Error;
use std::time::Duration;

/// What a request gives.
pub(crate) type Attempt<T> = std::result::Result<T, Failure>;

/// A request that failed, and whether to try again.
#[derive(Debug)]
pub(crate) struct Failure {
    pub error: Box<Error>,
    pub kind: Kind,
}

/// What may help.
#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    /// Nothing: the answer stays what it is.
    Final,
    /// A network.
    Unreachable,
    /// Time, of which the server may ask for some.
    Passing(Option<Duration>),
}

impl Failure {
    /// The server's last word on `url`.
    pub fn last(url: &str, message: impl Into<String>) -> Self {
        Self {
            error: Box::new(Error::download(url, message)),
            kind: Kind::Final,
        }
    }

    /// What may go better the next time.
    pub fn passing(url: &str, message: impl Into<String>, after: Option<Duration>) -> Self {
        Self {
            error: Box::new(Error::download(url, message)),
            kind: Kind::Passing(after),
        }
    }

    /// A request that got no answer.
    pub fn network(url: &str, error: ureq::Error) -> Self {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        use ureq::Timeout::{PerRead, RecvResponse, SendRequest};
        let kind = match &error {
            ureq::Error::Timeout(PerRead | RecvResponse | SendRequest)
            | ureq::Error::Protocol(_) => Kind::Passing(None),
            ureq::Error::Io(e)
                if matches!(e.kind(), UnexpectedEof | ConnectionReset | BrokenPipe) =>
            {
                Kind::Passing(None)
            }
            _ => Kind::Unreachable,
        };
        let message = match &error {
            ureq::Error::Timeout(_) => format!("no answer in time ({error}); run again later"),
            _ => format!("no answer ({error})"),
        };
        Self {
            error: Box::new(Error::download(url, message)),
            kind,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            error: Box::new(error),
            kind: Kind::Final,
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        *failure.error
    }
}
