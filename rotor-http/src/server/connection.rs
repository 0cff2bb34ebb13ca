//! The connection, as a protocol on a byte stream. How it handles requests is in `requests`; this
//! module connects that to the stream.

use std::fmt;
use std::sync::Arc;

use rotor_core::{Description, Scope, Time, with_causes};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, Stream, StreamConfig, Transport};

use super::age::AgeLimit;
use super::config::ServerConfig;
use super::counters::Counters;
use super::handler::Server;
use super::io::Io;
use super::requests::{Requests, RequestsFlow, TruncatedResponse};
use super::shared::CountedConfig;
use super::streams::{Streams, StreamsFlow};
use crate::flow::{BATCH, Flow};
use crate::upgraded;

/// A connection of a server, as a machine on a socket of kind `K`.
pub type HttpStream<S, K> = Stream<Connection<S>, K>;

/// The values from which the connections of a server are made: the seed of its handlers, and the
/// settings that its connections share.
pub struct HttpSeed<S: Server> {
    seed: S::Seed,
    config: Arc<ServerConfig>,
}

impl<S: Server> HttpSeed<S> {
    /// Creates the seed of connections that pass a clone of `seed` to each handler.
    pub fn new(seed: S::Seed, config: ServerConfig) -> HttpSeed<S> {
        HttpSeed { seed, config: Arc::new(config) }
    }
}

impl<S: Server> Clone for HttpSeed<S> {
    fn clone(&self) -> HttpSeed<S> {
        HttpSeed { seed: self.seed.clone(), config: self.config.clone() }
    }
}

/// One connection of a server, which speaks HTTP/1.1, HTTP/2, or another protocol after an upgrade.
#[doc(alias = "keep-alive")]
#[doc(alias = "pipelining")]
pub struct Connection<S: Server> {
    config: CountedConfig,
    state: State<S>,
}

enum State<S: Server> {
    Http(Requests<S>),
    Http2(Box<Streams<S>>),
    Upgraded(S::Upgrade),
}

impl<S: Server> Connection<S> {
    /// Returns the windows of a connection that speaks HTTP/2, as this side knows them. Hidden, and
    /// not covered by the crate's guarantees: for tests that compare both sides.
    #[cfg(feature = "http2")]
    #[doc(hidden)]
    pub fn ledger(&self) -> Option<crate::h2::Ledger> {
        match &self.state {
            State::Http2(streams) => Some(streams.ledger()),
            _ => None,
        }
    }

    /// Does one step of HTTP, or passes the call to the protocol that the connection was upgraded
    /// to.
    #[inline]
    fn step(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
        http: impl FnOnce(&mut Requests<S>, &mut Io<'_, '_, '_, S::Context>) -> RequestsFlow<S>,
        http2: impl FnOnce(&mut Streams<S>, &mut Io<'_, '_, '_, S::Context>) -> StreamsFlow<S>,
        upgraded: impl FnOnce(
            S::Upgrade,
            &mut Transport<'_>,
            &mut Scope<'_, S::Context>,
        ) -> Intent<S::Upgrade>,
    ) -> Intent<Self> {
        let requests = match &mut self.state {
            State::Http(requests) => requests,
            State::Http2(streams) => {
                let flow = http2(streams, &mut Io { transport, scope, config: &self.config });
                return self.apply_http2_flow(flow);
            }
            State::Upgraded(_) => return self.step_upgraded(|u| upgraded(u, transport, scope)),
        };
        match http(requests, &mut Io { transport, scope, config: &self.config }) {
            Flow::Wait(wait) => wait.intent(self),
            rare => {
                let intent = self.apply_rare_flow(rare, transport, scope);
                intent.map(|()| self)
            }
        }
    }

    /// Applies the rarer results of a step of HTTP to the stream.
    #[cold]
    fn apply_rare_flow(
        &mut self,
        flow: RequestsFlow<S>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<()> {
        match flow {
            Flow::Wait(wait) => wait.intent(()),
            Flow::Again => match &mut self.state {
                State::Http(requests) => {
                    transport.count_calls(BATCH - 1);
                    let io = Io { transport, scope, config: &self.config };
                    requests.wait_for_turn(&io).intent(())
                }
                // Only connections that read requests get here.
                _ => Intent::of(()).keep().keep_deadline(),
            },
            Flow::Done(None) => Intent::done(),
            Flow::Done(Some(seed)) => {
                let is_draining = match &self.state {
                    State::Http(requests) => requests.is_draining(),
                    _ => false,
                };
                let intent = upgraded::begin(seed, is_draining, transport, scope);
                intent.map(|upgraded| self.state = State::Upgraded(upgraded))
            }
            Flow::Fail(TruncatedResponse) => Intent::reset(),
        }
    }

    /// Applies the result of a step of HTTP/2 to the stream.
    fn apply_http2_flow(self, flow: StreamsFlow<S>) -> Intent<Self> {
        match flow {
            Flow::Wait(wait) => wait.intent(self),
            // No step of HTTP/2 ends like this: if something is left to do, it waits for that.
            Flow::Again => Intent::of(self).bytes(0).keep_deadline(),
            Flow::Done(_) => Intent::done(),
            Flow::Fail(never) => match never {},
        }
    }

    /// Switches to HTTP/2, beginning with the input that is there. `since` is when that began to
    /// arrive. `is_draining` is set if the connection is to end, which the loop may not know.
    #[cfg(feature = "http2")]
    #[cold]
    fn switch_to_http2(
        config: CountedConfig,
        seed: S::Seed,
        since: Time,
        is_draining: bool,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        let mut io = Io { transport, scope, config: &config };
        let mut streams = Box::new(Streams::new(seed, since, is_draining, &mut io));
        let flow = streams.advance(&mut io);
        Connection { config, state: State::Http2(streams) }.apply_http2_flow(flow)
    }

    #[cold]
    fn step_upgraded(self, call: impl FnOnce(S::Upgrade) -> Intent<S::Upgrade>) -> Intent<Self> {
        let Connection { config, state } = self;
        match state {
            State::Upgraded(upgraded) => call(upgraded)
                .map(|upgraded| Connection { config, state: State::Upgraded(upgraded) }),
            // Only an upgraded connection gets here.
            state => Intent::of(Connection { config, state }).keep().keep_deadline(),
        }
    }
}

impl<S: Server> Protocol for Connection<S> {
    type Context = S::Context;
    type Seed = HttpSeed<S>;

    fn config(seed: &HttpSeed<S>) -> Arc<StreamConfig> {
        seed.config.stream()
    }

    fn create(
        seed: HttpSeed<S>,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        let HttpSeed { seed, config } = seed;
        let config = CountedConfig::new(config);
        #[cfg(feature = "http2")]
        if transport.negotiated() == Some(b"h2") {
            let now = scope.now();
            return Connection::switch_to_http2(config, seed, now, false, transport, scope);
        }
        let age = AgeLimit::start(config.limits_ref(), scope);
        let mut requests = Requests::new(seed, age, scope.draining_until().is_some());
        let wait = requests.wait_for_first(&Io { transport, scope, config: &config });
        wait.intent(Connection { config, state: State::Http(requests) })
    }

    fn bytes_read(
        #[cfg_attr(not(feature = "http2"), expect(unused_mut, reason = "of a preface"))] mut self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        #[cfg(feature = "http2")]
        if self.config.http2_ref().allows_prior_knowledge()
            && let State::Http(requests) = &mut self.state
            && requests.is_untouched()
            && transport.negotiated().is_none()
        {
            match Preface::detect(transport.input) {
                Preface::None => {}
                Preface::Partial => {
                    let since = requests.head_started_at(scope.now());
                    let until = since + self.config.limits_ref().head_timeout;
                    return Intent::of(self).bytes(transport.input.len() + 1).deadline(until);
                }
                Preface::Started => {
                    let (seed, since) = (requests.seed(), requests.head_started_at(scope.now()));
                    let (config, is_draining) = (self.config, requests.is_draining());
                    return Connection::switch_to_http2(
                        config,
                        seed,
                        since,
                        is_draining,
                        transport,
                        scope,
                    );
                }
            }
        }
        self.step(
            transport,
            scope,
            Requests::advance,
            Streams::advance,
            |upgraded, transport, scope| upgraded.bytes_read(matched, transport, scope),
        )
    }

    #[inline(always)]
    fn bytes_read_in_place(
        &mut self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Option<Intent<()>> {
        // Everything else is handled by value, because it may become another protocol.
        let State::Http(requests) = &mut self.state else { return None };
        #[cfg(feature = "http2")]
        if self.config.http2_ref().allows_prior_knowledge() && requests.is_untouched() {
            return None;
        }
        let flow = requests.advance(&mut Io { transport, scope, config: &self.config });
        // Each arm makes its own `Intent`, so that the first one copies nothing.
        match flow {
            Flow::Wait(wait) => Some(wait.intent(())),
            rare => Some(self.apply_rare_flow(rare, transport, scope)),
        }
    }

    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::flushed, Streams::flushed, S::Upgrade::bytes_flushed)
    }

    fn timeout(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::timeout, Streams::timeout, S::Upgrade::timeout)
    }

    fn wakeup(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::wakeup, Streams::wakeup, S::Upgrade::wakeup)
    }

    fn draining(
        self,
        until: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        self.step(
            transport,
            scope,
            |requests, io| requests.drain(until, io),
            |streams, io| streams.drain(until, io),
            |upgraded, transport, scope| upgraded.draining(until, transport, scope),
        )
    }

    /// Returns since when the connection is idle: between two requests, with at most empty lines
    /// before the next.
    fn idle(&self, input: &[u8]) -> Option<Time> {
        match &self.state {
            State::Http(requests) => requests.idle_since(input),
            State::Http2(streams) => streams.idle_since(input),
            State::Upgraded(upgraded) => upgraded.idle(input),
        }
    }

    fn make_room(&mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, S::Context>) {
        match &mut self.state {
            // RFC 9112 §9.5: a client expects such an end at any time.
            State::Http(_) => {}
            State::Http2(streams) => {
                streams.make_room(&mut Io { transport, scope, config: &self.config });
            }
            State::Upgraded(upgraded) => upgraded.make_room(transport, scope),
        }
    }

    fn describe(&self, to: &mut Description) {
        match &self.state {
            State::Http(requests) => requests.describe(to),
            State::Http2(streams) => streams.describe(to),
            State::Upgraded(upgraded) => {
                to.set_state("upgraded");
                upgraded.describe(to);
            }
        }
    }

    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        if let State::Upgraded(_) = self.state {
            return self.step_upgraded(|upgraded| upgraded.exception(exception, transport, scope));
        }
        log::debug!("machine {} gets no more of a request: {exception}", scope.token());
        if let Exception::Lost(error) = &exception {
            record_loss(error, &self.config, scope);
        }
        // Upgraded connections have returned above.
        self.step(
            transport,
            scope,
            Requests::input_ended,
            |streams, io| streams.input_ended(&exception, io),
            |upgraded, _, _| Intent::of(upgraded).keep().keep_deadline(),
        )
    }

    fn outlives_connection(&self) -> bool {
        match &self.state {
            State::Http(_) => false,
            State::Http2(streams) => streams.outlives_connection(),
            State::Upgraded(upgraded) => upgraded.outlives_connection(),
        }
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, S::Context>) {
        match self.state {
            State::Upgraded(upgraded) => upgraded.fatal(error, scope),
            State::Http(requests) => {
                record_loss(&error, &self.config, scope);
                requests.connection_lost(&self.config, scope);
            }
            State::Http2(streams) => {
                record_loss(&error, &self.config, scope);
                streams.connection_lost(&self.config, scope);
            }
        }
    }

    fn not_connected(seed: HttpSeed<S>, error: Fatal, scope: &mut Scope<'_, S::Context>) {
        log::debug!("machine {} got no connection: {}", scope.token(), with_causes(&error));
        let counters = seed.config.counters_ref();
        match error {
            Fatal::Handshake(_) => Counters::add(&counters.handshakes_failed),
            Fatal::HandshakeTimeout => Counters::add(&counters.handshake_timeouts),
            Fatal::NoRoom => Counters::add(&counters.without_room),
            // A server does not connect.
            _ => {}
        }
    }
}

/// Logs that the connection was lost, and counts it if the reason is a limit of ours.
fn record_loss<C>(error: &Fatal, config: &ServerConfig, scope: &Scope<'_, C>) {
    log::debug!("machine {} lost its connection: {}", scope.token(), with_causes(error));
    match error {
        // All other errors are the network's or the peer's fault, or that of a file that was to be
        // sent, which the stream has logged.
        Fatal::FlushTimeout => Counters::add(&config.counters_ref().response_timeouts),
        Fatal::NoRoom => Counters::add(&config.counters_ref().without_room),
        _ => {}
    }
}

/// Whether a connection that negotiated no protocol begins with the preface of HTTP/2.
#[cfg(feature = "http2")]
enum Preface {
    None,
    /// The input may be the beginning of the preface.
    Partial,
    /// No request of HTTP/1.1 begins like this; HTTP/2 checks the rest.
    Started,
}

#[cfg(feature = "http2")]
impl Preface {
    fn detect(input: &[u8]) -> Preface {
        /// `PRI` is reserved for the preface and is not a method (RFC 9113 §3.4).
        const PREFIX: &[u8] = b"PRI ";
        let len = input.len().min(PREFIX.len());
        match input[..len] == PREFIX[..len] {
            false => Preface::None,
            true if len < PREFIX.len() => Preface::Partial,
            true => Preface::Started,
        }
    }
}

impl<S: Server> fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Http(requests) => f.debug_tuple("Connection").field(requests).finish(),
            State::Http2(streams) => f.debug_tuple("Connection").field(streams).finish(),
            State::Upgraded(_) => f.write_str("Connection(upgraded)"),
        }
    }
}

impl<S: Server> fmt::Debug for HttpSeed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSeed").field("config", &self.config).finish_non_exhaustive()
    }
}
