//! Handles the kernel's completions.

use rotor_core::EventSet;

use super::Driver;
use super::socket::{Ready, Socket};
use super::streams::send;
use crate::inbox::Lender;
use crate::intake::{Came, Then};
use crate::key::{Id, Key, Kind};
use crate::outgo::Sent;
use crate::ring::{Carried, Completion, Ring};

/// `POLLERR`, `POLLHUP` and `POLLPRI` (poll(2)).
const POLL_ERROR: i32 = 8;
const POLL_HANG_UP: i32 = 16;
const POLL_URGENT: i32 = 2;

impl Driver {
    pub(super) fn complete(&mut self, completion: Completion, ready: &mut Ready) {
        let Completion { key, result, is_last, carried } = completion;
        let id = key.id();
        match key.kind() {
            Kind::Wake => {
                // The completion queue was too full for the poll to stay.
                if is_last {
                    self.watch_waker();
                }
            }
            Kind::Receive => self.received(id, result, is_last, carried, ready),
            Kind::Readable => self.readable(id, result, is_last, ready),
            Kind::Arrived => self.arrived(id, result, ready),
            Kind::Room => self.has_room(id, result, ready),
            Kind::Send => self.sent(id, result, carried, ready),
            Kind::Gone => self.is_gone(id, result, is_last, ready),
            Kind::Unwatched => {}
        }
    }

    fn received(
        &mut self,
        id: Id,
        result: i32,
        is_last: bool,
        carried: Carried,
        ready: &mut Ready,
    ) {
        let Driver { sockets, spare, ring, given, ended, unread, config, .. } = self;
        let Some(socket) = sockets.get_mut(id) else {
            return stale(ring, id.key(Kind::Receive), carried);
        };
        let came = Came::of_bytes(result);
        if let Carried::Piece(piece) = carried {
            if socket.is_dropped || piece.len() == 0 {
                ring.give_back(piece);
            } else {
                let inbox = &mut socket.work(spare).inbox;
                inbox.push(piece);
                let is_too_much = inbox.len() >= config.unread_bytes_max;
                if !socket.is_noted {
                    socket.is_noted = true;
                    given.push(id);
                }
                if is_too_much {
                    socket.bulk.note_much();
                }
                if is_too_much && socket.intake.take_back() {
                    // Otherwise more of it would take all buffers.
                    ring.cancel(id.key(Kind::Receive));
                    ring.stats().held_back += 1;
                }
            }
        }
        ring.stats().buffers_exhausted += u64::from(came == Came::Exhausted);
        if came == Came::End && !socket.is_dropped {
            ended.push(id);
        }
        let follows = follow(socket, came, is_last, ready);
        if socket.is_left_unread() {
            unread.push(id);
        }
        self.go_on(id, follows);
    }

    /// A socket that is read with system calls may have something.
    fn readable(&mut self, id: Id, result: i32, is_last: bool, ready: &mut Ready) {
        let Some(socket) = self.sockets.get_mut(id) else {
            return stale(&mut self.ring, id.key(Kind::Readable), Carried::Nothing);
        };
        let follows = follow(socket, Came::of_connections(result), is_last, ready);
        if result > 0 {
            socket.tell(urgent_or_error(result), ready);
        }
        socket.intake.forget_error();
        self.go_on(id, follows);
        // If the operation has ended: a stream gets a new one from the read that finds nothing, but
        // listeners and datagram sockets do not report that they found nothing.
        self.give(id);
    }

    /// Something has arrived for a stream that receives much: its machine will read it.
    fn arrived(&mut self, id: Id, result: i32, ready: &mut Ready) {
        let Some(socket) = self.sockets.get_mut(id) else {
            return stale(&mut self.ring, id.key(Kind::Arrived), Carried::Nothing);
        };
        socket.bulk.note_arrival();
        let follows = follow(socket, Came::of_poll(result), true, ready);
        if socket.is_left_unread() {
            self.unread.push(id);
        }
        self.go_on(id, follows);
    }

    fn go_on(&mut self, id: Id, follows: Follows) {
        match follows {
            Follows::Nothing => {}
            Follows::Giving => self.hand_over(id),
            Follows::End => self.forget(id),
        }
    }

    /// There is room, or a connection attempt has ended.
    fn has_room(&mut self, id: Id, result: i32, ready: &mut Ready) {
        let Some(socket) = self.sockets.get_mut(id) else {
            return stale(&mut self.ring, id.key(Kind::Room), Carried::Nothing);
        };
        socket.polls_room = false;
        if socket.is_dropped {
            return self.forget(id);
        }
        let mut events = EventSet::WRITABLE;
        let has_failed = result < 0 || result & (POLL_ERROR | POLL_HANG_UP) != 0;
        if has_failed {
            // The socket keeps the error for `take_error`; a read would take it.
            events |= EventSet::READABLE | EventSet::ERROR;
        } else if socket.is_connecting {
            socket.is_connecting = false;
        }
        self.tell(id, events, ready);
        self.give(id);
    }

    /// Handles the poll for the end of a stream whose peer had ended its side, or that is not read:
    /// the stream was reset, or both sides have ended.
    fn is_gone(&mut self, id: Id, result: i32, is_last: bool, ready: &mut Ready) {
        let Some(socket) = self.sockets.get_mut(id) else {
            return stale(&mut self.ring, id.key(Kind::Gone), Carried::Nothing);
        };
        socket.polls_gone &= !is_last;
        if socket.is_dropped {
            return self.forget(id);
        }
        // A negative result says nothing about the socket.
        if result >= 0 && result & (POLL_ERROR | POLL_HANG_UP) != 0 {
            let failed = if result & POLL_ERROR != 0 { EventSet::ERROR } else { EventSet::EMPTY };
            let gone = EventSet::READABLE | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
            socket.tell(gone | failed, ready);
        } else if is_last && (result >= 0 || Came::of_bytes(result) == Came::Cancelled) {
            // The completion queue was too full for the poll to stay; or the poll was cancelled,
            // and the stream may have a machine again.
            self.ended.push(id);
        }
    }

    fn sent(&mut self, id: Id, result: i32, carried: Carried, ready: &mut Ready) {
        let Driver { sockets, spare, ring, .. } = self;
        let Some(socket) = sockets.get_mut(id) else {
            return stale(ring, id.key(Kind::Send), carried);
        };
        let (Carried::Memory(memory, from), Some(work)) = (carried, &mut socket.work) else {
            return;
        };
        match work.outgo.sent(result, memory.len() - from) {
            Sent::Rest(count) => {
                ring.stats().short_sends += 1;
                return send(ring, socket, memory, from + count, id);
            }
            Sent::All { more, end, tell } => {
                if more && let Some(next) = work.outgo.next() {
                    send(ring, socket, next, 0, id);
                } else if end {
                    socket.shut_down();
                }
                if tell {
                    socket.tell_room(EventSet::WRITABLE, ready);
                }
            }
            Sent::Failed => socket.tell_room(EventSet::WRITABLE | EventSet::ERROR, ready),
            Sent::Cancelled { is_cut: true } => socket.cut_off(),
            Sent::Cancelled { is_cut: false } => {}
        }
        spare.give(memory);
        if let Some(work) = socket.rest() {
            spare.give_work(work);
        }
        if socket.is_dropped && !socket.has_unsent() {
            self.close(id);
        }
    }
}

/// A slot is not free while the kernel has an operation of it, so this never happens.
#[cold]
fn stale(ring: &mut Ring, key: Key, carried: Carried) {
    log::error!("a completion with an unknown key: {key:?}");
    ring.stats().stale += 1;
    if let Carried::Piece(piece) = carried {
        ring.give_back(piece);
    }
}

/// What to do after a completion, besides telling the machine.
enum Follows {
    Nothing,
    /// Submit the operation for input again.
    Giving,
    /// The kernel is done with a dropped socket.
    End,
}

/// Updates the state of the socket, and tells its machine.
fn follow(socket: &mut Socket, came: Came, is_last: bool, ready: &mut Ready) -> Follows {
    let then = socket.intake.came(came, is_last);
    if socket.is_dropped {
        // Its operation was cancelled when it was dropped, so nothing is submitted again.
        return if is_last { Follows::End } else { Follows::Nothing };
    }
    let (events, follows) = match then {
        Then::Tell => (EventSet::READABLE, Follows::Nothing),
        Then::TellAndGive => (EventSet::READABLE, Follows::Giving),
        Then::TellEnd => (EventSet::READABLE | EventSet::READ_CLOSED, Follows::Nothing),
        Then::TellError => (EventSet::READABLE | EventSet::ERROR, Follows::Nothing),
    };
    socket.tell(events, ready);
    follows
}

/// Returns the events of a poll's result.
fn urgent_or_error(bits: i32) -> EventSet {
    let mut events = EventSet::READABLE;
    if bits & (POLL_ERROR | POLL_HANG_UP) != 0 {
        events |= EventSet::ERROR;
    }
    if bits & POLL_URGENT != 0 {
        events |= EventSet::URGENT;
    }
    events
}
