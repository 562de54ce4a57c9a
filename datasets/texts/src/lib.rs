//! Texts as token numbers.
//!
//! - [`Corpus`]: a bundled text, or a file;
//! - [`Labelled`]: texts of some classes;
//! - [`Vocabulary`]: bytes, characters, or pairs that are learnt, as a [`Tokenizer`](burn_zoo_text::Tokenizer);
//! - [`Tokens`]: numbers in memory, or in a file of any size that is mapped;
//! - [`Windows`]: batches of sequences, each from a place that seed and epoch decide;
//! - [`Trigram`]: what a model has to be better than.

mod corpus;
mod labelled;
mod tokens;
mod trigram;
mod vocabulary;
mod windows;

pub use corpus::{CORPORA, Corpus};
pub use labelled::{LABELLED, Labelled};
pub use tokens::{Tokens, write_tokens};
pub use trigram::Trigram;
pub use vocabulary::{Vocabulary, word_pieces};
pub use windows::{Window, Windows};
