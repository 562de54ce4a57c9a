//! Blocks of 32 numbers. The low halves of the bytes `qs` are the first 16 numbers, the high halves the
//! last 16.

use super::block::{Block, Unpacked};
/// `kvalues_iq4nl` of ggml-common.h.
pub(super) const IQ4_VALUES: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// `kvalues_mxfp4`: twice the values of e2m1.
const MXFP4_VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The `ggml_half` in the first two bytes. The crate `half` asks the processor each time what it can.
#[inline(always)]
pub(super) fn half(bytes: &[u8]) -> f32 {
    let bits = u16::from_le_bytes([bytes[0], bytes[1]]);
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let magnitude = match bits & 0x7c00 {
        // Infinities, and numbers that are none.
        0x7c00 => f32::from_bits(magnitude | 0x7f80_0000),
        // 2^112 is what the exponents' offsets differ by. Exact, also for subnormal ones.
        _ => f32::from_bits(magnitude) * f32::from_bits(0x7780_0000),
    };
    magnitude.copysign(if bits >> 15 == 0 { 1.0 } else { -1.0 })
}

/// The values of `qs` in order of the numbers. An array and not an iterator: what follows is vectorised.
#[inline(always)]
fn nibbles(qs: &[u8]) -> [u8; 32] {
    let mut all = [0; 32];
    let (low, high) = all.split_at_mut(16);
    for ((low, high), q) in low.iter_mut().zip(high).zip(qs) {
        (*low, *high) = (q & 15, q >> 4);
    }
    all
}

/// As [`nibbles`], with the fifth bit from `qh`.
#[inline(always)]
fn fives(qh: &[u8], qs: &[u8]) -> [u8; 32] {
    let mut all = nibbles(qs);
    for (eight, qh) in all.chunks_exact_mut(8).zip(qh) {
        for (i, q) in eight.iter_mut().enumerate() {
            *q |= (qh >> i & 1) << 4;
        }
    }
    all
}

impl Unpacked {
    /// The whole block is one group.
    #[inline(always)]
    fn one_group(&mut self, scale: f32, min: f32, qs: &[u8], number: impl Fn(u8) -> i8) {
        (self.scales[0], self.mins[0]) = (scale, min);
        for (q, byte) in self.q.iter_mut().zip(qs) {
            *q = number(*byte);
        }
    }
}

/// `block_q4_0`: d, qs; d·(q − 8).
pub(super) struct Q4_0;

impl Block for Q4_0 {
    const BYTES: usize = 18;
    const GROUPS: usize = 1;
    const MINS: bool = false;
    const GROUP: usize = 32;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        out.one_group(half(block), 0.0, &nibbles(&block[2..18]), |q| {
            q.cast_signed() - 8
        });
    }
}

/// `block_q4_1`: d, m, qs; d·q + m.
pub(super) struct Q4_1;

impl Block for Q4_1 {
    const BYTES: usize = 20;
    const GROUPS: usize = 1;
    const MINS: bool = true;
    const GROUP: usize = 32;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        let (d, m) = (half(block), half(&block[2..]));
        out.one_group(d, -m, &nibbles(&block[4..20]), u8::cast_signed);
    }
}

/// `block_q5_0`: d, qh, qs; d·(q − 16).
pub(super) struct Q5_0;

impl Block for Q5_0 {
    const BYTES: usize = 22;
    const GROUPS: usize = 1;
    const MINS: bool = false;
    const GROUP: usize = 32;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        let qs = fives(&block[2..6], &block[6..22]);
        out.one_group(half(block), 0.0, &qs, |q| q.cast_signed() - 16);
    }
}

/// `block_q5_1`: d, m, qh, qs; d·q + m.
pub(super) struct Q5_1;

impl Block for Q5_1 {
    const BYTES: usize = 24;
    const GROUPS: usize = 1;
    const MINS: bool = true;
    const GROUP: usize = 32;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        let (d, m) = (half(block), half(&block[2..]));
        let qs = fives(&block[4..8], &block[8..24]);
        out.one_group(d, -m, &qs, u8::cast_signed);
    }
}

/// `block_q8_0`: d, qs; d·q.
pub(super) struct Q8_0;

impl Block for Q8_0 {
    const BYTES: usize = 34;
    const GROUPS: usize = 1;
    const MINS: bool = false;
    const GROUP: usize = 32;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        out.one_group(half(block), 0.0, &block[2..34], u8::cast_signed);
    }
}

/// `block_iq4_nl`: d, qs; d·value(q).
pub(super) struct Iq4Nl;

impl Block for Iq4Nl {
    const BYTES: usize = 18;
    const GROUPS: usize = 1;
    const MINS: bool = false;
    const GROUP: usize = 32;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        let value = |q: u8| IQ4_VALUES[usize::from(q & 15)];
        out.one_group(half(block), 0.0, &nibbles(&block[2..18]), value);
    }
}

/// `block_mxfp4`: e, qs; 2^(e − 128)·value(q).
pub(super) struct Mxfp4;

impl Block for Mxfp4 {
    const BYTES: usize = 17;
    const GROUPS: usize = 1;
    const MINS: bool = false;
    const GROUP: usize = 32;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        // `GGML_E8M0_TO_FP32_HALF`: the two smallest are subnormal.
        let d = f32::from_bits(match block[0] {
            e @ 0..2 => 0x0020_0000_u32 << e,
            e => (u32::from(e) - 1) << 23,
        });
        let value = |q: u8| MXFP4_VALUES[usize::from(q & 15)];
        out.one_group(d, 0.0, &nibbles(&block[1..17]), value);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_half_is_read_as_the_crate_half_reads_it() {
        for bits in 0..=u16::MAX {
            let want = half::f16::from_bits(bits).to_f32();
            let got = super::half(&bits.to_le_bytes());
            assert!(
                got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()),
                "{bits:#x}: {got} for {want}"
            );
        }
    }
}
