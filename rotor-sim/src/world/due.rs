//! What will happen, and when.

use std::cmp::Ordering;
use std::io;

use rotor_core::{EventSet, Time, Token};

use super::ends::{Datagram, Packet};
use crate::table::Key;

/// What will happen at some time.
pub(crate) enum Due {
    /// The next segments reach an end of a connection.
    Arrive(Key, u8),
    /// A connection attempt reaches its target, for the n-th time.
    Syn(Key, u32),
    /// The target's answer reaches the connecting end.
    Connected(Key),
    /// A connection attempt has failed.
    ConnectFailed(Key, io::ErrorKind),
    /// The writer hears that its peer has made room.
    Room(Key, u8),
    /// An edge that was held back, for a host and its incarnation.
    Edge(u32, u32, Token, EventSet),
    Datagram(Box<Datagram>),
    /// The sender of a datagram hears that nobody took it.
    DatagramRefused(Box<Datagram>),
    Packet(Box<Packet>),
    Heal(u32, u32),
    /// A job is to be run; not by the world, since it is a user's code.
    Job(Key),
    /// A host starts again, if it is still as it was when that was planned (its incarnation); made by
    /// the simulation.
    Start(u32, u32),
    /// Time for things that happen by themselves; done by the simulation.
    Chaos,
}

pub(super) struct Entry {
    pub(super) time: Time,
    pub(super) tie: u64,
    pub(super) due: Due,
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
