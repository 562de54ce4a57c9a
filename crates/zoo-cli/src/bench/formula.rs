//! Numbers that other programs make alike: the same inputs and weights on every side of a comparison.

use burn::tensor::TensorData;

/// Numbers in -1..1 that belong to a name: the upper 24 bits of SplitMix64 (Steele et al. 2014), which begins
/// at the name's FNV-1a hash.
pub fn numbers(name: &str, count: usize) -> Vec<f32> {
    let mut state = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Whole numbers of `0..below`.
pub fn whole(name: &str, count: usize, below: usize) -> Vec<i64> {
    let numbers = numbers(name, count).into_iter();
    numbers
        .map(|number| ((f64::from(number) + 1.0) / 2.0 * below as f64) as i64)
        .collect()
}

/// The weight of a model under this key: matrices so that what leaves them is about as large as what enters,
/// factors near 1, everything else near 0.
pub fn weight(key: &str, shape: &[usize]) -> TensorData {
    let numbers = numbers(key, shape.iter().product()).into_iter();
    let inputs: usize = shape.iter().skip(1).product();
    let near_one = key.ends_with("running_var") || key.ends_with("weight");
    let weight = |number: f32| match (shape.len(), near_one) {
        (0 | 1, true) => 1.0 + 0.1 * number,
        (0 | 1, false) => 0.1 * number,
        _ => (3.0 / inputs as f32).sqrt() * number,
    };
    TensorData::new(numbers.map(weight).collect::<Vec<f32>>(), shape.to_vec())
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_those_of_the_python_side() {
        // tools/bench/formula.py prints these.
        assert_eq!(
            super::numbers("input", 3),
            [-0.804_363_37, 0.304_720_76, -0.592_751_5]
        );
        assert_eq!(super::whole("labels", 4, 10), [0, 4, 2, 8]);
    }
}
