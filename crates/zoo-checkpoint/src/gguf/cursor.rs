/// What was read, or what is wrong with the bytes and where.
pub(super) type Parsed<T> = Result<T, String>;

/// A place in the bytes of a file.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, at: 0 }
    }

    /// Bytes from the beginning of the file.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The next `wanted` bytes.
    pub fn take(&mut self, wanted: u64) -> Parsed<&'a [u8]> {
        let split = usize::try_from(wanted).ok();
        let Some((taken, rest)) = split.and_then(|n| self.rest.split_at_checked(n)) else {
            let (at, left) = (self.at, self.rest.len());
            return Err(format!(
                "{wanted} bytes wanted at byte {at}, {left} are left"
            ));
        };
        self.rest = rest;
        self.at += taken.len();
        Ok(taken)
    }

    /// The next bytes as one number, with its `from_le_bytes`.
    pub fn number<const N: usize, T>(&mut self, read: fn([u8; N]) -> T) -> Parsed<T> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N as u64)?);
        Ok(read(bytes))
    }

    /// `count` numbers.
    pub fn numbers<const N: usize, T>(
        &mut self,
        count: u64,
        read: fn([u8; N]) -> T,
    ) -> Parsed<Vec<T>> {
        // A product that overflows is more than any file has.
        let bytes = self.take(count.saturating_mul(N as u64))?;
        Ok(bytes.as_chunks().0.iter().map(|b| read(*b)).collect())
    }

    pub fn u32(&mut self) -> Parsed<u32> {
        self.number(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Parsed<u64> {
        self.number(u64::from_le_bytes)
    }

    /// A text: its length in bytes, then UTF-8.
    pub fn text(&mut self) -> Parsed<String> {
        let length = self.u64()?;
        let at = self.at;
        let text = std::str::from_utf8(self.take(length)?)
            .map_err(|e| format!("the text at byte {at} is no UTF-8: {e}"))?;
        Ok(text.to_string())
    }

    /// `count` things of at least `smallest` bytes each, for which memory is taken only when that
    /// many can be there.
    pub fn many<T>(
        &mut self,
        count: u64,
        smallest: u64,
        mut read: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let count = self.fits(count, smallest)?;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            all.push(read(self)?);
        }
        Ok(all)
    }

    /// `count`, if as many things of `smallest` bytes can be there.
    pub fn fits(&self, count: u64, smallest: u64) -> Parsed<usize> {
        let left = self.rest.len();
        match usize::try_from(count) {
            Ok(n) if count <= left as u64 / smallest => Ok(n),
            _ => Err(format!(
                "{count} items of at least {smallest} bytes cannot be in the {left} bytes that are left"
            )),
        }
    }
}
