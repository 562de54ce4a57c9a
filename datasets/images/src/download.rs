use crate::locate::Wanted;
use burn_zoo_core::{Error, Result};
use burn_zoo_hub::{Progress, Published, Timing, fetch_published, mirrored};
use std::io::Read;
use std::path::Path;

/// No file of a known data set is longer.
const MOST_BYTES: u64 = 256 << 20;

/// Downloads a data set's files into `folder`. A file appears under its name only when it is
/// complete and its hash is right.
pub(crate) fn fetch(wanted: &Wanted, folder: &Path) -> Result<()> {
    for (url, hash) in wanted.urls.iter().zip(wanted.hashes) {
        let name = url.rsplit('/').next().unwrap_or(url);
        let target = folder.join(name);
        download(&mirrored(url, wanted.dataset), hash, &target)?;
        if name.ends_with(".tar.gz") {
            unpack(&target, wanted.files, folder)?;
        }
    }
    Ok(())
}

fn download(url: &str, sha256: &str, target: &Path) -> Result<()> {
    let file = Published {
        url,
        sha256,
        most_bytes: MOST_BYTES,
        target,
        keeps_part: false,
    };
    let mut tell = |progress: Progress| match progress {
        Progress::Begin { done: 0, .. } => burn_zoo_core::note!("downloading {url}"),
        Progress::Note(line) => burn_zoo_core::note!("{line}"),
        _ => {}
    };
    fetch_published(&file, &Timing::default(), &mut tell).map_err(|error| match error {
        Error::Download { url, message } => Error::NotFound {
            path: target.to_path_buf(),
            hint: format!(
                "{url}: {message}; or put the file there by hand, or give its folder with --data-dir"
            ),
        },
        other => other,
    })
}

/// Takes the wanted files out of an archive; names in it never choose where anything is written.
fn unpack(archive: &Path, files: &[&str], folder: &Path) -> Result<()> {
    let damaged = |e: std::io::Error| Error::malformed(archive, format!("damaged archive: {e}"));
    let reader = std::fs::File::open(archive).map_err(Error::io(archive, "open"))?;
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(std::io::BufReader::new(
        reader,
    )));
    for entry in tar.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let path = entry.path().map_err(damaged)?;
        let name = path.file_name().and_then(|n| n.to_str());
        let Some(file) = files.iter().find(|file| Some(**file) == name) else {
            continue;
        };
        let target = folder.join(file);
        let mut part =
            tempfile::NamedTempFile::new_in(folder).map_err(Error::io(&target, "write"))?;
        let copied = std::io::copy(&mut (&mut entry).take(MOST_BYTES), &mut part);
        copied.map_err(Error::io(&target, "write"))?;
        part.persist(&target)
            .map_err(|e| Error::io(&target, "write")(e.error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::io::Write;
    use std::net::TcpListener;

    /// The address of a server that gives `body` once and is gone.
    fn serve_once(body: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 2048];
            let _ = stream.read(&mut request).expect("a request");
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).expect("a client");
            stream.write_all(&body).expect("a client");
        });
        format!("http://{address}")
    }

    fn sha256(bytes: &[u8]) -> String {
        let digest = Sha256::digest(bytes);
        digest.iter().map(|b| format!("{b:02x}")).collect()
    }

    fn fetch_from(url: String, hash: &str, files: &[&'static str], folder: &Path) -> Result<()> {
        let wanted = Wanted {
            dataset: "a test",
            files,
            alternative: ".gz",
            system: None,
            urls: &[url],
            hashes: &[hash],
        };
        fetch(&wanted, folder)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|e| e.expect("an entry").file_name().to_string_lossy().into())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_with_the_right_hash_is_kept_and_not_asked_for_again() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let folder = cache.path().join("made by the download");
        let body = vec![7; 300_000];
        let url = format!("{}/pixels.gz", serve_once(body.clone()));
        let hash = sha256(&body);
        for _ in 0..2 {
            fetch_from(url.clone(), &hash, &["pixels"], &folder).expect("served, then at hand");
        }
        assert_eq!(names(&folder), ["pixels.gz"]);
        assert_eq!(std::fs::read(folder.join("pixels.gz")).expect("kept"), body);
    }

    #[test]
    fn an_archive_gives_its_files_and_chooses_no_places() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
            Vec::new(),
            Default::default(),
        ));
        for (name, contents) in [
            ("batches/one.bin", &b"first"[..]),
            ("batches/readme.html", b"not wanted"),
            ("a/../../two.bin", b"second"),
        ] {
            let mut header = tar::Header::new_gnu();
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(contents.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            tar.append(&header, contents).expect("in memory");
        }
        let body = tar
            .into_inner()
            .and_then(|gz| gz.finish())
            .expect("in memory");
        let hash = sha256(&body);
        let url = format!("{}/set.tar.gz", serve_once(body));
        let inner = folder.path().join("inner");
        fetch_from(url, &hash, &["one.bin", "two.bin"], &inner).expect("the hash is right");
        assert_eq!(names(&inner), ["one.bin", "set.tar.gz", "two.bin"]);
        assert_eq!(names(folder.path()), ["inner"]);
        assert_eq!(
            std::fs::read(inner.join("two.bin")).expect("there"),
            b"second"
        );
    }
}
