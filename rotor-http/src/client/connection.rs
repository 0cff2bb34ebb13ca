//! The connection: a protocol on a byte stream that makes one request after the other.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use rotor_core::{Scope, Time};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, StreamConfig, Transport};

use super::config::ClientConfig;
use super::counters::Counters;
use super::exchange::{Exchange, Flow, Io};
use super::feed::{Feed, Offer};
use super::{Client, ClientError, Stage};

/// One connection of a client: it takes requests from its [`Feed`] and makes them, one at a time.
///
/// ```text
///           next: a job               over, fit for use: next
///   Idle ────────────────▶ Exchange ─────────────────────────▶ Idle | Exchange
///    │                        │
///    └─ the end came,         ├─ over, not fit; failed; cancelled ─▶ end
///       unasked bytes,        └─ switched ─▶ another protocol
///       unused too long ─▶ end
/// ```
pub struct Connection<K: Client, F: Feed<K>> {
    settings: Arc<ClientConfig>,
    feed: F,
    served: u64,
    is_draining: bool,
    state: State<K>,
}

enum State<K: Client> {
    Idle,
    Exchange(Box<Exchange<K>>),
    Upgraded(K::Upgrade),
}

/// What a connection is made from.
#[derive(Debug)]
pub struct ConnectionSeed<F> {
    settings: Arc<ClientConfig>,
    feed: F,
}

impl<F> ConnectionSeed<F> {
    /// The seed of a connection that takes its requests from `feed`.
    pub fn new(feed: F, config: Arc<ClientConfig>) -> ConnectionSeed<F> {
        ConnectionSeed { settings: config, feed }
    }
}

/// How the connection goes on.
enum Turn<K: Client> {
    On,
    /// There is more to do with what has come: the stream is to call again, under its budgets.
    Later,
    Done,
    Upgrade(<K::Upgrade as Protocol>::Seed),
}

/// Steps that are made before the stream is asked to go on: so that its budgets are kept.
const BATCH: u32 = 64;

impl<K: Client, F: Feed<K>> Connection<K, F> {
    /// Asks the feed what to do, until there is something to wait for.
    fn take_next(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        loop {
            if self.is_draining || self.served >= io.settings.limits.requests_max {
                return Turn::Done;
            }
            let job = match self.feed.next(self.served == 0, io.scope) {
                Offer::Job(job) => job,
                Offer::Idle => {
                    self.state = State::Idle;
                    return Turn::On;
                }
                Offer::Close => return Turn::Done,
            };
            job.port.on_cancel(io.scope.notifier());
            if job.is_cancelled() {
                Counters::add(&io.settings.count().cancelled);
                continue;
            }
            if job.deadline <= io.scope.now() {
                job.fail(ClientError::Deadline(Stage::Waiting), io.settings.count(), io.scope);
                continue;
            }
            let (exchange, flow) = Exchange::begin(job, self.served > 0, io);
            self.state = State::Exchange(exchange);
            match flow {
                // It ended before it began: the connection is as it was.
                Flow::Over(true) => {}
                flow => return self.follow(flow, io),
            }
        }
    }

    /// Follows a step of the exchange.
    fn follow(&mut self, flow: Flow<K>, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        let is_fit = match flow {
            Flow::On | Flow::Wait => return Turn::On,
            Flow::Over(is_fit) => is_fit,
            Flow::Again(job) => {
                self.feed.give_back(*job, io.scope);
                false
            }
            Flow::Upgrade(seed) => return Turn::Upgrade(seed),
        };
        self.state = State::Idle;
        self.served += 1;
        if is_fit {
            return self.take_next(io);
        }
        // What was not sent of the request nobody needs any more.
        io.transport.output.truncate(0);
        Turn::Done
    }

    /// Does what can be done with what is there.
    fn go_on(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        for _ in 0..BATCH {
            let State::Exchange(exchange) = &mut self.state else { return self.idle(io) };
            let flow = exchange.go_on(io);
            if matches!(flow, Flow::Wait) {
                return Turn::On;
            }
            match self.follow(flow, io) {
                Turn::On => {}
                turn => return turn,
            }
        }
        Turn::Later
    }

    /// Nothing is under way: whatever comes was not asked for.
    fn idle(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        if io.transport.input.is_empty() {
            return Turn::On;
        }
        Counters::add(&io.settings.count().stray);
        log::debug!("machine {} was sent something that nobody asked for", io.scope.token());
        Turn::Done
    }

    /// One step: of HTTP, or of the protocol that the connection goes on in.
    fn step(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
        http: impl FnOnce(&mut Self, &mut Io<'_, '_, '_, K::Context>) -> Turn<K>,
        upgraded: impl FnOnce(K::Upgrade, &mut Transport<'_>, &mut Scope<'_, K::Context>) -> Intent<K::Upgrade>,
    ) -> Intent<Self> {
        if let State::Upgraded(_) = self.state {
            return self.step_upgraded(|protocol| upgraded(protocol, transport, scope));
        }
        let settings = self.settings.clone();
        let mut io = Io { transport, scope, settings: &settings };
        match http(&mut self, &mut io) {
            Turn::On => self.wait(false, &io),
            Turn::Later => self.wait(true, &io),
            Turn::Done => Intent::done(),
            Turn::Upgrade(seed) => {
                let intent = K::Upgrade::create(seed, io.transport, io.scope).as_first();
                intent.map(|protocol| Connection { state: State::Upgraded(protocol), ..self })
            }
        }
    }

    fn step_upgraded(mut self, call: impl FnOnce(K::Upgrade) -> Intent<K::Upgrade>) -> Intent<Self> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Upgraded(protocol) => {
                call(protocol).map(|protocol| Connection { state: State::Upgraded(protocol), ..self })
            }
            state => Intent::of(Connection { state, ..self }).keep().keep_deadline(),
        }
    }

    fn wait(mut self, is_more: bool, io: &Io<'_, '_, '_, K::Context>) -> Intent<Self> {
        match &mut self.state {
            State::Exchange(exchange) => {
                let mut wait = exchange.wait(io);
                if is_more {
                    wait.input = wait.input.map(|_| io.transport.input.len().min(1));
                }
                wait.intent(self)
            }
            _ => {
                let until = io.scope.now() + io.settings.limits.unused_timeout;
                Intent::of(self).bytes(1).deadline(until)
            }
        }
    }
}

impl<K: Client, F: Feed<K>> Protocol for Connection<K, F> {
    type Context = K::Context;
    type Seed = ConnectionSeed<F>;

    fn config(seed: &ConnectionSeed<F>) -> Arc<StreamConfig> {
        seed.settings.stream_config()
    }

    fn create(
        seed: ConnectionSeed<F>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        let ConnectionSeed { settings, feed } = seed;
        Counters::add(&settings.count().connections);
        let connection = Connection { settings, feed, served: 0, is_draining: false, state: State::Idle };
        connection.step(transport, scope, Self::take_next, K::Upgrade::wakeup)
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Self::go_on, |protocol, transport, scope| {
            protocol.bytes_read(matched, transport, scope)
        })
    }

    fn bytes_flushed(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, K::Context>) -> Intent<Self> {
        let flushed = |connection: &mut Self, io: &mut Io<'_, '_, '_, K::Context>| {
            let State::Exchange(exchange) = &mut connection.state else { return Turn::On };
            let flow = exchange.flushed(io);
            connection.after(flow, io)
        };
        self.step(transport, scope, flushed, K::Upgrade::bytes_flushed)
    }

    fn timeout(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, K::Context>) -> Intent<Self> {
        let timeout = |connection: &mut Self, io: &mut Io<'_, '_, '_, K::Context>| {
            let State::Exchange(exchange) = &mut connection.state else { return Turn::Done };
            let flow = exchange.timeout(io);
            connection.after(flow, io)
        };
        self.step(transport, scope, timeout, K::Upgrade::timeout)
    }

    fn wakeup(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, K::Context>) -> Intent<Self> {
        let wakeup = |connection: &mut Self, io: &mut Io<'_, '_, '_, K::Context>| {
            let State::Exchange(exchange) = &mut connection.state else {
                return match connection.idle(io) {
                    Turn::On => connection.take_next(io),
                    turn => turn,
                };
            };
            let flow = exchange.wakeup(io);
            connection.after(flow, io)
        };
        self.step(transport, scope, wakeup, K::Upgrade::wakeup)
    }

    fn draining(
        self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        let drain = |connection: &mut Self, _: &mut Io<'_, '_, '_, K::Context>| {
            connection.is_draining = true;
            if matches!(connection.state, State::Exchange(_)) { Turn::On } else { Turn::Done }
        };
        self.step(transport, scope, drain, |protocol, transport, scope| {
            protocol.draining(until, transport, scope)
        })
    }

    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        if let State::Upgraded(_) = self.state {
            return self.step_upgraded(|protocol| protocol.exception(exception, transport, scope));
        }
        let ended = |connection: &mut Self, io: &mut Io<'_, '_, '_, K::Context>| {
            let State::Exchange(exchange) = &mut connection.state else { return Turn::Done };
            let flow = exchange.input_ended(exception, io);
            connection.after(flow, io)
        };
        self.step(transport, scope, ended, |protocol, _, _| Intent::of(protocol).keep().keep_deadline())
    }

    fn fatal(mut self, error: Fatal, scope: &mut Scope<'_, K::Context>) {
        match self.state {
            State::Idle => {}
            State::Upgraded(protocol) => protocol.fatal(error, scope),
            State::Exchange(exchange) => {
                log::debug!("machine {} lost its connection: {error}", scope.token());
                if let Some(job) = exchange.lost(error, &self.settings, scope) {
                    self.feed.give_back(*job, scope);
                }
            }
        }
    }

    fn not_connected(seed: ConnectionSeed<F>, error: Fatal, scope: &mut Scope<'_, K::Context>) {
        Counters::add(&seed.settings.count().not_connected);
        seed.feed.not_connected(error, scope);
    }
}

impl<K: Client, F: Feed<K>> Connection<K, F> {
    /// Follows a step of the exchange, then goes on with what has come.
    fn after(&mut self, flow: Flow<K>, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        match self.follow(flow, io) {
            Turn::On if matches!(self.state, State::Exchange(_)) => self.go_on(io),
            turn => turn,
        }
    }
}

impl<K: Client, F: Feed<K>> fmt::Debug for Connection<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Idle => "Idle",
            State::Exchange(_) => "Exchange",
            State::Upgraded(_) => "Upgraded",
        };
        f.debug_struct("Connection")
            .field("handler", &type_name::<K>())
            .field("state", &state)
            .field("served", &self.served)
            .finish_non_exhaustive()
    }
}
