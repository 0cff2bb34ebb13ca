//! The connection: a protocol on a byte stream. What it does with requests is in `requests`; here
//! it becomes a protocol.

use std::fmt;
use std::sync::Arc;

use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{Response as MachineResponse, Scope, Time};
use rotor_stream::{
    Accept, AcceptConfig, Exception, Fatal, Intent, Matched, Protocol, Stream, StreamConfig,
    Transport,
};

use super::Server;
use super::answer::Io;
use super::config::ServerConfig;
use super::counters::Counters;
use super::requests::Requests;
use super::turn::Turn;

/// A connection of a server, as a machine on a socket of kind `K`.
pub type HttpStream<S, K> = Stream<Connection<S>, K>;

/// A listener for HTTP and its connections, as a machine.
pub type HttpAccept<S, L> = Accept<HttpStream<S, <L as Listener>::Socket>, L>;

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

/// Opens an address and serves HTTP on it: a short way to [`Accept::bind`] with
/// [`ListenOptions::new`] and the limits of [`AcceptConfig::new`].
///
/// With other options or limits, `Accept::bind(address, &options, seed, config, scope)` makes the
/// same machine.
///
/// # Errors
///
/// An error of the answer is the system's: the address is in use, or not this machine's, no
/// descriptor left. Nothing is left open.
///
/// # Examples
///
/// ```
/// use rotor_core::net::TcpListener;
/// use rotor_core::{Config, Loop};
/// use rotor_http::Status;
/// use rotor_http::server::{self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig};
///
/// struct Hello;
///
/// impl Server for Hello {
///     type Context = ();
///     type Seed = ();
///     type Upgrade = NoUpgrade<()>;
///
///     fn headers_received(_: (), _: &Head<'_>, answer: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
///         answer.reply(Status::OK, "text/plain", b"Hello, World!").into()
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = Loop::<HttpAccept<Hello, TcpListener>>::new(&Config::new())?;
/// let address = "127.0.0.1:0".parse()?;
/// creator.add_machine_with(|scope| server::bind(&address, HttpSeed::new((), ServerConfig::new()), scope))?;
/// # Ok(())
/// # }
/// ```
pub fn bind<S: Server, L: Listener, C>(
    address: &L::Address,
    seed: HttpSeed<S>,
    scope: &mut Scope<'_, C>,
) -> MachineResponse<HttpAccept<S, L>> {
    Accept::bind(address, &ListenOptions::new(), seed, AcceptConfig::new(), scope)
}

/// Serves HTTP on an open listener: a short way to [`Accept::listen`] with the limits of
/// [`AcceptConfig::new`].
pub fn listen<S: Server, L: Listener, C>(
    listener: L,
    seed: HttpSeed<S>,
    scope: &mut Scope<'_, C>,
) -> MachineResponse<HttpAccept<S, L>> {
    Accept::listen(listener, seed, AcceptConfig::new(), scope)
}

/// One connection of a server.
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
        http: impl FnOnce(&mut Requests<S>, &mut Io<'_, '_, '_, S::Context>) -> Turn<S>,
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
            Turn::Wait(wait) => wait.intent(self),
            Turn::Keep | Turn::On => Intent::of(self).keep().keep_deadline(),
            Turn::Done => Intent::done(),
            Turn::Upgrade(seed) => {
                let config = self.config;
                let intent = S::Upgrade::create(seed, transport, scope).as_first();
                intent.map(|upgraded| Connection { config, state: State::Upgraded(upgraded) })
            }
        }
    }

    #[cold]
    fn step_upgraded(self, call: impl FnOnce(S::Upgrade) -> Intent<S::Upgrade>) -> Intent<Self> {
        let Connection { config, state } = self;
        match state {
            State::Upgraded(upgraded) => call(upgraded)
                .map(|upgraded| Connection { config, state: State::Upgraded(upgraded) }),
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
        let wait = requests.wait_for_request(&Io { transport, scope, config: &config });
        wait.intent(Connection { config, state: State::Http(requests) })
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Intent<Self> {
        self.step(transport, scope, Requests::go_on, |upgraded, transport, scope| {
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
                    Fatal::FlushTimeout => Counters::add(&self.config.count().answer_timeouts),
                    Fatal::NoRoom => Counters::add(&self.config.count().without_room),
                    _ => {}
                }
                requests.lost(&self.config, scope);
            }
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
