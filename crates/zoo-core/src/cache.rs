use std::path::PathBuf;

/// Where the zoo keeps what it downloads, but for a hub's models: `BURN_ZOO_CACHE`, or `burn-zoo`
/// in the user's cache folder.
pub fn cache_dir() -> PathBuf {
    let from = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    from("BURN_ZOO_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|d| d.join("burn-zoo")))
        .or_else(|| from("HOME").map(|d| d.join(".cache/burn-zoo")))
        .or_else(|| from("LOCALAPPDATA").map(|d| d.join("burn-zoo")))
        .unwrap_or_else(|| PathBuf::from(".burn-zoo"))
}
