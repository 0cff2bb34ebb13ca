//! `Peer`: the other end of a scripted socket.

use std::fmt;
use std::io::ErrorKind;

use rotor_core::EventSet;

use super::end::{After, Connection, End, Operations};
use super::memory::{Target, World};

/// The other end of a scripted socket: what the peer does, and what it got.
///
/// Clones name the same end. Nothing here runs the loop: give it turns, or use a
/// [`Driver`](super::Driver).
#[derive(Clone)]
pub struct Peer {
    pub(super) end: End,
}

/// What the peer does.
impl Peer {
    /// Sends bytes; they can be read at once, with an edge.
    pub fn send(&self, bytes: &[u8]) {
        self.end.with(|state| state.incoming.extend(bytes));
        self.end.report(EventSet::READABLE);
    }

    /// Sends an urgent byte, which stays in its place among the others, as with `SO_OOBINLINE`: a
    /// read stops short of it, and the next one begins with it. Of several, the last one is the
    /// urgent one.
    pub fn send_urgent(&self, byte: u8) {
        self.end.with(|state| {
            state.urgent_at = Some(state.incoming.len());
            state.incoming.push_back(byte);
        });
        self.end.report(EventSet::READABLE | EventSet::URGENT);
    }

    /// Ends its side, after what it has sent: reads give 0 from then on.
    pub fn end(&self) {
        self.end.with(|state| state.after = After::End);
        self.end.report(EventSet::READABLE | EventSet::READ_CLOSED);
    }

    /// Makes reading fail, after what the peer has sent, and go on as ended.
    pub fn fail_read(&self, kind: ErrorKind) {
        self.end.with(|state| state.after = After::Error(kind));
        self.end.report(EventSet::READABLE | EventSet::READ_CLOSED);
    }

    /// Resets the connection: after what the peer has sent, reads fail, and writes fail from now
    /// on.
    pub fn reset(&self) {
        self.end.with(|state| {
            state.after = After::Error(ErrorKind::ConnectionReset);
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

    /// Lets each read give at most so many bytes.
    pub fn limit_reads(&self, bytes: usize) {
        self.end.with(|state| state.read_max = bytes.max(1));
    }

    /// Lets each write take at most so many bytes.
    pub fn limit_writes(&self, bytes: usize) {
        self.end.with(|state| state.write_max = bytes.max(1));
    }

    /// Takes no more than `bytes` from now on, until [`make_room`](Peer::make_room): what a peer
    /// does that does not read.
    pub fn limit_room(&self, bytes: usize) {
        self.end.with(|state| state.room = bytes);
    }

    /// Takes so many bytes more, with an edge if there was no room.
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

    /// Does something just before the next read of the machine: for what happens between two of its
    /// calls.
    pub fn before_read(&self, f: impl FnOnce(&Peer) + 'static) {
        let before = |end: &End| f(&Peer { end: end.clone() });
        self.end.with(|state| state.before_read = Some(Box::new(before)));
    }

    /// Reports what is so once more, as backends may.
    pub fn report_spuriously(&self) {
        self.end.report_all(EventSet::EMPTY);
    }

    /// Reports that there is something to read and to write, whether there is or not.
    pub fn report_falsely(&self) {
        self.end
            .world
            .report_falsely(self.end.state.clone(), EventSet::READABLE | EventSet::WRITABLE);
    }

    /// Reports that both sides have ended and that the socket has failed, whether it is so or not.
    pub fn report_end_falsely(&self) {
        let events = EventSet::READ_CLOSED | EventSet::WRITE_CLOSED | EventSet::ERROR;
        self.end.world.report_falsely(self.end.state.clone(), events);
    }

    /// Decides an attempt to connect that hangs, with an edge.
    ///
    /// # Panics
    ///
    /// When it was decided before.
    pub fn decide(&self, target: Target) {
        let is_connecting = self.end.with(|state| state.connection == Connection::Connecting);
        assert!(is_connecting, "this attempt to connect was decided before");
        self.end.settle(target);
        self.end.report_all(EventSet::EMPTY);
    }
}

/// What the peer got.
impl Peer {
    /// What was written and not yet taken.
    pub fn take_received(&self) -> Vec<u8> {
        self.end.with(|state| std::mem::take(&mut state.written))
    }

    /// How many bytes were written and not yet taken.
    pub fn received_len(&self) -> usize {
        self.end.with(|state| state.written.len())
    }

    /// Whether the machine has ended its side, or dropped the socket.
    pub fn is_ended(&self) -> bool {
        self.end.with(|state| state.write_ended || state.is_dropped)
    }

    /// Whether the machine has dropped the socket.
    pub fn is_dropped(&self) -> bool {
        self.end.with(|state| state.is_dropped)
    }

    /// How many of the bytes sent were not read.
    pub fn unread_len(&self) -> usize {
        self.end.with(|state| state.incoming.len())
    }

    /// How often the socket was asked to do something.
    pub fn operations(&self) -> Operations {
        self.end.with(|state| state.operations)
    }
}

/// What a world has of its sockets.
impl World {
    /// The other ends of the connections that machines have made, oldest first; each is handed out
    /// once.
    pub fn take_connections(&self) -> Vec<Peer> {
        peers(self.take_noted_connections())
    }

    /// The other ends of the attempts to connect that hang, oldest first; each is handed out once.
    /// What becomes of them is for [`Peer::decide`] to say.
    pub fn take_hanging(&self) -> Vec<Peer> {
        peers(self.take_noted_hanging())
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

fn peers(ends: Vec<End>) -> Vec<Peer> {
    ends.into_iter().map(|end| Peer { end }).collect()
}
