//! What a backend tells of a source (`EventSet`) and what a machine wants to hear of it
//! (`Interest`).

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign};

/// What happened to the sources of a machine, as a set.
///
/// Events are edges and hints, never promises: a set may be empty, may name what is no longer so,
/// and may merge several edges into one. What *is* promised: after an operation returned
/// `WouldBlock`, the next change is reported.
#[doc(alias = "readiness")]
#[doc(alias = "Ready")]
#[doc(alias = "edge-triggered")]
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct EventSet(u8);

impl EventSet {
    /// Nothing: what `ready` gets when it is called again and there was no event, then or since
    /// ([`Response::again`](crate::Response::again)).
    pub const EMPTY: EventSet = EventSet(0);
    /// There may be bytes, datagrams or connections to take.
    pub const READABLE: EventSet = EventSet(1);
    /// There may be room to write; for a connecting socket also: the attempt ended.
    pub const WRITABLE: EventSet = EventSet(2);
    /// The peer will send no more (there may still be bytes to read).
    #[doc(alias = "EPOLLRDHUP")]
    #[doc(alias = "half-close")]
    #[doc(alias = "hang-up")]
    pub const READ_CLOSED: EventSet = EventSet(4);
    /// Nothing that is written will reach the peer.
    #[doc(alias = "EPOLLHUP")]
    #[doc(alias = "hang-up")]
    pub const WRITE_CLOSED: EventSet = EventSet(8);
    /// The source has failed; the next operation on it tells how.
    #[doc(alias = "EPOLLERR")]
    pub const ERROR: EventSet = EventSet(16);
    /// An urgent byte is among those to be read: a read stops short of it, though more may follow.
    /// Told by Linux only.
    #[doc(alias = "EPOLLPRI")]
    #[doc(alias = "out-of-band")]
    pub const URGENT: EventSet = EventSet(32);

    /// Returns whether reading may get something: bytes, the end of the stream or an error.
    pub fn is_readable(self) -> bool {
        // A hang-up or an error as well: the read that finds it says what it is.
        self.0 & (Self::READABLE.0 | Self::READ_CLOSED.0 | Self::ERROR.0) != 0
    }

    /// Returns whether writing may get somewhere: room, or an error.
    pub fn is_writable(self) -> bool {
        self.0 & (Self::WRITABLE.0 | Self::WRITE_CLOSED.0 | Self::ERROR.0) != 0
    }

    /// Returns whether the peer has ended its side, or the source has failed: an end or an error
    /// follows the bytes that are still to be read.
    pub fn is_closing(self) -> bool {
        self.0 & (Self::READ_CLOSED.0 | Self::WRITE_CLOSED.0 | Self::ERROR.0) != 0
    }

    /// Returns whether nothing is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether all of `other` is in the set.
    pub fn contains(self, other: EventSet) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for EventSet {
    type Output = EventSet;
    fn bitor(self, other: EventSet) -> EventSet {
        EventSet(self.0 | other.0)
    }
}

/// What is in both.
impl BitAnd for EventSet {
    type Output = EventSet;
    fn bitand(self, other: EventSet) -> EventSet {
        EventSet(self.0 & other.0)
    }
}

impl BitOrAssign for EventSet {
    fn bitor_assign(&mut self, other: EventSet) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for EventSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::READABLE, "READABLE"),
            (Self::WRITABLE, "WRITABLE"),
            (Self::READ_CLOSED, "READ_CLOSED"),
            (Self::WRITE_CLOSED, "WRITE_CLOSED"),
            (Self::ERROR, "ERROR"),
            (Self::URGENT, "URGENT"),
        ];
        let mut set = f.debug_set();
        for (_, name) in names.iter().filter(|(event, _)| self.contains(*event)) {
            set.entry(&format_args!("{name}"));
        }
        set.finish()
    }
}

/// What a machine wants to hear of a source that it registers.
///
/// Errors and hang-ups are reported whatever the interest.
#[doc(alias = "epoll_ctl")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Interest {
    /// Room to take something: bytes, datagrams, connections, the end of the stream.
    Readable,
    /// Room to write, and the end of a connecting attempt.
    Writable,
    /// Both; what a stream registers with, once, for its whole life.
    Both,
}

impl Interest {
    /// Returns whether reading is in it.
    pub fn is_readable(self) -> bool {
        matches!(self, Interest::Readable | Interest::Both)
    }

    /// Returns whether writing is in it.
    pub fn is_writable(self) -> bool {
        matches!(self, Interest::Writable | Interest::Both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_merge_and_say_what_may_be_done() {
        let set = EventSet::READABLE | EventSet::READ_CLOSED;
        assert!(set.is_readable() && set.is_closing() && !set.is_writable() && !set.is_empty());
        assert!(
            set.contains(EventSet::READABLE)
                && !set.contains(EventSet::WRITABLE | EventSet::READABLE)
        );
        assert!(EventSet::ERROR.is_readable() && EventSet::ERROR.is_writable());
        assert_eq!(set & (EventSet::READABLE | EventSet::ERROR), EventSet::READABLE);
        assert_eq!(format!("{set:?} {:?}", EventSet::EMPTY), "{READABLE, READ_CLOSED} {}");
        assert!(!EventSet::URGENT.is_readable() && !EventSet::URGENT.is_closing());
    }

    #[test]
    fn interests_say_what_they_hold() {
        assert!(Interest::Both.is_readable() && Interest::Both.is_writable());
        assert!(Interest::Readable.is_readable() && !Interest::Readable.is_writable());
        assert!(!Interest::Writable.is_readable() && Interest::Writable.is_writable());
    }
}
