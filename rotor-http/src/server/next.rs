//! What a handler answers: how its request goes on.

use std::fmt;

use rotor_core::{Deadline, Time};
use rotor_stream::Protocol;

use super::Server;
use crate::h1::{MessageError, Status};
use crate::recv_mode::RecvMode;

/// How a request goes on: the handler's next state, how much of the request it wants to see, and
/// its deadline.
///
/// Begin with [`recv`](Next::recv) or [`go_on`](Next::go_on) and say the deadline: the builder is
/// not a `Next` before. [`finished`](Next::finished), [`fail`](Next::fail) and
/// [`upgrade`](Next::upgrade) need none.
#[must_use = "a handler whose answer is dropped is forgotten: return it"]
pub struct Next<S: Server> {
    pub(super) step: Step<S>,
    pub(super) deadline: Deadline,
}

/// What the connection is to do.
pub(super) enum Step<S: Server> {
    Receive(S, RecvMode),
    Hold(S),
    GoOn(S),
    Finished,
    Fail(Status),
    Upgrade(<S::Upgrade as Protocol>::Seed),
}

/// A [`Next`] whose deadline is still to be said.
#[must_use = "say the deadline: .deadline(time), .keep_deadline() or .no_deadline()"]
pub struct NextBuilder<S: Server> {
    step: Step<S>,
}

impl<S: Server> Next<S> {
    /// Go on as `state`, and see the body of the request as `mode` says. After
    /// [`hold`](Next::hold): see more of it; the mode is what was said first.
    ///
    /// A peer that waits for `100 Continue` gets it now.
    pub fn recv(state: S, mode: RecvMode) -> NextBuilder<S> {
        NextBuilder { step: Step::Receive(state, mode) }
    }

    /// Go on as `state`, and be handed no more of the body until the handler says
    /// [`recv`](Next::recv): what comes stays in the socket, and the peer has to wait; it is not
    /// timed meanwhile, the handler is.
    ///
    /// That the body has ended is told all the same: [`request_end`](super::Server::request_end),
    /// which hands nothing over, follows the last piece at once.
    pub fn hold(state: S) -> NextBuilder<S> {
        NextBuilder { step: Step::Hold(state) }
    }

    /// Go on as `state`: the handler waits for what it asked for, for room to write, for a wake-up
    /// or its deadline.
    pub fn go_on(state: S) -> NextBuilder<S> {
        NextBuilder { step: Step::GoOn(state) }
    }

    /// The response is complete; nothing is left to do.
    ///
    /// A handler that finishes without a response, or in the middle of one, is at fault: the peer
    /// gets 500 where nothing was sent yet, else the connection ends. What is left of the request's
    /// body is read and dropped, up to
    /// [`Limits::drained_body_bytes_max`](crate::h1::Limits::drained_body_bytes_max); beyond that
    /// the connection closes.
    pub fn finished() -> Next<S> {
        Next { step: Step::Finished, deadline: Deadline::Never }
    }

    /// There will be no complete response, and the handler is not to blame: what it passed on has
    /// broken off, say. Where nothing was sent yet the peer gets the [error
    /// page](super::Server::emit_error_page) of `status`, and the connection closes after it; else
    /// it is cut, so that nobody takes a part for the whole.
    ///
    /// An answer that should not cost the connection is written like any other: see
    /// [`finished`](Next::finished).
    pub fn fail(status: Status) -> Next<S> {
        Next { step: Step::Fail(status), deadline: Deadline::Never }
    }

    /// The response is complete, with status 101 (or 2xx to CONNECT): from here on the connection
    /// speaks the protocol that is made from `seed`, beginning with the bytes that were read
    /// already.
    ///
    /// Without such a response the connection closes, and it is logged. A request with a body can
    /// be answered with 101 once the body has come: before, the peer still speaks HTTP.
    pub fn upgrade(seed: <S::Upgrade as Protocol>::Seed) -> Next<S> {
        Next { step: Step::Upgrade(seed), deadline: Deadline::Never }
    }

    /// The same answer around another handler and another upgrade: what a handler does with the
    /// answer of one that it wraps. See [`Routed`](super::Routed) for two handlers beside each
    /// other.
    #[inline]
    pub fn map<T: Server>(
        self,
        handler: impl FnOnce(S) -> T,
        upgrade: impl FnOnce(<S::Upgrade as Protocol>::Seed) -> <T::Upgrade as Protocol>::Seed,
    ) -> Next<T> {
        let step = match self.step {
            Step::Receive(state, mode) => Step::Receive(handler(state), mode),
            Step::Hold(state) => Step::Hold(handler(state)),
            Step::GoOn(state) => Step::GoOn(handler(state)),
            Step::Finished => Step::Finished,
            Step::Fail(status) => Step::Fail(status),
            Step::Upgrade(seed) => Step::Upgrade(upgrade(seed)),
        };
        Next { step, deadline: self.deadline }
    }

    /// The same answer around another handler that upgrades to the same protocol, or to none.
    #[inline]
    pub fn wrap<T: Server<Upgrade = S::Upgrade>>(self, handler: impl FnOnce(S) -> T) -> Next<T> {
        self.map(handler, |seed| seed)
    }
}

/// That a handler has answered, whole: what [`Response::reply`](super::Response::reply) returns.
///
/// A function that serves ([`ServerFn`](super::ServerFn)) returns it as it is; the methods of a
/// [`Server`] turn it into their
/// [`Next`]: `response.reply(..).into()`. What a handler writes in steps becomes one too: `written.into()`, with the `Result` of
/// those steps.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Reply {}

/// A response that the handler wrote in steps. However that went: the connection sees what is
/// missing, and makes it a 500.
impl From<Result<(), MessageError>> for Reply {
    #[inline]
    fn from(written: Result<(), MessageError>) -> Reply {
        if let Err(misuse) = written {
            log::debug!("a reply was not written as it was asked for: {misuse}");
        }
        Reply {}
    }
}

impl<S: Server> From<Reply> for Next<S> {
    #[inline]
    fn from(_: Reply) -> Next<S> {
        Next::finished()
    }
}

impl<S: Server> NextBuilder<S> {
    /// [`timeout`](Server::timeout) is called once the loop's time has reached this.
    pub fn deadline(self, time: Time) -> Next<S> {
        self.with(Deadline::At(time))
    }

    /// The same with a time, or as [`no_deadline`](NextBuilder::no_deadline) without one.
    pub fn deadline_opt(self, time: Option<Time>) -> Next<S> {
        self.with(time.map_or(Deadline::Never, Deadline::At))
    }

    /// The handler's deadline stays as it was. As long as it has said none, that is
    /// [`Limits::handler_timeout`](crate::h1::Limits::handler_timeout) after the request's head, or
    /// after what it was last given of the body; while the body comes, only the peer is timed.
    pub fn keep_deadline(self) -> Next<S> {
        self.with(Deadline::Keep)
    }

    /// The handler has no deadline: it promises to finish by other means. The connection's own (a
    /// slow body, an answer that is not taken) stay in force.
    pub fn no_deadline(self) -> Next<S> {
        self.with(Deadline::Never)
    }

    /// The deadline is what was decided elsewhere.
    pub fn with(self, deadline: Deadline) -> Next<S> {
        Next { step: self.step, deadline }
    }
}

impl<S: Server> fmt::Debug for Step<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Receive(_, mode) => write!(f, "Receive({mode:?})"),
            Step::Hold(_) => f.write_str("Hold"),
            Step::GoOn(_) => f.write_str("GoOn"),
            Step::Finished => f.write_str("Finished"),
            Step::Fail(status) => write!(f, "Fail({status})"),
            Step::Upgrade(_) => f.write_str("Upgrade"),
        }
    }
}

impl<S: Server> fmt::Debug for Next<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("step", &self.step).field("deadline", &self.deadline).finish()
    }
}

impl<S: Server> fmt::Debug for NextBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NextBuilder").field(&self.step).finish()
    }
}
