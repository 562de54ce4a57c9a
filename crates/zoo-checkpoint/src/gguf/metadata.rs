use super::cursor::{Cursor, Parsed};

/// Arrays in arrays; ggml itself takes none.
const DEEPEST: usize = 4;

/// A value of a file's metadata. Narrow numbers are widened, which changes none.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataValue {
    /// u8, u16, u32 or u64.
    Unsigned(u64),
    /// i8, i16, i32 or i64.
    Signed(i64),
    /// f32 or f64.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    String(String),
    /// Values of one type.
    Array(MetadataArray),
}

/// Values of one type, as narrow as in the file.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataArray {
    /// u8.
    U8(Vec<u8>),
    /// i8.
    I8(Vec<i8>),
    /// u16.
    U16(Vec<u16>),
    /// i16.
    I16(Vec<i16>),
    /// u32.
    U32(Vec<u32>),
    /// i32.
    I32(Vec<i32>),
    /// f32.
    F32(Vec<f32>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Texts.
    String(Vec<String>),
    /// Arrays, at most four deep.
    Array(Vec<MetadataArray>),
    /// u64.
    U64(Vec<u64>),
    /// i64.
    I64(Vec<i64>),
    /// f64.
    F64(Vec<f64>),
}

impl MetadataValue {
    /// The value if it is an integer that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Unsigned(n) => Some(*n),
            Self::Signed(n) => u64::try_from(*n).ok(),
            _ => None,
        }
    }

    /// The value if it is an integer that an i64 holds.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Unsigned(n) => i64::try_from(*n).ok(),
            Self::Signed(n) => Some(*n),
            _ => None,
        }
    }

    /// The value if it is a floating-point number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(n) => Some(*n),
            _ => None,
        }
    }

    /// The value if it is a truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The value if it is a text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value if it is an array.
    pub fn as_array(&self) -> Option<&MetadataArray> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// What it is, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Unsigned(_) => "an unsigned integer",
            Self::Signed(_) => "a signed integer",
            Self::Float(_) => "a floating-point number",
            Self::Bool(_) => "a truth value",
            Self::String(_) => "a text",
            Self::Array(MetadataArray::String(_)) => "an array of texts",
            Self::Array(MetadataArray::F32(_)) => "an array of f32",
            Self::Array(MetadataArray::I32(_)) => "an array of i32",
            Self::Array(_) => "an array of another type",
        }
    }
}

/// Reads a value with its type before it.
pub(super) fn value(file: &mut Cursor) -> Parsed<MetadataValue> {
    use MetadataValue::{Array, Bool, Float, Signed, String, Unsigned};
    Ok(match file.u32()? {
        0 => Unsigned(file.number(u8::from_le_bytes)?.into()),
        1 => Signed(file.number(i8::from_le_bytes)?.into()),
        2 => Unsigned(file.number(u16::from_le_bytes)?.into()),
        3 => Signed(file.number(i16::from_le_bytes)?.into()),
        4 => Unsigned(file.u32()?.into()),
        5 => Signed(file.number(i32::from_le_bytes)?.into()),
        6 => Float(file.number(f32::from_le_bytes)?.into()),
        7 => Bool(truth(file)?),
        8 => String(file.text()?),
        9 => Array(array(file, 1)?),
        10 => Unsigned(file.u64()?),
        11 => Signed(file.number(i64::from_le_bytes)?),
        12 => Float(file.number(f64::from_le_bytes)?),
        kind => return Err(format!("a value of the unknown type {kind}")),
    })
}

fn array(file: &mut Cursor, depth: usize) -> Parsed<MetadataArray> {
    use MetadataArray::*;
    let (kind, count) = (file.u32()?, file.u64()?);
    Ok(match kind {
        0 => U8(file.numbers(count, u8::from_le_bytes)?),
        1 => I8(file.numbers(count, i8::from_le_bytes)?),
        2 => U16(file.numbers(count, u16::from_le_bytes)?),
        3 => I16(file.numbers(count, i16::from_le_bytes)?),
        4 => U32(file.numbers(count, u32::from_le_bytes)?),
        5 => I32(file.numbers(count, i32::from_le_bytes)?),
        6 => F32(file.numbers(count, f32::from_le_bytes)?),
        7 => Bool(file.many(count, 1, truth)?),
        8 => String(file.many(count, 8, Cursor::text)?),
        9 if depth < DEEPEST => Array(file.many(count, 12, |file| array(file, depth + 1))?),
        9 => return Err(format!("arrays in arrays, more than {DEEPEST} deep")),
        10 => U64(file.numbers(count, u64::from_le_bytes)?),
        11 => I64(file.numbers(count, i64::from_le_bytes)?),
        12 => F64(file.numbers(count, f64::from_le_bytes)?),
        kind => return Err(format!("an array of the unknown type {kind}")),
    })
}

fn truth(file: &mut Cursor) -> Parsed<bool> {
    match file.number(u8::from_le_bytes)? {
        0 => Ok(false),
        1 => Ok(true),
        byte => Err(format!("a truth value is 0 or 1, not {byte}")),
    }
}
