use crate::Hub;
use crate::failure::{Attempt, Failure, Kind};
use crate::progress::{Progress, Tell};
use burn_zoo_core::{Error, Result};
use std::io::Read;
use std::time::Duration;
use ureq::http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use ureq::{Agent, Body};

const MOST_REDIRECTS: usize = 10;

/// How long to wait for what, and how often to try again.
#[derive(Clone, Debug)]
pub struct Timing {
    /// For a connection.
    pub connect: Duration,
    /// For the head of an answer.
    pub response: Duration,
    /// For the next bytes of a body.
    pub stall: Duration,
    /// Tries after the first, where trying again may help.
    pub retries: u32,
    /// Before the second try; doubled for each one more.
    pub first_wait: Duration,
    /// The longest that a server may ask to wait.
    pub longest_wait: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            response: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            retries: 4,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
        }
    }
}

/// Which redirects are followed.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Follow {
    All,
    /// The answer of the hub itself is wanted, even where it is a redirect.
    SameHost,
}

/// Sends requests.
pub(crate) struct Client {
    agent: Agent,
    pub timing: Timing,
    is_hub: bool,
    /// Goes to this origin, and to no other.
    token: Option<(Origin, String)>,
}

impl Client {
    /// For files that are not a hub's.
    pub fn new(timing: &Timing) -> Self {
        // Proxies come from the usual variables, which is the agent's default.
        let agent = Agent::config_builder()
            .timeout_connect(Some(timing.connect))
            .timeout_recv_response(Some(timing.response))
            .timeout_per_read(Some(timing.stall))
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("burn-zoo/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Self {
            agent,
            timing: timing.clone(),
            is_hub: false,
            token: None,
        }
    }

    /// For a hub's files, with the user's token.
    pub fn of(hub: &Hub) -> Result<Self> {
        let mut client = Self::new(&hub.timing);
        client.is_hub = true;
        let origin = hub.endpoint.parse().ok().as_ref().and_then(origin);
        let Some(origin) = origin else {
            return Err(Error::usage("HF_ENDPOINT", "is no address"));
        };
        client.token = hub
            .token
            .as_ref()
            .map(|token| (origin, format!("Bearer {token}")));
        Ok(client)
    }

    /// Sends a request for `url`, or for its part from byte `from` on.
    pub fn send(
        &self,
        method: Method,
        url: &str,
        from: Option<u64>,
        follow: Follow,
    ) -> Attempt<Response<Body>> {
        let mut at: Uri = url
            .parse()
            .map_err(|_| Failure::last(url, "is no address"))?;
        for _ in 0..=MOST_REDIRECTS {
            // Lengths and ranges are those of the file, so it must come as it is.
            let mut request = Request::builder()
                .method(method.clone())
                .uri(at.clone())
                .header("Accept-Encoding", "identity");
            if let Some(from) = from {
                request = request.header("Range", format!("bytes={from}-"));
            }
            if let Some((host, token)) = &self.token
                && origin(&at).as_ref() == Some(host)
            {
                request = request.header("Authorization", token);
            }
            let request = request
                .body(())
                .map_err(|_| Failure::last(url, "cannot be asked for: the token is damaged"))?;
            let sent = self.agent.run(request);
            let response = sent.map_err(|e| Failure::network(url, e))?;
            let Some(next) = redirect(url, &at, &response)? else {
                return Ok(response);
            };
            if follow == Follow::SameHost && origin(&next) != origin(&at) {
                return Ok(response);
            }
            at = next;
        }
        let message = format!("leads on and on: more than {MOST_REDIRECTS} redirects");
        Err(Failure::last(url, message))
    }

    /// Does something until it works, or fails in a way that waiting does not mend.
    pub fn retrying<T>(
        &self,
        tell: &mut Tell,
        mut action: impl FnMut(&mut Tell) -> Attempt<T>,
    ) -> Attempt<T> {
        let mut wait = self.timing.first_wait;
        let mut left = self.timing.retries;
        loop {
            let failure = match action(tell) {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            let Kind::Passing(after) = failure.kind else {
                return Err(failure);
            };
            let pause = after.unwrap_or_default().max(wait);
            if left == 0 || pause > self.timing.longest_wait {
                return Err(failure);
            }
            tell(Progress::Note(format!(
                "{}; trying again in {:.0} s",
                failure.error,
                pause.as_secs_f64().ceil()
            )));
            std::thread::sleep(pause);
            left -= 1;
            wait *= 2;
        }
    }

    /// The body of a short answer.
    pub fn text(&self, url: &str, most_bytes: u64) -> Attempt<String> {
        let mut response = self.send(Method::GET, url, None, Follow::All)?;
        if response.status() != StatusCode::OK {
            return Err(self.refusal(url, &response));
        }
        let reader = response.body_mut().as_reader();
        let mut bytes = Vec::new();
        reader
            .take(most_bytes + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| Failure::passing(url, format!("the answer broke off ({e})"), None))?;
        if bytes.len() as u64 > most_bytes {
            return Err(Failure::last(
                url,
                format!("the answer has more than {most_bytes} bytes"),
            ));
        }
        String::from_utf8(bytes).map_err(|_| Failure::last(url, "the answer is no text"))
    }

    /// What an answer that is no success means, and what to do.
    pub fn refusal(&self, url: &str, response: &Response<Body>) -> Failure {
        let status = response.status().as_u16();
        let code = header(response.headers(), "x-error-code").unwrap_or_default();
        if status == 429 || status == 408 || status >= 500 {
            let after = header(response.headers(), "retry-after")
                .and_then(|seconds| seconds.trim().parse().ok())
                .map(Duration::from_secs);
            let message = match status {
                429 => "too many requests (429); run again later".into(),
                _ => format!("the server failed ({status}); run again later"),
            };
            return Failure::passing(url, message, after);
        }
        let has_token = self.token.is_some();
        let how = "set HF_TOKEN or log in with `hf auth login`";
        let message = match (status, code) {
            _ if !self.is_hub => format!("the server refused ({status})"),
            (_, "GatedRepo") if has_token => {
                format!("the token has no access ({status}): ask for it on the model's page")
            }
            (_, "GatedRepo") => {
                format!("the model is gated ({status}): ask for access on its page, then {how}")
            }
            (_, "RevisionNotFound") => format!("the model has no such revision ({status})"),
            (_, "EntryNotFound") => format!("the model has no such file ({status})"),
            (_, "RepoNotFound") | (401, _) if has_token => format!(
                "no such model, or none that the token gives access to ({status}); {how} anew if it has expired"
            ),
            (_, "RepoNotFound") | (401, _) => {
                format!("no such model, or a private or gated one ({status}); for those, {how}")
            }
            (403, _) if has_token => format!("the token gives no access ({status})"),
            (403, _) => format!("no access without a token ({status}); {how}"),
            _ => format!("the server refused ({status})"),
        };
        Failure::last(url, message)
    }
}

/// A header's text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Scheme, host and port: what a token belongs to.
#[derive(PartialEq)]
struct Origin(String, String, u16);

fn origin(uri: &Uri) -> Option<Origin> {
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(match scheme.as_str() {
        "http" => 80,
        _ => 443,
    });
    Some(Origin(scheme, uri.host()?.to_ascii_lowercase(), port))
}

/// Where an answer redirects to, if it does.
fn redirect(url: &str, at: &Uri, response: &Response<Body>) -> Attempt<Option<Uri>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = header(response.headers(), "location") else {
        return Err(Failure::last(url, "a redirect says not where to"));
    };
    let next =
        resolve(at, location).ok_or_else(|| Failure::last(url, "a redirect to no address"))?;
    match next.scheme_str() {
        Some("https") => Ok(Some(next)),
        Some("http") if at.scheme_str() == Some("http") => Ok(Some(next)),
        _ => Err(Failure::last(
            url,
            "a redirect to an address that is not safe",
        )),
    }
}

/// The address that `location` means, seen from `at`.
fn resolve(at: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next()?.trim();
    let (scheme, authority) = (at.scheme_str()?, at.authority()?);
    let text = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if location.contains("://") {
        location.into()
    } else {
        let (folder, _) = at.path().rsplit_once('/')?;
        format!("{scheme}://{authority}{folder}/{location}")
    };
    text.parse().ok().filter(|uri: &Uri| uri.host().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_resolved_as_browsers_do() {
        let at: Uri = "https://host:8/a/b?c".parse().expect("an address");
        for (location, want) in [
            ("/x?y", Some("https://host:8/x?y")),
            ("x", Some("https://host:8/a/x")),
            ("//other/x", Some("https://other/x")),
            ("http://other/x#part", Some("http://other/x")),
            ("https://", None),
        ] {
            let found = resolve(&at, location).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), want, "{location}");
        }
    }

    #[test]
    fn a_token_belongs_to_scheme_host_and_port() {
        let of = |text: &str| origin(&text.parse().expect("an address"));
        let home = of("https://hub.example");
        assert!(of("https://HUB.example:443/x") == home);
        for other in [
            "http://hub.example/",
            "https://hub.example:8443/",
            "https://hub.example.evil/",
            "https://cdn.hub.example/",
        ] {
            assert!(of(other) != home, "{other}");
        }
    }
}
