//! One request and its answer: the handler, how far the request is written, how far the answer is
//! read.
//!
//! ```text
//!   writing:  prepare_request ─▶ (body_wanted) ─▶ request_flushed.. ─▶ complete
//!   reading:  (interim_received..) ─▶ headers_received ─▶ response_chunk.., response_end | response_received
//! ```
//!
//! The two are independent: an answer may come, and end, before the request is written.

mod reading;

use std::any::type_name;
use std::ops::Range;

use rotor_core::{Deadline, Panicked, Port, Scope, Time};
use rotor_stream::{Fatal, Protocol, Transport};

use super::config::ClientConfig;
use super::counters::Counters;
use super::job::{self, ClientResult, Job};
use super::next::{Next, Step};
use super::receiving::Receiving;
use super::request::Request;
use super::{Client, ClientError, Stage};
use crate::h1::{BodyError, HeadReader, Limits, RequestState};
use crate::wait::Wait;

/// What a step works with.
pub(super) struct Io<'a, 't, 's, C> {
    pub(super) transport: &'a mut Transport<'t>,
    pub(super) scope: &'a mut Scope<'s, C>,
    pub(super) settings: &'a ClientConfig,
}

/// A request under way.
pub(super) struct Exchange<K: Client> {
    /// Absent while it is being called, and after its last answer.
    handler: Option<K>,
    port: Option<Port<ClientResult<K>>>,
    /// Until when the answer must be whole.
    deadline: Time,
    /// The handler's own deadline.
    handler_deadline: Time,
    request: RequestState,
    /// Until when the server may say that it wants the body; then it is sent anyway.
    continue_until: Option<Time>,
    /// Until when the head of the answer must be there; none while the request is being sent.
    head_until: Option<Time>,
    reader: HeadReader,
    receiving: Receiving,
    interim: u32,
    /// Whether the server lets the connection be used again, once its answer is known.
    keep_alive: bool,
    /// Whether the server has agreed to switch protocols.
    is_switched: bool,
    /// Whether the connection has served another request before.
    is_reused: bool,
    is_repeated: bool,
    /// Whether the request was complete when `prepare_request` returned.
    was_written_at_once: bool,
}

/// How an exchange goes on after a step.
pub(super) enum Flow<K: Client> {
    /// There may be more to do at once.
    On,
    /// It waits.
    Wait,
    /// It is over; whether the connection can be used again.
    Over(bool),
    /// It is over for this connection, and is to be made again on another.
    Again(Box<Job<K>>),
    /// It is over, and the connection goes on in another protocol.
    Upgrade(<K::Upgrade as Protocol>::Seed),
}

/// What a handler is shown of the body.
enum Given {
    Nothing,
    /// From where it stands in the input; what is before the end of it is then consumed.
    Input(Range<usize>),
    Collected,
}

impl<K: Client> Exchange<K> {
    /// A request that is to be made.
    pub(super) fn new(job: Job<K>, is_reused: bool) -> Box<Exchange<K>> {
        let Job { handler, deadline, port, is_repeated } = job;
        Box::new(Exchange {
            handler: Some(handler),
            port: Some(port),
            deadline,
            handler_deadline: Time::NEVER,
            request: RequestState::new(),
            continue_until: None,
            head_until: None,
            reader: HeadReader::new(),
            receiving: Receiving::new(),
            interim: 0,
            keep_alive: false,
            is_switched: false,
            is_reused,
            is_repeated,
            was_written_at_once: false,
        })
    }

    /// The request as it was, if it was not begun.
    pub(super) fn into_job(self) -> Option<Job<K>> {
        let (handler, port) = (self.handler?, self.port?);
        Some(Job { handler, deadline: self.deadline, port, is_repeated: self.is_repeated })
    }

    /// Begins: the handler writes its request; unless nobody waits for it any more, or it has no
    /// time left.
    pub(super) fn begin(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        if self.port.as_ref().is_none_or(Port::is_cancelled) {
            Counters::add(&io.settings.count().cancelled);
            return Flow::Over(true);
        }
        if self.deadline <= io.scope.now() {
            self.fail(ClientError::Deadline(Stage::Waiting), io);
            return Flow::Over(true);
        }
        Counters::add(&io.settings.count().requests);
        let flow = self.call(io, K::prepare_request);
        self.was_written_at_once = self.request.is_done();
        if self.request.expects_continue() && !self.request.is_done() {
            self.continue_until = Some(io.scope.now() + io.settings.limits.continue_timeout);
        }
        flow
    }

    /// Does what can be done with what has come.
    pub(super) fn go_on(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        if self.request.is_unstarted() || !self.receiving.wants_input() {
            Flow::Wait
        } else if self.receiving.is_before_head() {
            self.read_head(io)
        } else {
            self.read_body(io)
        }
    }

    /// Calls the handler, if it is there, and applies what it answers.
    pub(super) fn call(
        &mut self,
        io: &mut Io<'_, '_, '_, K::Context>,
        method: impl FnOnce(K, &mut Request<'_>, &mut Scope<'_, K::Context>) -> Next<K>,
    ) -> Flow<K> {
        self.give(Given::Nothing, io, |handler, _, request, scope| method(handler, request, scope))
    }

    /// Calls the handler with a part of the body.
    fn give(
        &mut self,
        given: Given,
        io: &mut Io<'_, '_, '_, K::Context>,
        method: impl FnOnce(K, &[u8], &mut Request<'_>, &mut Scope<'_, K::Context>) -> Next<K>,
    ) -> Flow<K> {
        let Some(handler) = self.handler.take() else { return Flow::Wait };
        let Transport { input, output, .. } = &mut *io.transport;
        let (bytes, end) = match given {
            Given::Nothing => (&[][..], 0),
            Given::Input(range) => (&input[range.clone()], range.end),
            Given::Collected => (&self.receiving.collected[..], 0),
        };
        let mut request =
            Request::new(&mut self.request, output, io.settings.limits.output_high_water);
        let next = io.scope.guard(|scope| method(handler, bytes, &mut request, scope));
        if end > 0 {
            input.consume(end);
        }
        self.apply(next, io)
    }

    /// Applies what a handler has answered.
    fn apply(
        &mut self,
        next: Result<Next<K>, Panicked>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Flow<K> {
        let Next { step, deadline } = match next {
            Ok(next) => next,
            Err(panicked) => {
                Counters::add(&io.settings.count().panics);
                log::error!("the handler {} {panicked}", type_name::<K>());
                return self.end(Err(ClientError::Panicked), io);
            }
        };
        match deadline {
            Deadline::Keep => {}
            Deadline::Never => self.handler_deadline = Time::NEVER,
            Deadline::At(time) => self.handler_deadline = time,
        }
        match step {
            Step::GoOn(handler) => {
                self.handler = Some(handler);
                Flow::On
            }
            Step::Hold(handler) => {
                self.handler = Some(handler);
                self.receiving.hold();
                Flow::On
            }
            Step::Receive(handler, mode) => {
                self.handler = Some(handler);
                match self.receiving.ask(mode, io.scope.now(), &io.settings.limits) {
                    Ok(()) => Flow::On,
                    Err(error) => self.fail(error.into(), io),
                }
            }
            Step::Finished(output) => self.end(Ok(output), io),
            Step::Error(error) => self.end(Err(error), io),
            Step::Upgrade(seed, output) if self.is_switched => {
                self.answer(Ok(output), io.settings.count());
                Flow::Upgrade(seed)
            }
            Step::Upgrade(_, output) => {
                log::error!("{}: `Next::upgrade` without a server that switches", type_name::<K>());
                self.end(Ok(output), io)
            }
        }
    }

    /// The output has gone down as far as was waited for.
    pub(super) fn flushed(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        if self.request.is_done() || self.continue_until.is_some() {
            return Flow::On;
        }
        self.call(io, K::request_flushed)
    }

    /// A deadline has been reached: one of these, or none any more.
    pub(super) fn timeout(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        let now = io.scope.now();
        let stage = if self.is_sent(io) { Stage::Answering } else { Stage::Sending };
        if self.deadline <= now {
            self.fail(ClientError::Deadline(stage), io)
        } else if self.handler_deadline <= now {
            self.handler_deadline = Time::NEVER;
            self.call(io, K::timeout)
        } else if self.receiving.deadline(&io.settings.limits, now) <= now {
            self.fail(BodyError::TooSlow.into(), io)
        } else if self.continue_until.is_some_and(|until| until <= now) {
            self.continue_until = None;
            self.call(io, K::body_wanted)
        } else if self.receiving.is_before_head()
            && self.head_until.is_some_and(|until| until <= now)
        {
            self.fail(ClientError::AnswerTimeout, io)
        } else {
            Flow::On
        }
    }

    /// Something woke the connection.
    pub(super) fn wakeup(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        if self.port.as_ref().is_none_or(Port::is_cancelled) {
            Counters::add(&io.settings.count().cancelled);
            self.handler = None;
            return Flow::Over(false);
        }
        self.call(io, K::wakeup)
    }

    /// The connection is gone: answers the request, or gives it back to be made again.
    pub(super) fn lost(
        mut self,
        error: Fatal,
        settings: &ClientConfig,
        scope: &mut Scope<'_, K::Context>,
    ) -> Option<Box<Job<K>>> {
        let is_taken = !matches!(error, Fatal::FlushTimeout | Fatal::NoRoom);
        if is_taken
            && self.may_repeat()
            && let Flow::Again(job) = self.again(settings.count())
        {
            return Some(job);
        }
        let (handler, port) = (self.handler.take()?, self.port.take()?);
        job::fail(handler, port, ClientError::Lost(error), settings.count(), scope);
        None
    }

    /// Whether the request may be made again on another connection: see [`Client`].
    fn may_repeat(&self) -> bool {
        self.is_reused
            && !self.is_repeated
            && self.was_written_at_once
            && self.request.is_idempotent()
            && self.receiving.is_before_head()
            && self.reader.is_idle()
            && self.interim == 0
    }

    fn again(&mut self, counters: &Counters) -> Flow<K> {
        let (Some(handler), Some(port)) = (self.handler.take(), self.port.take()) else {
            return Flow::Over(false);
        };
        Counters::add(&counters.repeated);
        Flow::Again(Box::new(Job { handler, deadline: self.deadline, port, is_repeated: true }))
    }

    /// There is no whole answer: the handler hears of it and is gone.
    pub(super) fn fail(
        &mut self,
        error: ClientError,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Flow<K> {
        log::debug!("machine {} fails a request: {error}", io.scope.token());
        if let (Some(handler), Some(port)) = (self.handler.take(), self.port.take()) {
            job::fail(handler, port, error, io.settings.count(), io.scope);
        }
        Flow::Over(false)
    }

    /// The handler is done.
    fn end(&mut self, outcome: ClientResult<K>, io: &mut Io<'_, '_, '_, K::Context>) -> Flow<K> {
        let is_unused = self.request.is_unstarted() && io.transport.output.is_empty();
        self.answer(outcome, io.settings.count());
        if is_unused {
            return Flow::Over(true);
        }
        let rest = self.receiving.skip_rest(io.transport.input, &io.settings.limits);
        let Some(rest) = rest else { return Flow::Over(false) };
        io.transport.input.consume(rest);
        let is_whole = self.request.is_done() && io.transport.output.is_empty();
        let is_clean = io.transport.input.is_empty();
        if is_whole && !is_clean {
            Counters::add(&io.settings.count().stray);
        }
        Flow::Over(is_whole && is_clean && self.keep_alive && self.request.keeps_alive())
    }

    fn answer(&mut self, outcome: ClientResult<K>, counters: &Counters) {
        Counters::add(if outcome.is_ok() { &counters.answered } else { &counters.failed });
        if let Some(port) = self.port.take() {
            let _nobody_waits_any_more = port.set(outcome);
        }
    }

    fn is_sent(&self, io: &Io<'_, '_, '_, K::Context>) -> bool {
        self.request.is_done() && io.transport.output.is_empty()
    }

    /// What the exchange waits for.
    pub(super) fn wait(&mut self, io: &Io<'_, '_, '_, K::Context>) -> Wait {
        let limits = &io.settings.limits;
        if self.is_sent(io) && self.head_until.is_none() {
            self.head_until = Some(io.scope.now() + limits.answer_timeout);
        }
        let high = limits.output_high_water;
        let flush = match io.transport.output.len() {
            0 => None,
            unsent if unsent > high / 2 && !self.request.is_done() => Some(high / 2),
            _ => Some(0),
        };
        let wants_input = self.receiving.wants_input() && !self.request.is_unstarted();
        let input = wants_input.then(|| io.transport.input.len() + 1);
        Wait { input, flush, deadline: self.next_deadline(limits, io.scope.now()) }
    }

    fn next_deadline(&mut self, limits: &Limits, now: Time) -> Deadline {
        let of_head = if self.receiving.is_before_head() { self.head_until } else { None };
        let earliest = [
            self.deadline,
            self.handler_deadline,
            self.receiving.deadline(limits, now),
            self.continue_until.unwrap_or(Time::NEVER),
            of_head.unwrap_or(Time::NEVER),
        ];
        match earliest.into_iter().min() {
            None | Some(Time::NEVER) => Deadline::Never,
            Some(time) => Deadline::At(time),
        }
    }
}
