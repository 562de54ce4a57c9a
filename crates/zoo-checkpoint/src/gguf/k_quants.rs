//! Blocks of 256 numbers in groups of 16 or 32 with a scale of their own.

use super::block::{Block, Unpacked};
use super::blocks::{IQ4_VALUES, half};

/// `block_q2_K`: scales\[16\], qs\[64\], d, dmin; d·scale·q − dmin·min.
pub(super) struct Q2K;

impl Block for Q2K {
    const BYTES: usize = 84;
    const GROUPS: usize = 16;
    const MINS: bool = true;
    const GROUP: usize = 16;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        let (d, dmin) = (half(&block[80..]), half(&block[82..]));
        for (j, q) in out.q.chunks_exact_mut(16).enumerate() {
            out.scales[j] = d * f32::from(block[j] & 15);
            out.mins[j] = dmin * f32::from(block[j] >> 4);
            // 128 numbers in 32 bytes, two bits each: the lowest bits are the first 32.
            let qs = &block[16 + j / 8 * 32 + j % 2 * 16..];
            let shift = j % 8 / 2 * 2;
            for (q, byte) in q.iter_mut().zip(qs) {
                *q = (byte >> shift & 3).cast_signed();
            }
        }
    }
}

/// `block_q3_K`: hmask\[32\], qs\[64\], scales\[12\], d; d·(scale − 32)·(q − 4), the high bit of q
/// being in hmask.
pub(super) struct Q3K;

impl Block for Q3K {
    const BYTES: usize = 110;
    const GROUPS: usize = 16;
    const MINS: bool = false;
    const GROUP: usize = 16;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        let (scales, d) = (&block[96..108], half(&block[108..]));
        for (j, q) in out.q.chunks_exact_mut(16).enumerate() {
            let low = scales[j % 8] >> (j / 8 * 4) & 15;
            let high = scales[8 + j % 4] >> (j / 4 * 2) & 3;
            out.scales[j] = d * (f32::from(low | high << 4) - 32.0);
            let qs = &block[32 + j / 8 * 32 + j % 2 * 16..];
            let shift = j % 8 / 2 * 2;
            let mask = &block[j % 2 * 16..];
            for ((q, byte), mask) in q.iter_mut().zip(qs).zip(mask) {
                let byte = byte >> shift & 3 | (mask >> (j / 2) & 1) << 2;
                *q = byte.cast_signed() - 4;
            }
        }
    }
}

/// `get_scale_min_k4`: the 6-bit scale and minimum of group `j`.
#[inline(always)]
fn scale_and_min(scales: &[u8], j: usize) -> (f32, f32) {
    let (scale, min) = if j < 4 {
        (scales[j] & 63, scales[j + 4] & 63)
    } else {
        let both = scales[j + 4];
        (
            both & 15 | scales[j - 4] >> 6 << 4,
            both >> 4 | scales[j] >> 6 << 4,
        )
    };
    (scale.into(), min.into())
}

/// `block_q4_K`: d, dmin, scales\[12\], qs\[128\]; d·scale·q − dmin·min.
pub(super) struct Q4K;

impl Block for Q4K {
    const BYTES: usize = 144;
    const GROUPS: usize = 8;
    const MINS: bool = true;
    const GROUP: usize = 32;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        let (d, dmin) = (half(block), half(&block[2..]));
        for (j, q) in out.q.chunks_exact_mut(32).enumerate() {
            let (scale, min) = scale_and_min(&block[4..16], j);
            (out.scales[j], out.mins[j]) = (d * scale, dmin * min);
            let qs = &block[16 + j / 2 * 32..];
            let shift = j % 2 * 4;
            for (q, byte) in q.iter_mut().zip(qs) {
                *q = (byte >> shift & 15).cast_signed();
            }
        }
    }
}

/// `block_q5_K`: d, dmin, scales\[12\], qh\[32\], qs\[128\]; d·scale·q − dmin·min.
pub(super) struct Q5K;

impl Block for Q5K {
    const BYTES: usize = 176;
    const GROUPS: usize = 8;
    const MINS: bool = true;
    const GROUP: usize = 32;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        let (d, dmin) = (half(block), half(&block[2..]));
        for (j, q) in out.q.chunks_exact_mut(32).enumerate() {
            let (scale, min) = scale_and_min(&block[4..16], j);
            (out.scales[j], out.mins[j]) = (d * scale, dmin * min);
            let (qh, qs) = (&block[16..48], &block[48 + j / 2 * 32..]);
            let shift = j % 2 * 4;
            for ((q, byte), high) in q.iter_mut().zip(qs).zip(qh) {
                *q = (byte >> shift & 15 | (high >> j & 1) << 4).cast_signed();
            }
        }
    }
}

/// `block_q6_K`: ql\[128\], qh\[64\], scales\[16\], d; d·scale·(q − 32).
pub(super) struct Q6K;

impl Block for Q6K {
    const BYTES: usize = 210;
    const GROUPS: usize = 16;
    const MINS: bool = false;
    const GROUP: usize = 16;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        let (scales, d) = (&block[192..208], half(&block[208..]));
        for (j, q) in out.q.chunks_exact_mut(16).enumerate() {
            out.scales[j] = d * f32::from(scales[j].cast_signed());
            // 128 numbers have 64 bytes of low bits and 32 of high ones.
            let (half, j) = (j / 8, j % 8);
            let low = &block[half * 64 + j % 4 * 16..];
            let high = &block[128 + half * 32 + j % 2 * 16..];
            for ((q, low), high) in q.iter_mut().zip(low).zip(high) {
                let byte = low >> (j / 4 * 4) & 15 | (high >> (j / 2 * 2) & 3) << 4;
                *q = byte.cast_signed() - 32;
            }
        }
    }
}

/// `block_iq4_xs`: d, scales_h (u16), scales_l\[4\], qs\[128\]; d·(scale − 32)·value(q).
pub(super) struct Iq4Xs;

impl Block for Iq4Xs {
    const BYTES: usize = 136;
    const GROUPS: usize = 8;
    const MINS: bool = false;
    const GROUP: usize = 32;

    #[inline(always)]
    fn unpack(block: &[u8], out: &mut Unpacked) {
        let d = half(block);
        let scales = u16::from_le_bytes([block[2], block[3]]);
        for (j, q) in out.q.chunks_exact_mut(32).enumerate() {
            let low = block[4 + j / 2] >> (j % 2 * 4) & 15;
            let high = (scales >> (2 * j) & 3) as u8;
            out.scales[j] = d * (f32::from(low | high << 4) - 32.0);
            let qs = &block[8 + j * 16..][..16];
            let (first, last) = q.split_at_mut(16);
            for ((first, last), byte) in first.iter_mut().zip(last).zip(qs) {
                *first = IQ4_VALUES[usize::from(byte & 15)];
                *last = IQ4_VALUES[usize::from(byte >> 4)];
            }
        }
    }
}
