//! `Socket`: what the ring knows of a socket, and when it may forget it.

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

/// What is to be read or written by whom, as the events of a wait.
pub(super) type Ready = Vec<(Token, EventSet)>;

/// What the ring knows of a socket. Many only wait, so what a stream needs while it has something to do
/// is apart: [`Work`].
///
/// ```text
///  in use ──dropped──▶ lingers ──all is sent, or its time is over──▶ closed ──▶ forgotten
///     └────────────────────── with nothing to be sent ──────────────▲      when the kernel has
///                                                                          done with its operations
/// ```
pub(super) struct Socket {
    /// Until it is closed.
    pub(super) fd: Option<OwnedFd>,
    /// Of a stream: what came and was not read, and what is to be sent.
    pub(super) work: Option<Box<Work>>,
    /// Whose it is, if it is registered.
    token: Token,
    is_registered: bool,
    /// A stream; else a listener or a socket of datagrams: that is asked for each, and the kernel tells
    /// when.
    pub(super) is_stream: bool,
    /// The machine wants to hear of what comes.
    pub(super) reads: bool,
    pub(super) intake: Intake,
    /// Of a stream: whether much comes at once.
    pub(super) bulk: Bulk,
    /// Of a stream: the operation that was made last for what comes tells of it, and does not give it.
    pub(super) is_polled: bool,
    /// The kernel was handed an operation of it.
    pub(super) was_given: bool,
    /// How often the kernel had been called, modulo 2³², when the operation was made that gives what
    /// comes: as long as it is not called again, it has not heard of it. Where there is none, when the
    /// stream was read last.
    pub(super) given_in: u32,
    /// A poll for room is with the kernel.
    pub(super) polls_room: bool,
    /// A poll for its end is with the kernel.
    pub(super) polls_gone: bool,
    /// Its attempt to connect has not ended; or it was found full before it was registered.
    pub(super) awaits_room: bool,
    pub(super) is_connecting: bool,
    pub(super) is_dropped: bool,
    /// It is in the list of those that are looked at when the turn ends.
    pub(super) is_noted: bool,
    /// Of a listener: it gave a connection last, so whether there is another is looked at first.
    pub(super) looks: bool,
    /// Where its machine was told something last, among the events of that wait.
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

    /// What it is at; it begins with something where it was at rest.
    pub(super) fn work(&mut self, spare: &mut Spare) -> &mut Work {
        self.work.get_or_insert_with(|| spare.take_work())
    }

    /// Tells its machine something; with what that was told in this wait, if it was.
    pub(super) fn tell(&mut self, events: EventSet, ready: &mut Ready) {
        let Some(token) = self.token() else { return };
        // Where it was told in another wait, what is there now is another machine's, as a rule.
        if let Some((to, told)) = ready.get_mut(self.told_at as usize)
            && *to == token
        {
            *told |= events;
            return;
        }
        self.told_at = ready.len() as u32;
        ready.push((token, events));
    }

    /// Tells its machine of room; if it has none now, the next one is to hear of it.
    pub(super) fn tell_room(&mut self, events: EventSet, ready: &mut Ready) {
        self.awaits_room |= !self.is_registered;
        self.tell(events, ready);
    }

    /// Tells the end of our side, which was asked for before all had left.
    pub(super) fn shut_down(&self) {
        let Some(fd) = &self.fd else { return };
        if let Err(error) = net::shutdown(fd, net::Shutdown::Write) {
            // The peer has gone; reading tells how.
            log::debug!("the end of a stream was not told: {error}");
        }
    }

    /// Has it end by a reset when it is closed (socket(7), `SO_LINGER`): what was taken to be sent has
    /// not all left, and the peer must not take for complete what has. Of Unix sockets there is none.
    pub(super) fn cut_off(&self) {
        let Some(fd) = &self.fd else { return };
        if let Err(error) = net::sockopt::set_socket_linger(fd, Some(Duration::ZERO)) {
            log::debug!("a stream that is cut off ends without a reset: {error}");
        }
    }

    /// What it was at, if nothing of that is left.
    pub(super) fn rest(&mut self) -> Option<Box<Work>> {
        self.work.take_if(|work| work.is_done())
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// What operation gives it what comes, or tells of it.
    pub(super) fn kind(&self) -> Kind {
        match (self.is_stream, self.is_polled) {
            (false, _) => Kind::Readable,
            (true, false) => Kind::Receive,
            (true, true) => Kind::Arrived,
        }
    }

    /// Whether a machine is to hear of it, and not only whether it has connected.
    pub(super) fn is_in_use(&self) -> bool {
        self.is_registered && !self.is_connecting
    }

    pub(super) fn note_interest(&mut self, interest: Interest) {
        self.reads = interest.is_readable();
    }

    /// Whether its machine has something to read that no event told it of.
    pub(super) fn holds_something(&self) -> bool {
        self.intake.has_ended() || self.has_unread()
    }

    /// Whether it is a stream of which the kernel tells nothing before it has been asked, not even that
    /// it is gone.
    #[inline]
    pub(super) fn is_left_unread(&self) -> bool {
        let is_watched = self.intake.is_with_kernel() || self.intake.has_ended();
        !is_watched && self.is_stream && !self.is_dropped
    }

    /// Whether something came for it that was not read.
    #[inline]
    pub(super) fn has_unread(&self) -> bool {
        self.work.as_ref().is_some_and(|work| !work.inbox.is_empty())
    }

    /// The error of what came or of what was sent, once.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        let of_input = self.intake.take_error().map(io::Error::from_raw_os_error);
        of_input.or_else(|| self.work.as_mut().and_then(|work| work.outgo.take_error()))
    }

    /// Whether it has bytes that are still to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.work.as_ref().is_some_and(|work| !work.outgo.is_empty())
    }

    /// Whether nobody knows it any more, the kernel included.
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
