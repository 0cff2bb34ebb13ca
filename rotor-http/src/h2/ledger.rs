//! `Ledger`: the windows of one side of a connection, for tests that compare both sides.

use std::collections::BTreeMap;

/// The windows of a connection, under 0, and of its streams, under their numbers, as one side sees
/// them. If nothing is in transit, one side may send exactly what the other one must accept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// Bytes that this side may send. Negative after the peer has reduced its windows.
    pub sends: BTreeMap<u32, i64>,
    /// Bytes that this side must accept.
    pub receives: BTreeMap<u32, i64>,
}

impl Ledger {
    /// Returns the ledger that the other side must have if both agree.
    #[must_use]
    pub fn mirrored(self) -> Ledger {
        Ledger { sends: self.receives, receives: self.sends }
    }
}
