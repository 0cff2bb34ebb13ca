//! The events to come, and their times.

use std::cmp::Ordering;
use std::io;

use rotor_core::{EventSet, Time, Token};

use super::ends::{Datagram, Packet};
use crate::table::Key;

/// An event that will happen at some time.
pub(crate) enum SimEvent {
    /// The next segments reach an end of a connection.
    Arrive(Key, u8),
    /// A connection attempt reaches its target, for the n-th time.
    Syn(Key, u32),
    /// The target's response reaches the connecting end.
    Connected(Key),
    /// A connection attempt has failed.
    ConnectFailed(Key, io::ErrorKind),
    /// The writer hears that its peer has room.
    Room(Key, u8),
    /// An edge that was held back, for a host and its incarnation.
    Edge(u32, u32, Token, EventSet),
    Datagram(Box<Datagram>),
    /// The sender of a datagram hears that nobody took it.
    DatagramRefused(Box<Datagram>),
    Packet(Box<Packet>),
    Heal(u32, u32),
    /// A job is to run. The simulation runs it, since it is users' code.
    Job(Key),
    /// A host starts again, unless it has started or crashed meanwhile (its incarnation). The
    /// simulation starts it.
    Start(u32, u32),
    /// Time for faults that happen by themselves. The simulation causes them.
    Chaos,
}

pub(super) struct Entry {
    pub(super) time: Time,
    pub(super) tie: u64,
    pub(super) event: SimEvent,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The earliest is the greatest, as the heap wants it.
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        (other.time, other.tie).cmp(&(self.time, self.tie))
    }
}
