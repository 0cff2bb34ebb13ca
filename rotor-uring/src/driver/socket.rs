//! `Socket`: what the ring knows of a socket, and when it may forget it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rotor_core::{Interest, Token};

use crate::inbox::Inbox;
use crate::intake::Intake;
use crate::key::Kind;
use crate::outgo::Outgo;

/// What the ring knows of a socket.
///
/// ```text
///  in use ──dropped──▶ lingers ──all is sent, or its time is over──▶ closed ──▶ forgotten
///     └────────────────────── with nothing to be sent ──────────────▲      when the kernel has
///                                                                          done with its operations
/// ```
pub(super) struct Socket {
    /// Until it is closed.
    pub(super) fd: Option<OwnedFd>,
    pub(super) token: Option<Token>,
    /// The machine wants to hear of what comes.
    pub(super) reads: bool,
    pub(super) intake: Intake,
    /// The kernel was handed an operation of it.
    pub(super) was_given: bool,
    /// How often the kernel had been called when the operation was made that gives what comes: as
    /// long as it is not called again, it has not heard of it.
    pub(super) given_in: u64,
    /// A poll for room is with the kernel.
    pub(super) polls_room: bool,
    /// Its attempt to connect has not ended; or it was found full before it was registered.
    pub(super) awaits_room: bool,
    pub(super) is_connecting: bool,
    pub(super) is_dropped: bool,
    /// It is in the list of those that are looked at when the turn ends.
    pub(super) is_noted: bool,
    /// The wait in which its machine was last told, and where among the events.
    pub(super) told_in: u32,
    pub(super) told_at: u32,
    pub(super) what: What,
}

/// What kind of socket it is, and what that has.
pub(super) enum What {
    Stream(Inbox, Outgo),
    /// A listener, or a socket of datagrams: it is asked for each, and the kernel tells when.
    Asked,
}

impl Socket {
    pub(super) fn new(fd: OwnedFd, what: What) -> Socket {
        Socket {
            fd: Some(fd),
            token: None,
            reads: false,
            intake: Intake::new(),
            was_given: false,
            given_in: 0,
            polls_room: false,
            awaits_room: false,
            is_connecting: false,
            is_dropped: false,
            is_noted: false,
            told_in: 0,
            told_at: 0,
            what,
        }
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// What operation gives it what comes.
    pub(super) fn kind(&self) -> Kind {
        match self.what {
            What::Stream(..) => Kind::Receive,
            What::Asked => Kind::Readable,
        }
    }

    /// Whether the kernel is to be told to give it what comes, now that it may be.
    pub(super) fn wants_giving(&self) -> bool {
        self.token.is_some() && self.reads && !self.is_connecting
    }

    pub(super) fn note_interest(&mut self, interest: Interest) {
        self.reads = interest.is_readable();
    }

    /// Whether its machine has something to read that no event told it of.
    pub(super) fn holds_something(&self) -> bool {
        self.intake.has_ended()
            || match &self.what {
                What::Stream(inbox, _) => !inbox.is_empty(),
                What::Asked => false,
            }
    }

    /// The error of what came or of what was sent, once.
    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        let of_input = self.intake.take_error().map(io::Error::from_raw_os_error);
        of_input.or_else(|| match &self.what {
            What::Stream(_, outgo) => outgo.error(),
            _ => None,
        })
    }

    /// Whether it has bytes that are still to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        matches!(&self.what, What::Stream(_, outgo) if !outgo.is_empty())
    }

    /// Whether nobody knows it any more, the kernel included.
    pub(super) fn is_forgotten(&self) -> bool {
        let is_sending = matches!(&self.what, What::Stream(_, outgo) if outgo.sending().is_some());
        self.is_dropped
            && self.fd.is_none()
            && !self.intake.is_with_kernel()
            && !self.polls_room
            && !is_sending
    }
}
