//! What one side of a connection knows of its windows, for tests that look at both sides.

use std::collections::BTreeMap;

/// The windows of a connection, under 0, and of its streams, under their numbers, as one side has
/// them. Where nothing is on its way, what one side may send is what the other has to let in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// Octets that this side may send. Below zero after the peer has made its windows smaller.
    pub sends: BTreeMap<u32, i64>,
    /// Octets that it has to let in.
    pub receives: BTreeMap<u32, i64>,
}

impl Ledger {
    /// What the other side has to know, if both agree.
    #[must_use]
    pub fn mirrored(self) -> Ledger {
        Ledger { sends: self.receives, receives: self.sends }
    }
}
