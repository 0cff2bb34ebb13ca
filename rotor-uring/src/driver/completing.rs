//! What the kernel's completions lead to.

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
                // The queue of completions was too full for it to stay.
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
                    // Or more of it would take all buffers.
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

    /// A socket that is asked may have something.
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
        // Where it has ended: a stream is given anew by the read that finds nothing, while who asks
        // for connections or datagrams does not say that there were none.
        self.give(id);
    }

    /// Something came for a stream that gets much: its machine asks for it.
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

    /// There is room, or an attempt to connect has ended.
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
            // What it was is kept with the socket, for whoever asks: a read would take it.
            events |= EventSet::READABLE | EventSet::ERROR;
        } else if socket.is_connecting {
            socket.is_connecting = false;
        }
        self.tell(id, events, ready);
        self.give(id);
    }

    /// A stream is gone whose peer had ended its side, or that is not read: reset, or ended by both.
    fn is_gone(&mut self, id: Id, result: i32, is_last: bool, ready: &mut Ready) {
        let Some(socket) = self.sockets.get_mut(id) else {
            return stale(&mut self.ring, id.key(Kind::Gone), Carried::Nothing);
        };
        socket.polls_gone &= !is_last;
        if socket.is_dropped {
            return self.forget(id);
        }
        // An error below zero says nothing of the socket.
        if result >= 0 && result & (POLL_ERROR | POLL_HANG_UP) != 0 {
            let failed = if result & POLL_ERROR != 0 { EventSet::ERROR } else { EventSet::EMPTY };
            let gone = EventSet::READABLE | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
            socket.tell(gone | failed, ready);
        } else if is_last && (result >= 0 || Came::of_bytes(result) == Came::Cancelled) {
            // The queue of completions was too full for it to stay; or it was taken back, and
            // somebody may have the stream again.
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

/// No slot is free while the kernel has an operation of it, so there is none such.
#[cold]
fn stale(ring: &mut Ring, key: Key, carried: Carried) {
    log::error!("a completion of nobody's: {key:?}");
    ring.stats().stale += 1;
    if let Carried::Piece(piece) = carried {
        ring.give_back(piece);
    }
}

/// What follows from what came, but for what the machine is told.
enum Follows {
    Nothing,
    /// The socket is given more by a new operation.
    Giving,
    /// The kernel is done with a socket that was dropped.
    End,
}

/// Notes what came in the socket's state, and tells its machine.
fn follow(socket: &mut Socket, came: Came, is_last: bool, ready: &mut Ready) -> Follows {
    let then = socket.intake.came(came, is_last);
    if socket.is_dropped {
        // It was given up when it was dropped: nothing is given anew.
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

/// What a poll says besides that there is something.
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
