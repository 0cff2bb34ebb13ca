//! WebSockets between two hosts under all faults. Messages come back complete, in order and at most
//! once, and no peer is ever accused of a protocol error. After the faults every conversation
//! completes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rotor::http::client::{
    self, ByAddress, ClientConfig, ClientError, ClientResult, Pool, PoolConfig, PoolMachine,
};
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener};
use rotor::websocket::{
    Cause, Closed, Code, Deflate, Dial, Handler, Kind, Message, Next, Sender, WebSocketConfig,
};
use rotor::{
    BoxError, Compose2, Future, Infallible, Loop, Machine, Notifier, Outcome, Response, Scope,
};
use rotor_sim::{Busy, Fault, Host, Sim, attempt_failed};

use crate::examples::ws_echo::Site;
use crate::ground::{Bytes, Ground, ListenerOf, StreamOf};
use crate::http_pool::limits;
use crate::stage::{self, FAULTY, PORT};

/// How many conversations must complete.
const CONVERSATIONS: u32 = 6;

/// The number of messages of a conversation.
const MESSAGES: u32 = 24;

/// A conversation pauses after this many messages, so that most faults strike within one.
const BREATH: u32 = 6;

/// The maximum number of messages in flight.
const IN_FLIGHT_MAX: usize = 3;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The results of the conversations.
#[derive(Default)]
struct Log {
    finished: u32,
    broken_off: u32,
    wrong: Vec<String>,
}

struct World {
    pool: Pool<Dial<Speaker>>,
    log: Arc<Mutex<Log>>,
}

/// Sends one message after the other, and waits for their echoes.
struct Speaker {
    caller: Notifier,
    next: u32,
    /// The messages sent and not yet echoed, oldest first.
    in_flight: VecDeque<Vec<u8>>,
    /// Whether it pauses.
    is_paused: bool,
    busy: Busy,
}

/// The message of a number: long and short ones. Most can be compressed.
fn content(number: u32) -> Vec<u8> {
    let len = [0, 1, 125, 126, 300, 1_100][number as usize % 6];
    format!("{number} all work and no play ").into_bytes().into_iter().cycle().take(len).collect()
}

impl Speaker {
    /// Sends the next messages, unless it pauses.
    fn send_next(mut self, out: &mut Sender<'_>) -> Next<Self> {
        while !self.is_paused && self.next < MESSAGES && self.in_flight.len() < IN_FLIGHT_MAX {
            let bytes = content(self.next);
            let sent = match self.next % 4 {
                0 => out.binary(&bytes),
                1 => out.begin(Kind::Text).and_then(|()| {
                    bytes.chunks(100).try_for_each(|part| out.piece(part))?;
                    out.end()
                }),
                _ => out.text(std::str::from_utf8(&bytes).expect("it is ASCII")),
            };
            sent.expect("there is room for the few that are under way");
            // Pings come often, between messages. Whatever is cut within a frame is mostly cut
            // within a message.
            let part = &bytes[..bytes.len().min(125)];
            out.ping(part).expect("there is room beside the few that are under way");
            self.next += 1;
            self.is_paused = self.next.is_multiple_of(BREATH);
            self.in_flight.push_back(bytes);
        }
        if self.next == MESSAGES && self.in_flight.is_empty() {
            return Next::close(self, Code::NORMAL, "all was said");
        }
        Next::go_on(self).keep_deadline()
    }
}

impl Handler for Speaker {
    type Context = World;
    type Seed = Notifier;

    fn opened(caller: Notifier, out: &mut Sender<'_>, scope: &mut Scope<'_, World>) -> Next<Self> {
        let busy = Busy::new(scope);
        Speaker { caller, next: 0, in_flight: VecDeque::new(), is_paused: false, busy }
            .send_next(out)
    }

    fn message(
        mut self,
        message: Message<'_>,
        out: &mut Sender<'_>,
        scope: &mut Scope<'_, World>,
    ) -> Next<Self> {
        let expected = self.in_flight.pop_front();
        if expected.as_deref() != Some(message.as_bytes()) {
            let said = message.as_bytes().escape_ascii().to_string();
            lock(&scope.log).wrong.push(format!("not what was sent: {said}"));
        }
        if self.is_paused && self.in_flight.is_empty() && self.next < MESSAGES {
            let pause = Duration::from_millis(scope.random_u64() % 2_000);
            return Next::go_on(self).deadline(scope.now() + pause);
        }
        self.send_next(out)
    }

    fn timeout(mut self, out: &mut Sender<'_>, _: &mut Scope<'_, World>) -> Next<Self> {
        self.is_paused = false;
        self.send_next(out)
    }

    fn flushed(self, out: &mut Sender<'_>, _: &mut Scope<'_, World>) -> Next<Self> {
        self.send_next(out)
    }

    fn closed(self, end: Closed<'_>, scope: &mut Scope<'_, World>) {
        let mut log = lock(&scope.log);
        let is_all = self.next == MESSAGES && self.in_flight.is_empty();
        match end.cause {
            Cause::Handler if is_all && end.code == Code::NORMAL => log.finished += 1,
            // Caused by the network, or the server's host went down.
            Cause::Lost | Cause::PongTimeout | Cause::CloseTimeout => log.broken_off += 1,
            Cause::Peer if end.code == Code::GOING_AWAY => log.broken_off += 1,
            // Neither side breaks the protocol, whatever the network does.
            _ => log.wrong.push(format!("{end:?} after {} messages", self.next)),
        }
        drop(log);
        drop(self.busy);
        self.caller.wakeup();
    }
}

/// Holds one conversation after the other, until `wanted` have completed.
struct Caller {
    server: SocketAddr,
    patience: Duration,
    future: Option<(Future<ClientResult<Dial<Speaker>>>, Busy)>,
    /// How many had ended for any reason at its last check.
    seen: u32,
    wanted: u32,
}

impl Caller {
    fn call(mut self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        let dial = Dial::new("/", "server", scope.notifier(), config(self.patience));
        let deadline = scope.now() + self.patience.max(Duration::from_secs(60));
        let asked = scope.pool.ask_until(self.server, dial, deadline, scope);
        self.future = Some((asked.expect("few are asked at a time"), Busy::new(scope)));
        Response::ok(self)
    }

    fn later(self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        let pause = Duration::from_millis(100 + scope.random_u64() % 900);
        Response::ok(self).deadline(scope.now() + pause)
    }
}

impl Machine for Caller {
    type Context = World;
    type Seed = Infallible;

    fn timeout(self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        self.call(scope)
    }

    fn wakeup(mut self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        let ended = {
            let log = lock(&scope.log);
            if log.finished >= self.wanted {
                return Response::done();
            }
            log.finished + log.broken_off + log.wrong.len() as u32
        };
        if let Some((future, busy)) = self.future.take() {
            match future.take() {
                Outcome::Pending(future) => {
                    self.future = Some((future, busy));
                    return Response::keep(self);
                }
                // The handler has the connection now.
                Outcome::Value(Ok(Ok(_))) => {}
                Outcome::Value(Err(error)) => {
                    if matches!(error, ClientError::NotConnected(_) | ClientError::NotRepeated(_)) {
                        attempt_failed(&error, scope);
                    }
                    return self.later(scope);
                }
                // An error page of a server with a fault.
                Outcome::Value(Ok(Err(_))) | Outcome::Lost(_) => return self.later(scope),
            }
        }
        // It may have ended before this machine was notified that it began.
        if ended > self.seen {
            self.seen = ended;
            return self.later(scope);
        }
        Response::keep(self)
    }
}

type Machines<S> = Compose2<PoolMachine<Dial<Speaker>, ByAddress<S>>, Caller>;

/// Both sides wait this long for a pong, and a quarter of it for the answer to a close frame.
/// Output of another conversation on the same connection may go first.
fn config(patience: Duration) -> Arc<WebSocketConfig> {
    let config = WebSocketConfig::new().deflate(Deflate::new());
    config.pong_within(patience).close_within(patience / 4).share()
}

/// How long an acknowledgement may take on a network that carries 64 bytes in a fifth of a second.
const SLOW: Duration = Duration::from_secs(100);

/// An HTTP/2 connection still sends the output of streams that were given up, 64 KiB of it, before
/// new output. With the timeout of a dedicated connection, conversations would be given up all the
/// time and nothing new would be sent.
fn patience(http2: bool) -> Duration {
    if http2 { 3 * SLOW } else { Duration::from_secs(20) }
}

/// The server's HTTP settings, for both versions.
pub(crate) fn server_config() -> ServerConfig {
    let http2 = server::Http2Config::new().prior_knowledge(true).settings_timeout(SLOW);
    ServerConfig::new().limits(limits()).http2(http2)
}

/// The client's HTTP settings. The client uses one of the versions.
pub(crate) fn client_config(http2: bool) -> ClientConfig {
    ClientConfig::new().limits(limits()).http2(http2_config(http2))
}

/// The part of them for HTTP/2.
pub(crate) fn http2_config(is_used: bool) -> client::Http2Config {
    let config = client::Http2Config::new().prior_knowledge(is_used);
    config.settings_timeout(SLOW).ping_timeout(SLOW)
}

type Serving<G> = HttpAccept<Site<()>, ListenerOf<G>>;

/// A host that echoes all messages. `http2` tells whether an intermediary uses HTTP/2.
pub(crate) fn serving<G: Ground>(sim: &mut Sim, http2: bool) -> Result<Host<Serving<G>>, BoxError> {
    let seed = sim.seed();
    Ok(sim.host("server", move |boot| {
        let mut creator: Loop<Serving<G>, _> = G::new_loop(boot)?;
        let address = SocketAddr::new(G::server_address(boot.address(), seed), PORT);
        let seed = HttpSeed::<Site<()>>::new(config(patience(http2)), server_config());
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = ListenerOf::<G>::bind(&address, &ListenOptions::new(), scope)?;
                Ok(server::listen(listener, seed, scope))
            })
        })?;
        Ok(creator.instantiate(()))
    })?)
}

/// The HTTP version of the client's requests, and whether an intermediary uses HTTP/2.
#[derive(Clone, Copy)]
pub(crate) struct HttpVersions {
    pub(crate) asks_by_http2: bool,
    pub(crate) has_http2: bool,
}

/// Holds conversations with the server at `address` during the faults, and after `heal` has ended
/// them.
pub(crate) fn converse_with<G: Ground>(
    sim: &mut Sim,
    address: SocketAddr,
    way: HttpVersions,
    heal: impl FnOnce(&mut Sim) -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    let patience = patience(way.has_http2);
    let log = Arc::new(Mutex::new(Log::default()));
    let shared = log.clone();
    // The clients' host is not under test: it never crashes, and has enough slots.
    let faults = sim.faults();
    sim.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
    let clients = sim.host("clients", move |boot| {
        let mut creator: Loop<Machines<StreamOf<G>>, _> = G::new_loop(boot)?;
        let pool = creator.add_part(Compose2::A, |scope| {
            Ok(PoolMachine::new(PoolConfig::new(), client_config(way.asks_by_http2), scope))
        })?;
        Ok(creator.instantiate(World { pool, log: shared.clone() }))
    })?;
    sim.set_faults(faults);
    sim.protect(clients);
    let call = |sim: &mut Sim, wanted: u32| {
        let added = sim.with(clients, |instance| {
            let caller = Caller { server: address, patience, future: None, seen: 0, wanted };
            let response = |scope: &mut Scope<'_, World>| {
                Response::ok(Compose2::B(caller)).deadline(scope.now())
            };
            instance.add_machine_with(response).is_ok()
        });
        assert_eq!(added, Some(true), "the clients' host is up and has room");
    };
    call(sim, CONVERSATIONS);
    sim.run_for(FAULTY)?;
    heal(sim)?;
    // Some more conversations. None of them has a reason to fail once lost connections are
    // detected.
    let wanted = CONVERSATIONS.max(lock(&log).finished) + 2;
    call(sim, wanted);
    let seen = log.clone();
    // On a network that carries 64 bytes in a fifth of a second, all messages of both sides take
    // half an hour.
    sim.eventually(Duration::from_secs(1_800), move |_| {
        let log = lock(&seen);
        log.finished >= wanted || !log.wrong.is_empty()
    })?;
    let log = lock(&log);
    if log.wrong.is_empty() { Ok(()) } else { Err(log.wrong.join(", ").into()) }
}

/// Over HTTP/1.1, or on HTTP/2 streams.
pub(crate) fn converse<G: Ground>(sim: &mut Sim, http2: bool) -> Result<(), BoxError> {
    let server = serving::<G>(sim, http2)?;
    let address = SocketAddr::new(G::server_address(sim.address(server), sim.seed()), PORT);
    let way = HttpVersions { asks_by_http2: http2, has_http2: http2 };
    converse_with::<G>(sim, address, way, |sim| stage::heal(sim, server))
}

#[test]
fn messages_are_echoed_whole_in_order_and_at_most_once() {
    stage::check(|sim| converse::<Bytes>(sim, false));
}

#[test]
fn messages_on_http2_streams_are_echoed_in_order_and_at_most_once() {
    stage::check(|sim| converse::<Bytes>(sim, true));
}
