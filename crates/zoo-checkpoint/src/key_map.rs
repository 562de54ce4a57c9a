use crate::Layout;
use std::borrow::Cow;

/// How a model's parameter paths are spelt in one kind of file, in both directions.
///
/// A family has one map for each spelling that is in the wild; [`load`](crate::load) takes the one
/// that fits a file best.
#[derive(Clone, Debug, Default)]
pub struct KeyMap {
    /// Whose spelling it is: `torchvision`, `transformers`, `timm`…
    pub name: &'static str,
    /// Pieces of a path and what they are called in the file, applied in order. A piece is one or
    /// more whole components. In ours `*` stands for any one component and `^` holds a piece to the
    /// beginning of the path; in theirs `*` is that component and `*+1` the number after it:
    /// `("^layers.*", "layer*+1")`.
    pub renamed: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    /// File keys that hold nothing the model needs, with the reason: a last component, or with a dot in it
    /// a whole key, in which `*` stands for one component.
    pub dropped: &'static [(&'static str, &'static str)],
    /// Parameters that lie otherwise in the file, with the steps from there to here. In a pattern,
    /// which covers the whole path, `*` stands for one component.
    pub layouts: Vec<(Cow<'static, str>, Vec<Layout>)>,
    /// Keys of a file that say again what another key says, as the head of a model whose embedding is
    /// tied to it. They may be there, and must then be equal; they are not written.
    pub tied: Vec<(&'static str, &'static str)>,
}

impl KeyMap {
    /// A map with these renamed pieces and dropped keys.
    pub fn new(
        name: &'static str,
        renamed: &[(&'static str, &'static str)],
        dropped: &'static [(&'static str, &'static str)],
    ) -> Self {
        let cow =
            |(ours, theirs): &(&'static str, &'static str)| ((*ours).into(), (*theirs).into());
        Self {
            name,
            renamed: renamed.iter().map(cow).collect(),
            dropped,
            ..Self::default()
        }
    }

    /// States how the parameters whose path fits `pattern` lie in the file.
    pub fn lay(&mut self, pattern: impl Into<Cow<'static, str>>, layouts: &[Layout]) {
        self.layouts.push((pattern.into(), layouts.to_vec()));
    }

    /// The steps from the file's numbers to those of the parameter at `path`.
    pub(crate) fn layout(&self, path: &str) -> &[Layout] {
        let found = self.layouts.iter().find(|(pattern, _)| fits(pattern, path));
        found.map_or(&[], |(_, layouts)| layouts)
    }

    /// Renames one more piece, after the others.
    pub fn rename(
        &mut self,
        ours: impl Into<Cow<'static, str>>,
        theirs: impl Into<Cow<'static, str>>,
    ) {
        self.renamed.push((ours.into(), theirs.into()));
    }

    /// The key in the file of the parameter at `path`.
    pub fn key(&self, path: &str) -> String {
        let mut key: Vec<String> = path.split('.').map(String::from).collect();
        for (ours, theirs) in &self.renamed {
            rename(&mut key, ours, theirs);
        }
        key.join(".")
    }

    /// Whether the file's `key` is known to hold nothing the model needs.
    pub fn drops(&self, key: &str) -> bool {
        let last = key.rsplit('.').next().unwrap_or(key);
        let names = |name: &str| match name.contains('.') {
            true => fits(name, key),
            false => name == last,
        };
        self.dropped.iter().any(|(name, _)| names(name))
    }
}

/// Whether a path or key fits a pattern in which `*` stands for one component.
fn fits(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('.'), path.split('.'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(p), Some(c)) if p == "*" || p == c => {}
            _ => return false,
        }
    }
}

/// Puts `theirs` for the first place where `ours` fits.
fn rename(key: &mut Vec<String>, ours: &str, theirs: &str) {
    let (ours, anchored) = match ours.strip_prefix('^') {
        Some(rest) => (rest, true),
        None => (ours, false),
    };
    let piece: Vec<&str> = ours.split('.').collect();
    let fits = |at: usize| {
        let components = &key[at..at + piece.len()];
        piece
            .iter()
            .zip(components)
            .all(|(p, k)| *p == "*" || p == k)
    };
    let last = (key.len() + 1).saturating_sub(piece.len());
    let Some(at) = (0..if anchored { last.min(1) } else { last }).find(|at| fits(*at)) else {
        return;
    };
    let kept: Vec<String> = key
        .splice(at..at + piece.len(), [])
        .zip(&piece)
        .filter(|(_, piece)| **piece == "*")
        .map(|(component, _)| component)
        .collect();
    let mut kept = kept.into_iter();
    let mut new = |theirs: &str| match theirs.split_once('*') {
        Some((before, step)) => {
            let component = kept.next().unwrap_or_default();
            let moved = step
                .parse::<usize>()
                .ok()
                .zip(component.parse::<usize>().ok());
            let component = moved.map_or(component, |(step, n)| (n + step).to_string());
            format!("{before}{component}")
        }
        None => theirs.to_string(),
    };
    let new: Vec<String> = theirs
        .split('.')
        .filter(|t| !t.is_empty())
        .map(&mut new)
        .collect();
    key.splice(at..at, new);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> KeyMap {
        KeyMap::new(
            "a test",
            &[
                ("^stem", "resnet.embedder"),
                ("^layers.*.*", "encoder.stages.*.layers.*"),
                ("^blocks.*", "layer*+1"),
                ("downsample.conv", "downsample.0"),
                ("gone", ""),
            ],
            &[("num_batches_tracked", "a counter"), ("h.*.bias", "a mask")],
        )
    }

    #[test]
    fn whole_components_are_renamed() {
        for (path, key) in [
            ("a.0.downsample.conv.weight", "a.0.downsample.0.weight"),
            ("downsample.conv", "downsample.0"),
            ("my_downsample.conv1.weight", "my_downsample.conv1.weight"),
            ("stem.weight", "resnet.embedder.weight"),
            ("a.stem.weight", "a.stem.weight"),
            ("stem", "resnet.embedder"),
            ("layers.3.12.bias", "encoder.stages.3.layers.12.bias"),
            ("a.layers.3.12.bias", "a.layers.3.12.bias"),
            ("layers.3", "layers.3"),
            ("blocks.9.downsample.conv", "layer10.downsample.0"),
            ("a.gone.b", "a.b"),
        ] {
            assert_eq!(map().key(path), key, "{path}");
        }
    }

    #[test]
    fn a_last_component_or_a_whole_key_decides_what_is_dropped() {
        assert!(map().drops("h.12.bias"));
        assert!(!map().drops("a.h.12.bias") && !map().drops("h.12.a.bias"));
        assert!(map().drops("bn1.num_batches_tracked"));
        assert!(!map().drops("num_batches_tracked.weight"));
    }
}
