use crate::cache::ModelCache;
use crate::choose::{Weights, shards, small_files, weights};
use crate::client::Client;
use crate::failure::{Attempt, Failure, Kind};
use crate::metadata::is_commit;
use crate::progress::{Progress, Tell};
use crate::repo::{encoded, is_safe_file};
use crate::transfer::Transfer;
use crate::{Hub, RepoId};
use burn_zoo_core::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A list of a model's files; the hub's longest are far below.
const MOST_LIST_BYTES: u64 = 16 << 20;
/// A file whose length the hub does not say is a small one, kept in git itself.
const MOST_SMALL_BYTES: u64 = 64 << 20;

/// What the hub answers about a model's revision.
#[derive(Deserialize)]
struct Listing {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

/// A revision: its commit and its files.
struct Revision {
    commit: String,
    names: BTreeSet<String>,
}

impl Hub {
    /// The folder with a model's configuration, tokenizer and weights. What the cache does not have
    /// is downloaded; without a network, what it has must do.
    ///
    /// # Errors
    /// If the hub does not give the model, or gives something else than it promised.
    pub fn snapshot(&self, repo: &RepoId, tell: &mut dyn FnMut(Progress)) -> Result<PathBuf> {
        let hub = self.clone().checked()?;
        let cache = ModelCache::new(&hub, repo);
        if hub.offline {
            return cache.at_hand(repo);
        }
        let client = Client::of(&hub)?;
        let revision = match hub.list(&client, repo, tell) {
            Ok(revision) => revision,
            Err(failure) if failure.kind != Kind::Final => {
                let Ok(folder) = cache.at_hand(repo) else {
                    return Err(failure.into());
                };
                let note = format!("{}; the copy in the cache is used", failure.error);
                tell(Progress::Note(note));
                return Ok(folder);
            }
            Err(failure) => return Err(failure.into()),
        };
        let commit = &revision.commit;
        let fetch = Fetch {
            hub: &hub,
            client: &client,
            cache: &cache,
            repo,
            commit,
        };
        let weights =
            weights(&revision.names).map_err(|message| Error::download(hub.page(repo), message))?;
        // The weights come last: a snapshot that has them is whole.
        for name in small_files(&revision.names) {
            fetch.file(name, tell)?;
        }
        match weights {
            Weights::One(name) => drop(fetch.file(name, tell)?),
            Weights::Sharded(name) => {
                for shard in shards(&fetch.file(name, tell)?)? {
                    fetch.file(&shard, tell)?;
                }
            }
        }
        if repo.revision() != commit {
            cache.write_ref(repo.revision(), commit)?;
        }
        Ok(cache.snapshot(commit))
    }

    /// A model's page.
    fn page(&self, repo: &RepoId) -> String {
        format!("{}/{}", self.endpoint, repo.name())
    }

    /// Asks which files a revision has.
    fn list(&self, client: &Client, repo: &RepoId, tell: &mut Tell) -> Attempt<Revision> {
        let revision = encoded(repo.revision(), false);
        let url = format!(
            "{}/api/models/{}/revision/{revision}",
            self.endpoint,
            repo.name()
        );
        let text = client.retrying(tell, |_| client.text(&url, MOST_LIST_BYTES))?;
        let listing: Listing = serde_json::from_str(&text)
            .map_err(|e| Failure::last(&url, format!("not a list of a model's files: {e}")))?;
        if !is_commit(&listing.sha) {
            return Err(Failure::last(&url, "the answer names no commit"));
        }
        let names = listing
            .siblings
            .into_iter()
            .map(|sibling| sibling.rfilename);
        let names: BTreeSet<String> = names.collect();
        if let Some(name) = names.iter().find(|name| !is_safe_file(name)) {
            let message = format!(
                "a file's name would leave the cache: `{}`",
                name.escape_debug()
            );
            return Err(Failure::last(&url, message));
        }
        Ok(Revision {
            commit: listing.sha,
            names,
        })
    }
}

/// Brings files of one commit.
struct Fetch<'a> {
    hub: &'a Hub,
    client: &'a Client,
    cache: &'a ModelCache,
    repo: &'a RepoId,
    commit: &'a str,
}

impl Fetch<'_> {
    /// A file in the cache, downloaded where it is not there yet.
    fn file(&self, name: &str, tell: &mut Tell) -> Result<PathBuf> {
        let (cache, commit) = (self.cache, self.commit);
        if let Some(path) = cache.file(commit, name)? {
            return Ok(path);
        }
        let url = format!(
            "{}/resolve/{commit}/{}",
            self.hub.page(self.repo),
            encoded(name, true)
        );
        let metadata = self.client.retrying(tell, |_| self.client.metadata(&url))?;
        if metadata.commit != commit {
            let message = format!("the answer is for commit {}", metadata.commit);
            return Err(Error::download(url, message));
        }
        let _lock = cache.lock(&metadata.etag, tell)?;
        let blob = cache.blob(&metadata.etag);
        if let Some(folder) = blob.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io(folder, "create the folder"))?;
        }
        let is_whole = std::fs::metadata(&blob)
            .is_ok_and(|blob| metadata.size.is_none_or(|size| size == blob.len()));
        if !is_whole {
            let part = cache.blob(&format!("{}.incomplete", metadata.etag));
            let transfer = Transfer {
                url: &url,
                name: &format!("{} {name}", self.repo),
                from: &self.hub.endpoint,
                size: metadata.size,
                most: MOST_SMALL_BYTES,
                check: &metadata.check,
                part: &part,
                keeps_part: true,
                target: &blob,
            };
            self.client.download(&transfer, tell)?;
        }
        cache.link(&metadata.etag, commit, name)?;
        cache.file(commit, name)?.ok_or_else(|| Error::NotFound {
            path: cache.snapshot(commit).join(name),
            hint: "another program removed it".into(),
        })
    }
}
