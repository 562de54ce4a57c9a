/// The candidate most like `name`, if any is near enough to be a likely misspelling.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    similar(name, candidates, 1).into_iter().next()
}

/// Up to `limit` candidates that resemble `name`, the most similar first.
pub fn similar<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(score, _)| *score > 0.7)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored
        .into_iter()
        .take(limit)
        .map(|(_, name)| name)
        .collect()
}

/// Digits in groups of three.
pub fn group_digits(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> = {
        let first = digits.len() % 3;
        let (head, tail) = digits.split_at(first);
        let rest = (0..tail.len()).step_by(3).map(|i| &tail[i..i + 3]);
        (!head.is_empty())
            .then_some(head)
            .into_iter()
            .chain(rest)
            .collect()
    };
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_neighbours() {
        let names = ["resnet18", "resnet50", "wide_resnet50_2", "mnist"];
        assert_eq!(nearest("resnt50", names), Some("resnet50"));
        assert_eq!(nearest("zebra", names), None);
        assert_eq!(similar("resnet5", names, 2), ["resnet50", "resnet18"]);
    }
}
