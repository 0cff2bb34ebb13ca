//! Room for the fields of one head while it is looked at: on the stack, and written only as far as
//! there are fields.
//!
//! Why it has two parts: `doc/decisions/0023-field-storage.md`.

use std::fmt;

use arrayvec::ArrayVec;

use crate::limits::FIELDS_CAPACITY;
use crate::semantics::fields::Span;

/// Most fields that the fast way takes. More are rare, and read at the scanner's pace.
pub(super) const FAST_CAPACITY: usize = 32;

/// Room for the fields of a head that is read the fast way.
pub(crate) type FastStorage = ArrayVec<Span, FAST_CAPACITY>;

/// Room for the fields of a head that the scanner had to read.
pub(crate) type SlowStorage = ArrayVec<Span, FIELDS_CAPACITY>;

/// Room for the fields of one head; lives on the stack while the head is looked at, and is written
/// only as far as there are fields.
pub struct FieldStorage {
    fast: FastStorage,
    /// For a head that came in pieces or has many fields.
    slow: SlowStorage,
}

impl FieldStorage {
    /// Room for one head.
    #[inline(always)]
    pub fn new() -> Self {
        // Not a constant: that would be copied whole, zeros and all.
        FieldStorage { fast: ArrayVec::new(), slow: ArrayVec::new() }
    }

    /// Returns the two parts, empty, so that the slow one is free when the fast one was tried.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut FastStorage, &mut SlowStorage) {
        self.fast.clear();
        self.slow.clear();
        (&mut self.fast, &mut self.slow)
    }
}

impl Default for FieldStorage {
    fn default() -> Self {
        FieldStorage::new()
    }
}

impl fmt::Debug for FieldStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FieldStorage")
    }
}
