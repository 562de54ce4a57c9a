//! Lines that lie one after the other in memory, written side by side: a transposed copy.

/// Number `p` of line `i` goes to `out[p * width + i]`; line `i` begins at `data[starts[i]]`, and all are as long as
/// `out.len() / width`. Numbers of lines beyond `starts` stay as they are.
///
/// # Panics
/// If there are more lines than `width`, or one reaches beyond `data`.
pub fn interleave(data: &[f32], starts: &[usize], width: usize, out: &mut [f32]) {
    assert!(starts.len() <= width, "more lines than the width");
    let len = out.len() / width;
    let fits = |start: &usize| start.checked_add(len).is_some_and(|end| end <= data.len());
    assert!(starts.iter().all(fits), "a line beyond its slice");
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        done = len - len % 16;
        for p in (0..done).step_by(16) {
            let out = &mut out[p * width..][..16 * width];
            for (i, starts) in starts.chunks(16).enumerate() {
                // SAFETY: the processor has AVX-512F; 16 numbers from `p` on are inside of each line, by the assertion
                // above; `out` has 16 times `width` numbers, and no more than `width - 16 * i` lines are left.
                #[allow(unsafe_code)]
                unsafe {
                    square(
                        data[p..].as_ptr(),
                        starts,
                        width,
                        out[16 * i..].as_mut_ptr(),
                    );
                }
            }
        }
    }
    for p in done..len {
        for (out, start) in out[p * width..].iter_mut().zip(starts) {
            *out = data[start + p];
        }
    }
}

/// Sixteen numbers of at most sixteen lines.
///
/// # Safety
/// The processor must have AVX-512F. Sixteen numbers from each start on must be readable, and from `out` on
/// `starts.len()` numbers at each of the first sixteen multiples of `width` writable.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[target_feature(enable = "avx512f")]
unsafe fn square(data: *const f32, starts: &[usize], width: usize, out: *mut f32) {
    use std::arch::x86_64::*;
    let mut rows = [_mm512_setzero_ps(); 16];
    for (row, start) in rows.iter_mut().zip(starts) {
        // SAFETY: as the caller promised.
        *row = unsafe { _mm512_loadu_ps(data.add(*start)) };
    }
    let wide = |a: __m512, b: __m512| [_mm512_castps_pd(a), _mm512_castps_pd(b)];
    // In each quarter of a register: first pairs of lines, then fours.
    let mut fours = [_mm512_setzero_ps(); 16];
    for i in 0..4 {
        let [a, b, c, d] = [
            rows[4 * i],
            rows[4 * i + 1],
            rows[4 * i + 2],
            rows[4 * i + 3],
        ];
        let low = wide(_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
        let high = wide(_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
        for (j, [ab, cd]) in [low, high].into_iter().enumerate() {
            fours[4 * i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
            fours[4 * i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
        }
    }
    // `fours[4 * i + j]` has numbers j, j + 4, j + 8 and j + 12 of lines 4 i to 4 i + 3.
    let mask = ((1u32 << starts.len()) - 1) as u16;
    for j in 0..4 {
        let [a, b, c, d] = [fours[j], fours[4 + j], fours[8 + j], fours[12 + j]];
        let early = [
            _mm512_shuffle_f32x4::<0x44>(a, b),
            _mm512_shuffle_f32x4::<0x44>(c, d),
        ];
        let late = [
            _mm512_shuffle_f32x4::<0xee>(a, b),
            _mm512_shuffle_f32x4::<0xee>(c, d),
        ];
        let columns = [
            _mm512_shuffle_f32x4::<0x88>(early[0], early[1]),
            _mm512_shuffle_f32x4::<0xdd>(early[0], early[1]),
            _mm512_shuffle_f32x4::<0x88>(late[0], late[1]),
            _mm512_shuffle_f32x4::<0xdd>(late[0], late[1]),
        ];
        for (k, column) in columns.into_iter().enumerate() {
            // SAFETY: as the caller promised; what is masked out is not written.
            unsafe { _mm512_mask_storeu_ps(out.add((4 * k + j) * width), mask, column) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_come_to_lie_side_by_side(
            starts in prop::collection::vec(0usize..300, 0..50),
            spare in 0usize..5,
            len in 0usize..70,
        ) {
            let data: Vec<f32> = (0..300 + len).map(|i| i as f32).collect();
            let width = starts.len() + spare;
            prop_assume!(width > 0);
            let mut out = vec![-1.0; width * len];
            interleave(&data, &starts, width, &mut out);
            for (at, got) in out.iter().enumerate() {
                let (p, i) = (at / width, at % width);
                let want = starts.get(i).map_or(-1.0, |start| data[start + p]);
                prop_assert_eq!(*got, want);
            }
        }
    }

    #[test]
    #[should_panic(expected = "beyond its slice")]
    fn a_line_that_ends_too_early_is_refused() {
        interleave(&[0.0; 20], &[0, 5], 2, &mut [0.0; 32]);
    }
}
