//! `RoomConfig`: what a room keeps, and what becomes of those who do not keep up.

/// What becomes of a member that does not keep up with its room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
#[doc(alias = "slow consumer")]
pub enum Slow {
    /// It misses the oldest messages, those that the room does not keep any more, and hears the
    /// rest.
    #[default]
    Skip,
    /// As soon as it was held up it hears the newest message only: for values that replace each
    /// other, like prices and positions.
    #[doc(alias = "conflate")]
    Coalesce,
    /// It is told [`Delivery::Cut`](crate::Delivery::Cut) instead of a message that the room does
    /// not keep any more, and is to be closed: for a chat, where nobody is to miss a thing.
    Cut,
}

/// What a room keeps for those who are slow, with unit, default and reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct RoomConfig {
    pub(crate) backlog_max: usize,
    pub(crate) backlog_bytes_max: usize,
    pub(crate) slow: Slow,
}

impl RoomConfig {
    /// The defaults.
    pub fn new() -> RoomConfig {
        RoomConfig { backlog_max: 1024, backlog_bytes_max: 1 << 20, slow: Slow::Skip }
    }

    /// How many messages the room keeps, once for all members together. Default 1,024: a burst that
    /// a member needs a moment for.
    pub fn backlog_max(mut self, messages: usize) -> RoomConfig {
        self.backlog_max = messages.max(1);
        self
    }

    /// How many bytes these messages have in all, at most; the newest is kept whatever its length.
    /// Default 1 MiB: what the room costs, however many members lag.
    pub fn backlog_bytes_max(mut self, bytes: usize) -> RoomConfig {
        self.backlog_bytes_max = bytes;
        self
    }

    /// What becomes of members that do not keep up. Default: [`Slow::Skip`].
    pub fn slow(mut self, slow: Slow) -> RoomConfig {
        self.slow = slow;
        self
    }
}

impl Default for RoomConfig {
    fn default() -> RoomConfig {
        RoomConfig::new()
    }
}
