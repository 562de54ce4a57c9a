//! From text to token numbers and back, and on.
//!
//! - [`Tokenizer`]: of a folder (`tokenizer.json`, `vocab.json` with `merges.txt`, `vocab.txt`) or of a GGUF
//!   file, with special tokens and chat template;
//! - [`Sampler`]: which token comes next;
//! - [`Pooling`]: one vector for a text;
//! - [`generate`]: how several prompts go on, at once, token by token.

mod chat;
mod embed;
mod generate;
mod gguf;
mod sampler;
mod sentence_piece;
mod tokenizer;
mod vocabulary;

pub use chat::{ChatTemplate, Message};
pub use embed::Pooling;
pub use generate::{GenerateOptions, Generated, StopReason, generate};
pub use sampler::{Sampler, Sampling};
pub use tokenizer::{Pieces, SpecialTokens, Tokenizer};
