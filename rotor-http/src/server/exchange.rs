//! One request and its response: the handler, what is known of the body, and how far the
//! response is.
//!
//! ```text
//!                headers_received                      recv(mode)
//!   head ──────────────▶ Exchange (body not asked for) ──────────▶ Exchange (receiving) ──▶ body ended
//!                            │                                        │                        │
//!                            └────────────── finished() / upgrade() ──┴────────────────────────┘
//! ```
//!
//! Reading and writing are independent: the handler may answer before the body has come, and go on
//! after it has.

#[cfg(feature = "body")]
mod storing;

use rotor_core::{Deadline, Panicked, Scope, Time};
use rotor_stream::{Protocol, Transport};

use super::config::ServerConfig;
use super::counters::Counters;
use super::handler::{Next, Server, Step};
use super::io::{Io, note_panic};
use super::outgoing::Outgoing;
use super::response::Response;
use super::unwanted::Announced;
use crate::body_receiver::{BodyReceiver, Part, Received};
use crate::flow::{Flow, Wait};
use crate::semantics::error::BodyError;
use crate::semantics::status::Status;
use crate::semantics::trailers::Trailers;

/// A request under way.
pub(super) struct Exchange<S: Server> {
    /// Absent while it is being called, before its first answer, and after its last.
    handler: Option<S>,
    pub(super) outgoing: Outgoing,
    expects_continue: bool,
    pub(super) body: BodyReceiver,
    /// Nothing of the body was taken in when its deadline was last looked at.
    was_gated: bool,
    deadline: HandlerDeadline,
    /// The body, while it is being stored for the handler.
    #[cfg(feature = "body")]
    storing: Option<Box<crate::storing::Storing>>,
}

/// How a step of an exchange ends: the handler is done, and the connection may go on in another
/// protocol; or the handler is gone, and the peer gets this status if it still can.
pub(super) type Exchanged<S> = Flow<Option<UpgradeSeed<S>>, Status>;

/// What the protocol is made from that a connection goes on in.
pub(super) type UpgradeSeed<S> = <<S as Server>::Upgrade as Protocol>::Seed;

/// Until when the handler has to act.
#[derive(Clone, Copy)]
enum HandlerDeadline {
    /// The connection's: from the head, or from what the handler was last given of the body. It
    /// does not run while the body comes, which has a deadline of its own.
    Given(Time),
    /// The handler's own; `Time::NEVER` for none.
    Own(Time),
}

impl<S: Server> Exchange<S> {
    /// The exchange, before what its handler has returned on seeing the head is applied.
    pub(super) fn new(
        outgoing: Outgoing,
        announced: Announced,
        config: &ServerConfig,
    ) -> Exchange<S> {
        let deadline = HandlerDeadline::Given(outgoing.began + config.limits_ref().handler_timeout);
        let body = match outgoing.state.is_framed() {
            true => BodyReceiver::framed(announced.body),
            false => BodyReceiver::announced(announced.body),
        };
        let expects_continue = announced.expects_continue;
        Exchange {
            handler: None,
            outgoing,
            expects_continue,
            body,
            was_gated: false,
            deadline,
            #[cfg(feature = "body")]
            storing: None,
        }
    }

    /// Returns what the head has said of the body.
    pub(super) fn announced(&self) -> Announced {
        Announced { body: self.body.body(), expects_continue: self.expects_continue }
    }

    /// Calls the handler, if it is there, and applies what it returns.
    pub(super) fn call(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
        method: impl FnOnce(S, &mut Response<'_>, &mut Scope<'_, S::Context>) -> Next<S>,
    ) -> Exchanged<S> {
        self.give(Part::Nothing, io, |handler, _, response, scope| method(handler, response, scope))
    }

    /// Calls the handler with a part of the body.
    fn give(
        &mut self,
        part: Part,
        io: &mut Io<'_, '_, '_, S::Context>,
        method: impl FnOnce(S, &[u8], &mut Response<'_>, &mut Scope<'_, S::Context>) -> Next<S>,
    ) -> Exchanged<S> {
        let Some(handler) = self.handler.take() else { return Flow::Wait(self.wait(None, io)) };
        let Io { transport, scope, config } = io;
        // The writer has no clock, and the head may be written in this call.
        config.renew_date(scope);
        let Transport { input, output, .. } = &mut **transport;
        let octets = self.body.octets(&part, input);
        // Once the handler has asked for the body it is read to its end: another request can
        // follow.
        let closes = self.body.is_unasked() && self.announced().must_close(config.limits_ref());
        let next = self.outgoing.with_response(output, config, closes, |response| {
            scope.guard(|scope| method(handler, octets, response, scope))
        });
        self.body.handed_over(part, input);
        self.apply(next, io)
    }

    /// Applies what a handler has returned.
    #[inline]
    pub(super) fn apply(
        &mut self,
        next: Result<Next<S>, Panicked>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Exchanged<S> {
        let next = match next {
            Ok(next) => next,
            Err(panicked) => {
                note_panic::<S>(&panicked, io.config);
                return Flow::Fail(Status::INTERNAL_SERVER_ERROR);
            }
        };
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
                self.handler = Some(handler);
                Flow::Again
            }
            Step::Hold(handler) => {
                self.handler = Some(handler);
                #[cfg(feature = "body")]
                self.hold_storing();
                self.body.hold();
                Flow::Again
            }
            Step::Receive(handler, mode) => {
                self.handler = Some(handler);
                #[cfg(feature = "body")]
                if let Err(error) = self.begin_storing(mode, io) {
                    return self.fail(error, io);
                }
                match self.body.ask(mode, io.scope.now(), io.config.limits_ref()) {
                    Ok(begins) => {
                        io.transport.set_collecting(self.is_collecting());
                        // Only the first time: a handler that goes on after `hold` asks again.
                        let waits_to_be_told = begins && self.expects_continue;
                        #[cfg(feature = "body")]
                        let Some(waits_to_be_told) = self.ask_disk(waits_to_be_told) else {
                            return Flow::Again;
                        };
                        // A peer that sends already does not wait (RFC 9110 §10.1.1).
                        if waits_to_be_told && io.transport.input.is_empty() {
                            self.outgoing.send_continue(io.transport.output);
                        }
                        Flow::Again
                    }
                    Err(error) => self.fail(error, io),
                }
            }
        }
    }

    /// Whether what comes of the body is kept in memory until all of it is there: such a body is
    /// read in few steps.
    fn is_collecting(&self) -> bool {
        #[cfg(feature = "body")]
        if let Some(storing) = &self.storing {
            return storing.is_collecting();
        }
        self.body.is_collecting()
    }

    /// Something woke the connection: one of the handler's, or a thread that stores the body.
    pub(super) fn wakeup(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Exchanged<S> {
        #[cfg(feature = "body")]
        if self.storing.is_some() {
            // Two wake-ups may have come as one: the handler hears of it in any case.
            return self.poll_storing(io).and_again(|| self.call(io, S::wakeup));
        }
        self.call(io, S::wakeup)
    }

    /// Looks at what has come of the body, and hands it over.
    pub(super) fn receive(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Exchanged<S> {
        let config = io.config;
        let received = self.body.next(io.transport.input, config.limits_ref(), config.bodies());
        match received {
            Err(error) => self.fail(error, io),
            Ok(Received::Again) => Flow::Again,
            Ok(Received::Wait(input)) => Flow::Wait(self.wait(input, io)),
            Ok(Received::Whole(part)) => {
                // Before the call: in it the handler may switch protocols already (RFC 9110 §7.8).
                self.outgoing.request_ended();
                io.transport.set_collecting(false);
                self.renew_deadline(io);
                self.give(part, io, S::request_received)
            }
            #[cfg(feature = "body")]
            Ok(Received::Piece(_, trailers)) if self.storing.is_some() => {
                self.store(Vec::new(), trailers.as_ref(), io)
            }
            #[cfg(feature = "body")]
            Ok(Received::Block(block, trailers)) if self.storing.is_some() => {
                self.store(vec![block], trailers.as_ref(), io)
            }
            #[cfg(feature = "body")]
            Ok(Received::Blocks(blocks, trailers)) => self.store(blocks, trailers.as_ref(), io),
            Ok(Received::Piece(part, trailers)) => {
                self.renew_deadline(io);
                // Before the last piece is handed over: a handler may switch protocols on it
                // already.
                self.note_end(trailers.as_ref());
                let flow = match part {
                    // Only the end has come: it has a call of its own.
                    Part::Nothing => Flow::Again,
                    part => self.give(part, io, S::request_chunk),
                };
                // A handler that finished on the last piece is gone: nobody is to be told of the
                // end.
                flow.and_again(|| self.give_end(trailers, io))
            }
            Ok(Received::Block(block, trailers)) => {
                self.renew_deadline(io);
                self.note_end(trailers.as_ref());
                let flow = self.call(io, |handler, response, scope| {
                    handler.request_block(block, response, scope)
                });
                flow.and_again(|| self.give_end(trailers, io))
            }
        }
    }

    /// Where the whole request has come, it may get another protocol now, if it asked for one.
    fn note_end(&mut self, trailers: Option<&Trailers>) {
        if trailers.is_some() {
            self.outgoing.request_ended();
        }
    }

    /// Tells of the end of the body, if that has come.
    fn give_end(
        &mut self,
        trailers: Option<Trailers>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Exchanged<S> {
        let Some(trailers) = trailers else { return Flow::Again };
        self.call(io, |handler, response, scope| handler.request_end(&trailers, response, scope))
    }

    /// The body cannot be had: the handler hears of it and is gone.
    #[cold]
    pub(super) fn fail(
        &mut self,
        error: BodyError,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Exchanged<S> {
        let counters = io.config.count();
        match error {
            BodyError::TooSlow => Counters::add(&counters.body_timeouts),
            BodyError::NoRoom => Counters::add(&counters.bodies_without_room),
            #[cfg(feature = "body")]
            BodyError::DiskFull | BodyError::Disk => Counters::add(&counters.bodies_not_stored),
            _ if error.is_limit() => Counters::add(&counters.bodies_too_large),
            _ => Counters::add(&counters.bodies_broken),
        }
        if let Some(handler) = self.handler.take()
            && let Err(panicked) = io.scope.guard(|scope| handler.bad_request(error, scope))
        {
            note_panic::<S>(&panicked, io.config);
        }
        Flow::Fail(error.status())
    }

    /// The connection is gone, and the peer with it: the handler hears of it and is gone too.
    pub(super) fn lost(&mut self, scope: &mut Scope<'_, S::Context>, config: &ServerConfig) {
        // Not counted among the broken bodies: it may have come whole, and only its response not.
        if let Some(handler) = self.handler.take()
            && let Err(panicked) =
                scope.guard(|scope| handler.bad_request(BodyError::Truncated, scope))
        {
            note_panic::<S>(&panicked, config);
        }
    }

    /// Returns what the exchange waits for: so many unread bytes, room in the output, or its
    /// deadline.
    fn wait(&mut self, input: Option<usize>, io: &Io<'_, '_, '_, S::Context>) -> Wait {
        let high = io.config.limits_ref().output_high_water;
        let flush = match io.transport.output.len() {
            0 => None,
            // With half of the mark left, the peer is kept busy while the handler goes on.
            unsent if unsent > high / 2 => Some(high / 2),
            // Later than at the next write: each call of the handler finds half of the mark to
            // fill.
            _ => Some(0),
        };
        Wait::input(input, self.next_deadline(io)).or_flush(flush)
    }

    /// Returns the handler's deadline and that of the body, whichever comes first.
    pub(super) fn next_deadline(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Deadline {
        let of_body = self.body_deadline(io);
        match self.handler_deadline().min(of_body) {
            Time::NEVER => Deadline::Never,
            time => Deadline::At(time),
        }
    }

    /// Returns until when more of the body must have come.
    fn body_deadline(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Time {
        self.was_gated = io.is_still_gated(self.was_gated);
        self.body.deadline(io.unread(), self.was_gated, io.config.limits_ref(), io.scope.now())
    }

    /// Where the body is late, it has until then; returns whether it is.
    pub(super) fn put_off_body(&mut self, until: Time, io: &Io<'_, '_, '_, S::Context>) -> bool {
        let late = self.body_deadline(io);
        let is_late = late <= io.scope.now();
        if is_late && until > late {
            self.body.put_off(until - late);
        }
        is_late
    }

    fn handler_deadline(&self) -> Time {
        match self.deadline {
            // A handler is not at fault for a body that comes slowly.
            HandlerDeadline::Given(_) if self.body.is_receiving() => Time::NEVER,
            HandlerDeadline::Given(time) | HandlerDeadline::Own(time) => time,
        }
    }

    /// The handler was given something: unless it has a deadline of its own, its time begins anew.
    fn renew_deadline(&mut self, io: &Io<'_, '_, '_, S::Context>) {
        if let HandlerDeadline::Given(until) = &mut self.deadline {
            *until = io.scope.now() + io.config.limits_ref().handler_timeout;
        }
    }

    /// A deadline has been reached: the handler's, the body's, or none any more.
    pub(super) fn timeout(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Exchanged<S> {
        let now = io.scope.now();
        // The handler first: it can still answer, while a late body fails the exchange.
        if self.handler_deadline() <= now {
            if let HandlerDeadline::Given(_) = self.deadline {
                Counters::add(&io.config.count().handler_timeouts);
            }
            // It is told once; from here on it says itself how long it needs.
            self.deadline = HandlerDeadline::Own(Time::NEVER);
            return self.call(io, |handler, response, scope| handler.timeout(response, scope));
        }
        if self.body_deadline(io) <= now {
            return self.fail(BodyError::TooSlow, io);
        }
        // What has come since the deadline was set has put it off.
        Flow::Again
    }
}
