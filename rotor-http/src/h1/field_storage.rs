//! Room for the fields of one head while it is processed: on the stack, and written only as far as
//! there are fields.
//!
//! Why there are two parts: `doc/decisions/0023-field-storage.md`.

use std::fmt;

use arrayvec::ArrayVec;

use crate::limits::FIELDS_CAPACITY;
use crate::semantics::fields::Span;

/// The maximum number of fields on the fast path. More fields are rare, and are read by the
/// scanner.
pub(super) const FAST_CAPACITY: usize = 32;

/// Room for the fields of a head on the fast path.
pub(crate) type FastStorage = ArrayVec<Span, FAST_CAPACITY>;

/// Room for the fields of a head that the scanner has read.
pub(crate) type SlowStorage = ArrayVec<Span, FIELDS_CAPACITY>;

/// Room for the fields of one head. It lives on the stack while the head is processed, and is
/// written only as far as there are fields.
pub struct FieldStorage {
    fast: FastStorage,
    /// For a head that arrived in pieces or has many fields.
    slow: SlowStorage,
}

impl FieldStorage {
    /// Creates room for one head.
    #[inline(always)]
    pub fn new() -> Self {
        // Not a constant, which would be copied as a whole, zeros included.
        FieldStorage { fast: ArrayVec::new(), slow: ArrayVec::new() }
    }

    /// Returns the two parts, empty, so that the slow one can be used after the fast one was tried.
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
