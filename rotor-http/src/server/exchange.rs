//! `Exchange`: one request and its response, with the handler, the state of the body, and the state
//! of the response.
//!
//! ```text
//!                headers_received                      recv(mode)
//!   head ──────────────▶ Exchange (body not requested) ──────────▶ Exchange (receiving) ──▶ body ended
//!                            │                                        │                        │
//!                            └────────────── finished() / upgrade() ──┴────────────────────────┘
//! ```
//!
//! Reading and writing are independent: the handler may respond before the body has arrived, and go
//! on after that.

mod deadlines;
mod receiving;
#[cfg(feature = "body")]
mod storing;

use std::sync::Arc;

use rotor_core::{Deadline, Description, Panicked, Scope, Time};
use rotor_stream::Transport;

use super::config::ServerConfig;
use super::counters::Counters;
use super::handler::{Next, Pauses, PendingReply, Server, Step, UpgradeSeed};
use super::io::{Io, record_panic};
use super::outgoing::Outgoing;
use super::request_event::RequestEvent;
use super::response::Response;
use super::unwanted::AnnouncedBody;
use crate::body_receiver::{BodyReceiver, Part};
use crate::flow::Flow;
use crate::semantics::error::{BodyError, RequestError};
use crate::semantics::status::Status;

/// A request under way.
pub(super) struct Exchange<S: Server> {
    /// Absent while the handler is being called, before its first `Next`, and after its last.
    handler: Option<Handler<S>>,
    pub(super) outgoing: Outgoing,
    /// Whether the peer still waits for `100 Continue` before it sends the body.
    expects_continue: bool,
    /// Whether the body was requested only after the response had begun, so that the peer was not
    /// told to send it. It may leave it away (RFC 9110 §10.1.1).
    is_uninvited: bool,
    pub(super) body: BodyReceiver,
    /// Whether nothing was read, because the output had been above its mark, when the deadline of
    /// the body was last computed.
    was_gated: bool,
    /// Whether the peer may send no more of the body for now, because of other bodies.
    pub(super) is_held_back: bool,
    peer_end: PeerEndNotice,
    drain: DrainNotice,
    deadline: HandlerDeadline,
    /// When the handler is to be woken, within its deadline; `Time::NEVER` for not at all.
    wake_at: Time,
    /// Whether the handler is to be told when there is room: output was unsent after a call, and it
    /// has not been told since. Other calls may come first.
    is_flush_due: bool,
    /// Where the end is counted if the exchange is dropped before its end, as when its loop ends.
    counters: Option<Arc<Counters>>,
    /// The body, while it is being stored for the handler.
    #[cfg(feature = "body")]
    storing: Option<Box<crate::storing::BodyStorer>>,
}

/// The result of a step of an exchange. `Done`: the handler is done, and the connection may switch
/// to another protocol. `Fail`: the handler is gone, and the peer gets this status if that is still
/// possible.
pub(super) type ExchangeFlow<S> = Flow<Option<UpgradeSeed<S>>, Status>;

/// What gets the events of the request.
enum Handler<S: Server> {
    Own(S),
    /// Waits for one thing in the handler's place; other events wait for the handler that follows.
    Pending(Box<dyn PendingReply<S>>),
}

/// Whether the handler is to be told that its peer has closed its sending side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PeerEndNotice {
    /// The peer may still close it.
    Awaited,
    /// The peer has closed it while something else waited in the handler's place. The handler that
    /// follows is told first.
    Pending,
    /// The handler has been told, or is not to be told at all.
    Done,
}

/// Whether the handler was told of a drain. It is told once, in whichever way the drain is noticed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DrainNotice {
    NotSent,
    /// The drain began while something else waited in the handler's place. The handler that follows
    /// is told.
    Pending,
    Sent,
}

/// The time until which the handler has to act.
#[derive(Clone, Copy)]
enum HandlerDeadline {
    /// The connection's deadline. It is set by the head, and again whenever the handler gets a part
    /// of the body or the result of a wait, or begins to hold the body. It does not run while the
    /// body is being received, which has a deadline of its own.
    FromLimits(Time),
    /// The handler's own deadline; `Time::NEVER` for none.
    Own(Time),
}

impl<S: Server> Exchange<S> {
    /// Creates the exchange, before what `headers_received` has returned is applied.
    pub(super) fn new(
        outgoing: Outgoing,
        announced: AnnouncedBody,
        config: &ServerConfig,
    ) -> Exchange<S> {
        let deadline =
            HandlerDeadline::FromLimits(outgoing.started_at + config.limits_ref().handler_timeout);
        let body = match outgoing.state.is_framed() {
            true => BodyReceiver::framed(announced.body),
            false => BodyReceiver::announced(announced.body),
        };
        let expects_continue = announced.expects_continue;
        Exchange {
            handler: None,
            outgoing,
            expects_continue,
            is_uninvited: false,
            body,
            was_gated: false,
            is_held_back: false,
            peer_end: if S::HEARS_END { PeerEndNotice::Awaited } else { PeerEndNotice::Done },
            drain: DrainNotice::NotSent,
            deadline,
            wake_at: Time::NEVER,
            is_flush_due: false,
            counters: None,
            #[cfg(feature = "body")]
            storing: None,
        }
    }

    /// Describes whether the exchange waits for its request or for its handler, and then the
    /// handler.
    pub(super) fn describe(&self, to: &mut Description) {
        to.set_state(if self.body.is_receiving() { "receiving" } else { "handling" });
        match &self.handler {
            Some(Handler::Own(handler)) => handler.describe(to),
            Some(Handler::Pending(_)) => to.set_state("waiting"),
            None => {}
        }
    }

    /// Makes the exchange count its end in any case, because it outlives the step that began it.
    pub(super) fn count_end_on_drop(&mut self, config: &ServerConfig) {
        self.counters = Some(config.counters());
    }

    /// Returns what the head has announced about the body, and whether the peer still waits to send
    /// it.
    pub(super) fn announced(&self) -> AnnouncedBody {
        AnnouncedBody { body: self.body.body(), expects_continue: self.expects_continue }
    }

    /// Passes the event to the handler, if there is one, and applies what it returns.
    #[inline]
    pub(super) fn notify(
        &mut self,
        event: RequestEvent<'_>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        self.call_with_part(Part::Nothing, io, |handler, _, response, scope| {
            handler.handle(event, response, scope)
        })
    }

    /// Calls the handler with a part of the body.
    fn call_with_part(
        &mut self,
        part: Part,
        io: &mut Io<'_, '_, '_, S::Context>,
        call: impl FnOnce(S, &[u8], &mut Response<'_>, &mut Scope<'_, S::Context>) -> Next<S>,
    ) -> ExchangeFlow<S> {
        let handler = match self.handler.take() {
            Some(Handler::Own(handler)) => handler,
            Some(later) => {
                self.handler = Some(later);
                self.body.discard_part(part, io.transport.input);
                return Flow::Again;
            }
            None => return Flow::Wait(self.wait(None, io)),
        };
        self.run(part, io, |bytes, response, scope| call(handler, bytes, response, scope))
    }

    /// Calls what waits in the handler's place, if something does; otherwise passes the event to
    /// the handler.
    fn notify_waiting(
        &mut self,
        event: RequestEvent<'_>,
        io: &mut Io<'_, '_, '_, S::Context>,
        later: impl FnOnce(
            Box<dyn PendingReply<S>>,
            &mut Response<'_>,
            &mut Scope<'_, S::Context>,
        ) -> Next<S>,
    ) -> ExchangeFlow<S> {
        if let Some(pending) =
            self.handler.take_if(|handler| matches!(handler, Handler::Pending(_)))
            && let Handler::Pending(pending) = pending
        {
            // The wait had a limit of its own; the time of a handler that follows begins now.
            self.renew_deadline(io);
            let flow =
                self.run(Part::Nothing, io, |_, response, scope| later(pending, response, scope));
            return flow.on_again(|| self.notify_pending_events(io));
        }
        self.notify(event, io)
    }

    /// Makes one call, and catches a panic in it.
    fn run(
        &mut self,
        part: Part,
        io: &mut Io<'_, '_, '_, S::Context>,
        call: impl FnOnce(&[u8], &mut Response<'_>, &mut Scope<'_, S::Context>) -> Next<S>,
    ) -> ExchangeFlow<S> {
        let Io { transport, scope, config } = io;
        // The writer has no clock, and the head may be written in this call.
        config.renew_date(scope);
        let Transport { input, output, .. } = &mut **transport;
        let bytes = self.body.part_bytes(&part, input);
        // Once the handler has asked for the body, it is read to its end, so another request can
        // follow; but not if the peer was not told yet to send it.
        let closes = self.expects_continue
            || (self.body.is_unrequested() && self.announced().is_too_long(config.limits_ref()));
        let next = self.outgoing.with_response(output, config, closes, |response| {
            scope.guard(|scope| call(bytes, response, scope))
        });
        self.body.discard_part(part, input);
        self.apply(next, io)
    }

    /// Applies what a handler has returned.
    #[inline]
    pub(super) fn apply(
        &mut self,
        next: Result<Next<S>, Panicked>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        let next = match next {
            Ok(next) => next,
            Err(panicked) => {
                record_panic::<S>(&panicked, io.config);
                return Flow::Fail(Status::INTERNAL_SERVER_ERROR);
            }
        };
        self.is_flush_due |= self.outgoing.unsent() > 0;
        match next.deadline {
            Deadline::Keep => {}
            Deadline::Never => self.deadline = HandlerDeadline::Own(Time::NEVER),
            Deadline::At(time) => self.deadline = HandlerDeadline::Own(time),
        }
        match next.step {
            Step::Finished => Flow::Done(None),
            Step::Fail(status) => Flow::Fail(status),
            Step::Upgrade(seed) => Flow::Done(Some(seed)),
            Step::GoOn(handler) => {
                self.handler = Some(Handler::Own(handler));
                Flow::Again
            }
            Step::Pending(pending) => {
                // Its wake-up may have been delivered already, to the handler.
                if pending.is_ready() {
                    io.scope.notifier().wakeup();
                }
                self.handler = Some(Handler::Pending(pending));
                #[cfg(feature = "body")]
                self.hold_storing();
                self.body.hold();
                Flow::Again
            }
            Step::WakeAt(handler, time) => {
                self.handler = Some(Handler::Own(handler));
                self.wake_at = time;
                Flow::Again
            }
            Step::Hold(handler) => {
                self.handler = Some(Handler::Own(handler));
                // The handler's time runs from now on. It may be used up by now, because it did not
                // run while the body was being received.
                if self.body.is_receiving() {
                    self.renew_deadline(io);
                }
                #[cfg(feature = "body")]
                self.hold_storing();
                self.body.hold();
                Flow::Again
            }
            Step::Receive(handler, mode, pauses) => {
                self.handler = Some(Handler::Own(handler));
                #[cfg(feature = "body")]
                if let Err(error) = self.start_storing(mode, io) {
                    return self.fail(error, io);
                }
                match self.body.start_or_resume(mode, io.scope.now(), io.config.limits_ref()) {
                    Ok(begins) => {
                        if pauses == Pauses::Any && !self.body.may_pause() {
                            self.body.allow_pauses();
                            self.renew_deadline(io);
                        }
                        io.transport.set_collecting(self.is_collecting());
                        // Only the first time: a handler that goes on after `hold` asks again.
                        let sends_continue = begins && self.expects_continue;
                        #[cfg(feature = "body")]
                        let Some(sends_continue) = self.request_storing(sends_continue) else {
                            return Flow::Again;
                        };
                        if sends_continue {
                            self.send_continue(io);
                        }
                        Flow::Again
                    }
                    Err(error) => self.fail(error, io),
                }
            }
        }
    }

    /// Tells the peer to send the body.
    fn send_continue(&mut self, io: &mut Io<'_, '_, '_, S::Context>) {
        self.expects_continue = false;
        // A peer that is sending already does not wait (RFC 9110 §10.1.1).
        if io.transport.input.is_empty() {
            self.is_uninvited = !self.outgoing.send_continue(io.transport.output);
        }
    }

    /// Handles a wake-up of the connection, by something of the handler or by a thread that stores
    /// the body.
    pub(super) fn wakeup(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> ExchangeFlow<S> {
        // If something waits in the handler's place, it does not take the body;
        // `notify_pending_events` checks for that.
        #[cfg(feature = "body")]
        if self.storing.is_some() && !matches!(self.handler, Some(Handler::Pending(_))) {
            // Two wake-ups may have been merged into one, so the handler is woken in any case.
            return self.poll_storing(io).on_again(|| {
                self.notify_waiting(RequestEvent::Wakeup, io, |later, r, s| later.wakeup(r, s))
            });
        }
        self.notify_waiting(RequestEvent::Wakeup, io, |later, r, s| later.wakeup(r, s))
    }

    /// Returns whether the exchange also waits for the peer's end: the whole request has been
    /// received, and nothing after it.
    #[inline]
    pub(super) fn awaits_peer_end(&self, unread: usize) -> bool {
        self.peer_end == PeerEndNotice::Awaited && unread == 0 && self.body.has_ended_unframed()
    }

    /// Handles the peer's end, after a whole request.
    #[cold]
    pub(super) fn peer_ended(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> ExchangeFlow<S> {
        // Once: each read after the end reports the end again.
        if self.peer_end == PeerEndNotice::Awaited {
            self.peer_end = PeerEndNotice::Pending;
        }
        self.notify_peer_end(io)
    }

    /// Handles a drain, which ends at `until`.
    pub(super) fn drain(
        &mut self,
        until: Time,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        // The handler was told already if its head arrived in the same turn as the drain.
        if self.drain == DrainNotice::Sent {
            return Flow::Again;
        }
        self.drain = match self.handler {
            Some(Handler::Pending(_)) => DrainNotice::Pending,
            _ => DrainNotice::Sent,
        };
        self.notify(RequestEvent::Draining(until), io)
    }

    /// Called after the handler has seen the head. If a drain began before, of the loop or only of
    /// this connection (`is_draining`), the handler is told now.
    #[inline]
    pub(super) fn notify_earlier_drain(
        &mut self,
        is_draining: bool,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        if !is_draining && io.scope.draining_until().is_none() {
            return Flow::Again;
        }
        self.drain = DrainNotice::Pending;
        self.notify_drain(io)
    }

    /// Tells the handler what happened while something else waited in its place, if nothing does
    /// any more: the stored body or the end of the body, then the peer's end, then the drain.
    fn notify_pending_events(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> ExchangeFlow<S> {
        if !matches!(self.handler, Some(Handler::Own(_))) {
            return Flow::Again;
        }
        #[cfg(feature = "body")]
        let flow = self.poll_storing(io);
        #[cfg(not(feature = "body"))]
        let flow = Flow::Again;
        let flow = flow.on_again(|| {
            let end = self.body.take_pending_end();
            self.notify_body_end(end, io)
        });
        flow.on_again(|| self.notify_peer_end(io)).on_again(|| self.notify_drain(io))
    }

    /// Tells the handler of its peer's end, if that is still to be told and nothing waits in its
    /// place.
    fn notify_peer_end(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> ExchangeFlow<S> {
        match self.handler {
            Some(Handler::Own(_)) if self.peer_end == PeerEndNotice::Pending => {
                self.peer_end = PeerEndNotice::Done;
                self.notify(RequestEvent::PeerEnded, io)
            }
            _ => Flow::Again,
        }
    }

    /// Does the same for a drain.
    #[cold]
    fn notify_drain(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> ExchangeFlow<S> {
        match self.handler {
            Some(Handler::Own(_)) if self.drain == DrainNotice::Pending => {
                self.drain = DrainNotice::Sent;
                // If only this connection is to end, the time for that has come.
                let until = io.scope.draining_until().unwrap_or(io.scope.now());
                self.notify(RequestEvent::Draining(until), io)
            }
            _ => Flow::Again,
        }
    }

    /// Handles an error of the body: the handler is told, and is gone.
    #[cold]
    pub(super) fn fail(
        &mut self,
        error: BodyError,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> ExchangeFlow<S> {
        let counters = io.config.counters_ref();
        match error {
            BodyError::TooSlow => Counters::add(&counters.body_timeouts),
            BodyError::NoRoom => Counters::add(&counters.bodies_without_room),
            #[cfg(feature = "body")]
            BodyError::DiskFull | BodyError::Disk => Counters::add(&counters.bodies_not_stored),
            _ if error.is_limit() => Counters::add(&counters.bodies_too_large),
            _ => Counters::add(&counters.bodies_broken),
        }
        if let Some(Handler::Own(handler)) = self.handler.take()
            && let Err(panicked) = io.scope.guard(|scope| handler.bad_request(error, scope))
        {
            record_panic::<S>(&panicked, io.config);
        }
        // What this side lacks is not the peer's business.
        self.outgoing.refusal = error.is_peers_fault().then_some(RequestError::Body(error));
        Flow::Fail(error.status())
    }

    /// Handles the loss of the connection: the handler is told, and is gone.
    pub(super) fn abort(&mut self, scope: &mut Scope<'_, S::Context>, config: &ServerConfig) {
        // Not counted as a broken body: it may have been complete, and only the response not.
        if let Some(Handler::Own(handler)) = self.handler.take()
            && let Err(panicked) =
                scope.guard(|scope| handler.bad_request(BodyError::Truncated, scope))
        {
            record_panic::<S>(&panicked, config);
        }
    }
}

impl<S: Server> Drop for Exchange<S> {
    // Not inlined, so that the code is small where exchanges are dropped.
    #[inline(never)]
    fn drop(&mut self) {
        if let Some(counters) = &self.counters
            && !self.outgoing.has_ended()
        {
            // There is no clock here, so the time that it took is unknown.
            counters.traffic.record_immediate_end(None);
        }
    }
}
