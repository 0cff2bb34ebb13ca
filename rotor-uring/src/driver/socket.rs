//! `Socket`: a socket of the ring, and when it may be forgotten.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rotor_core::{EventSet, Interest, Token};
use rustix::net;

use super::spare::Spare;
use super::work::Work;
use crate::bulk::Bulk;
use crate::intake::Intake;
use crate::key::Kind;

/// The events of a wait, and whose they are.
pub(super) type Ready = Vec<(Token, EventSet)>;

/// A socket of the ring. Most sockets are idle, so what a stream needs only while it has something
/// to do is separate: [`Work`].
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
    pub(super) work: Option<Box<Work>>,
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
    pub(super) is_polled: bool,
    /// The kernel has had an operation of the socket.
    pub(super) was_given: bool,
    /// The number of calls of the kernel, modulo 2³², when the operation for input was submitted:
    /// until the next call, the kernel does not know of it. Without an operation: the number when
    /// the stream was last read.
    pub(super) given_in: u32,
    /// The kernel has a poll for room.
    pub(super) polls_room: bool,
    /// The kernel has a poll for its end.
    pub(super) polls_gone: bool,
    /// Its connection attempt has not ended, or it was found full before it was registered.
    pub(super) awaits_room: bool,
    pub(super) is_connecting: bool,
    pub(super) is_dropped: bool,
    /// It is in the list of sockets to be looked at when the turn ends.
    pub(super) is_noted: bool,
    /// For listeners: it has accepted a connection last, so whether there is another is checked
    /// first.
    pub(super) looks: bool,
    /// Where the last event for its machine is among the events of that wait.
    pub(super) told_at: u32,
}

impl Socket {
    pub(super) fn new(fd: OwnedFd, is_stream: bool) -> Socket {
        Socket {
            fd: Some(fd),
            work: None,
            token: Token::from_usize(0),
            is_registered: false,
            is_stream,
            reads: false,
            intake: Intake::new(),
            bulk: Bulk::default(),
            is_polled: false,
            was_given: false,
            given_in: 0,
            polls_room: false,
            polls_gone: false,
            awaits_room: false,
            is_connecting: false,
            is_dropped: false,
            is_noted: false,
            looks: false,
            told_at: 0,
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

    /// Returns its `Work`, which an idle socket gets now.
    pub(super) fn work(&mut self, spare: &mut Spare) -> &mut Work {
        self.work.get_or_insert_with(|| spare.take_work())
    }

    /// Adds an event for its machine, merged with an earlier one of the same wait.
    pub(super) fn tell(&mut self, events: EventSet, ready: &mut Ready) {
        let Some(token) = self.token() else { return };
        // If that was another wait, the entry there usually belongs to another machine.
        if let Some((to, told)) = ready.get_mut(self.told_at as usize)
            && *to == token
        {
            *told |= events;
            return;
        }
        self.told_at = ready.len() as u32;
        ready.push((token, events));
    }

    /// Tells its machine that there is room. If it has no machine now, the next one will be told.
    pub(super) fn tell_room(&mut self, events: EventSet, ready: &mut Ready) {
        self.awaits_room |= !self.is_registered;
        self.tell(events, ready);
    }

    /// Sends the end of our side, which was requested before everything was sent.
    pub(super) fn shut_down(&self) {
        let Some(fd) = &self.fd else { return };
        if let Err(error) = net::shutdown(fd, net::Shutdown::Write) {
            // The peer has gone; reading reports why.
            log::debug!("the end of a stream was not told: {error}");
        }
    }

    /// Makes closing it send a reset (socket(7), `SO_LINGER`): not everything that was written has
    /// been sent, and the peer must not take the rest for complete. Unix sockets have no reset.
    pub(super) fn cut_off(&self) {
        let Some(fd) = &self.fd else { return };
        if let Err(error) = net::sockopt::set_socket_linger(fd, Some(Duration::ZERO)) {
            log::debug!("a stream that is cut off ends without a reset: {error}");
        }
    }

    /// Takes its `Work`, if that has nothing left to do.
    pub(super) fn rest(&mut self) -> Option<Box<Work>> {
        self.work.take_if(|work| work.is_done())
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Returns the kind of the operation for its input.
    pub(super) fn kind(&self) -> Kind {
        match (self.is_stream, self.is_polled) {
            (false, _) => Kind::Readable,
            (true, false) => Kind::Receive,
            (true, true) => Kind::Arrived,
        }
    }

    /// Whether a machine wants its input, and not only the result of connecting.
    pub(super) fn is_in_use(&self) -> bool {
        self.is_registered && !self.is_connecting
    }

    pub(super) fn note_interest(&mut self, interest: Interest) {
        self.reads = interest.is_readable();
    }

    /// Whether its machine has something to read of which no event has told it.
    pub(super) fn holds_something(&self) -> bool {
        self.intake.has_ended() || self.has_unread()
    }

    /// Whether it is a stream about which the kernel reports nothing without a further operation,
    /// not even its end.
    #[inline]
    pub(super) fn is_left_unread(&self) -> bool {
        let is_watched = self.intake.is_with_kernel() || self.intake.has_ended();
        !is_watched && self.is_stream && !self.is_dropped
    }

    /// Whether it has unread data.
    #[inline]
    pub(super) fn has_unread(&self) -> bool {
        self.work.as_ref().is_some_and(|work| !work.inbox.is_empty())
    }

    /// Returns the error of receiving or of sending, once.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        let of_input = self.intake.take_error().map(io::Error::from_raw_os_error);
        of_input.or_else(|| self.work.as_mut().and_then(|work| work.outgo.take_error()))
    }

    /// Whether it still has bytes to send.
    pub(super) fn has_unsent(&self) -> bool {
        self.work.as_ref().is_some_and(|work| !work.outgo.is_empty())
    }

    /// Whether neither a machine nor the kernel uses it any more.
    pub(super) fn is_forgotten(&self) -> bool {
        let is_sending = self.work.as_ref().is_some_and(|work| work.outgo.sending().is_some());
        self.is_dropped
            && self.fd.is_none()
            && !self.intake.is_with_kernel()
            && !self.polls_room
            && !self.polls_gone
            && !is_sending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_waits_takes_as_much_as_it_says_on_the_page_of_its_figures() {
        assert!(size_of::<Option<Socket>>() <= 48, "{}", size_of::<Option<Socket>>());
    }
}
