//! HPACK (RFC 7541), the compression of fields: a decoder that enforces limits while it decodes,
//! and an encoder.
//!
//! We have our own because the existing ones allocate a string for each field, or cannot be stopped
//! within a block. `doc/decisions/0048-http2.md` has the reasons and the comparison.

mod decoder;
mod dynamic_table;
mod encoder;
mod field_list;
mod huffman;
mod huffman_table;
mod integer;
mod static_table;

use std::fmt;

pub use self::decoder::{Bounds, HpackDecoder};
pub use self::dynamic_table::{DynamicTable, ENTRY_OVERHEAD};
pub use self::encoder::HpackEncoder;
pub use self::field_list::FieldList;
pub use self::huffman::{decode as decode_huffman, encode as encode_huffman};
pub use self::integer::{decode as decode_integer, encode as encode_integer};
pub use self::static_table::{STATIC_ENTRIES, STATIC_TABLE};

/// Why a block of fields cannot be decoded. The tables of both sides are then out of step, so the
/// connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HpackError {
    /// The block ends within a field.
    Truncated,
    /// An integer is too long.
    Integer,
    /// An index is in neither table.
    Index,
    /// The Huffman code of a string is invalid.
    Huffman,
    /// The size of the table is larger than was allowed, or it changes in the middle of a block, or
    /// too often.
    TableSize,
    /// The fields together are longer than may be decoded.
    TooLarge,
}

impl HpackError {
    /// Returns what is wrong, for the log.
    pub(crate) const fn why(self) -> &'static str {
        match self {
            HpackError::Truncated => "a block of fields ends within a field",
            HpackError::Integer => "an integer in a block of fields is too long",
            HpackError::Index => "a block of fields names an index that no table has",
            HpackError::Huffman => "a Huffman code in a block of fields is broken",
            HpackError::TableSize => {
                "a block of fields changes the size of the table as it must not"
            }
            HpackError::TooLarge => "a block of fields is far too large when it is decoded",
        }
    }
}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}
