//! The connection: a protocol on a byte stream. What it does with requests is in `requests`; here
//! it becomes a protocol.

use std::fmt;
use std::sync::Arc;

use rotor_core::{Scope, Time, with_causes};
use rotor_stream::{Exception, Fatal, Intent, Matched, Protocol, Stream, StreamConfig, Transport};

use super::config::ServerConfig;
use super::counters::Counters;
use super::handler::Server;
use super::io::Io;
use super::requests::{Requests, Served};
use crate::flow::Flow;

/// A connection of a server, as a machine on a socket of kind `K`.
pub type HttpStream<S, K> = Stream<Connection<S>, K>;

/// What the connections of a server are made from: the seed of its handlers, and what its
/// connections share.
pub struct HttpSeed<S: Server> {
    seed: S::Seed,
    config: Arc<ServerConfig>,
}

impl<S: Server> HttpSeed<S> {
    /// The seed of connections that hand `seed` to each handler.
    pub fn new(seed: S::Seed, config: ServerConfig) -> HttpSeed<S> {
        HttpSeed { seed, config: Arc::new(config) }
    }
}

impl<S: Server> Clone for HttpSeed<S> {
    fn clone(&self) -> HttpSeed<S> {
        HttpSeed { seed: self.seed.clone(), config: self.config.clone() }
    }
}

/// One connection of a server.
#[doc(alias = "keep-alive")]
#[doc(alias = "pipelining")]
pub struct Connection<S: Server> {
    config: Arc<ServerConfig>,
    state: State<S>,
}

enum State<S: Server> {
    Http(Requests<S>),
    Upgraded(S::Upgrade),
}

impl<S: Server> Connection<S> {
    /// Does one step of HTTP, or hands the call to the protocol that the connection was upgraded
    /// to.
    #[inline]
    fn step(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
        http: impl FnOnce(&mut Requests<S>, &mut Io<'_, '_, '_, S::Context>) -> Served<S>,
        upgraded: impl FnOnce(
            S::Upgrade,
            &mut Transport<'_>,
            &mut Scope<'_, S::Context>,
        ) -> Intent<S::Upgrade>,
    ) -> Intent<Self> {
        let requests = match &mut self.state {
            State::Http(requests) => requests,
            State::Upgraded(_) => return self.step_upgraded(|u| upgraded(u, transport, scope)),
        };
        match http(requests, &mut Io { transport, scope, config: &self.config }) {
            Flow::Wait(wait) => wait.intent(self),
            Flow::Again => {
                let io = Io { transport, scope, config: &self.config };
                requests.wait_for_turn(&io).intent(self)
            }
            Flow::Done(None) => Intent::done(),
            Flow::Done(Some(seed)) => {
                let config = self.config;
                transport.set_config(S::Upgrade::config(&seed));
                // `keep` of the new protocol must not mean what HTTP waited for.
                let intent = S::Upgrade::create(seed, transport, scope).as_first();
                intent.map(|upgraded| Connection { config, state: State::Upgraded(upgraded) })
            }
            Flow::Fail(never) => match never {},
        }
    }

    #[cold]
    fn step_upgraded(self, call: impl FnOnce(S::Upgrade) -> Intent<S::Upgrade>) -> Intent<Self> {
        let Connection { config, state } = self;
        match state {
            State::Upgraded(upgraded) => call(upgraded)
                .map(|upgraded| Connection { config, state: State::Upgraded(upgraded) }),
            // Only an upgraded connection is stepped so.
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
        Counters::add(&config.count().connections);
        let mut requests = Requests::new(seed, scope.draining_until().is_some());
        let wait = requests.wait_for_first(&Io { transport, scope, config: &config });
        wait.intent(Connection { config, state: State::Http(requests) })
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::advance, |upgraded, transport, scope| {
            upgraded.bytes_read(matched, transport, scope)
        })
    }

    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::flushed, S::Upgrade::bytes_flushed)
    }

    fn timeout(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::timeout, S::Upgrade::timeout)
    }

    fn wakeup(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::wakeup, S::Upgrade::wakeup)
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
            |upgraded, transport, scope| upgraded.draining(until, transport, scope),
        )
    }

    /// Idle between two requests, with nothing but empty lines before the next.
    fn idle(&self, input: &[u8]) -> Option<Time> {
        match &self.state {
            State::Http(requests) => requests.idle_since(input),
            State::Upgraded(upgraded) => upgraded.idle(input),
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
        // Upgraded connections have left above.
        self.step(transport, scope, Requests::input_ended, |upgraded, _, _| {
            Intent::of(upgraded).keep().keep_deadline()
        })
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, S::Context>) {
        match self.state {
            State::Upgraded(upgraded) => upgraded.fatal(error, scope),
            State::Http(requests) => {
                log::debug!("machine {} lost its connection: {error}", scope.token());
                match error {
                    // Limits of ours; all else is the doing of the network or of the peer.
                    Fatal::FlushTimeout => Counters::add(&self.config.count().response_timeouts),
                    Fatal::NoRoom => Counters::add(&self.config.count().without_room),
                    _ => {}
                }
                requests.lost(&self.config, scope);
            }
        }
    }

    fn not_connected(seed: HttpSeed<S>, error: Fatal, scope: &mut Scope<'_, S::Context>) {
        log::debug!("machine {} got no connection: {}", scope.token(), with_causes(&error));
        let counters = seed.config.count();
        match error {
            Fatal::Handshake(_) => Counters::add(&counters.handshakes_failed),
            Fatal::HandshakeTimeout => Counters::add(&counters.handshake_timeouts),
            // A server does not connect.
            _ => {}
        }
    }
}

impl<S: Server> fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Http(requests) => f.debug_tuple("Connection").field(requests).finish(),
            State::Upgraded(_) => f.write_str("Connection(upgraded)"),
        }
    }
}

impl<S: Server> fmt::Debug for HttpSeed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSeed").field("config", &self.config).finish_non_exhaustive()
    }
}
