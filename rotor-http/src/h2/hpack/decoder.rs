//! The decoder of field blocks (RFC 7541 §3, §6). It decodes one block after the other into one
//! buffer, within limits that apply while it decodes.

use super::HpackError;
use super::dynamic_table::{DynamicTable, ENTRY_OVERHEAD};
use super::field_list::FieldList;
use super::static_table::{STATIC_ENTRIES, STATIC_TABLE};
use super::{huffman, integer};

/// How many changes of the table's size may precede a block: RFC 7541 §4.2 needs two.
const SIZE_UPDATES_MAX: u32 = 2;

/// How much of a block is kept, and how much is decoded at all.
///
/// A field counts with its bytes and 32 more, as in SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113
/// §6.5.2). So a reference of one byte counts as the field that it refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// How many bytes, with 32 for each field, are kept. The rest is decoded, since the tables must
    /// stay in step, and dropped.
    pub list_bytes_max: usize,
    /// How many bytes, with 32 for each field, are decoded at all. A larger block is refused.
    pub decoded_bytes_max: usize,
}

/// Decodes the blocks of one direction of a connection.
#[derive(Debug)]
pub struct HpackDecoder {
    table: DynamicTable,
    /// The table size that was allowed to the peer: SETTINGS_HEADER_TABLE_SIZE.
    table_max: usize,
}

/// Whether a literal is added to the table, according to its first byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Indexing {
    Add,
    Skip,
}

impl HpackDecoder {
    /// Creates a decoder whose peer may use a table of this many bytes, at most 65,535.
    pub fn new(table_max: usize) -> HpackDecoder {
        HpackDecoder { table: DynamicTable::new(table_max), table_max }
    }

    /// Returns the table in the state after the last block.
    pub fn table(&self) -> &DynamicTable {
        &self.table
    }

    /// Decodes a whole block, and appends its fields to the list.
    ///
    /// # Errors
    ///
    /// The peer's fault, and nothing more can be decoded: COMPRESSION_ERROR, or ENHANCE_YOUR_CALM
    /// for `TooLarge`.
    pub fn decode(
        &mut self,
        block: &[u8],
        list: &mut FieldList,
        bounds: &Bounds,
    ) -> Result<(), HpackError> {
        let (mut at, mut counted, mut updates) = (0, 0, 0);
        let mut has_fields = false;
        while let Some(&first) = block.get(at) {
            let start = list.bytes.len();
            let room = bounds.decoded_bytes_max.saturating_sub(counted);
            let name_len = if first & 0x80 != 0 {
                // RFC 7541 §6.1.
                let index = integer::decode(block, &mut at, 7)?;
                let (name, value) = self.entry(index)?;
                if name.len() + value.len() > room {
                    return Err(HpackError::TooLarge);
                }
                list.bytes.extend_from_slice(name);
                list.bytes.extend_from_slice(value);
                name.len()
            } else if first & 0xe0 == 0x20 {
                // RFC 7541 §4.2: "at the beginning of the first header block".
                updates += 1;
                let size = integer::decode(block, &mut at, 5)?;
                if has_fields || size > self.table_max || updates > SIZE_UPDATES_MAX {
                    return Err(HpackError::TableSize);
                }
                self.table.resize(size);
                continue;
            } else if first & 0xc0 == 0x40 {
                self.decode_literal(block, &mut at, 6, Indexing::Add, list, room)?
            } else {
                self.decode_literal(block, &mut at, 4, Indexing::Skip, list, room)?
            };
            has_fields = true;
            let end = list.bytes.len();
            counted += end - start + ENTRY_OVERHEAD;
            if counted > bounds.decoded_bytes_max {
                return Err(HpackError::TooLarge);
            }
            list.is_truncated |= counted > bounds.list_bytes_max;
            if list.is_truncated {
                list.bytes.truncate(start);
            } else {
                list.push(start..start + name_len, start + name_len..end);
            }
        }
        Ok(())
    }

    /// Appends a field that has at least its value in the block. Returns the length of its name.
    fn decode_literal(
        &mut self,
        block: &[u8],
        at: &mut usize,
        bits: u32,
        indexing: Indexing,
        list: &mut FieldList,
        room: usize,
    ) -> Result<usize, HpackError> {
        let start = list.bytes.len();
        match integer::decode(block, at, bits)? {
            0 => decode_string(block, at, &mut list.bytes, room)?,
            index => {
                let (name, _) = self.entry(index)?;
                if name.len() > room {
                    return Err(HpackError::TooLarge);
                }
                list.bytes.extend_from_slice(name);
            }
        }
        let name_len = list.bytes.len() - start;
        decode_string(block, at, &mut list.bytes, room - name_len)?;
        if indexing == Indexing::Add {
            let (name, value) = list.bytes[start..].split_at(name_len);
            self.table.insert(name, value);
        }
        Ok(name_len)
    }

    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
        match index.checked_sub(1).ok_or(HpackError::Index)? {
            at if at < STATIC_ENTRIES => {
                let (name, value) = STATIC_TABLE[at];
                Ok((name.as_bytes(), value.as_bytes()))
            }
            at => self.table.get(at - STATIC_ENTRIES).ok_or(HpackError::Index),
        }
    }
}

/// Appends a string (RFC 7541 §5.2) of at most `bytes_max` bytes.
fn decode_string(
    block: &[u8],
    at: &mut usize,
    out: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), HpackError> {
    let is_coded = block.get(*at).ok_or(HpackError::Truncated)? & 0x80 != 0;
    let len = integer::decode(block, at, 7)?;
    let bytes = block.get(*at..).and_then(|rest| rest.get(..len)).ok_or(HpackError::Truncated)?;
    *at += len;
    if is_coded {
        return huffman::decode(bytes, out, bytes_max);
    }
    if len > bytes_max {
        return Err(HpackError::TooLarge);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests;
