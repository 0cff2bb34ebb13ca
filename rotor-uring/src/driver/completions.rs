//! Handles the kernel's completions.

use rotor_core::EventSet;

use super::Driver;
use super::socket::{Ready, Socket};
use crate::inbox::Lender;
use crate::intake::{AfterInput, InputEvent};
use crate::key::{Id, Key, Kind};
use crate::outbox::SendOutcome;
use crate::ring::{Completion, Payload, Ring, Watch};

/// `POLLOUT`, `POLLERR`, `POLLHUP` and `POLLPRI` (poll(2)).
const POLL_ROOM: i32 = 4;
const POLL_ERROR: i32 = 8;
const POLL_HANG_UP: i32 = 16;
const POLL_URGENT: i32 = 2;

impl Driver {
    pub(super) fn handle_completion(&mut self, completion: Completion, ready: &mut Ready) {
        let Completion { key, result, is_last, payload } = completion;
        let id = key.id();
        match key.kind() {
            Kind::Wake => {
                // The completion queue was too full for the poll to stay.
                if is_last {
                    self.watch_waker();
                }
            }
            Kind::Receive => self.on_received(id, result, is_last, payload, ready),
            Kind::Readable => self.on_readable(id, result, is_last, ready),
            Kind::ReadableOnce => self.on_readable_once(id, result, ready),
            Kind::Room => self.on_room(id, result, is_last, ready),
            Kind::Send => self.on_sent(id, result, payload, ready),
            Kind::Closed => self.on_closed(id, result, is_last, ready),
            Kind::Unwatched => {}
        }
    }

    fn on_received(
        &mut self,
        id: Id,
        result: i32,
        is_last: bool,
        payload: Payload,
        ready: &mut Ready,
    ) {
        let Driver { sockets, spare, ring, delivered, ended, unread, config, .. } = self;
        let Some(socket) = sockets.get_mut(id) else {
            return report_stale(ring, id.key(Kind::Receive), payload);
        };
        let event = InputEvent::from_receive(result);
        if let Payload::Piece(piece) = payload {
            if socket.is_dropped || piece.len() == 0 {
                if piece.len() > 0 {
                    // As if it was unread when it was dropped, if it is not closed yet.
                    socket.set_reset_on_close();
                }
                ring.release(piece);
            } else {
                let inbox = &mut socket.buffers_mut(spare).inbox;
                inbox.push(piece);
                let is_too_much = inbox.len() >= config.unread_bytes_max;
                if !socket.is_listed {
                    socket.is_listed = true;
                    delivered.push(id);
                }
                if is_too_much {
                    socket.bulk.start();
                }
                if is_too_much && socket.intake.stop_delivery() {
                    // Otherwise more of it would take all buffers.
                    ring.cancel(id.key(Kind::Receive));
                    ring.stats().held_back += 1;
                }
            }
        }
        ring.stats().buffers_exhausted += u64::from(event == InputEvent::NoBuffer);
        let follow_up = update_input(socket, event, is_last, ready);
        if event == InputEvent::End && !socket.is_dropped && !socket.intake.has_failed() {
            ended.push(id);
        }
        if socket.is_left_unread() {
            unread.push(id);
        }
        self.follow_up(id, follow_up);
    }

    /// A socket that is read with system calls may have something.
    fn on_readable(&mut self, id: Id, result: i32, is_last: bool, ready: &mut Ready) {
        let Some(socket) = self.sockets.get_mut(id) else {
            return report_stale(&mut self.ring, id.key(Kind::Readable), Payload::Nothing);
        };
        let follow_up = update_input(socket, InputEvent::from_multishot(result), is_last, ready);
        if result > 0 {
            socket.notify(poll_events(result), ready);
        }
        socket.intake.clear_error();
        self.follow_up(id, follow_up);
        // If the operation has ended: a stream gets a new one from the read that finds nothing, but
        // listeners and datagram sockets do not report that they found nothing.
        self.deliver_input(id);
    }

    /// Something has arrived for a stream that receives much: its machine will read it.
    fn on_readable_once(&mut self, id: Id, result: i32, ready: &mut Ready) {
        let Some(socket) = self.sockets.get_mut(id) else {
            return report_stale(&mut self.ring, id.key(Kind::ReadableOnce), Payload::Nothing);
        };
        socket.bulk.on_notification();
        let follow_up = update_input(socket, InputEvent::from_poll(result), true, ready);
        if socket.is_left_unread() {
            self.unread.push(id);
        }
        self.follow_up(id, follow_up);
    }

    fn follow_up(&mut self, id: Id, follow_up: FollowUp) {
        match follow_up {
            FollowUp::Nothing => {}
            FollowUp::Resubmit => self.submit_input(id),
            FollowUp::Remove => self.remove_if_unused(id),
        }
    }

    /// There is room, or a connection attempt has ended.
    fn on_room(&mut self, id: Id, result: i32, is_last: bool, ready: &mut Ready) {
        let Some(socket) = self.sockets.get_mut(id) else {
            return report_stale(&mut self.ring, id.key(Kind::Room), Payload::Nothing);
        };
        socket.polls_room &= !is_last;
        let has_unsent = socket.has_unsent();
        if socket.is_dropped && !has_unsent {
            return self.remove_if_unused(id);
        }
        if result >= 0 && result & (POLL_ROOM | POLL_ERROR | POLL_HANG_UP) == 0 {
            // Only the peer's side has ended. A poll for once would report that again and again. A
            // poll that stays reports it once, and then room after each write that found none.
            return self.watch_room(id, Watch::EachRoom(id));
        }
        if has_unsent {
            self.send_next(id);
        }
        let Some(socket) = self.sockets.get_mut(id) else { return };
        if has_unsent && !socket.is_connecting {
            // It may wait for room, too, and is told when everything was sent, or has failed.
            if let Some(buffers) = &mut socket.buffers {
                buffers.outbox.wait_for_room();
            }
            return;
        }
        let mut events = EventSet::WRITABLE;
        // If both sides have ended already, which is a hang-up, the input still has to be read.
        let has_failed = result < 0 || result & POLL_ERROR != 0;
        if has_failed {
            // The socket keeps the error for `take_error`; a read would take it.
            events |= EventSet::READABLE | EventSet::ERROR;
        } else if socket.is_connecting {
            socket.is_connecting = false;
        }
        self.notify(id, events, ready);
        self.deliver_input(id);
    }

    /// Handles the poll for the end of a stream whose peer had ended its side, or that is not read:
    /// the stream was reset, or both sides have ended.
    fn on_closed(&mut self, id: Id, result: i32, is_last: bool, ready: &mut Ready) {
        let Some(socket) = self.sockets.get_mut(id) else {
            return report_stale(&mut self.ring, id.key(Kind::Closed), Payload::Nothing);
        };
        socket.polls_closed &= !is_last;
        if socket.is_dropped {
            return self.remove_if_unused(id);
        }
        // A negative result says nothing about the socket.
        if result >= 0 && result & (POLL_ERROR | POLL_HANG_UP) != 0 {
            let failed = if result & POLL_ERROR != 0 { EventSet::ERROR } else { EventSet::EMPTY };
            let gone = EventSet::READABLE | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
            socket.notify(gone | failed, ready);
        } else if is_last
            && (result >= 0 || InputEvent::from_receive(result) == InputEvent::Cancelled)
        {
            // The completion queue was too full for the poll to stay; or the poll was cancelled,
            // and the stream may have a machine again.
            self.ended.push(id);
        }
    }

    fn on_sent(&mut self, id: Id, result: i32, payload: Payload, ready: &mut Ready) {
        let Driver { sockets, spare, ring, .. } = self;
        let Some(socket) = sockets.get_mut(id) else {
            return report_stale(ring, id.key(Kind::Send), payload);
        };
        let (Payload::Memory(memory), Some(buffers)) = (payload, &mut socket.buffers) else {
            return;
        };
        let mut sends_more = false;
        match buffers.outbox.on_sent(result, memory.len()) {
            SendOutcome::Partial(count) => {
                ring.stats().short_sends += 1;
                buffers.outbox.put_back(memory, count);
                return self.poll_room(id);
            }
            SendOutcome::All { send_more, shut_down, notify } => {
                sends_more = send_more;
                if shut_down {
                    socket.shut_down_write();
                }
                if notify {
                    socket.notify_room(EventSet::WRITABLE, ready);
                }
            }
            SendOutcome::Failed(error) => {
                socket.intake.on_send_failed(error);
                socket.notify_room(EventSet::WRITABLE | EventSet::ERROR, ready);
            }
            SendOutcome::Cancelled { is_truncated: true } => socket.set_reset_on_close(),
            SendOutcome::Cancelled { is_truncated: false } => {}
        }
        spare.recycle_memory(memory);
        if let Some(buffers) = socket.take_idle_buffers() {
            spare.recycle_buffers(buffers);
        }
        if sends_more {
            self.send_next(id);
        } else if socket.is_dropped {
            self.close(id);
        }
    }
}

/// A slot is not free while the kernel has an operation of it, so this never happens.
#[cold]
fn report_stale(ring: &mut Ring, key: Key, payload: Payload) {
    log::error!("a completion with an unknown key: {key:?}");
    ring.stats().stale += 1;
    if let Payload::Piece(piece) = payload {
        ring.release(piece);
    }
}

/// What to do after a completion, besides telling the machine.
enum FollowUp {
    Nothing,
    /// Submit the operation for input again.
    Resubmit,
    /// The kernel is done with a dropped socket.
    Remove,
}

/// Updates the state of the socket, and tells its machine.
fn update_input(
    socket: &mut Socket,
    event: InputEvent,
    is_last: bool,
    ready: &mut Ready,
) -> FollowUp {
    let action = socket.intake.on_completion(event, is_last);
    if socket.is_dropped {
        // Its operation was cancelled when it was dropped, so nothing is submitted again.
        return if is_last { FollowUp::Remove } else { FollowUp::Nothing };
    }
    let (events, follow_up) = match action {
        AfterInput::Notify => (EventSet::READABLE, FollowUp::Nothing),
        AfterInput::NotifyAndResubmit => (EventSet::READABLE, FollowUp::Resubmit),
        AfterInput::NotifyEnd => (EventSet::READABLE | EventSet::READ_CLOSED, FollowUp::Nothing),
        AfterInput::NotifyError => (EventSet::READABLE | EventSet::ERROR, FollowUp::Nothing),
    };
    socket.notify(events, ready);
    follow_up
}

/// Returns the events of a poll's result.
fn poll_events(bits: i32) -> EventSet {
    let mut events = EventSet::READABLE;
    if bits & (POLL_ERROR | POLL_HANG_UP) != 0 {
        events |= EventSet::ERROR;
    }
    if bits & POLL_URGENT != 0 {
        events |= EventSet::URGENT;
    }
    events
}
