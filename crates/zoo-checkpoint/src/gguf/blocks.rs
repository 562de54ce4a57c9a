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

/// The values of `qs` in order of the numbers. An array and not an iterator: what follows is vectorised.
fn nibbles(qs: &[u8]) -> [u8; 32] {
    let mut all = [0; 32];
    let (low, high) = all.split_at_mut(16);
    for ((low, high), q) in low.iter_mut().zip(high).zip(qs) {
        (*low, *high) = (q & 15, q >> 4);
    }
    all
}

/// As [`nibbles`], with the fifth bit from `qh`.
fn fives(qh: &[u8], qs: &[u8]) -> [u8; 32] {
    let mut all = nibbles(qs);
    for (eight, qh) in all.chunks_exact_mut(8).zip(qh) {
        for (i, q) in eight.iter_mut().enumerate() {
            *q |= (qh >> i & 1) << 4;
        }
    }
    all
}

fn put(out: &mut [f32], qs: &[u8], number: impl Fn(u8) -> f32) {
    out.iter_mut()
        .zip(qs)
        .for_each(|(out, q)| *out = number(*q));
}

/// `block_q4_0`: d, qs; d·(q − 8).
pub(super) fn q4_0(block: &[u8], out: &mut [f32]) {
    let d = half(block);
    put(out, &nibbles(&block[2..]), |q| d * (f32::from(q) - 8.0));
}

/// `block_q4_1`: d, m, qs; d·q + m.
pub(super) fn q4_1(block: &[u8], out: &mut [f32]) {
    let (d, m) = (half(block), half(&block[2..]));
    put(out, &nibbles(&block[4..]), |q| d * f32::from(q) + m);
}

/// `block_q5_0`: d, qh, qs; d·(q − 16).
pub(super) fn q5_0(block: &[u8], out: &mut [f32]) {
    let d = half(block);
    let qs = fives(&block[2..6], &block[6..]);
    put(out, &qs, |q| d * (f32::from(q) - 16.0));
}

/// `block_q5_1`: d, m, qh, qs; d·q + m.
pub(super) fn q5_1(block: &[u8], out: &mut [f32]) {
    let (d, m) = (half(block), half(&block[2..]));
    let qs = fives(&block[4..8], &block[8..]);
    put(out, &qs, |q| d * f32::from(q) + m);
}

/// `block_q8_0`: d, qs; d·q.
pub(super) fn q8_0(block: &[u8], out: &mut [f32]) {
    let d = half(block);
    put(out, &block[2..], |q| d * f32::from(q.cast_signed()));
}

/// `block_iq4_nl`: d, qs; d·value(q).
pub(super) fn iq4_nl(block: &[u8], out: &mut [f32]) {
    let d = half(block);
    let value = |q: u8| f32::from(IQ4_VALUES[usize::from(q & 15)]);
    put(out, &nibbles(&block[2..]), |q| d * value(q));
}

/// `block_mxfp4`: e, qs; 2^(e − 128)·value(q).
pub(super) fn mxfp4(block: &[u8], out: &mut [f32]) {
    // `GGML_E8M0_TO_FP32_HALF`: the two smallest are subnormal.
    let d = f32::from_bits(match block[0] {
        e @ 0..2 => 0x0020_0000_u32 << e,
        e => (u32::from(e) - 1) << 23,
    });
    let value = |q: u8| f32::from(MXFP4_VALUES[usize::from(q & 15)]);
    put(out, &nibbles(&block[1..]), |q| d * value(q));
}
