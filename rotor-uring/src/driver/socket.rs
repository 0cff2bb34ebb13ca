//! `Socket`: a socket of the ring, and when it may be forgotten.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rotor_core::{EventSet, Interest, Token};
use rustix::net;

use super::spare::Spare;
use super::stream_buffers::StreamBuffers;
use crate::bulk::Bulk;
use crate::intake::Intake;
use crate::key::Kind;

/// The events of a wait, and whose they are.
pub(super) type Ready = Vec<(Token, EventSet)>;

/// A socket of the ring. Most sockets are idle, so what a stream needs only while it has something
/// to do is separate: [`StreamBuffers`].
///
/// ```text
///  in use ──dropped──▶ lingers ──all is sent, or its time is over──▶ closed ──▶ forgotten
///     └────────────────────── with nothing to be sent ──────────────▲      when the kernel has
///                                                                          done with its operations
/// ```
pub(super) struct Socket {
    /// Present until it is closed.
    pub(super) fd: Option<OwnedFd>,
    /// For streams: the received data that was not read, and the data to be sent.
    pub(super) buffers: Option<Box<StreamBuffers>>,
    /// The token of its machine, if it is registered.
    token: Token,
    is_registered: bool,
    /// Whether it is a stream. Listeners and datagram sockets are read with system calls, and the
    /// kernel reports when.
    pub(super) is_stream: bool,
    /// The machine wants to be told of input.
    pub(super) reads: bool,
    pub(super) intake: Intake,
    /// For streams: whether much comes at once.
    pub(super) bulk: Bulk,
    /// For streams: the last operation for input was a poll, and not a receive.
    pub(super) input_is_poll: bool,
    /// The kernel has had an operation of the socket.
    pub(super) had_operation: bool,
    /// The number of calls of the kernel, modulo 2³², when the operation for input was submitted:
    /// until the next call, the kernel does not know of it. Without an operation: the number when
    /// the stream was last read.
    pub(super) enters_at_input: u32,
    /// The kernel has a poll for room.
    pub(super) polls_room: bool,
    /// The kernel has a poll for its end.
    pub(super) polls_closed: bool,
    /// Its connection attempt has not ended, or it was found full before it was registered.
    pub(super) awaits_room: bool,
    pub(super) is_connecting: bool,
    pub(super) is_dropped: bool,
    /// Its machine has asked for a reset when it is closed.
    pub(super) resets_on_close: bool,
    /// It is in the list of sockets to be looked at when the turn ends.
    pub(super) is_listed: bool,
    /// For listeners: it has accepted a connection last, so whether there is another is checked
    /// first.
    pub(super) checks_backlog: bool,
    /// Where the last event for its machine is among the events of that wait.
    pub(super) event_index: u32,
}

impl Socket {
    pub(super) fn new(fd: OwnedFd, is_stream: bool) -> Socket {
        Socket {
            fd: Some(fd),
            buffers: None,
            token: Token::from_usize(0),
            is_registered: false,
            is_stream,
            reads: false,
            intake: Intake::new(),
            bulk: Bulk::default(),
            input_is_poll: false,
            had_operation: false,
            enters_at_input: 0,
            polls_room: false,
            polls_closed: false,
            awaits_room: false,
            is_connecting: false,
            is_dropped: false,
            resets_on_close: false,
            is_listed: false,
            checks_backlog: false,
            event_index: 0,
        }
    }

    pub(super) fn token(&self) -> Option<Token> {
        self.is_registered.then_some(self.token)
    }

    pub(super) fn register(&mut self, token: Token) {
        (self.token, self.is_registered) = (token, true);
    }

    /// Returns whether it was registered.
    pub(super) fn deregister(&mut self) -> bool {
        mem::take(&mut self.is_registered)
    }

    /// Returns its `StreamBuffers`, which an idle socket gets now.
    pub(super) fn buffers_mut(&mut self, spare: &mut Spare) -> &mut StreamBuffers {
        self.buffers.get_or_insert_with(|| spare.take_buffers())
    }

    /// Adds an event for its machine, merged with an earlier one of the same wait.
    pub(super) fn notify(&mut self, events: EventSet, ready: &mut Ready) {
        let Some(token) = self.token() else { return };
        // If that was another wait, the entry there usually belongs to another machine.
        if let Some((to, told)) = ready.get_mut(self.event_index as usize)
            && *to == token
        {
            *told |= events;
            return;
        }
        self.event_index = ready.len() as u32;
        ready.push((token, events));
    }

    /// Tells its machine that there is room. If it has no machine now, the next one will be told.
    pub(super) fn notify_room(&mut self, events: EventSet, ready: &mut Ready) {
        self.awaits_room |= !self.is_registered;
        self.notify(events, ready);
    }

    /// Sends the end of our side, which was requested before everything was sent.
    pub(super) fn shut_down_write(&self) {
        let Some(fd) = &self.fd else { return };
        if let Err(error) = net::shutdown(fd, net::Shutdown::Write) {
            // The peer has gone; reading reports why.
            log::debug!("the end of a stream was not told: {error}");
        }
    }

    /// Makes closing it send a reset (socket(7), `SO_LINGER`): not everything that was written has
    /// been sent, and the peer must not take the rest for complete; or not everything that was
    /// received has been read. Unix sockets have no reset.
    pub(super) fn set_reset_on_close(&self) {
        let Some(fd) = &self.fd else { return };
        if let Err(error) = net::sockopt::set_socket_linger(fd, Some(Duration::ZERO)) {
            log::debug!("a stream that is cut off ends without a reset: {error}");
        }
    }

    /// Takes its `StreamBuffers`, if that has nothing left to do.
    pub(super) fn take_idle_buffers(&mut self) -> Option<Box<StreamBuffers>> {
        self.buffers.take_if(|buffers| buffers.is_idle())
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Returns the kind of the operation for its input.
    pub(super) fn input_operation(&self) -> Kind {
        match (self.is_stream, self.input_is_poll) {
            (false, _) => Kind::Readable,
            (true, false) => Kind::Receive,
            (true, true) => Kind::ReadableOnce,
        }
    }

    /// Whether a machine wants its input, and not only the result of connecting.
    pub(super) fn wants_input(&self) -> bool {
        self.is_registered && !self.is_connecting
    }

    pub(super) fn set_interest(&mut self, interest: Interest) {
        self.reads = interest.is_readable();
    }

    /// Whether its machine has something to read of which no event has told it.
    pub(super) fn has_unreported_input(&self) -> bool {
        self.intake.has_ended() || self.has_unread()
    }

    /// Returns the events for that.
    pub(super) fn unreported_events(&self) -> EventSet {
        let mut events = EventSet::READABLE;
        if self.intake.has_ended() {
            events |= EventSet::READ_CLOSED;
        }
        if self.intake.has_failed() {
            events |= EventSet::ERROR;
        }
        events
    }

    /// Whether it is a stream about which the kernel reports nothing without a further operation,
    /// not even its end.
    #[inline]
    pub(super) fn is_left_unread(&self) -> bool {
        let is_watched = self.intake.has_operation() || self.intake.has_ended();
        !is_watched && self.is_stream && !self.is_dropped
    }

    /// Whether it has unread data.
    #[inline]
    pub(super) fn has_unread(&self) -> bool {
        self.buffers.as_ref().is_some_and(|buffers| !buffers.inbox.is_empty())
    }

    /// Whether it has a receive of which the kernel does not know yet, and that may take bytes. The
    /// kernel executes it even if it gets the cancellation and the close together with it.
    pub(super) fn has_new_receive(&self, enters: u32) -> bool {
        let is_receive = self.input_operation() == Kind::Receive;
        let is_new = self.intake.has_operation() && self.enters_at_input == enters;
        is_receive && is_new && !self.intake.has_ended()
    }

    /// Returns the error of receiving or of sending, once: usually it is the same.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        let of_input = self.intake.take_error().map(io::Error::from_raw_os_error);
        let of_output = self.buffers.as_mut().and_then(|buffers| buffers.outbox.take_error());
        of_input.or(of_output)
    }

    /// Whether it still has bytes to send.
    pub(super) fn has_unsent(&self) -> bool {
        self.buffers.as_ref().is_some_and(|buffers| !buffers.outbox.is_empty())
    }

    /// Whether neither a machine nor the kernel uses it any more.
    pub(super) fn is_unused(&self) -> bool {
        let is_sending =
            self.buffers.as_ref().is_some_and(|buffers| buffers.outbox.in_flight().is_some());
        self.is_dropped
            && self.fd.is_none()
            && !self.intake.has_operation()
            && !self.polls_room
            && !self.polls_closed
            && !is_sending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_socket_takes_as_much_memory_as_documented() {
        assert!(size_of::<Option<Socket>>() <= 48, "{}", size_of::<Option<Socket>>());
    }
}
