//! The fields of one block: all octets in one buffer, and where each field stands.

use std::ops::Range;

use crate::semantics::fields::{Fields, Span};

/// Decoded fields. It is used again for the next block, so that its memory is made once.
#[derive(Default)]
pub struct FieldList {
    pub(crate) octets: Vec<u8>,
    pub(crate) spans: Vec<Span>,
    pub(crate) is_over: bool,
}

impl FieldList {
    /// An empty list, without memory.
    pub const fn new() -> FieldList {
        FieldList { octets: Vec::new(), spans: Vec::new(), is_over: false }
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether there were more fields, or more octets of them, than are kept: what is here is the
    /// beginning.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Removes all fields, and keeps the memory, unless it is much.
    pub fn clear(&mut self) {
        const KEPT_MAX: usize = 4 << 10;
        self.octets.clear();
        self.spans.clear();
        self.is_over = false;
        if self.octets.capacity() > KEPT_MAX {
            self.octets = Vec::new();
            self.spans = Vec::new();
        }
    }

    /// The memory that it holds, in octets.
    pub(crate) fn held_bytes(&self) -> usize {
        self.octets.capacity() + self.spans.capacity() * size_of::<Span>()
    }

    /// All fields, in order, those with a colon in front included.
    pub fn fields(&self) -> Fields<'_> {
        Fields::new(&self.octets, &self.spans)
    }

    /// Adds a field of this name, whose value stands in the list already.
    pub(crate) fn push_named(&mut self, name: &[u8], value: Range<usize>) {
        let start = self.octets.len();
        self.octets.extend_from_slice(name);
        self.push(start..self.octets.len(), value);
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
