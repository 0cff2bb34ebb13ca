//! A connection: two ends, and a pipe of bytes in each direction.
//!
//! ```text
//!   write ──▶ [ under way │ arrived ] ──▶ read        at most a window of bytes, in segments with arrival times
//! ```
//!
//! The end of a stream and a reset travel as segments, too, behind the bytes that were written
//! before them.

use std::collections::VecDeque;
use std::io;

use rotor_core::{EventSet, Interest, Time, Token};

use super::place::Place;

/// A connection. End 0 has connected, end 1 has accepted.
pub(crate) struct Link {
    pub(crate) serial: u32,
    pub(crate) ends: [End; 2],
    /// Until when the connecting end waits for a response.
    pub(super) attempt_ends: Time,
}

pub(crate) struct End {
    pub(crate) host: u32,
    pub(crate) place: Place,
    /// Whether a socket or a listener's backlog has it.
    pub(crate) is_open: bool,
    pub(crate) is_connected: bool,
    pub(super) registered: Option<(Token, Interest)>,
    /// The next change is reported: an operation has failed with `WouldBlock`, or the socket was
    /// just registered.
    pub(super) armed: ArmedDirections,
    /// Reported once.
    pub(super) error: Option<io::ErrorKind>,
    /// No byte will come or go any more.
    pub(super) is_dead: bool,
    pub(super) input: Pipe,
    /// A read that returns fewer bytes than it has room for has returned all there are.
    pub(crate) drains: bool,
    pub(super) input_shut: bool,
    pub(super) output_shut: bool,
    /// Closing it sends a reset.
    pub(super) resets_on_close: bool,
    pub(super) busy_until: Time,
}

#[derive(Clone, Copy, Default)]
pub(super) struct ArmedDirections {
    pub(super) read: bool,
    pub(super) write: bool,
}

/// The capacity that an empty pipe keeps at most. Memory that a test counts should be the
/// machines', not the network's.
const RETAINED_BYTES_MAX: usize = 256;

/// The bytes on their way to an end.
pub(super) struct Pipe {
    pub(super) bytes: VecDeque<u8>,
    /// How many of `bytes` have arrived.
    pub(super) arrived: usize,
    /// How many bytes have arrived in all.
    pub(super) delivered: u64,
    /// How many of the arrived bytes must not be thrown away, because they were there when a drain
    /// began.
    pub(super) must_be_read: usize,
    pub(super) segments: VecDeque<Segment>,
    pub(super) window: usize,
    pub(super) is_slow: bool,
    pub(super) ended: bool,
    /// The segments wait for a partition to heal.
    pub(super) stalled: bool,
    pub(super) room_is_due: bool,
    /// The report of room waits for a partition to heal.
    pub(super) room_is_stalled: bool,
    pub(super) last_arrival: Time,
}

#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub(super) at: Time,
    pub(super) content: SegmentContent,
}

#[derive(Clone, Copy)]
pub(super) enum SegmentContent {
    Bytes(usize),
    End,
    Reset,
}

impl Link {
    pub(crate) fn new(serial: u32, ends: [End; 2]) -> Link {
        Link { serial, ends, attempt_ends: Time::NEVER }
    }

    /// Whether a reset would change anything for one of the ends.
    pub(super) fn is_established(&self) -> bool {
        self.ends.iter().any(|end| end.is_connected && !end.is_dead)
    }
}

impl End {
    pub(crate) fn new(host: u32, place: Place, is_open: bool) -> End {
        End {
            host,
            place,
            is_open,
            is_connected: false,
            registered: None,
            armed: ArmedDirections::default(),
            error: None,
            is_dead: false,
            input: Pipe::new(0, false),
            drains: false,
            input_shut: false,
            output_shut: false,
            resets_on_close: false,
            busy_until: Time::ZERO,
        }
    }

    /// Whether nothing more will come or go.
    fn has_ended(&self) -> bool {
        self.is_dead || self.output_shut && self.input.ended
    }

    /// Whether both directions have ended, which backends report as a hang-up (`EPOLLHUP`,
    /// epoll_ctl(2)). The other end of a Unix socket ends both when it closes.
    pub(super) fn has_hung_up(&self, is_peer_open: bool) -> bool {
        let is_local = matches!(self.place, Place::Path(..));
        self.input.ended && (self.output_shut || is_local && !is_peer_open)
    }

    /// Whether a kernel has forgotten the peer, so that it names none and shuts nothing down any
    /// more (`ENOTCONN`; getpeername(2), shutdown(2)). A Unix socket still has its peer.
    pub(crate) fn has_forgotten_peer(&self) -> bool {
        self.has_ended() && matches!(self.place, Place::Inet(_))
    }

    /// What a backend reports for an end that is registered or connected now. It reports the end of
    /// the input only if short reads drain the socket: then no read would find it.
    pub(super) fn input_events(&self) -> EventSet {
        match (self.is_readable(), self.drains && (self.input.ended || self.is_dead)) {
            (false, _) => EventSet::EMPTY,
            (true, false) => EventSet::READABLE,
            (true, true) => EventSet::READABLE | EventSet::READ_CLOSED,
        }
    }

    pub(super) fn is_readable(&self) -> bool {
        self.input.arrived > 0 || self.input.ended || self.is_dead || self.input_shut
    }
}

impl Pipe {
    pub(super) fn new(window: usize, is_slow: bool) -> Pipe {
        Pipe {
            bytes: VecDeque::new(),
            arrived: 0,
            delivered: 0,
            must_be_read: 0,
            segments: VecDeque::new(),
            window,
            is_slow,
            ended: false,
            stalled: false,
            room_is_due: false,
            room_is_stalled: false,
            last_arrival: Time::ZERO,
        }
    }

    pub(super) fn room(&self) -> usize {
        self.window.saturating_sub(self.bytes.len())
    }

    pub(super) fn has_room(&self) -> bool {
        self.room() > 0
    }

    pub(super) fn take(&mut self, buffer: &mut [u8]) {
        let (first, second) = self.bytes.as_slices();
        let from_first = first.len().min(buffer.len());
        buffer[..from_first].copy_from_slice(&first[..from_first]);
        let left = buffer.len() - from_first;
        buffer[from_first..].copy_from_slice(&second[..left]);
        self.bytes.drain(..buffer.len());
        if self.bytes.is_empty() && self.bytes.capacity() > RETAINED_BYTES_MAX {
            self.bytes = VecDeque::new();
        }
        self.arrived -= buffer.len();
        self.must_be_read = self.must_be_read.saturating_sub(buffer.len());
    }
}

/// How an edge reports an error.
pub(super) const FAILED: EventSet = EventSet::ERROR;

/// Returns the other end.
pub(super) fn other_side(side: u8) -> u8 {
    1 - side
}
