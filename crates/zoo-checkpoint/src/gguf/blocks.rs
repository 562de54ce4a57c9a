//! Blocks of 32 numbers. Each function reads one: the low halves of the bytes `qs` are the first 16
//! numbers, the high halves the last 16. The order of operations is ggml's, for equal rounding.

use half::f16;

/// `kvalues_iq4nl` of ggml-common.h.
pub(super) const IQ4_VALUES: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// `kvalues_mxfp4`: twice the values of e2m1.
const MXFP4_VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The `ggml_half` in the first two bytes.
pub(super) fn half(bytes: &[u8]) -> f32 {
    f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
}

/// The values of `qs` in order of the numbers.
fn nibbles(qs: &[u8]) -> impl Iterator<Item = u8> {
    let low = qs.iter().map(|q| q & 15);
    low.chain(qs.iter().map(|q| q >> 4))
}

/// As [`nibbles`], with the fifth bit from `qh`.
fn fives(qh: &[u8], qs: &[u8]) -> impl Iterator<Item = u8> {
    let fifth = |i: usize| (qh[i / 8] >> (i % 8) & 1) << 4;
    nibbles(qs).enumerate().map(move |(i, q)| q | fifth(i))
}

fn put(out: &mut [f32], numbers: impl Iterator<Item = f32>) {
    out.iter_mut().zip(numbers).for_each(|(out, n)| *out = n);
}

/// `block_q4_0`: d, qs; d·(q − 8).
pub(super) fn q4_0(block: &[u8], out: &mut [f32]) {
    let d = half(block);
    put(out, nibbles(&block[2..]).map(|q| d * (f32::from(q) - 8.0)));
}

/// `block_q4_1`: d, m, qs; d·q + m.
pub(super) fn q4_1(block: &[u8], out: &mut [f32]) {
    let (d, m) = (half(block), half(&block[2..]));
    put(out, nibbles(&block[4..]).map(|q| d * f32::from(q) + m));
}

/// `block_q5_0`: d, qh, qs; d·(q − 16).
pub(super) fn q5_0(block: &[u8], out: &mut [f32]) {
    let d = half(block);
    let qs = fives(&block[2..6], &block[6..]);
    put(out, qs.map(|q| d * (f32::from(q) - 16.0)));
}

/// `block_q5_1`: d, m, qh, qs; d·q + m.
pub(super) fn q5_1(block: &[u8], out: &mut [f32]) {
    let (d, m) = (half(block), half(&block[2..]));
    let qs = fives(&block[4..8], &block[8..]);
    put(out, qs.map(|q| d * f32::from(q) + m));
}

/// `block_q8_0`: d, qs; d·q.
pub(super) fn q8_0(block: &[u8], out: &mut [f32]) {
    let d = half(block);
    let qs = block[2..].iter().map(|q| f32::from(q.cast_signed()));
    put(out, qs.map(|q| d * q));
}

/// `block_iq4_nl`: d, qs; d·value(q).
pub(super) fn iq4_nl(block: &[u8], out: &mut [f32]) {
    let d = half(block);
    let values = nibbles(&block[2..]).map(|q| IQ4_VALUES[usize::from(q)]);
    put(out, values.map(|v| d * f32::from(v)));
}

/// `block_mxfp4`: e, qs; 2^(e − 128)·value(q).
pub(super) fn mxfp4(block: &[u8], out: &mut [f32]) {
    // `GGML_E8M0_TO_FP32_HALF`: the two smallest are subnormal.
    let d = f32::from_bits(match block[0] {
        e @ 0..2 => 0x0020_0000_u32 << e,
        e => (u32::from(e) - 1) << 23,
    });
    let values = nibbles(&block[1..]).map(|q| MXFP4_VALUES[usize::from(q)]);
    put(out, values.map(|v| d * f32::from(v)));
}
