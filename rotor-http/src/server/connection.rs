//! The connection: a protocol on a byte stream that reads requests one after the other and runs a handler for each.
//!
//! ```text
//!          head complete            handler done, body ended           upgrade
//!   Head ───────────────▶ Exchange ───────────────────────────▶ Head   ───────▶ Upgraded
//!    │                      │  └──── handler done, body not wanted ──▶ Draining ──▶ Head
//!    └── refused ──▶ end ◀──┴── failed, closes
//! ```

use std::any::type_name;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rotor_core::net::Listener;
use rotor_core::{BoxError, Panicked, Response as MachineResponse, Scope, Time};
use rotor_stream::{
    Accept, AcceptConfig, Exception, Fatal, Intent, Matched, Protocol, Stream, StreamConfig, Transport,
};

use super::exchange::{Answer, Called, Exchange, Flow, Given, LogLine, Request, Rest, apply, wall_seconds};
use super::settings::{Counters, Finished, Settings};
use super::{Head, Server};
use crate::h1::{
    BodyDecoder, BodyError, Ending, FieldStorage, HeadError, HeadReader, ReplyTo, RequestError, RequestTerms,
    Status,
};

/// A connection of a server, as a machine on a socket of kind `K`.
pub type HttpStream<S, K> = Stream<Connection<S>, K>;

/// A listener for HTTP and its connections, as a machine.
pub type HttpAccept<S, L> = Accept<HttpStream<S, <L as Listener>::Socket>, L>;

/// What the connections of a server are made from: the seed of its handlers, and the settings.
pub struct HttpSeed<S: Server> {
    seed: S::Seed,
    settings: Arc<Settings>,
}

impl<S: Server> HttpSeed<S> {
    /// The seed of connections that hand `seed` to each handler.
    pub fn new(seed: S::Seed, settings: Settings) -> HttpSeed<S> {
        HttpSeed { seed, settings: Arc::new(settings) }
    }
}

impl<S: Server> Clone for HttpSeed<S> {
    fn clone(&self) -> HttpSeed<S> {
        HttpSeed { seed: self.seed.clone(), settings: self.settings.clone() }
    }
}

/// Listens for HTTP: a short way to [`Accept::listen`] with the limits of [`AcceptConfig::new`].
pub fn listen<S: Server, L: Listener, C>(
    listener: L,
    seed: HttpSeed<S>,
    scope: &mut Scope<'_, C>,
) -> MachineResponse<HttpAccept<S, L>> {
    Accept::listen(listener, seed, AcceptConfig::new(), scope)
}

/// One connection of a server.
pub struct Connection<S: Server> {
    seed: S::Seed,
    settings: Arc<Settings>,
    peer: Option<SocketAddr>,
    reader: HeadReader,
    requests: u64,
    /// The loop drains: this request is the last.
    draining: bool,
    state: State<S>,
}

enum State<S: Server> {
    /// Waits for a request; since when, if a part of its head has come.
    Head(Option<Time>),
    Exchange(Box<Exchange<S>>),
    /// Reads and drops the rest of a body, until so many octets of it were received, or until this time.
    Draining(Box<BodyDecoder>, u64, Time),
    Upgraded(S::Upgrade),
}

/// Requests that are answered before the stream is asked to go on: so that its budgets are kept.
const BATCH: u32 = 64;

/// How a connection goes on after a step.
enum Turn<S: Server> {
    On(Connection<S>),
    Wait(Intent<Connection<S>>),
}

impl<S: Server> Protocol for Connection<S> {
    type Context = S::Context;
    type Seed = HttpSeed<S>;

    fn config(seed: &HttpSeed<S>) -> Arc<StreamConfig> {
        seed.settings.stream()
    }

    fn create(
        seed: HttpSeed<S>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        let HttpSeed { seed, settings } = seed;
        Counters::add(&settings.count().connections);
        let peer = if settings.asks_peer() { transport.peer_address() } else { None };
        let connection = Connection {
            seed,
            settings,
            peer,
            reader: HeadReader::new(),
            requests: 0,
            draining: scope.draining_until().is_some(),
            state: State::Head(None),
        };
        connection.wait_for_request(scope)
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        match self.state {
            State::Upgraded(_) => self.upgraded(|u| u.bytes_read(matched, transport, scope)),
            _ => self.go_on(transport, scope),
        }
    }

    fn bytes_flushed(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, S::Context>) -> Intent<Self> {
        match self.state {
            State::Upgraded(_) => self.upgraded(|u| u.bytes_flushed(transport, scope)),
            State::Exchange(_) => self.call_handler(transport, scope, |handler, response, scope, _| {
                handler.response_flushed(response, scope)
            }),
            _ => self.go_on(transport, scope),
        }
    }

    fn timeout(mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, S::Context>) -> Intent<Self> {
        match self.state {
            State::Upgraded(_) => self.upgraded(|u| u.timeout(transport, scope)),
            State::Head(since) if since.is_none() || self.reader.is_idle() => {
                Counters::add(&self.settings.count().idle_timeouts);
                Intent::done()
            }
            State::Head(_) => {
                Counters::add(&self.settings.count().head_timeouts);
                self.refuse(Status::REQUEST_TIMEOUT, transport, scope)
            }
            State::Draining(..) => {
                Counters::add(&self.settings.count().undrained);
                Intent::done()
            }
            State::Exchange(exchange) => {
                self.state = State::Head(None);
                let flow = exchange.timeout(transport, &self.settings, scope);
                self.after(flow, transport, scope)
            }
        }
    }

    fn wakeup(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, S::Context>) -> Intent<Self> {
        match self.state {
            State::Upgraded(_) => self.upgraded(|u| u.wakeup(transport, scope)),
            State::Exchange(_) => self.call_handler(transport, scope, |handler, response, scope, _| {
                handler.wakeup(response, scope)
            }),
            _ => Intent::of(self).keep().keep_deadline(),
        }
    }

    fn draining(
        mut self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        self.draining = true;
        match self.state {
            State::Upgraded(_) => self.upgraded(|u| u.draining(until, transport, scope)),
            State::Head(None) if transport.input.is_empty() => Intent::done(),
            State::Exchange(mut exchange) => {
                exchange.answer.state.close();
                self.state = State::Exchange(exchange);
                self.call_handler(transport, scope, |handler, response, scope, _| {
                    handler.draining(until, response, scope)
                })
            }
            _ => Intent::of(self).keep().keep_deadline(),
        }
    }

    fn exception(
        mut self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        match self.state {
            State::Upgraded(_) => self.upgraded(|u| u.exception(exception, transport, scope)),
            State::Exchange(exchange) => {
                self.state = State::Head(None);
                let flow = exchange.fail(BodyError::Truncated, &self.settings, scope);
                self.after(flow, transport, scope)
            }
            // A head that was cut short gets no answer: nobody waits for one.
            State::Head(_) | State::Draining(..) => Intent::done(),
        }
    }

    fn fatal(mut self, error: Fatal, scope: &mut Scope<'_, S::Context>) {
        match self.state {
            State::Upgraded(upgraded) => upgraded.fatal(error, scope),
            State::Exchange(exchange) => {
                if matches!(error, Fatal::FlushTimeout) {
                    Counters::add(&self.settings.count().answer_timeouts);
                }
                self.state = State::Head(None);
                if let Flow::Failed(answer, _) = exchange.fail(BodyError::Truncated, &self.settings, scope) {
                    self.log(&answer, scope);
                }
            }
            State::Head(_) | State::Draining(..) => {
                log::debug!("machine {} lost its connection: {error}", scope.token());
            }
        }
    }
}

impl<S: Server> Connection<S> {
    /// Does what can be done with what is there, then says what to wait for.
    fn go_on(mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, S::Context>) -> Intent<Self> {
        for _ in 0..BATCH {
            let turn = match std::mem::replace(&mut self.state, State::Head(None)) {
                State::Head(since)
                    if transport.output.len() >= self.settings.limits_ref().output_high_water =>
                {
                    // The stream hands out no more input before the peer has taken what waits.
                    self.state = State::Head(since);
                    return self.wait_at_once(scope);
                }
                State::Head(since) => self.read_head(since, transport, scope),
                State::Exchange(exchange) => {
                    let flow = exchange.receive(transport, &self.settings, scope);
                    self.follow(flow, transport, scope)
                }
                State::Draining(decoder, until, deadline) => self.drain(decoder, until, deadline, transport),
                State::Upgraded(upgraded) => {
                    self.state = State::Upgraded(upgraded);
                    return Intent::of(self).keep().keep_deadline();
                }
            };
            self = match turn {
                Turn::On(connection) => connection,
                Turn::Wait(intent) => return intent,
            };
        }
        // The stream calls again, under its budgets.
        self.wait_at_once(scope)
    }

    fn wait_at_once(self, scope: &Scope<'_, S::Context>) -> Intent<Self> {
        match &self.state {
            State::Head(None) => self.wait_for_request(scope),
            State::Head(Some(since)) => {
                let until = *since + self.settings.limits_ref().head_timeout;
                Intent::of(self).bytes(1).deadline(until)
            }
            _ => Intent::of(self).bytes(0).keep_deadline(),
        }
    }

    fn wait_for_request(self, scope: &Scope<'_, S::Context>) -> Intent<Self> {
        let until = scope.now() + self.settings.limits_ref().idle_timeout;
        Intent::of(self).bytes(1).deadline(until)
    }

    /// Looks for a head; once it is there, begins the request.
    #[inline]
    fn read_head(
        mut self,
        since: Option<Time>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Turn<S> {
        let Transport { input, output, .. } = transport;
        if input.is_empty() && self.reader.is_idle() {
            return Turn::Wait(if self.draining { Intent::done() } else { self.wait_for_request(scope) });
        }
        let settings = self.settings.clone();
        let mut storage = FieldStorage::new();
        let head = match self.reader.read_request(input, &mut storage, settings.limits_ref()) {
            Ok(Some(head)) => head,
            Ok(None) => {
                let since = since.unwrap_or_else(|| scope.now());
                let (unread, until) = (input.len(), since + settings.limits_ref().head_timeout);
                self.state = State::Head(Some(since));
                return Turn::Wait(Intent::of(self).bytes(unread + 1).deadline(until));
            }
            Err(error) => return Turn::Wait(self.refuse_for(&error, transport, scope)),
        };
        let mut terms = match RequestTerms::of(&head) {
            Ok(terms) => terms,
            Err(error) => return Turn::Wait(self.refuse_for(&error, transport, scope)),
        };
        if !S::supports(head.method()) {
            return Turn::Wait(self.refuse(Status::NOT_IMPLEMENTED, transport, scope));
        }
        self.requests += 1;
        Counters::add(&settings.count().requests);
        if self.requests >= settings.limits_ref().requests_max {
            Counters::add(&settings.count().used_up);
            terms.keep_alive = false;
        }
        terms.keep_alive &= !self.draining;
        let log = settings.is_logged().then(|| Box::new(LogLine::of(&head)));
        let request = Request::new(&terms);
        let mut answer = Answer::new(terms.reply_to(), output, scope.now(), log);
        let began = answer.began;
        settings.renew_date(scope);
        let (closes, len) = (request.must_close(), head.input_len());
        let head = Head::new(head, terms, self.peer);
        let seed = self.seed.clone();
        let called = answer.with_response(output, &settings, closes, |response| {
            match scope.guard(|scope| S::headers_received(seed, &head, response, scope)) {
                Ok(next) => Called::Goes(next),
                Err(panicked) => Called::Panicked(panicked),
            }
        });
        input.consume(len);
        let deadline = began + settings.limits_ref().handler_timeout;
        let flow = apply(called, answer, request, deadline, Vec::new(), transport, &settings, scope);
        self.follow(flow, transport, scope)
    }

    /// Reads and drops what is left of a body.
    fn drain(
        mut self,
        mut decoder: Box<BodyDecoder>,
        until: u64,
        deadline: Time,
        transport: &mut Transport<'_>,
    ) -> Turn<S> {
        match decoder.decode(transport.input) {
            Ok(decoded) => {
                transport.input.consume(decoded.consumed());
                if decoded.is_end {
                    return Turn::On(self);
                }
                if decoder.received() > until {
                    Counters::add(&self.settings.count().undrained);
                    return Turn::Wait(Intent::done());
                }
                if !decoded.needs_input() {
                    self.state = State::Draining(decoder, until, deadline);
                    return Turn::On(self);
                }
                let more = transport.input.len() + 1;
                self.state = State::Draining(decoder, until, deadline);
                Turn::Wait(Intent::of(self).bytes(more).deadline(deadline))
            }
            // The answer was sent; where the next request begins is unknown.
            Err(_) => Turn::Wait(Intent::done()),
        }
    }

    /// Calls the handler of the exchange.
    fn call_handler(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
        method: impl FnOnce(S, &mut super::Response<'_>, &mut Scope<'_, S::Context>, &[u8]) -> super::Next<S>,
    ) -> Intent<Self> {
        let State::Exchange(exchange) = std::mem::replace(&mut self.state, State::Head(None)) else {
            return Intent::of(self).keep().keep_deadline();
        };
        let flow = exchange.call(transport, &self.settings, scope, method, Given::Nothing);
        self.after(flow, transport, scope)
    }

    /// Follows a step, then goes on.
    fn after(
        self,
        flow: Flow<S>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        match self.follow(flow, transport, scope) {
            Turn::On(connection) => connection.go_on(transport, scope),
            Turn::Wait(intent) => intent,
        }
    }

    #[inline]
    fn follow(
        mut self,
        flow: Flow<S>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Turn<S> {
        match flow {
            Flow::Done(answer, request, upgrade) => self.finish(answer, request, upgrade, transport, scope),
            Flow::On(exchange) if exchange.is_receiving() => {
                self.state = State::Exchange(Box::new(exchange));
                Turn::On(self)
            }
            Flow::On(exchange) => Turn::Wait(self.wait(exchange, None, transport)),
            Flow::Wait(exchange, more) => Turn::Wait(self.wait(exchange, more, transport)),
            Flow::Failed(mut answer, status) => {
                answer.error_page::<S>(status, transport, &self.settings, scope);
                self.log(&answer, scope);
                Turn::Wait(Intent::done())
            }
        }
    }

    /// Waits for what the exchange waits for: more of the body, room, or its handler's deadline.
    fn wait(mut self, exchange: Exchange<S>, more: Option<usize>, transport: &Transport<'_>) -> Intent<Self> {
        let deadline = exchange.next_deadline(transport.input.len(), &self.settings);
        let (unsent, high) = (transport.output.len(), self.settings.limits_ref().output_high_water);
        self.state = State::Exchange(Box::new(exchange));
        let waiting = match more {
            Some(more) => Intent::of(self).bytes(more),
            None => Intent::of(self).sleep(),
        };
        let waiting = match unsent {
            0 => waiting,
            unsent if unsent > high / 2 => waiting.or_flush(high / 2),
            _ => waiting.or_flush(0),
        };
        waiting.with(deadline)
    }

    /// The handler is done: was its answer complete, and can another request follow?
    fn finish(
        mut self,
        mut answer: Answer,
        request: Request,
        upgrade: Option<<S::Upgrade as Protocol>::Seed>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Turn<S> {
        let ending = answer.state.ending();
        if let (Ending::Unstarted | Ending::Unfinished, counters) = (ending, self.settings.count()) {
            Counters::add(&counters.unfinished);
            log::error!("{} finished without a complete answer", type_name::<S>());
        }
        match (ending, upgrade) {
            (Ending::Unstarted, _) => {
                answer.error_page::<S>(Status::INTERNAL_SERVER_ERROR, transport, &self.settings, scope);
                self.log(&answer, scope);
                return Turn::Wait(Intent::done());
            }
            (Ending::Switch, Some(seed)) => {
                self.log(&answer, scope);
                let intent = S::Upgrade::create(seed, transport, scope);
                return Turn::Wait(
                    intent.map(|upgraded| Connection { state: State::Upgraded(upgraded), ..self }),
                );
            }
            (Ending::Unfinished | Ending::Close | Ending::Switch, _) => {
                self.log(&answer, scope);
                return Turn::Wait(Intent::done());
            }
            (Ending::KeepAlive, _) => self.log(&answer, scope),
        }
        match request.into_rest(&self.settings) {
            Rest::Nothing => Turn::On(self),
            Rest::Drain(decoder, until) => {
                let deadline = scope.now() + self.settings.limits_ref().shutdown_timeout;
                self.state = State::Draining(decoder, until, deadline);
                Turn::On(self)
            }
            Rest::TooMuch => {
                Counters::add(&self.settings.count().undrained);
                Turn::Wait(Intent::done())
            }
        }
    }

    fn refuse_for(
        self,
        error: &RequestError,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        if let RequestError::Head(
            HeadError::TooLarge
            | HeadError::FieldTooLong
            | HeadError::TooManyFields
            | HeadError::TargetTooLong
            | HeadError::MethodTooLong,
        ) = error
        {
            Counters::add(&self.settings.count().heads_too_large);
        }
        log::debug!("machine {} refuses a request: {error}", scope.token());
        self.refuse(error.status(), transport, scope)
    }

    /// Answers a request that no handler saw, and closes.
    #[cold]
    fn refuse(
        self,
        status: Status,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        Counters::add(&self.settings.count().refused);
        let log = self.settings.is_logged().then(|| Box::new(LogLine::unread()));
        let mut answer = Answer::new(ReplyTo::unreadable(), transport.output, scope.now(), log);
        answer.error_page::<S>(status, transport, &self.settings, scope);
        self.log(&answer, scope);
        Intent::done()
    }

    fn upgraded(mut self, call: impl FnOnce(S::Upgrade) -> Intent<S::Upgrade>) -> Intent<Self> {
        match std::mem::replace(&mut self.state, State::Head(None)) {
            State::Upgraded(upgraded) => {
                call(upgraded).map(|upgraded| Connection { state: State::Upgraded(upgraded), ..self })
            }
            state => {
                self.state = state;
                Intent::of(self).keep().keep_deadline()
            }
        }
    }

    #[inline]
    fn log(&self, answer: &Answer, scope: &Scope<'_, S::Context>) {
        let Some(line) = &answer.log else { return };
        self.settings.write_log(&Finished {
            peer: self.peer,
            method: &line.method,
            target: &line.target,
            status: answer.state.final_status(),
            bytes: answer.bytes,
            time: scope.now() - answer.began,
            unix_seconds: wall_seconds(scope),
        });
    }
}

impl LogLine {
    fn of(head: &crate::h1::Head<'_>) -> LogLine {
        LogLine { method: head.method().as_str().into(), target: head.target().as_str().into() }
    }

    fn unread() -> LogLine {
        LogLine { method: String::new(), target: String::new() }
    }
}

/// A handler has panicked: logged once, counted. The connection goes on without it.
pub(super) fn unwound<S>(panicked: &Panicked, settings: &Settings) {
    Counters::add(&settings.count().panics);
    let error: BoxError = panicked.clone().into();
    log::error!("the handler {} {error}", type_name::<S>());
}

impl<S: Server> fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Head(_) => "Head",
            State::Exchange(_) => "Exchange",
            State::Draining(..) => "Draining",
            State::Upgraded(_) => "Upgraded",
        };
        f.debug_struct("Connection")
            .field("state", &state)
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

impl<S: Server> fmt::Debug for HttpSeed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSeed").field("settings", &self.settings).finish_non_exhaustive()
    }
}
