/// How a model's parameter paths are spelt in a family of files, in both directions.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyMap {
    /// Pieces of a path and what they are called in the file. A piece is one or more whole
    /// components: `("downsample.conv", "downsample.0")`.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Last components of file keys that hold nothing the model needs, with the reason.
    pub dropped: &'static [(&'static str, &'static str)],
}

impl KeyMap {
    /// The key in the file of the parameter at `path`.
    pub fn key(&self, path: &str) -> String {
        // Dots at both ends make sure that whole components are compared.
        let mut key = format!(".{path}.");
        for (ours, theirs) in self.renamed {
            key = key.replace(&format!(".{ours}."), &format!(".{theirs}."));
        }
        key[1..key.len() - 1].to_string()
    }

    /// Whether the file's `key` is known to hold nothing the model needs.
    pub fn drops(&self, key: &str) -> bool {
        let last = key.rsplit('.').next().unwrap_or(key);
        self.dropped.iter().any(|(name, _)| *name == last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: KeyMap = KeyMap {
        renamed: &[("downsample.conv", "downsample.0")],
        dropped: &[("num_batches_tracked", "a counter")],
    };

    #[test]
    fn whole_components_are_renamed() {
        let key = |path| MAP.key(path);
        assert_eq!(
            key("layer1.0.downsample.conv.weight"),
            "layer1.0.downsample.0.weight"
        );
        assert_eq!(key("downsample.conv"), "downsample.0");
        assert_eq!(
            key("my_downsample.conv1.weight"),
            "my_downsample.conv1.weight"
        );
    }

    #[test]
    fn only_the_last_component_decides_what_is_dropped() {
        assert!(MAP.drops("bn1.num_batches_tracked"));
        assert!(!MAP.drops("num_batches_tracked.weight"));
    }
}
