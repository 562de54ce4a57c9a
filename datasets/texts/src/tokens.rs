use burn::tensor::{DType, TensorData};
use burn_zoo_checkpoint::{LazyTensors, Tensors, write_safetensors};
use burn_zoo_core::{Error, Result};
use burn_zoo_text::Tokenizer;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the tensor in a file of tokens.
const NAME: &str = "tokens";

/// Token numbers of a text.
#[derive(Clone, Debug)]
pub struct Tokens(Source);

#[derive(Clone, Debug)]
enum Source {
    Memory(Arc<Vec<u32>>),
    /// A file that is mapped: only what is looked at is read.
    Mapped(Arc<LazyTensors>, PathBuf),
}

impl Tokens {
    /// Tokens in memory.
    pub fn new(tokens: Vec<u32>) -> Self {
        Self(Source::Memory(Arc::new(tokens)))
    }

    /// Tokens of a text, line by line.
    ///
    /// # Errors
    /// If a part of the text has no token.
    pub fn of(text: &str, tokenizer: &Tokenizer) -> Result<Self> {
        let mut all = Vec::with_capacity(text.len() / 3);
        for line in text.split_inclusive('\n') {
            all.extend(
                tokenizer
                    .encode(line, false)?
                    .into_iter()
                    .map(|id| id as u32),
            );
        }
        Ok(Self::new(all))
    }

    /// A file that [`write_tokens`] wrote, of any size: a safetensors file with `tokens`, 16 or 32 bits each.
    ///
    /// # Errors
    /// If it is no such file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = LazyTensors::open(path)?;
        let found = file.tensors.get(NAME);
        let found = found.map(|t| (&t.dtype, t.shape.len(), t.mapped().is_some()));
        let wide = matches!(found, Some((Ok(DType::U16 | DType::U32), 1, true)));
        if !wide {
            let message = format!("wants one row of u16 or u32 called `{NAME}`");
            return Err(Error::malformed(path, message));
        }
        Ok(Self(Source::Mapped(Arc::new(file), path.to_path_buf())))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Source::Memory(tokens) => tokens.len(),
            Source::Mapped(file, _) => file.tensors[NAME].len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tokens at these places.
    ///
    /// # Errors
    /// If the file is shorter.
    pub fn read(&self, range: Range<usize>) -> Result<Vec<u32>> {
        let (file, path) = match &self.0 {
            Source::Memory(tokens) => {
                let found = tokens.get(range.clone()).map(<[u32]>::to_vec);
                return found.ok_or_else(|| out_of_range("the text", &range));
            }
            Source::Mapped(file, path) => (file, path),
        };
        let tensor = &file.tensors[NAME];
        let size = match tensor.dtype {
            Ok(DType::U16) => 2,
            _ => 4,
        };
        let bytes = tensor
            .mapped()
            .and_then(|all| all.get(range.start * size..range.end * size));
        let bytes = bytes.ok_or_else(|| out_of_range(&path.display().to_string(), &range))?;
        Ok(match size {
            2 => bytes
                .chunks_exact(2)
                .map(|b| u16::from_le_bytes([b[0], b[1]]).into())
                .collect(),
            _ => bytes
                .chunks_exact(4)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
        })
    }

    /// Checks that no token among `range` is `vocab_size` or more.
    ///
    /// # Errors
    /// Names the first that is.
    pub fn fits(&self, range: Range<usize>, vocab_size: usize) -> Result<()> {
        const STEP: usize = 1 << 20;
        for at in range.clone().step_by(STEP) {
            let tokens = self.read(at..(at + STEP).min(range.end))?;
            if let Some(id) = tokens.iter().find(|id| **id as usize >= vocab_size) {
                let message = format!("has token {id}, the model knows {vocab_size}");
                return Err(Error::usage("--dataset", message));
            }
        }
        Ok(())
    }
}

fn out_of_range(what: &str, range: &Range<usize>) -> Error {
    Error::usage(
        what,
        format!("has no tokens {} to {}", range.start, range.end),
    )
}

/// Writes a file for [`Tokens::open`].
///
/// # Errors
/// If it cannot be written.
pub fn write_tokens(path: &Path, tokens: &[u32]) -> Result<()> {
    let narrow = tokens.iter().all(|id| *id <= u16::MAX.into());
    let bytes = match narrow {
        true => tokens
            .iter()
            .flat_map(|id| (*id as u16).to_le_bytes())
            .collect(),
        false => tokens.iter().flat_map(|id| id.to_le_bytes()).collect(),
    };
    let dtype = if narrow { DType::U16 } else { DType::U32 };
    let data = TensorData::from_bytes_vec(bytes, [tokens.len()], dtype);
    write_safetensors(path, &Tensors::from([(NAME.into(), data)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_what_memory_holds() {
        let work = tempfile::tempdir().expect("a folder");
        let path = work.path().join("tokens.safetensors");
        for largest in [60_000, 70_000] {
            let tokens: Vec<u32> = (0..5000).map(|i| i * 7919 % largest).collect();
            write_tokens(&path, &tokens).expect("writable");
            let (file, memory) = (Tokens::open(&path).expect("a file"), Tokens::new(tokens));
            assert_eq!((file.len(), memory.len()), (5000, 5000));
            for range in [0..5000, 17..18, 4990..5000, 8..8] {
                let found = file.read(range.clone()).expect("there");
                assert_eq!(found, memory.read(range).expect("there"));
            }
            assert!(file.read(4999..5001).is_err() && memory.read(4999..5001).is_err());
            assert!(file.fits(0..5000, 70_000).is_ok() && file.fits(0..5000, 50_000).is_err());
        }
        std::fs::write(&path, b"no tokens").expect("writable");
        assert!(Tokens::open(&path).is_err());
    }
}
