//! `Status`: what is known of a stream beside its bytes: its limits, what it holds of the total,
//! and what can be done with its socket.

use std::sync::Arc;

use crate::limits::StreamConfig;

/// Sixteen bytes, since there is one for each connection.
pub(crate) struct Status {
    pub(crate) config: Arc<StreamConfig>,
    /// What both buffers held when the stream last waited, in units of 64 bytes: what is counted in
    /// the total. Here and not in a buffer, which a protocol may exchange for another one.
    held_units: u32,
    /// There may be something to read for which no further edge will come.
    pub(crate) readable: bool,
    /// There may be room to write for which no further edge will come.
    pub(crate) writable: bool,
    pub(crate) flags: Flags,
    pub(crate) read_side: ReadSide,
}

impl Status {
    /// Of a socket of which nothing is known yet.
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

    /// Goes on within other limits.
    #[cold]
    pub(crate) fn set_config(&mut self, config: Arc<StreamConfig>) {
        let config = config.or_else(&self.config);
        // Each total gets back what was taken of it. The new one is asked when the stream waits.
        self.hold_units(0);
        self.config = config;
    }

    /// Whether nothing of the total is held.
    #[inline(always)]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.held_units == 0
    }

    /// Holds so many bytes of the total from now on, if there is one and it has room.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        let units = units_of(bytes);
        units == self.held_units || self.hold_units(units)
    }

    #[cold]
    fn hold_units(&mut self, units: u32) -> bool {
        let Some(total) = &self.config.held else { return true };
        let bytes = |units| units as usize * UNIT_BYTES;
        let has_room = total.change(bytes(self.held_units), bytes(units)).is_ok();
        if has_room {
            self.held_units = units;
        }
        has_room
    }
}

/// However the stream ends, what it held is given back.
impl Drop for Status {
    #[inline]
    fn drop(&mut self) {
        if self.held_units > 0 {
            self.hold_units(0);
        }
    }
}

/// What else is known, a bit for each: so that all of it and the count of what is held take the
/// eight bytes that they have.
#[derive(Clone, Copy)]
pub(crate) struct Flags(u8);

impl Flags {
    /// The last read got as much as it had room for.
    pub(crate) const WAS_FILLED: Flags = Flags(1);
    /// A wrapping socket holds bytes that it could not write yet.
    pub(crate) const HOLDS_OUTPUT: Flags = Flags(2);
    /// The output has passed its high-water mark and is not yet down to half of it.
    pub(crate) const IS_GATED: Flags = Flags(4);
    /// An event told of an error that nobody has asked for yet.
    pub(crate) const ERROR_TOLD: Flags = Flags(8);
    /// The loop drains, which there was no protocol to tell of.
    pub(crate) const DRAIN_PENDING: Flags = Flags(16);
    /// The protocol collects one message in memory.
    pub(crate) const IS_COLLECTING: Flags = Flags(32);
    /// A read found nothing while a wrapping socket had something to write, which may be why.
    pub(crate) const READS_BEHIND_WRITE: Flags = Flags(64);

    pub(crate) const NONE: Flags = Flags(0);

    /// Whether any of these is set.
    #[inline(always)]
    pub(crate) fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, flag: Flags, yes: bool) {
        // Few change in an event: a look is cheaper than working the bit out.
        if self.has(flag) != yes {
            self.0 ^= flag.0;
        }
    }
}

/// What is known of the peer's side: from bad to worse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(crate) enum ReadSide {
    Open,
    /// The peer has hung up, or is about to: an event told of an end, an error or an urgent byte,
    /// which follows the bytes that are still to be read. From now on a short read says nothing.
    HangUpSeen,
    /// The end was read; nothing more will be.
    Ended,
    /// So it was, and a wrapping socket says that something before it is missing.
    Truncated,
}

impl ReadSide {
    #[inline]
    pub(crate) fn has_ended(self) -> bool {
        self >= ReadSide::Ended
    }
}

/// What buffers hold is counted in units of so many bytes: the least that an input takes.
const UNIT_BYTES: usize = 64;

fn units_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}
