//! Functions of single numbers that a compiler turns into vector code, and sums over slices.

/// `e^x` with a relative error below 2e-7; 0 far below, ∞ far above, NaN of NaN.
///
/// `x = n ln 2 + r` with `|r| ≤ ln 2 / 2`; `e^r` by its Taylor series to `r⁷`.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    /// Added and taken away again, it leaves the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts, of which the first has few digits.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    // From -104 on the result is 0, from 89 on it is infinite.
    let x = x.clamp(-104.0, 89.0);
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2[1], n.mul_add(-LN_2[0], x));
    let mut p = 1.0 / 5040.0;
    for factor in [
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        p = r.mul_add(p, factor);
    }
    // 2ⁿ in two factors, as it may be too large or too small for one.
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) << 23) as u32);
    p * power(half) * power(n - half)
}

/// `σ(x) = 1 / (1 + e^-x)`.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The normal distribution's Φ and its density.
///
/// `Φ(-a) = e^(-a² / 2) t P(t)` with `t = 1 / (1 + 0.39 a)`, the form of Abramowitz and Stegun 7.1.26; P was fitted to
/// a relative error of 1e-8 for `a` up to 14.
#[inline(always)]
pub(super) fn normal(x: f32) -> [f32; 2] {
    const P: [f32; 10] = [
        0.029_365_83,
        -0.169_368_39,
        0.390_326_32,
        -0.422_068_7,
        0.175_939_54,
        -0.045_351_036,
        0.100_022_06,
        0.129_800_41,
        0.155_751_97,
        0.155_582_03,
    ];
    let a = x.abs();
    let bell = exp(-0.5 * a * a);
    let t = 1.0 / a.mul_add(0.39, 1.0);
    let mut p = P[0];
    for factor in &P[1..] {
        p = t.mul_add(p, *factor);
    }
    // Where the bell is 0, t may be so too, but never infinite.
    let tail = bell * (t * p);
    let below = if x < 0.0 { tail } else { 1.0 - tail };
    let root = 0.5 * std::f32::consts::FRAC_2_SQRT_PI * std::f32::consts::FRAC_1_SQRT_2;
    [below, bell * root]
}

/// Partial sums that a compiler can keep in registers.
const LANES: usize = 16;

/// Sums `f(element of a, element of b)`: sixteen sums in f32, which are added in f64.
#[inline(always)]
pub(super) fn sum2(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> f64 {
    let mut lanes = [0.0f32; LANES];
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for i in 0..LANES {
            lanes[i] += f(a[i], b[i]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| f64::from(f(*a, *b)));
    lanes.iter().map(|v| f64::from(*v)).chain(rest).sum()
}

/// Sums `f(element)` as [`sum2`] does.
#[inline(always)]
pub(super) fn sum(a: &[f32], f: impl Fn(f32) -> f32) -> f64 {
    sum2(a, a, |a, _| f(a))
}

/// The largest element; -∞ of none. NaN is passed over.
#[inline(always)]
pub(super) fn max(a: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let (blocks, rest) = a.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            lanes[i] = larger(block[i], lanes[i]);
        }
    }
    let rest = rest.iter().copied();
    lanes
        .into_iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |m, v| larger(v, m))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_right_to_f32s_rounding() {
        for i in -110_000..95_000 {
            let x = i as f32 * 1e-3;
            let want = f64::from(x).exp();
            let error = (f64::from(exp(x)) - want).abs();
            // Below f32's normal numbers, digits are lost.
            assert!(
                error <= 2e-7 * want + 1e-45 || want > f64::from(f32::MAX),
                "{x}"
            );
        }
        assert_eq!(
            [exp(f32::NEG_INFINITY), exp(-200.0), exp(0.0)],
            [0.0, 0.0, 1.0]
        );
        assert_eq!([exp(f32::INFINITY), exp(100.0)], [f32::INFINITY; 2]);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn the_normal_distribution_is_right_to_f32s_rounding() {
        for i in -140_000..140_000 {
            let x = i as f32 * 1e-4;
            let z = f64::from(x) * std::f64::consts::FRAC_1_SQRT_2;
            let [below, density] = normal(x).map(f64::from);
            let want = 0.5 * libm::erfc(-z);
            // Far out the exponent's own rounding shows.
            let scale = 1.0 + 0.5 * f64::from(x * x);
            assert!(
                (below - want).abs() <= 4e-7 * scale * want + 1e-45,
                "{x}: {below} {want}"
            );
            let want = (-z * z).exp() / std::f64::consts::TAU.sqrt();
            assert!((density - want).abs() <= 2e-7 * scale * want + 1e-45, "{x}");
        }
        assert_eq!(normal(f32::INFINITY), [1.0, 0.0]);
        assert_eq!(normal(f32::NEG_INFINITY), [0.0, 0.0]);
        assert!(normal(f32::NAN)[0].is_nan());
    }

    #[test]
    fn sums_and_the_largest_take_every_element() {
        for len in 0..70 {
            let a: Vec<f32> = (0..len).map(|i| (i * 37 % 71) as f32 - 35.0).collect();
            let want: f32 = a.iter().sum();
            assert_eq!(sum(&a, |v| v), f64::from(want));
            let want: f32 = a.iter().map(|v| v * v).sum();
            assert_eq!(sum2(&a, &a, |a, b| a * b), f64::from(want));
            let want = a.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(max(&a), want);
        }
    }
}
