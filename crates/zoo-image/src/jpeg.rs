//! Whether a JPEG file is there to its end: the decoder fills up what is missing.

/// Whether the end-of-image marker follows the last scan (ITU-T T.81, annex B). What comes after it is nobody's
/// business.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    let Some(mut rest) = bytes.strip_prefix(&[0xff, 0xd8]) else {
        return false;
    };
    loop {
        // To the next marker: in a scan, 0xff is followed by 0 or by a restart marker.
        let marker = loop {
            let Some(at) = rest.iter().position(|byte| *byte == 0xff) else {
                return false;
            };
            rest = &rest[at + 1..];
            match rest.first() {
                None => return false,
                Some(0 | 0xd0..=0xd7 | 0xff) => {}
                Some(marker) => break *marker,
            }
        };
        rest = &rest[1..];
        match marker {
            0xd9 => return true,
            // Markers that stand alone.
            0x01 | 0xd8 => {}
            _ => {
                let length = match rest {
                    [high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
                    _ => return false,
                };
                match rest.get(length.max(2)..) {
                    Some(after) => rest = after,
                    None => return false,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn the_end_is_looked_for_outside_of_segments_and_stuffed_bytes() {
        let file = [
            // A thumbnail in a segment has an end of its own.
            &[0xff, 0xd8, 0xff, 0xe1, 0, 6, 0xff, 0xd8, 0xff, 0xd9][..],
            // A scan with a stuffed byte and a restart marker.
            &[0xff, 0xda, 0, 3, 1, 7, 0xff, 0, 0xff, 0xd3, 9],
            // Fill bytes may precede a marker.
            &[0xff, 0xff, 0xd9],
        ]
        .concat();
        assert!(is_whole(&file));
        assert!(is_whole(&[&file[..], b"notes"].concat()));
        for end in 0..file.len() {
            assert!(!is_whole(&file[..end]), "{end}");
        }
    }
}
