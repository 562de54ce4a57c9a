//! The simplest classifier on the same split of the digits, to put the network's accuracy beside.

use burn_zoo_images::{ImageSource, OpenOptions, open};

/// Share of the test digits whose class is the most frequent among the `k` training and validation
/// digits with the least squared distance of pixels; ties go to the nearest.
fn accuracy(k: usize) -> f64 {
    let data = open("digits", &OpenOptions::default()).expect("the digits are bundled");
    let read = |part: &dyn ImageSource| -> Vec<(Vec<u8>, usize)> {
        let image = |i| part.image(i).expect("in memory").pixels;
        (0..part.len()).map(|i| (image(i), part.label(i))).collect()
    };
    let mut known = read(data.train.as_ref());
    known.extend(read(data.valid.as_ref()));
    let test = read(data.test.as_ref());
    let right = test.iter().filter(|(pixels, label)| {
        let distance = |other: &[u8]| -> i64 {
            pixels
                .iter()
                .zip(other)
                .map(|(a, b)| (i64::from(*a) - i64::from(*b)).pow(2))
                .sum()
        };
        let mut nearest: Vec<(i64, usize)> = known.iter().map(|(p, l)| (distance(p), *l)).collect();
        nearest.sort_unstable();
        let votes = |class: usize| nearest[..k].iter().filter(|n| n.1 == class).count();
        let most = nearest[..k].iter().map(|n| votes(n.1)).max();
        nearest[..k]
            .iter()
            .find(|n| Some(votes(n.1)) == most)
            .map(|n| n.1)
            == Some(*label)
    });
    right.count() as f64 / test.len() as f64
}

#[test]
fn nearest_neighbours_on_the_digits() {
    for (k, stated) in [(1, 98.61), (3, 98.61), (5, 98.33)] {
        let found = accuracy(k);
        println!("k = {k}: {:.2} %", 100.0 * found);
        assert!(
            (100.0 * found - stated).abs() < 0.005,
            "docs/src/results.md states {stated} % for k = {k}, found {found}"
        );
    }
}
