//! `Status`: what is known about a stream besides its bytes: its limits, its part of the total of
//! held memory, and what can be done with its socket.

use std::sync::Arc;

use crate::limits::StreamConfig;

/// Sixteen bytes, because every connection has one.
pub(crate) struct Status {
    pub(crate) config: Arc<StreamConfig>,
    /// How much both buffers held when the stream last waited, in units of 64 bytes, as counted in
    /// the total. It is here and not in a buffer, because a protocol may replace its buffer.
    held_units: u32,
    /// Whether there may be input for which no further edge will come.
    pub(crate) readable: bool,
    /// Whether there may be room to write for which no further edge will come.
    pub(crate) writable: bool,
    pub(crate) flags: Flags,
    pub(crate) read_side: ReadSide,
}

impl Status {
    /// Makes the status of a socket about which nothing is known yet.
    pub(crate) fn new(config: Arc<StreamConfig>) -> Status {
        Status {
            config,
            held_units: 0,
            readable: false,
            writable: false,
            flags: Flags::NONE,
            read_side: ReadSide::Open,
        }
    }

    /// Replaces the limits.
    #[cold]
    pub(crate) fn set_config(&mut self, config: Arc<StreamConfig>) {
        let config = config.with_unset_from(&self.config);
        // Each total gets back what was taken from it. The new one is used when the stream waits.
        self.set_held_units(0);
        self.config = config;
    }

    /// Returns whether the stream holds nothing of the total.
    #[inline(always)]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.held_units == 0
    }

    /// Sets how many bytes of the total the stream holds. Returns `false` if there is no room for
    /// them.
    pub(crate) fn set_held(&mut self, bytes: usize) -> bool {
        let units = units_of(bytes);
        units == self.held_units || self.set_held_units(units)
    }

    #[cold]
    fn set_held_units(&mut self, units: u32) -> bool {
        let Some(total) = &self.config.held else { return true };
        let bytes = |units| units as usize * UNIT_BYTES;
        let has_room = total.change(bytes(self.held_units), bytes(units)).is_ok();
        if has_room {
            self.held_units = units;
        }
        has_room
    }
}

/// Gives back what the stream held, however it ends.
impl Drop for Status {
    #[inline]
    fn drop(&mut self) {
        if self.held_units > 0 {
            self.set_held_units(0);
        }
    }
}

/// Further facts, one bit each, so that all of them and the count of held memory fit into eight
/// bytes.
#[derive(Clone, Copy)]
pub(crate) struct Flags(u8);

impl Flags {
    /// The last read filled all the room it had.
    pub(crate) const LAST_READ_WAS_FULL: Flags = Flags(1);
    /// A wrapping socket holds bytes that it could not write yet.
    pub(crate) const HOLDS_OUTPUT: Flags = Flags(2);
    /// The output has passed its high-water mark and is not yet down to half of it.
    pub(crate) const IS_GATED: Flags = Flags(4);
    /// An event reported an error that was not fetched yet.
    pub(crate) const ERROR_REPORTED: Flags = Flags(8);
    /// The loop drains, and there was no protocol to be told.
    pub(crate) const DRAIN_PENDING: Flags = Flags(16);
    /// The protocol collects one message in memory.
    pub(crate) const IS_COLLECTING: Flags = Flags(32);
    /// A read found nothing while a wrapping socket had something to write, which may be the
    /// reason.
    pub(crate) const READ_WAITS_FOR_WRITE: Flags = Flags(64);

    /// The layer in which the protocol runs takes no input for it.
    pub(crate) const HELD_BY_LAYER: Flags = Flags(128);

    pub(crate) const NONE: Flags = Flags(0);

    /// Returns whether any of these flags is set.
    #[inline(always)]
    pub(crate) fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, flag: Flags, yes: bool) {
        // Few flags change in an event, and checking is cheaper than computing the bit.
        if self.has(flag) != yes {
            self.0 ^= flag.0;
        }
    }
}

/// What is known about the peer's side, in order from open to ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(crate) enum ReadSide {
    Open,
    /// The peer has hung up, or is about to: an event reported an end, an error or an urgent byte,
    /// which follows the bytes that are still to be read. From now on a short read means nothing.
    HangUpSeen,
    /// The end was read; nothing more will be read.
    Ended,
    /// The end was read, and a wrapping socket reports that something before it is missing; or
    /// reading has failed.
    Truncated,
    /// The connection is lost, and the protocol was told, which outlives it.
    Lost,
}

impl ReadSide {
    #[inline]
    pub(crate) fn has_ended(self) -> bool {
        self >= ReadSide::Ended
    }
}

/// The unit in which held memory is counted, in bytes: the minimum that an input takes.
const UNIT_BYTES: usize = 64;

fn units_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}
