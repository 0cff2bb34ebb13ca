//! `Blocked`: the wait of a server for a place for another connection.

/// In which order servers get the next places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The place that has become free was its own.
    KeepsPlace,
    /// It has no connection.
    Starving,
    HasConnections,
}

/// The rank of a server that waits for a place, and its turn among those of the same rank.
pub(super) type BlockedKey = (Rank, u64);

/// The wait of a server for a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocked {
    pub(super) key: BlockedKey,
    /// Whether it has no connection.
    pub(super) is_starving: bool,
}
