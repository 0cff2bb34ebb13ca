//! `Peer`: the other end of a scripted socket.

use std::fmt;
use std::io::ErrorKind;

use rotor_core::EventSet;

use super::end::{Connection, InputEnd, Operations, SharedEnd};
use super::memory::{Target, World};

/// The other end of a scripted socket: the actions of the peer, and what it has received.
///
/// Clones are the same end. None of the methods runs the loop: give it turns, or use a
/// [`Driver`](super::Driver).
#[derive(Clone)]
pub struct Peer {
    pub(super) end: SharedEnd,
}

/// The actions of the peer.
impl Peer {
    /// Sends bytes, which can be read at once, and reports an edge.
    pub fn send(&self, bytes: &[u8]) {
        self.end.with(|state| state.incoming.extend(bytes));
        self.end.report(EventSet::READABLE);
    }

    /// Sends an urgent byte, which stays in order with the others, as with `SO_OOBINLINE`: a read
    /// stops before it, and the next one begins with it. If there are several, the last one is the
    /// urgent byte.
    pub fn send_urgent(&self, byte: u8) {
        self.end.with(|state| {
            state.urgent_at = Some(state.incoming.len());
            state.incoming.push_back(byte);
        });
        self.end.report(EventSet::READABLE | EventSet::URGENT);
    }

    /// Ends the peer's side, after the bytes it has sent: reads return 0 from then on.
    pub fn end(&self) {
        self.end.with(|state| state.after = InputEnd::End);
        self.end.report(EventSet::READABLE | EventSet::READ_CLOSED);
    }

    /// Makes one read fail, after the bytes the peer has sent; then reads return the end.
    pub fn fail_read(&self, kind: ErrorKind) {
        self.end.with(|state| state.after = InputEnd::Error(kind));
        self.end.report(EventSet::READABLE | EventSet::READ_CLOSED);
    }

    /// Resets the connection: reads fail after the bytes the peer has sent, and writes fail from
    /// now on.
    pub fn reset(&self) {
        self.end.with(|state| {
            state.after = InputEnd::Error(ErrorKind::ConnectionReset);
            state.write_error = Some(ErrorKind::BrokenPipe);
            state.error = Some(ErrorKind::ConnectionReset);
        });
        let all = EventSet::READ_CLOSED | EventSet::WRITE_CLOSED | EventSet::ERROR;
        self.end.report(EventSet::READABLE | EventSet::WRITABLE | all);
    }

    /// Makes all writes fail from now on, without an edge.
    pub fn fail_writes(&self, kind: ErrorKind) {
        self.end.with(|state| state.write_error = Some(kind));
    }

    /// Limits how many bytes each read returns.
    pub fn limit_reads(&self, bytes: usize) {
        self.end.with(|state| state.read_max = bytes.max(1));
    }

    /// Limits how many bytes each write takes.
    pub fn limit_writes(&self, bytes: usize) {
        self.end.with(|state| state.write_max = bytes.max(1));
    }

    /// Takes no more than `bytes` from now on, until [`make_room`](Peer::make_room), like a peer
    /// that does not read.
    pub fn limit_room(&self, bytes: usize) {
        self.end.with(|state| state.room = bytes);
    }

    /// Takes this many more bytes; reports an edge if there was no room.
    pub fn make_room(&self, bytes: usize) {
        let had_none = self.end.with(|state| {
            let had_none = state.room == 0;
            state.room = state.room.saturating_add(bytes);
            had_none
        });
        if had_none && bytes > 0 {
            self.end.report(EventSet::WRITABLE);
        }
    }

    /// Calls a function just before the machine's next read, for events between two of its calls.
    pub fn before_read(&self, f: impl FnOnce(&Peer) + 'static) {
        let before = |end: &SharedEnd| f(&Peer { end: end.clone() });
        self.end.with(|state| state.before_read = Some(Box::new(before)));
    }

    /// Reports the current state once more, as backends may.
    pub fn report_spuriously(&self) {
        self.end.report_all(EventSet::EMPTY);
    }

    /// Reports that the socket is readable and writable, whether it is or not.
    pub fn report_falsely(&self) {
        self.end
            .world
            .report_falsely(self.end.state.clone(), EventSet::READABLE | EventSet::WRITABLE);
    }

    /// Reports that both sides have ended and that the socket has failed, whether that is true or
    /// not.
    pub fn report_end_falsely(&self) {
        let events = EventSet::READ_CLOSED | EventSet::WRITE_CLOSED | EventSet::ERROR;
        self.end.world.report_falsely(self.end.state.clone(), events);
    }

    /// Decides a hanging attempt to connect, with an edge.
    ///
    /// # Panics
    ///
    /// If it was decided before.
    pub fn decide(&self, target: Target) {
        let is_connecting = self.end.with(|state| state.connection == Connection::Connecting);
        assert!(is_connecting, "this attempt to connect was decided before");
        self.end.decide(target);
        self.end.report_all(EventSet::EMPTY);
    }
}

/// What the peer has received.
impl Peer {
    /// Returns the bytes that were written since the last call.
    pub fn take_received(&self) -> Vec<u8> {
        self.end.with(|state| std::mem::take(&mut state.written))
    }

    /// Returns how many bytes were written and not yet taken by
    /// [`take_received`](Peer::take_received).
    pub fn received_len(&self) -> usize {
        self.end.with(|state| state.written.len())
    }

    /// Returns whether the machine has ended its side, or dropped the socket.
    pub fn is_ended(&self) -> bool {
        self.end.with(|state| state.write_ended || state.is_dropped)
    }

    /// Returns whether the machine has dropped the socket.
    pub fn is_dropped(&self) -> bool {
        self.end.with(|state| state.is_dropped)
    }

    /// Returns how many of the sent bytes were not read.
    pub fn unread_len(&self) -> usize {
        self.end.with(|state| state.incoming.len())
    }

    /// Returns how often each operation of the socket was called.
    pub fn operations(&self) -> Operations {
        self.end.with(|state| state.operations)
    }
}

/// Access to the sockets of a world.
impl World {
    /// Returns the other ends of the connections that machines have made, oldest first; each is
    /// returned once.
    pub fn take_connections(&self) -> Vec<Peer> {
        peers(self.take_recorded_connections())
    }

    /// Returns the other ends of the hanging attempts to connect, oldest first; each is returned
    /// once. [`Peer::decide`] decides them.
    pub fn take_hanging(&self) -> Vec<Peer> {
        peers(self.take_recorded_hanging())
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.end.with(|state| {
            f.debug_struct("Peer")
                .field("received", &state.written.len())
                .field("unread", &state.incoming.len())
                .finish_non_exhaustive()
        })
    }
}

fn peers(ends: Vec<SharedEnd>) -> Vec<Peer> {
    ends.into_iter().map(|end| Peer { end }).collect()
}
