//! `Next`: a handler's answer, which says how its connection goes on.

use std::borrow::Cow;
use std::fmt;

use rotor_core::{Deadline, Time};

use crate::frame::code::Code;

/// How a connection goes on: the handler's next state, how it wants to get messages, and its
/// deadline.
///
/// Begin with [`go_on`](Next::go_on), [`messages`](Next::messages), [`pieces`](Next::pieces) or
/// [`hold`](Next::hold), then set the deadline: only that turns the builder into a `Next`.
/// [`close`](Next::close) and [`drop_now`](Next::drop_now) need none.
#[must_use = "a handler whose `Next` is dropped is forgotten: return it"]
pub struct Next<H> {
    pub(crate) handler: H,
    pub(crate) step: Step,
    pub(crate) deadline: Deadline,
}

/// What the connection is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    GoOn,
    Take(Mode),
    Hold,
    Close(Code, Cow<'static, str>),
    Drop,
}

/// How the handler gets messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mode {
    #[default]
    Messages,
    Pieces,
}

/// A [`Next`] whose deadline is not set yet.
#[must_use = "say the deadline: .deadline(time), .keep_deadline() or .no_deadline()"]
pub struct NextBuilder<H> {
    handler: H,
    step: Step,
}

impl<H> Next<H> {
    /// Goes on as `handler`, which gets messages as before. At first it gets whole ones.
    pub fn go_on(handler: H) -> NextBuilder<H> {
        NextBuilder { handler, step: Step::GoOn }
    }

    /// Goes on as `handler`, which gets whole messages, from the next one on.
    pub fn messages(handler: H) -> NextBuilder<H> {
        NextBuilder { handler, step: Step::Take(Mode::Messages) }
    }

    /// Goes on as `handler`, which gets messages in pieces, as they come, from the next one on:
    /// [`Handler::piece`](crate::Handler::piece). A message may then have any length. A frame of up
    /// to 32 KiB is waited for whole, as are the last 32 KiB of a longer one.
    #[doc(alias = "streaming")]
    pub fn pieces(handler: H) -> NextBuilder<H> {
        NextBuilder { handler, step: Step::Take(Mode::Pieces) }
    }

    /// Goes on as `handler`, which gets nothing until it returns [`messages`](Next::messages) or
    /// [`pieces`](Next::pieces). What comes stays in the socket, and the peer has to wait.
    ///
    /// Meanwhile neither pings nor a close frame are answered, and the peer is sent no ping. So
    /// hold only for moments, or close if it takes long.
    #[doc(alias = "backpressure")]
    pub fn hold(handler: H) -> NextBuilder<H> {
        NextBuilder { handler, step: Step::Hold }
    }

    /// Closes. The peer is sent a close frame after what waits, and has
    /// [`close_within`](crate::WebSocketConfig::close_within) to answer it. The reason is cut to
    /// what fits, 123 bytes. What the peer sends before it answers is dropped, and nothing can be
    /// sent any more. [`Handler::closed`](crate::Handler::closed) is the only call that follows.
    ///
    /// A code that only says how a connection ended ([`Code::NO_STATUS`], [`Code::ABNORMAL`]) is
    /// not sent: the frame then has none.
    pub fn close(handler: H, code: Code, reason: impl Into<Cow<'static, str>>) -> Next<H> {
        Next { handler, step: Step::Close(code, reason.into()), deadline: Deadline::Never }
    }

    /// Ends the connection without a close frame; what waits to be sent is thrown away.
    /// [`Handler::closed`](crate::Handler::closed) follows.
    #[doc(alias = "terminate")]
    pub fn drop_now(handler: H) -> Next<H> {
        Next { handler, step: Step::Drop, deadline: Deadline::Never }
    }

    /// Returns the same answer for another handler: for a handler that wraps another one and passes
    /// on its answer.
    pub fn map<T>(self, handler: impl FnOnce(H) -> T) -> Next<T> {
        Next { handler: handler(self.handler), step: self.step, deadline: self.deadline }
    }
}

impl<H> NextBuilder<H> {
    /// Sets the deadline: [`timeout`](crate::Handler::timeout) is called once the loop's time has
    /// reached `time`. This does not end the connection by itself.
    pub fn deadline(self, time: Time) -> Next<H> {
        self.with(Deadline::At(time))
    }

    /// Sets the deadline, or none, as [`no_deadline`](NextBuilder::no_deadline).
    pub fn deadline_opt(self, time: Option<Time>) -> Next<H> {
        self.with(time.map_or(Deadline::Never, Deadline::At))
    }

    /// Keeps the handler's deadline; at first it has none.
    pub fn keep_deadline(self) -> Next<H> {
        self.with(Deadline::Keep)
    }

    /// Sets no deadline. The connection's own deadlines (for a peer that is silent, or does not
    /// take what is sent) stay in force.
    pub fn no_deadline(self) -> Next<H> {
        self.with(Deadline::Never)
    }

    /// Sets a deadline that was decided elsewhere.
    pub fn with(self, deadline: Deadline) -> Next<H> {
        Next { handler: self.handler, step: self.step, deadline }
    }
}

impl<H> fmt::Debug for Next<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("step", &self.step).field("deadline", &self.deadline).finish()
    }
}

impl<H> fmt::Debug for NextBuilder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NextBuilder").field(&self.step).finish()
    }
}
