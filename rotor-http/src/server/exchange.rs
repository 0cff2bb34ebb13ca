//! One request and its answer: the handler, what is known of the body, and how far the answer is.
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

use std::ops::Range;

use rotor_core::{Deadline, Panicked, Scope, Time};
use rotor_stream::{Block, NoRoom, Protocol, Transport};

use super::Server;
use super::answer::{Answer, Io, unwound};
use super::config::ServerConfig;
use super::counters::Counters;
use super::incoming::{Incoming, Receiving};
use super::next::{Next, Step};
use super::response::Response;
use crate::collected::Collected;
use crate::h1::{BodyError, Status, Trailers};
use crate::recv_mode::RecvMode;

/// A request under way.
pub(super) struct Exchange<S: Server> {
    /// Absent while it is being called, before its first answer, and after its last.
    handler: Option<S>,
    pub(super) answer: Answer,
    pub(super) incoming: Incoming,
    deadline: HandlerDeadline,
    /// What was collected of the body for the handler.
    collected: Collected,
}

/// Until when the handler has to act.
#[derive(Clone, Copy)]
enum HandlerDeadline {
    /// The connection's: from the head, or from what the handler was last given of the body. It
    /// does not run while the body comes, which has a deadline of its own.
    Given(Time),
    /// The handler's own; `Time::NEVER` for none.
    Own(Time),
}

/// How an exchange goes on after a step.
pub(super) enum Flow<S: Server> {
    /// There may be more to do at once.
    On,
    /// It waits: for input beyond what is there (this many unread bytes in all), or for anything
    /// else.
    Wait(Option<usize>),
    /// The handler is done.
    Done(Option<<S::Upgrade as Protocol>::Seed>),
    /// Nothing more can be read: the handler is gone, the peer gets this status if it can.
    Failed(Status),
}

/// What a handler is shown of the body.
enum Given {
    Nothing,
    /// From where it stands in the input; what is before the end of it is then consumed.
    Input(Range<usize>),
    Collected,
}

impl<S: Server> Exchange<S> {
    /// The exchange before what its handler has answered to the head is applied.
    pub(super) fn new(answer: Answer, incoming: Incoming, config: &ServerConfig) -> Exchange<S> {
        let deadline = HandlerDeadline::Given(answer.began + config.limits_ref().handler_timeout);
        Exchange { handler: None, answer, incoming, deadline, collected: Collected::NOTHING }
    }

    /// Calls the handler, if it is there, and applies what it answers.
    pub(super) fn call(
        &mut self,
        io: &mut Io<'_, '_, '_, S::Context>,
        method: impl FnOnce(S, &mut Response<'_>, &mut Scope<'_, S::Context>) -> Next<S>,
    ) -> Flow<S> {
        self.give(Given::Nothing, io, |handler, _, response, scope| {
            method(handler, response, scope)
        })
    }

    /// Calls the handler with a part of the body.
    fn give(
        &mut self,
        given: Given,
        io: &mut Io<'_, '_, '_, S::Context>,
        method: impl FnOnce(S, &[u8], &mut Response<'_>, &mut Scope<'_, S::Context>) -> Next<S>,
    ) -> Flow<S> {
        let Io { transport, scope, config } = io;
        let Some(handler) = self.handler.take() else { return Flow::Wait(None) };
        config.renew_date(scope);
        let Transport { input, output, .. } = &mut **transport;
        let (bytes, end) = match given {
            Given::Nothing => (&[][..], 0),
            Given::Input(range) => (&input[range.clone()], range.end),
            Given::Collected => (&self.collected[..], 0),
        };
        let closes = self.incoming.must_close(config.limits_ref());
        let next = self.answer.with_response(output, config, closes, |response| {
            scope.guard(|scope| method(handler, bytes, response, scope))
        });
        if end > 0 {
            input.consume(end);
        }
        self.apply(next, io)
    }

    /// Applies what a handler has answered.
    #[inline]
    pub(super) fn apply(
        &mut self,
        next: Result<Next<S>, Panicked>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Flow<S> {
        let next = match next {
            Ok(next) => next,
            Err(panicked) => {
                unwound::<S>(&panicked, io.config);
                return Flow::Failed(Status::INTERNAL_SERVER_ERROR);
            }
        };
        match next.deadline {
            Deadline::Keep => {}
            Deadline::Never => self.deadline = HandlerDeadline::Own(Time::NEVER),
            Deadline::At(time) => self.deadline = HandlerDeadline::Own(time),
        }
        match next.step {
            Step::Finished => Flow::Done(None),
            Step::Fail(status) => Flow::Failed(status),
            Step::Upgrade(seed) => Flow::Done(Some(seed)),
            Step::GoOn(handler) => {
                self.handler = Some(handler);
                Flow::On
            }
            Step::Hold(handler) => {
                self.handler = Some(handler);
                self.incoming.hold();
                Flow::On
            }
            Step::Receive(handler, mode) => {
                self.handler = Some(handler);
                match self.incoming.ask(mode, io.scope.now(), io.config.limits_ref()) {
                    Ok(waits_to_be_told) => {
                        if waits_to_be_told && io.transport.input.is_empty() {
                            self.answer.send_continue(io.transport.output);
                        }
                        Flow::On
                    }
                    Err(error) => self.fail(error, io),
                }
            }
        }
    }

    /// Looks at what has come of the body, and hands it over.
    pub(super) fn receive(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Flow<S> {
        let unread = io.unread();
        if self.incoming.is_held() {
            return Flow::Wait(None);
        }
        let (decoded, mode) = match &mut self.incoming.receiving {
            Receiving::NotAsked | Receiving::Ended => return Flow::Wait(None),
            Receiving::Whole(length) if unread < *length => {
                let length = *length;
                if self.incoming.wait_in(io.transport.input, io.config).is_err() {
                    return self.fail(BodyError::NoRoom, io);
                }
                // The watch over it wants to hear of each step, not only of the end.
                let (step, _) = io.config.limits_ref().body_step();
                let next = usize::try_from(step).map_or(length, |step| unread.saturating_add(step));
                return Flow::Wait(Some(if step > 0 { next.min(length) } else { length }));
            }
            Receiving::Whole(length) => {
                let range = 0..*length;
                self.body_ended();
                return self.give_all(Given::Input(range), io);
            }
            Receiving::Decoding(decoder, mode) => (decoder.decode(io.transport.input), *mode),
        };
        let decoded = match decoded {
            Ok(decoded) => decoded,
            Err(error) => return self.fail(error, io),
        };
        if decoded.needs_input() {
            io.transport.input.consume(decoded.skip);
            return Flow::Wait(Some(io.unread() + 1));
        }
        let trailers = decoded.is_end.then(|| self.body_ended());
        let range = decoded.skip..decoded.consumed();
        if mode == RecvMode::Blocks {
            return self.give_block(range, trailers, io);
        }
        let collects = match mode {
            _ if decoded.is_end => false,
            RecvMode::Buffered(_) => true,
            RecvMode::Progressive(min) => self.collected.len() + decoded.data < min,
            RecvMode::Blocks => false,
        };
        let Ok(given) = self.collect(range, collects, io) else {
            return self.fail(BodyError::NoRoom, io);
        };
        match (mode, trailers) {
            _ if collects => Flow::On,
            (RecvMode::Buffered(_), _) => self.give_all(given, io),
            (_, None) => self.give_chunk(given, io),
            (_, Some(trailers)) => self.give_last(given, &trailers, io),
        }
    }

    /// Adds a part of the body to what was collected, unless it can be handed over from where it
    /// is.
    fn collect(
        &mut self,
        range: Range<usize>,
        collects: bool,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Result<Given, NoRoom> {
        let input = &mut *io.transport.input;
        if !collects && !range.is_empty() && self.collected.is_empty() {
            return Ok(Given::Input(range));
        }
        self.collected.append(
            &input[range.clone()],
            self.incoming.collected_max(),
            io.config.bodies(),
        )?;
        input.consume(range.end);
        Ok(if self.collected.is_empty() { Given::Nothing } else { Given::Collected })
    }

    fn give_all(&mut self, body: Given, io: &mut Io<'_, '_, '_, S::Context>) -> Flow<S> {
        self.renew_deadline(io);
        let flow = self.give(body, io, |handler, body, response, scope| {
            handler.request_received(body, response, scope)
        });
        self.collected.give_back();
        flow
    }

    fn give_chunk(&mut self, chunk: Given, io: &mut Io<'_, '_, '_, S::Context>) -> Flow<S> {
        self.renew_deadline(io);
        let flow = self.give(chunk, io, |handler, chunk, response, scope| {
            handler.request_chunk(chunk, response, scope)
        });
        self.collected.clear();
        flow
    }

    fn give_last(
        &mut self,
        chunk: Given,
        trailers: &Trailers,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Flow<S> {
        self.renew_deadline(io);
        if !matches!(chunk, Given::Nothing) {
            match self.give_chunk(chunk, io) {
                Flow::On => {}
                other => return other,
            }
        }
        self.call(io, |handler, response, scope| handler.request_end(trailers, response, scope))
    }

    /// Hands over a part of the body with the memory in which it came.
    fn give_block(
        &mut self,
        range: Range<usize>,
        trailers: Option<Trailers>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Flow<S> {
        self.renew_deadline(io);
        let input = &mut *io.transport.input;
        input.consume(range.start);
        if !range.is_empty() {
            let block = Block::take_from(input, range.len());
            let flow = self
                .call(io, |handler, response, scope| handler.request_block(block, response, scope));
            if !matches!(flow, Flow::On) {
                return flow;
            }
        }
        match trailers {
            None => Flow::On,
            Some(trailers) => self.give_last(Given::Nothing, &trailers, io),
        }
    }

    fn body_ended(&mut self) -> Trailers {
        self.answer.request_ended();
        self.incoming.end()
    }

    /// The body cannot be had: the handler hears of it and is gone.
    #[cold]
    pub(super) fn fail(
        &mut self,
        error: BodyError,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Flow<S> {
        let counters = io.config.count();
        match error {
            BodyError::TooSlow => Counters::add(&counters.body_timeouts),
            BodyError::NoRoom => Counters::add(&counters.bodies_without_room),
            _ if error.is_limit() => Counters::add(&counters.bodies_too_large),
            _ => Counters::add(&counters.bodies_broken),
        }
        if let Some(handler) = self.handler.take()
            && let Err(panicked) = io.scope.guard(|scope| handler.bad_request(error, scope))
        {
            unwound::<S>(&panicked, io.config);
        }
        Flow::Failed(error.status())
    }

    /// The connection is gone, and the peer with it: the handler hears of it and is gone too.
    pub(super) fn lost(&mut self, scope: &mut Scope<'_, S::Context>, config: &ServerConfig) {
        if let Some(handler) = self.handler.take()
            && let Err(panicked) =
                scope.guard(|scope| handler.bad_request(BodyError::Truncated, scope))
        {
            unwound::<S>(&panicked, config);
        }
    }

    /// The handler's deadline and that of the body, whichever comes first.
    pub(super) fn next_deadline(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Deadline {
        let of_body = self.body_deadline(io);
        match self.handler_deadline().min(of_body) {
            Time::NEVER => Deadline::Never,
            time => Deadline::At(time),
        }
    }

    /// Until when more of the body must have come.
    fn body_deadline(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Time {
        self.incoming.deadline(io.unread(), io.is_gated(), io.config.limits_ref(), io.scope.now())
    }

    fn handler_deadline(&self) -> Time {
        match self.deadline {
            HandlerDeadline::Given(_) if self.incoming.is_receiving() => Time::NEVER,
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
    pub(super) fn timeout(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Flow<S> {
        let now = io.scope.now();
        if self.handler_deadline() <= now {
            if let HandlerDeadline::Given(_) = self.deadline {
                Counters::add(&io.config.count().handler_timeouts);
            }
            self.deadline = HandlerDeadline::Own(Time::NEVER);
            return self.call(io, |handler, response, scope| handler.timeout(response, scope));
        }
        if self.body_deadline(io) <= now {
            return self.fail(BodyError::TooSlow, io);
        }
        Flow::On
    }
}
