//! The requests of a connection, one after the other, and a handler for each.
//!
//! ```text
//!          head complete            handler done, body ended           upgrade
//!   Head ───────────────▶ Exchange ───────────────────────────▶ Head   ───────▶ another protocol
//!    │                      │  └─ handler done, body not wanted ─▶ Unwanted ──▶ Head
//!    └── refused ──▶ end ◀──┴── failed, closes
//! ```

mod events;

use std::any::type_name;
use std::fmt;

use rotor_core::{Deadline, Panicked, Scope, Time};
use rotor_stream::{Protocol, Transport};

use super::answer::{Answer, Io, LogLine};
use super::config::{Finished, ServerConfig, unix_seconds};
use super::counters::Counters;
use super::exchange::{Exchange, Flow};
use super::incoming::{Announced, Incoming, Rest, Unwanted};
use super::next::{Next, Step};
use super::response::Response;
use super::turn::{Turn, Wait};
use super::{Head, Server};
use crate::h1::{
    self, Body, Ending, FieldStorage, HeadReader, Method, RequestError, RequestSemantics,
    ResponseState, Status,
};

/// The HTTP side of a connection.
pub(super) struct Requests<S: Server> {
    seed: S::Seed,
    reader: HeadReader,
    begun: u64,
    /// The loop drains: the request under way is the last.
    is_draining: bool,
    state: State<S>,
}

enum State<S: Server> {
    /// Waits for a request.
    Head(Since),
    Exchange(Box<Exchange<S>>),
    /// Reads and drops the rest of a body.
    Unwanted(Box<Unwanted>),
}

/// Since when a request is waited for.
#[derive(Clone, Copy)]
enum Since {
    /// Nothing has come of it; `NEVER` before that is known.
    Idle(Time),
    /// A part of its head has come.
    Begun(Time),
}

impl<S: Server> State<S> {
    /// Between two requests; whether the next one is there already is still to be seen.
    const HEAD: State<S> = State::Head(Since::Idle(Time::NEVER));
}

/// Steps that are made before the stream is asked to go on: so that its budgets are kept.
const BATCH: u32 = 64;

impl<S: Server> Requests<S> {
    pub(super) fn new(seed: S::Seed, is_draining: bool) -> Requests<S> {
        Requests { seed, reader: HeadReader::new(), begun: 0, is_draining, state: State::HEAD }
    }

    /// Does what can be done with what is there, then says what to wait for.
    #[inline]
    pub(super) fn go_on(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Turn<S> {
        for _ in 0..BATCH {
            let turn = match &mut self.state {
                State::Head(_) if io.is_gated() => {
                    // The stream hands out no more before the peer has taken what waits for it.
                    Counters::add(&io.config.count().held_back);
                    break;
                }
                State::Head(_) if io.transport.input.is_empty() && self.reader.is_idle() => {
                    self.idle(io)
                }
                State::Head(_) => self.read_head(io),
                State::Exchange(exchange) => {
                    let flow = exchange.receive(io);
                    self.follow(flow, io)
                }
                State::Unwanted(_) => self.skip_body(io),
            };
            match turn {
                Turn::On => {}
                turn => return turn,
            }
        }
        self.go_on_later(io)
    }

    /// Has the stream call again, under its budgets, with what is there.
    #[cold]
    fn go_on_later(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Turn<S> {
        let mut wait =
            Wait { input: Some(io.unread().min(1)), flush: None, deadline: Deadline::Never };
        wait.deadline = match &mut self.state {
            // While nothing is taken in, nothing can be late.
            State::Head(_) if io.is_gated() => {
                (wait.input, wait.flush) = (Some(1), Some(0));
                Deadline::Never
            }
            State::Head(_) => Deadline::At(io.scope.now() + io.config.limits_ref().idle_timeout),
            State::Exchange(exchange) => exchange.next_deadline(io),
            State::Unwanted(unwanted) => Deadline::At(unwanted.deadline),
        };
        Turn::Wait(wait)
    }

    /// Waits for a request that has not begun.
    pub(super) fn wait_for_request(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Wait {
        let now = io.scope.now();
        if let State::Head(since) = &mut self.state {
            *since = Since::Idle(now);
        }
        let until = now + io.config.limits_ref().idle_timeout;
        Wait { input: Some(io.unread() + 1), flush: None, deadline: Deadline::At(until) }
    }

    /// Looks for a head; once it is there, begins the request.
    #[inline]
    fn read_head(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Turn<S> {
        let Io { transport, scope, config } = io;
        let config: &ServerConfig = config;
        let addresses = transport.addresses();
        let Transport { input, output, .. } = &mut **transport;
        let mut storage = FieldStorage::new();
        let (fast, slow) = storage.parts();
        let head = match self.reader.read_whole_request(input, fast, config.limits_ref()) {
            Some(head) => head,
            None => match self.reader.read_request_slowly(input, slow, config.limits_ref()) {
                Ok(Some(head)) => head,
                Ok(None) => return self.wait_for_head(io),
                Err(error) => return self.refuse_unread(error, io),
            },
        };
        let terms = terms_of(&head);
        let mut terms = match terms {
            Ok(terms) => terms,
            Err(error) => {
                let status = refused(&error, config, scope);
                let answer = Answer::refusing(Some(&head), addresses, output, scope.now(), config);
                return self.refuse(status, answer, io);
            }
        };
        self.begun += 1;
        if self.begun >= config.limits_ref().requests_max {
            Counters::add(&config.count().used_up);
            terms.keep_alive = false;
        }
        terms.keep_alive &= !self.is_draining && scope.draining_until().is_none();
        let log = config.is_logged().then(|| LogLine::of(Some(&head), addresses));
        config.renew_date(scope);
        let announced = Announced::of(&terms);
        let (reply, closes, is_bodiless) = (
            terms.reply_to(),
            announced.must_close(config.limits_ref()),
            terms.body == Body::Empty,
        );
        let mut state = ResponseState::new(reply);
        if !is_bodiless {
            // No other protocol before the body has come.
            state.allow_switch(false);
        }
        let (len, ahead) = (head.input_len(), output.len());
        let head = Head::new(&head, &terms, addresses);
        let mut response = Response::new(&mut state, output, config, closes);
        let seed = &self.seed;
        let next = scope.guard(|scope| {
            let is_supported = S::supports(head.method());
            is_supported.then(|| {
                Counters::add(&config.count().requests);
                S::headers_received(seed.clone(), &head, &mut response, scope)
            })
        });
        input.consume(len);
        self.begin_anew();
        // Where the handler answers at once, there is nothing to be kept for the rest of the
        // exchange.
        if matches!(next, Ok(Some(Next { step: Step::Finished, .. })))
            && state.ending() == Ending::KeepAlive
            && is_bodiless
            && log.is_none()
        {
            return Turn::On;
        }
        let answer = Answer::of_head(state, reply, ahead, output, scope.now(), log);
        self.go_on_from_head(answer, Incoming::new(announced), next, io)
    }

    /// The handler has seen the head, and the exchange is not over with that.
    #[inline(never)]
    fn go_on_from_head(
        &mut self,
        mut answer: Answer,
        mut incoming: Incoming,
        next: Result<Option<Next<S>>, Panicked>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Turn<S> {
        let next = match next {
            Ok(None) => return self.refuse(Status::NOT_IMPLEMENTED, answer, io),
            Ok(Some(Next { step: Step::Finished, .. })) => {
                return self.finish(&mut answer, &mut incoming, None, io);
            }
            Ok(Some(next)) => Ok(next),
            Err(panicked) => Err(panicked),
        };
        let mut exchange = Exchange::new(answer, incoming, io.config);
        match exchange.apply(next, io) {
            Flow::Done(upgrade) => {
                self.finish(&mut exchange.answer, &mut exchange.incoming, upgrade, io)
            }
            Flow::Failed(status) => self.fail(&mut exchange.answer, status, io),
            flow => {
                self.state = State::Exchange(Box::new(exchange));
                self.follow(flow, io)
            }
        }
    }

    /// Nothing has come since the last request.
    #[inline]
    fn idle(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Turn<S> {
        if self.is_draining {
            return Turn::Done;
        }
        Turn::Wait(self.wait_for_request(io))
    }

    /// Where heads are read: the next one has not begun.
    #[inline]
    fn begin_anew(&mut self) {
        // Without a look at what else might have to be dropped.
        if let State::Head(since) = &mut self.state {
            *since = Since::Idle(Time::NEVER);
        }
    }

    /// A part of a head has come, or only empty lines before one.
    fn wait_for_head(&mut self, io: &Io<'_, '_, '_, S::Context>) -> Turn<S> {
        if self.reader.is_idle() {
            return Turn::Wait(self.wait_for_request(io));
        }
        let since = match self.state {
            State::Head(Since::Begun(since)) => since,
            _ => io.scope.now(),
        };
        self.state = State::Head(Since::Begun(since));
        let until = since + io.config.limits_ref().head_timeout;
        Turn::Wait(Wait {
            input: Some(io.unread() + 1),
            flush: None,
            deadline: Deadline::At(until),
        })
    }

    /// Reads and drops what is left of a body.
    fn skip_body(&mut self, io: &mut Io<'_, '_, '_, S::Context>) -> Turn<S> {
        let State::Unwanted(unwanted) = &mut self.state else { return Turn::On };
        // The answer was sent; where the next request begins after a broken body is unknown.
        let Ok(decoded) = unwanted.decoder.decode(io.transport.input) else { return Turn::Done };
        io.transport.input.consume(decoded.consumed());
        if decoded.is_end {
            self.state = State::HEAD;
            return Turn::On;
        }
        if unwanted.decoder.received() > unwanted.received_max {
            Counters::add(&io.config.count().undrained);
            return Turn::Done;
        }
        if !decoded.needs_input() {
            return Turn::On;
        }
        let deadline = Deadline::At(unwanted.deadline);
        Turn::Wait(Wait { input: Some(io.unread() + 1), flush: None, deadline })
    }

    /// Follows a step of the exchange, then goes on.
    fn after(&mut self, flow: Flow<S>, io: &mut Io<'_, '_, '_, S::Context>) -> Turn<S> {
        match self.follow(flow, io) {
            Turn::On => self.go_on(io),
            turn => turn,
        }
    }

    fn follow(&mut self, flow: Flow<S>, io: &mut Io<'_, '_, '_, S::Context>) -> Turn<S> {
        let State::Exchange(exchange) = &mut self.state else { return Turn::Keep };
        match flow {
            Flow::On if exchange.incoming.is_receiving() => Turn::On,
            Flow::On => Turn::Wait(Wait::of_exchange(exchange, None, io)),
            Flow::Wait(more) => Turn::Wait(Wait::of_exchange(exchange, more, io)),
            Flow::Done(upgrade) => {
                let Some(mut exchange) = self.take_exchange() else { return Turn::Done };
                self.finish(&mut exchange.answer, &mut exchange.incoming, upgrade, io)
            }
            Flow::Failed(status) => {
                let Some(mut exchange) = self.take_exchange() else { return Turn::Done };
                self.fail(&mut exchange.answer, status, io)
            }
        }
    }

    fn take_exchange(&mut self) -> Option<Box<Exchange<S>>> {
        match std::mem::replace(&mut self.state, State::HEAD) {
            State::Exchange(exchange) => Some(exchange),
            _ => None,
        }
    }

    /// The handler is done: was its answer complete, and can another request follow?
    #[inline(never)]
    fn finish(
        &mut self,
        answer: &mut Answer,
        incoming: &mut Incoming,
        upgrade: Option<<S::Upgrade as Protocol>::Seed>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Turn<S> {
        let ending = answer.state.ending();
        match (ending, upgrade) {
            (Ending::KeepAlive, None) => {}
            (Ending::Switch, Some(seed)) => {
                self.log(answer, io.scope, io.config);
                return Turn::Upgrade(seed);
            }
            (ending, upgrade) => {
                return self.finish_oddly(answer, incoming, ending, upgrade.is_some(), io);
            }
        }
        self.log(answer, io.scope, io.config);
        match incoming.rest(io.scope.now(), io.config) {
            Rest::Nothing => Turn::On,
            Rest::Some(unwanted) => {
                self.state = State::Unwanted(unwanted);
                Turn::On
            }
            Rest::TooMuch => {
                Counters::add(&io.config.count().undrained);
                Turn::Done
            }
        }
    }

    /// The handler is done, and so is the connection.
    #[cold]
    fn finish_oddly(
        &mut self,
        answer: &mut Answer,
        incoming: &Incoming,
        ending: Ending,
        wants_upgrade: bool,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Turn<S> {
        if matches!(ending, Ending::Unstarted | Ending::Unfinished) {
            Counters::add(&io.config.count().unfinished);
            log::error!("{} finished without a complete answer", type_name::<S>());
            return self.fail(answer, Status::INTERNAL_SERVER_ERROR, io);
        }
        if wants_upgrade != (ending == Ending::Switch) {
            log::error!(
                "{}: `Next::upgrade` and a status that switches belong together",
                type_name::<S>()
            );
        }
        if incoming.is_too_long(io.config.limits_ref()) {
            Counters::add(&io.config.count().undrained);
        }
        self.log(answer, io.scope, io.config);
        Turn::Done
    }

    /// The handler is gone, or has not answered: an error page if that is still possible, then the
    /// end.
    #[cold]
    fn fail(
        &mut self,
        answer: &mut Answer,
        status: Status,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Turn<S> {
        answer.error_page::<S>(status, io);
        self.log(answer, io.scope, io.config);
        Turn::Done
    }

    /// Answers a request whose head cannot be read, and closes.
    #[cold]
    fn refuse_unread(
        &mut self,
        error: RequestError,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Turn<S> {
        let status = refused(&error, io.config, io.scope);
        let answer = Answer::refusing(
            None,
            io.transport.addresses(),
            io.transport.output,
            io.scope.now(),
            io.config,
        );
        self.refuse(status, answer, io)
    }

    /// Answers a request that no handler saw, and closes.
    #[cold]
    fn refuse(
        &mut self,
        status: Status,
        mut answer: Answer,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) -> Turn<S> {
        Counters::add(&io.config.count().refused);
        answer.error_page::<S>(status, io);
        self.log(&answer, io.scope, io.config);
        Turn::Done
    }

    /// Tells the log. The answer is as it is by then: a hook that panics costs nobody anything.
    #[inline]
    fn log(&self, answer: &Answer, scope: &mut Scope<'_, S::Context>, config: &ServerConfig) {
        let Some(line) = &answer.log else { return };
        let finished = Finished {
            peer: line.peer,
            method: &line.method,
            target: &line.target,
            version: line.version,
            status: answer.state.final_status(),
            bytes: answer.bytes,
            time: scope.now() - answer.began,
            unix_seconds: unix_seconds(scope.wall_time()),
        };
        if let Err(panicked) = scope.guard(|_| config.write_log(&finished)) {
            Counters::add(&config.count().panics);
            log::error!("the log hook {panicked}");
        }
    }
}

/// What the connection has to know of a head.
#[inline]
fn terms_of<'a>(head: &h1::RequestHead<'a>) -> Result<RequestSemantics<'a>, RequestError> {
    let terms = RequestSemantics::from_head(head)?;
    if head.method() == Method::Connect && terms.body != Body::Empty {
        // RFC 9110 §9.3.6: content in CONNECT "has no defined semantics"; is it the tunnel's first
        // bytes or not?
        return Err(RequestError::TargetForm);
    }
    Ok(terms)
}

/// Counts and notes a request that is refused; answers the status.
#[cold]
fn refused<C>(error: &RequestError, config: &ServerConfig, scope: &Scope<'_, C>) -> Status {
    if matches!(error, RequestError::Head(error) if error.is_limit()) {
        Counters::add(&config.count().heads_too_large);
    }
    log::debug!("machine {} refuses a request: {error}", scope.token());
    error.status()
}

impl<S: Server> fmt::Debug for Requests<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Head(_) => "Head",
            State::Exchange(_) => "Exchange",
            State::Unwanted(_) => "Unwanted",
        };
        f.debug_struct("Requests")
            .field("state", &state)
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}
