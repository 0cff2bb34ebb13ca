//! The constructors of `Next`: how a request goes on, and until when the handler waits.

use std::fmt;

use rotor_core::{Deadline, Scope, Time};
use rotor_stream::Protocol;

use super::handler::{Next, NextBuilder, Pauses, PendingReply, Server, Step, UpgradeSeed};
use super::reply::Reply;
use super::response::Response;
use crate::recv_mode::RecvMode;
use crate::semantics::status::Status;

impl<S: Server> Next<S> {
    /// Goes on as `state`, and receives the body of the request in the given mode. After
    /// [`hold`](Next::hold) the handler receives more of the body, in the mode that was set first.
    ///
    /// If the peer waits for `100 Continue`, that is sent now.
    pub fn recv(state: S, mode: RecvMode) -> NextBuilder<S> {
        NextBuilder { step: Step::Receive(state, mode, Pauses::ByRate) }
    }

    /// Like [`recv`](Next::recv), for a body that is a stream of messages, whose peer sends the next
    /// one when there is one: the calls of gRPC, uploads of what happens. From now on,
    /// [`body_rate_min`](crate::Limits::body_rate_min) does not apply to this body, even if `recv`
    /// is returned later.
    ///
    /// So it is up to the handler how long the peer may be silent. With the deadline of the
    /// connection this is [`handler_timeout`](crate::Limits::handler_timeout) after each piece,
    /// while other handlers have no deadline as long as they receive; without a deadline, the peer
    /// may be silent for ever. A peer that sends a byte at a time occupies the handler for as long
    /// as it likes, and what the handler holds. So use this only where that is cheap or where the
    /// peer is known, and not before the request has shown that it needs it.
    #[doc(alias = "gRPC")]
    #[doc(alias = "client_body_timeout")]
    pub fn recv_stream(state: S, mode: RecvMode) -> NextBuilder<S> {
        NextBuilder { step: Step::Receive(state, mode, Pauses::Any) }
    }

    /// Goes on as `state`, and receives no more of the body until the handler returns
    /// [`recv`](Next::recv). Further bytes stay in the socket, and the peer has to wait. Meanwhile
    /// the time limit of the handler counts, not that of the peer.
    ///
    /// The end of the body is reported all the same: [`request_end`](super::Server::request_end),
    /// which delivers no data, follows the last piece at once. And a body that is stored
    /// (`RecvMode::Stored`) is delivered once it is on the disk, if all of it had arrived before
    /// the handler held it.
    ///
    /// A handler that holds the body until there is room for the output that it makes of the body
    /// goes on in [`response_flushed`](super::Server::response_flushed).
    #[doc(alias = "backpressure")]
    pub fn hold(state: S) -> NextBuilder<S> {
        NextBuilder { step: Step::Hold(state) }
    }

    /// Goes on as `state`: the handler waits for the body that it asked for, for room to write, for
    /// a wake-up, or for its deadline.
    pub fn go_on(state: S) -> NextBuilder<S> {
        NextBuilder { step: Step::GoOn(state) }
    }

    /// Goes on as `state` with the same deadline, and calls [`wakeup`](Server::wakeup) once the
    /// loop's time has reached `time`. Use this to wait for a part of the time that the handler has
    /// for the request.
    ///
    /// Only one such time is kept: a later call of this function replaces it. If the deadline has
    /// been reached as well, only [`timeout`](Server::timeout) is called; a handler that goes on
    /// after an earlier deadline is still woken at `time`. If something waits in the handler's place
    /// at `time` ([`wait`](Next::wait)), the handler that follows it is woken.
    #[doc(alias = "sleep")]
    #[doc(alias = "timer")]
    pub fn wake_at(state: S, time: Time) -> Next<S> {
        Next { step: Step::WakeAt(state, time), deadline: Deadline::Keep }
    }

    /// Ends the request: the response is complete, and nothing is left to do.
    ///
    /// A handler that finishes without a response, or in the middle of one, has a bug: the peer
    /// gets 500 if nothing was sent yet, otherwise the connection is cut off, as with
    /// [`fail`](Next::fail). The rest of the request's body is read and dropped, up to
    /// [`Limits::drained_body_bytes_max`](crate::Limits::drained_body_bytes_max); if more is left,
    /// the connection closes.
    pub fn finished() -> Next<S> {
        Next { step: Step::Finished, deadline: Deadline::Never }
    }

    /// Ends the request without a complete response, although the handler has no bug: for example,
    /// because the source of a forwarded response has failed.
    ///
    /// If nothing was sent yet, the peer gets the [error page](super::Server::emit_error_page) of
    /// `status`, and the connection closes after it. Otherwise the connection is cut off, so that
    /// nobody takes a part for the whole. It is reset if closing it would complete the response, as
    /// for a response without a length to a peer of HTTP/1.0 (RFC 9112 §8).
    ///
    /// A status that cannot have a page (1xx, 204, 205, 304; 426 unless `Upgrade` was set with
    /// [`add_always`](Response::add_always)) becomes 500.
    ///
    /// For an error response after which the connection stays open, write the response like any
    /// other and return [`finished`](Next::finished).
    pub fn fail(status: Status) -> Next<S> {
        Next { step: Step::Fail(status), deadline: Deadline::Never }
    }

    /// Returns the status if this was made by [`fail`](Next::fail).
    pub fn failure(&self) -> Option<Status> {
        match self.step {
            Step::Fail(status) => Some(status),
            _ => None,
        }
    }

    /// Returns whether the request goes on: the handler does, or something [waits](Next::wait) in
    /// its place. This is `false` after [`finished`](Next::finished), [`fail`](Next::fail) and
    /// [`upgrade`](Next::upgrade).
    pub fn goes_on(&self) -> bool {
        !matches!(self.step, Step::Finished | Step::Fail(_) | Step::Upgrade(_))
    }

    /// Ends the request and switches to another protocol. The response must be complete, with
    /// status 101 (or 2xx to CONNECT). From here on the connection runs the protocol that is made
    /// from `seed`; its first input is what was read already.
    ///
    /// Without such a response the connection closes, and an error is logged. A request with a body
    /// can get a 101 only once its body has been received: before that, the peer still speaks HTTP.
    #[doc(alias = "websocket")]
    pub fn upgrade(seed: <S::Upgrade as Protocol>::Seed) -> Next<S> {
        Next { step: Step::Upgrade(seed), deadline: Deadline::Never }
    }

    /// Converts this to a `Next` of another handler with another upgrade. A handler that wraps
    /// another one uses this to convert what the inner handler returns. See
    /// [`Routed`](super::Routed) for two handlers side by side, and [`around`](Next::around) for
    /// code around all calls.
    #[doc(alias = "middleware")]
    #[inline]
    pub fn map<T: Server<Context = S::Context>>(
        self,
        handler: impl FnOnce(S) -> T + Send + 'static,
        upgrade: impl FnOnce(UpgradeSeed<S>) -> UpgradeSeed<T> + Send + 'static,
    ) -> Next<T>
    where
        S: 'static,
    {
        self.map_with(
            (handler, upgrade),
            |(handler, _), state| handler(state),
            |(_, upgrade), seed| upgrade(seed),
            |(handler, upgrade), inner| Box::new(MappedReply { inner, handler, upgrade }),
        )
    }

    /// Converts this to a `Next` of another handler that upgrades to the same protocol, or to none.
    #[doc(alias = "middleware")]
    #[inline]
    pub fn wrap<T>(self, handler: impl FnOnce(S) -> T + Send + 'static) -> Next<T>
    where
        S: 'static,
        T: Server<Context = S::Context, Upgrade = S::Upgrade>,
    {
        self.map(handler, |seed| seed)
    }

    /// Converts this to a `Next` of another handler. Only one of the functions is called, with
    /// `with`: for the state, for the seed of the upgrade, or for what waits in the handler's
    /// place.
    #[inline]
    pub(super) fn map_with<T: Server, W>(
        self,
        with: W,
        handler: impl FnOnce(W, S) -> T,
        upgrade: impl FnOnce(W, UpgradeSeed<S>) -> UpgradeSeed<T>,
        later: impl FnOnce(W, Box<dyn PendingReply<S>>) -> Box<dyn PendingReply<T>>,
    ) -> Next<T> {
        let step = match self.step {
            Step::Receive(state, mode, pauses) => Step::Receive(handler(with, state), mode, pauses),
            Step::Hold(state) => Step::Hold(handler(with, state)),
            Step::GoOn(state) => Step::GoOn(handler(with, state)),
            Step::WakeAt(state, time) => Step::WakeAt(handler(with, state), time),
            Step::Finished => Step::Finished,
            Step::Fail(status) => Step::Fail(status),
            Step::Upgrade(seed) => Step::Upgrade(upgrade(with, seed)),
            Step::Pending(inner) => Step::Pending(later(with, inner)),
        };
        Next { step, deadline: self.deadline }
    }

    /// Returns a `Next` for something that waits in the handler's place.
    pub(super) fn pending(pending: Box<dyn PendingReply<S>>) -> Next<S> {
        Next { step: Step::Pending(pending), deadline: Deadline::Keep }
    }
}

/// Waits in the place of a handler that another one has wrapped.
struct MappedReply<S: Server, H, U> {
    inner: Box<dyn PendingReply<S>>,
    handler: H,
    upgrade: U,
}

impl<S, T, H, U> PendingReply<T> for MappedReply<S, H, U>
where
    S: Server + 'static,
    T: Server<Context = S::Context>,
    H: FnOnce(S) -> T + Send + 'static,
    U: FnOnce(UpgradeSeed<S>) -> UpgradeSeed<T> + Send + 'static,
{
    fn limit(&self) -> Time {
        self.inner.limit()
    }

    fn is_ready(&self) -> bool {
        self.inner.is_ready()
    }

    fn wakeup(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<T> {
        let MappedReply { inner, handler, upgrade } = *self;
        inner.wakeup(response, scope).map(handler, upgrade)
    }

    fn timeout(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<T> {
        let MappedReply { inner, handler, upgrade } = *self;
        inner.timeout(response, scope).map(handler, upgrade)
    }
}

impl<S: Server> From<Reply> for Next<S> {
    #[inline]
    fn from(_: Reply) -> Next<S> {
        Next::finished()
    }
}

impl<S: Server> NextBuilder<S> {
    /// Sets the deadline: [`timeout`](Server::timeout) is called once the loop's time has reached
    /// it.
    pub fn deadline(self, time: Time) -> Next<S> {
        self.with(Deadline::At(time))
    }

    /// Sets this deadline; `None` removes it, as [`no_deadline`](NextBuilder::no_deadline) does.
    pub fn deadline_opt(self, time: Option<Time>) -> Next<S> {
        self.with(time.map_or(Deadline::Never, Deadline::At))
    }

    /// Keeps the handler's deadline. If the handler has never set one, its deadline is
    /// [`Limits::handler_timeout`](crate::Limits::handler_timeout) after the request's head, or
    /// after it last received a part of the body or what it [waited](Next::wait) for, or began to
    /// [hold](Next::hold) the body. While the body is being received, only the peer's time limits
    /// count.
    pub fn keep_deadline(self) -> Next<S> {
        self.with(Deadline::Keep)
    }

    /// Removes the handler's deadline: something else must make the handler finish. The
    /// connection's own time limits (for a body that arrives slowly, for a response that the peer
    /// reads slowly) stay in force.
    pub fn no_deadline(self) -> Next<S> {
        self.with(Deadline::Never)
    }

    /// Sets a deadline that is already a [`Deadline`].
    pub fn with(self, deadline: Deadline) -> Next<S> {
        Next { step: self.step, deadline }
    }
}

impl<S: Server> fmt::Debug for Step<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Receive(_, mode, pauses) => write!(f, "Receive({mode:?}, {pauses:?})"),
            Step::Hold(_) => f.write_str("Hold"),
            Step::GoOn(_) => f.write_str("GoOn"),
            Step::WakeAt(_, time) => write!(f, "WakeAt({time:?})"),
            Step::Finished => f.write_str("Finished"),
            Step::Fail(status) => write!(f, "Fail({status})"),
            Step::Upgrade(_) => f.write_str("Upgrade"),
            Step::Pending(_) => f.write_str("Pending"),
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
