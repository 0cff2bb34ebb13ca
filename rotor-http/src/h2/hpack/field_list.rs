//! `FieldList`: the fields of a block, with all bytes in one buffer, and the positions of the
//! fields.

use std::ops::Range;

use crate::semantics::fields::{Fields, Span};

/// Decoded fields. The list is reused for the next block, so its memory is allocated once.
#[derive(Default)]
pub struct FieldList {
    pub(crate) bytes: Vec<u8>,
    pub(crate) spans: Vec<Span>,
    pub(crate) is_truncated: bool,
}

impl FieldList {
    /// Creates an empty list, without memory.
    pub const fn new() -> FieldList {
        FieldList { bytes: Vec::new(), spans: Vec::new(), is_truncated: false }
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns whether the block had more bytes than are kept. The list is then the
    /// beginning of the block.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Removes all fields. Keeps the memory, unless it is large.
    pub fn clear(&mut self) {
        /// Of the bytes, and of the positions.
        const RETAINED_BYTES_MAX: usize = 4 << 10;
        self.bytes.clear();
        self.spans.clear();
        self.is_truncated = false;
        if self.bytes.capacity() > RETAINED_BYTES_MAX {
            self.bytes = Vec::new();
        }
        if self.spans.capacity() * size_of::<Span>() > RETAINED_BYTES_MAX {
            self.spans = Vec::new();
        }
    }

    /// Returns the memory that the list holds, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<Span>()
    }

    /// Returns all fields in order, including pseudo-fields.
    pub fn fields(&self) -> Fields<'_> {
        Fields::new(&self.bytes, &self.spans)
    }

    /// Adds a field with this name, whose value is in the list already.
    pub(crate) fn push_named(&mut self, name: &[u8], value: Range<usize>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.push(start..self.bytes.len(), value);
    }

    pub(crate) fn push(&mut self, name: Range<usize>, value: Range<usize>) {
        self.spans.push(Span::new(name, value));
    }
}

impl std::fmt::Debug for FieldList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.fields().fmt(f)
    }
}
