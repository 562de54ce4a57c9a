use std::path::Path;

/// Valid files that mutations start from.
#[derive(Debug)]
pub struct Seeds(Vec<Vec<u8>>);

impl Seeds {
    /// These files of `tests/golden`.
    ///
    /// # Panics
    /// If one is absent.
    pub fn golden(names: &[&str]) -> Self {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden");
        let read = |name: &&str| std::fs::read(golden.join(name)).expect("a fixture");
        Self(names.iter().map(read).collect())
    }

    /// These bytes.
    pub fn of(files: Vec<Vec<u8>>) -> Self {
        Self(files)
    }

    fn get(&self, which: u8) -> &[u8] {
        &self.0[which as usize % self.0.len()]
    }
}

/// Numbers that lengths and offsets go wrong at.
const EDGES: [u64; 10] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// A seed after these changes. Each is a kind, a place, and a value; headers are at the beginning or, in
/// zips, at the end, so half of the places are near those.
pub fn mutated(seeds: &Seeds, which: u8, changes: &[(u8, u32, u64)]) -> Vec<u8> {
    let mut bytes = seeds.get(which).to_vec();
    for (kind, place, value) in changes {
        if bytes.is_empty() {
            break;
        }
        let len = bytes.len();
        let near = len.min(400);
        let at = match place % 4 {
            0 => (place / 4) as usize % near,
            1 => len - 1 - (place / 4) as usize % near,
            _ => (place / 4) as usize % len,
        };
        let small = *value as usize % 64;
        match kind % 9 {
            0 => bytes[at] ^= 1 << (value % 8),
            1 => bytes[at] = *value as u8,
            2 | 3 => {
                let edge = EDGES[*value as usize % EDGES.len()].to_le_bytes();
                let width = [1, 2, 4, 8][(value >> 8) as usize % 4];
                let end = (at + width).min(len);
                bytes[at..end].copy_from_slice(&edge[..end - at]);
            }
            4 => bytes.truncate(at),
            5 => {
                let new = value.to_le_bytes();
                bytes.splice(at..at, new[..small % 8 + 1].iter().copied());
            }
            6 => {
                let part = bytes[at..(at + small).min(len)].to_vec();
                bytes.splice(at..at, part);
            }
            7 => {
                let other = seeds.get(*value as u8);
                let from = (value >> 8) as usize % other.len();
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            // A digit of a number in text.
            _ => {
                if let Some(digit) = bytes[at..].iter_mut().find(|b| b.is_ascii_digit()) {
                    *digit = b'0' + (value % 10) as u8;
                }
            }
        }
    }
    bytes
}
