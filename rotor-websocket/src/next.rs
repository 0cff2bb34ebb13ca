//! `Next`: a handler's answer, which says how its connection continues.

use std::borrow::Cow;
use std::fmt;

use rotor_core::{Deadline, Time};

use crate::frame::code::Code;

/// How a connection continues: the handler's next state, how it wants to get messages, and its
/// deadline.
///
/// Begin with [`go_on`](Next::go_on), [`messages`](Next::messages), [`pieces`](Next::pieces) or
/// [`hold`](Next::hold), and then set the deadline, which turns the builder into a `Next`.
/// [`close`](Next::close) and [`drop_now`](Next::drop_now) need no deadline.
#[must_use = "a handler whose `Next` is dropped is forgotten: return it"]
pub struct Next<H> {
    pub(crate) handler: H,
    pub(crate) step: Step,
    pub(crate) deadline: Deadline,
}

/// What the connection does next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Continue,
    Receive(Mode),
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
    /// Continues with `handler`, which gets messages as before. Initially it gets complete
    /// messages.
    pub fn go_on(handler: H) -> NextBuilder<H> {
        NextBuilder { handler, step: Step::Continue }
    }

    /// Continues with `handler`, which gets complete messages, from the next message on.
    pub fn messages(handler: H) -> NextBuilder<H> {
        NextBuilder { handler, step: Step::Receive(Mode::Messages) }
    }

    /// Continues with `handler`, which gets messages in pieces as they arrive, from the next
    /// message on: [`Handler::piece`](crate::Handler::piece) is called for each. A message may then
    /// have any length. The connection waits until a frame of up to 32 KiB is complete, and so it
    /// does for the last 32 KiB of a longer one.
    #[doc(alias = "streaming")]
    pub fn pieces(handler: H) -> NextBuilder<H> {
        NextBuilder { handler, step: Step::Receive(Mode::Pieces) }
    }

    /// Continues with `handler`, which gets no messages until it returns
    /// [`messages`](Next::messages) or [`pieces`](Next::pieces). Input stays in the socket, so the
    /// peer has to wait.
    ///
    /// Meanwhile pings and close frames are not answered, the peer is sent no pings, and the handler
    /// does not learn that the connection is lost: messages that had arrived before come first. So
    /// hold only for moments, or close if it takes long. The same is true on a stream of HTTP/2,
    /// where messages wait in the windows of the stream and of its connection instead of the socket;
    /// a stream that is lost meanwhile counts as one of its connection until the handler has them.
    #[doc(alias = "backpressure")]
    pub fn hold(handler: H) -> NextBuilder<H> {
        NextBuilder { handler, step: Step::Hold }
    }

    /// Closes the connection. The peer is sent a close frame after the unsent output, and then has
    /// [`close_within`](crate::WebSocketConfig::close_within) to answer it. The reason is cut to
    /// 123 bytes. Messages that the peer sends before it answers are dropped, and nothing else can
    /// be sent. The only call that follows is [`Handler::closed`](crate::Handler::closed).
    ///
    /// A code that only describes how a connection ended ([`Code::NO_STATUS`], [`Code::ABNORMAL`])
    /// is not sent: the close frame then has no code.
    pub fn close(handler: H, code: Code, reason: impl Into<Cow<'static, str>>) -> Next<H> {
        Next { handler, step: Step::Close(code, reason.into()), deadline: Deadline::Never }
    }

    /// Ends the connection without a close frame, and discards unsent output.
    /// [`Handler::closed`](crate::Handler::closed) follows.
    #[doc(alias = "terminate")]
    pub fn drop_now(handler: H) -> Next<H> {
        Next { handler, step: Step::Drop, deadline: Deadline::Never }
    }

    /// Converts the handler and keeps everything else. This is for a handler that wraps another one
    /// and returns its answer.
    pub fn map<T>(self, handler: impl FnOnce(H) -> T) -> Next<T> {
        Next { handler: handler(self.handler), step: self.step, deadline: self.deadline }
    }
}

impl<H> NextBuilder<H> {
    /// Sets the deadline: [`timeout`](crate::Handler::timeout) is called once the loop's time has
    /// reached `time`. The deadline itself does not end the connection.
    pub fn deadline(self, time: Time) -> Next<H> {
        self.with(Deadline::At(time))
    }

    /// Sets the deadline, or none if `time` is `None`, like
    /// [`no_deadline`](NextBuilder::no_deadline).
    pub fn deadline_opt(self, time: Option<Time>) -> Next<H> {
        self.with(time.map_or(Deadline::Never, Deadline::At))
    }

    /// Keeps the handler's deadline. Initially there is none.
    pub fn keep_deadline(self) -> Next<H> {
        self.with(Deadline::Keep)
    }

    /// Sets no deadline. The connection's own deadlines still apply: those for a peer that is
    /// silent, and for one that does not read.
    pub fn no_deadline(self) -> Next<H> {
        self.with(Deadline::Never)
    }

    /// Sets a deadline that other code has chosen.
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
