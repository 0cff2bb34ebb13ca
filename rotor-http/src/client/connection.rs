//! The connection: a protocol on a byte stream that makes one request after the other.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use rotor_core::{Scope, Time};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, StreamConfig, Transport};

use super::Client;
use super::config::ClientConfig;
use super::counters::Counters;
use super::exchange::{Exchange, Flow, Io};
use super::feed::{Feed, Offer};

/// One connection of a client: it takes requests from its [`Feed`] and makes them, one at a time.
///
/// ```text
///         next: a job           nothing came              over, fit for use: next
///   Idle ─────────────▶ Looking ─────────────▶ Exchange ─────────────────────────▶ Idle | Looking
///    │                     │                      │
///    └─ unused too long    └─ unasked bytes:      ├─ over, not fit; failed; cancelled ─▶ end
///       ─▶ end                the job goes back,  └─ switched ─▶ another protocol
///                             ─▶ end
/// ```
///
/// What comes while no request is under way nobody has asked for: it ends an idle connection, and
/// one that is looking. What has come after the request was begun cannot be told from its answer,
/// so the look is just before that; it is a read of the socket, since an event that tells of the
/// bytes may be behind others. A new connection, which begins with a job, does not look.
pub struct Connection<K: Client, F: Feed<K>> {
    settings: Arc<ClientConfig>,
    feed: F,
    served: u64,
    is_draining: bool,
    state: State<K>,
}

enum State<K: Client> {
    /// No request is under way, since then; `NEVER` before it is known that there is none to be
    /// made.
    Idle(Time),
    /// There is a request to make, unless something has come that nobody asked for.
    Looking(Box<Exchange<K>>),
    Exchange(Box<Exchange<K>>),
    Upgraded(K::Upgrade),
}

impl<K: Client> State<K> {
    const IDLE: State<K> = State::Idle(Time::NEVER);
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
    /// Begins: the server has not had the time to say anything.
    fn take_first(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        self.take(true, io)
    }

    /// Asks the feed what to do next, if anything.
    fn take_next(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        self.take(false, io)
    }

    /// Asks the feed what to do, until there is something to wait for. A job is begun at once if
    /// nothing has come that nobody asked for; if that is not known, there is a look first.
    fn take(&mut self, has_looked: bool, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        loop {
            if self.is_draining || self.served >= io.settings.limits.requests_max {
                return Turn::Done;
            }
            let job = match self.feed.next(self.served == 0, io.scope) {
                Offer::Job(job) => job,
                Offer::Idle => {
                    self.state = State::IDLE;
                    return Turn::On;
                }
                Offer::Close => return Turn::Done,
            };
            job.port.on_cancel(io.scope.notifier());
            let exchange = Exchange::new(job, self.served > 0);
            if !has_looked {
                self.state = State::Looking(exchange);
                return Turn::On;
            }
            if let Some(turn) = self.begin(exchange, io) {
                return turn;
            }
        }
    }

    /// Begins a request. `None` if it ended before it began: the connection is as it was.
    fn begin(
        &mut self,
        mut exchange: Box<Exchange<K>>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) -> Option<Turn<K>> {
        match exchange.begin(io) {
            Flow::Over(true) => None,
            flow => {
                self.state = State::Exchange(exchange);
                Some(self.follow(flow, io))
            }
        }
    }

    /// There was a look at what has come.
    fn looked(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        if !io.transport.input.is_empty() {
            return self.strayed(io);
        }
        let State::Looking(exchange) = std::mem::replace(&mut self.state, State::IDLE) else {
            return Turn::On;
        };
        match self.begin(exchange, io) {
            None => self.take(true, io),
            Some(turn) => turn,
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
        self.state = State::IDLE;
        self.served += 1;
        if is_fit {
            return self.take_next(io);
        }
        // What was not sent of the request nobody needs any more.
        io.transport.output.truncate(0);
        Turn::Done
    }

    /// The connection is no good for a request that it has not begun.
    fn give_back(&mut self, exchange: Exchange<K>, scope: &mut Scope<'_, K::Context>) {
        if let Some(job) = exchange.into_job() {
            self.feed.give_back(job, scope);
        }
    }

    /// The connection ends. Gives back what it has not begun.
    fn end(&mut self, scope: &mut Scope<'_, K::Context>) -> Turn<K> {
        if let State::Looking(exchange) = std::mem::replace(&mut self.state, State::IDLE) {
            self.give_back(*exchange, scope);
        }
        Turn::Done
    }

    /// Does what can be done with what is there.
    fn go_on(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        for _ in 0..BATCH {
            let State::Exchange(exchange) = &mut self.state else { return Turn::On };
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

    /// What was waited for has come.
    fn input_came(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        match self.state {
            State::Exchange(_) => self.go_on(io),
            State::Looking(_) => self.looked(io),
            State::Idle(_) | State::Upgraded(_) => self.expect_nothing(io),
        }
    }

    /// Nothing is under way: whatever comes was not asked for.
    fn expect_nothing(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        if io.transport.input.is_empty() { Turn::On } else { self.strayed(io) }
    }

    /// Something has come that nobody asked for: what is next on this connection would be as little
    /// to be trusted.
    fn strayed(&mut self, io: &mut Io<'_, '_, '_, K::Context>) -> Turn<K> {
        Counters::add(&io.settings.count().stray);
        log::debug!("machine {} was sent something that nobody asked for", io.scope.token());
        self.end(io.scope)
    }

    /// One step: of HTTP, or of the protocol that the connection goes on in.
    fn step(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
        http: impl FnOnce(&mut Self, &mut Io<'_, '_, '_, K::Context>) -> Turn<K>,
        upgraded: impl FnOnce(
            K::Upgrade,
            &mut Transport<'_>,
            &mut Scope<'_, K::Context>,
        ) -> Intent<K::Upgrade>,
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

    fn step_upgraded(
        mut self,
        call: impl FnOnce(K::Upgrade) -> Intent<K::Upgrade>,
    ) -> Intent<Self> {
        match std::mem::replace(&mut self.state, State::IDLE) {
            State::Upgraded(protocol) => call(protocol)
                .map(|protocol| Connection { state: State::Upgraded(protocol), ..self }),
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
            state => {
                let now = io.scope.now();
                let looks = matches!(state, State::Looking(_));
                if let State::Idle(since) = state {
                    *since = now;
                }
                let until = now + io.settings.limits.unused_timeout;
                let intent = Intent::of(self);
                let waiting = if looks { intent.poll() } else { intent.bytes(1) };
                waiting.deadline(until)
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
        let connection =
            Connection { settings, feed, served: 0, is_draining: false, state: State::IDLE };
        connection.step(transport, scope, Self::take_first, K::Upgrade::wakeup)
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Self::input_came, |protocol, transport, scope| {
            protocol.bytes_read(matched, transport, scope)
        })
    }

    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        let flushed = |connection: &mut Self, io: &mut Io<'_, '_, '_, K::Context>| {
            let State::Exchange(exchange) = &mut connection.state else { return Turn::On };
            let flow = exchange.flushed(io);
            connection.after(flow, io)
        };
        self.step(transport, scope, flushed, K::Upgrade::bytes_flushed)
    }

    fn timeout(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        let timeout = |connection: &mut Self, io: &mut Io<'_, '_, '_, K::Context>| {
            let State::Exchange(exchange) = &mut connection.state else {
                return connection.end(io.scope);
            };
            let flow = exchange.timeout(io);
            connection.after(flow, io)
        };
        self.step(transport, scope, timeout, K::Upgrade::timeout)
    }

    fn wakeup(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        let wakeup = |connection: &mut Self, io: &mut Io<'_, '_, '_, K::Context>| {
            match &mut connection.state {
                State::Exchange(exchange) => {
                    let flow = exchange.wakeup(io);
                    connection.after(flow, io)
                }
                State::Looking(_) => Turn::On,
                State::Idle(_) | State::Upgraded(_) => match connection.expect_nothing(io) {
                    Turn::On => connection.take_next(io),
                    turn => turn,
                },
            }
        };
        self.step(transport, scope, wakeup, K::Upgrade::wakeup)
    }

    fn draining(
        self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Intent<Self> {
        let drain = |connection: &mut Self, io: &mut Io<'_, '_, '_, K::Context>| {
            connection.is_draining = true;
            match connection.state {
                // What had come was read before the news, and no event tells of it: the answer may
                // be in it.
                State::Exchange(_) => connection.go_on(io),
                State::Looking(_) => Turn::On,
                State::Idle(_) | State::Upgraded(_) => Turn::Done,
            }
        };
        self.step(transport, scope, drain, |protocol, transport, scope| {
            protocol.draining(until, transport, scope)
        })
    }

    fn idle(&self, input: &[u8]) -> Option<Time> {
        match &self.state {
            State::Idle(since) => Some(*since),
            State::Upgraded(protocol) => protocol.idle(input),
            State::Looking(_) | State::Exchange(_) => None,
        }
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
            let State::Exchange(exchange) = &mut connection.state else {
                return connection.end(io.scope);
            };
            let flow = exchange.input_ended(exception, io);
            connection.after(flow, io)
        };
        self.step(transport, scope, ended, |protocol, _, _| {
            Intent::of(protocol).keep().keep_deadline()
        })
    }

    fn fatal(mut self, error: Fatal, scope: &mut Scope<'_, K::Context>) {
        match std::mem::replace(&mut self.state, State::IDLE) {
            State::Idle(_) => {}
            State::Looking(exchange) => self.give_back(*exchange, scope),
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
            State::Idle(_) => "Idle",
            State::Looking(_) => "Looking",
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
