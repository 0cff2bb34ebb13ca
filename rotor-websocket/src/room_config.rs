//! `RoomConfig`: what a room keeps, and what happens to members that do not keep up.

/// What happens to a member that does not keep up with its room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
#[doc(alias = "slow consumer")]
pub enum Slow {
    /// The member misses the oldest messages, which the room no longer keeps, and gets the rest.
    #[default]
    Skip,
    /// Once the member has been held up, it gets only the newest message. This is for values that
    /// replace each other, like prices and positions.
    #[doc(alias = "conflate")]
    Coalesce,
    /// The member gets [`Delivery::Cut`](crate::Delivery::Cut) instead of a message that the room
    /// no longer keeps, and should be closed. This is for a chat, where nobody may miss anything.
    Cut,
}

/// What a room keeps for slow members, with unit, default and reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct RoomConfig {
    pub(crate) backlog_max: usize,
    pub(crate) backlog_bytes_max: usize,
    pub(crate) slow: Slow,
}

impl RoomConfig {
    /// Returns the defaults.
    pub fn new() -> RoomConfig {
        RoomConfig { backlog_max: 1024, backlog_bytes_max: 1 << 20, slow: Slow::Skip }
    }

    /// Sets how many messages the room keeps, once for all members together; at least 1. Default
    /// 1,024: a burst that a member needs a moment to receive.
    pub fn backlog_max(mut self, messages: usize) -> RoomConfig {
        self.backlog_max = messages.max(1);
        self
    }

    /// Sets how many bytes these messages may have in total. The newest is kept whatever its
    /// length. Default 1 MiB; this bounds the room's memory however many members lag. Some 450
    /// bytes per message are not counted, nor are its [compressed forms](crate::Prepared).
    pub fn backlog_bytes_max(mut self, bytes: usize) -> RoomConfig {
        self.backlog_bytes_max = bytes;
        self
    }

    /// Sets what happens to members that do not keep up. Default: [`Slow::Skip`].
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
