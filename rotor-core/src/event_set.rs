//! `EventSet`: what a backend reports about a source. `Interest`: which of that a machine wants.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign};

/// A set of events of a machine's sources.
///
/// Events are edge-triggered, and they are hints, not promises: a set may be empty, may contain
/// what is no longer true, and may merge several edges into one. What *is* promised: after an
/// operation has returned `WouldBlock`, the next change is reported.
#[doc(alias = "readiness")]
#[doc(alias = "Ready")]
#[doc(alias = "edge-triggered")]
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct EventSet(u8);

impl EventSet {
    /// The empty set. `ready` gets it when it is called [again](crate::Response::again) and there
    /// was no event, neither in the previous call nor since.
    pub const EMPTY: EventSet = EventSet(0);
    /// There may be bytes to read, datagrams to receive or connections to accept.
    pub const READABLE: EventSet = EventSet(1);
    /// There may be room to write. For a socket that connects, it may also mean that the attempt
    /// ended.
    pub const WRITABLE: EventSet = EventSet(2);
    /// The peer will not send any more; there may still be bytes to read.
    #[doc(alias = "EPOLLRDHUP")]
    #[doc(alias = "half-close")]
    #[doc(alias = "hang-up")]
    pub const READ_CLOSED: EventSet = EventSet(4);
    /// Nothing that is written from now on will reach the peer.
    #[doc(alias = "EPOLLHUP")]
    #[doc(alias = "hang-up")]
    pub const WRITE_CLOSED: EventSet = EventSet(8);
    /// The source has failed. The next operation on it returns the error.
    #[doc(alias = "EPOLLERR")]
    pub const ERROR: EventSet = EventSet(16);
    /// There is an urgent byte among the bytes to be read. A read stops before it, although more
    /// bytes may follow. Only Linux reports this.
    #[doc(alias = "EPOLLPRI")]
    #[doc(alias = "out-of-band")]
    pub const URGENT: EventSet = EventSet(32);

    /// Returns whether reading may return something: bytes, the end of the stream, or an error.
    pub fn is_readable(self) -> bool {
        // A hang-up or an error counts as well: the read finds out which one it is.
        self.0 & (Self::READABLE.0 | Self::READ_CLOSED.0 | Self::ERROR.0) != 0
    }

    /// Returns whether writing may make progress, or return an error.
    pub fn is_writable(self) -> bool {
        self.0 & (Self::WRITABLE.0 | Self::WRITE_CLOSED.0 | Self::ERROR.0) != 0
    }

    /// Returns whether the peer has ended its side, or the source has failed. The bytes that are
    /// still to be read are then followed by the end of the stream or an error.
    pub fn is_closing(self) -> bool {
        self.0 & (Self::READ_CLOSED.0 | Self::WRITE_CLOSED.0 | Self::ERROR.0) != 0
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the set contains all of `other`.
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

/// The intersection of two sets.
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

/// Which events of a source are reported to the machine that registers it.
///
/// Errors and hang-ups are always reported.
#[doc(alias = "epoll_ctl")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Interest {
    /// Something to read: bytes, datagrams, connections, the end of the stream.
    Readable,
    /// Room to write, and the end of an attempt to connect.
    Writable,
    /// Both. Streams register with this once, for their whole life.
    Both,
}

impl Interest {
    /// Returns whether this includes reading.
    pub fn is_readable(self) -> bool {
        matches!(self, Interest::Readable | Interest::Both)
    }

    /// Returns whether this includes writing.
    pub fn is_writable(self) -> bool {
        matches!(self, Interest::Writable | Interest::Both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_merge_and_report_readiness() {
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
    fn interests_report_their_directions() {
        assert!(Interest::Both.is_readable() && Interest::Both.is_writable());
        assert!(Interest::Readable.is_readable() && !Interest::Readable.is_writable());
        assert!(!Interest::Writable.is_readable() && Interest::Writable.is_writable());
    }
}
