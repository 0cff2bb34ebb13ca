//! A pool of HTTP connections to our server, under all faults. Each request has one outcome before
//! its deadline: either its own intact response, or an error. No request is served twice unless its
//! method allows it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rotor::http::client::{
    ByAddress, ClientConfig, ClientError, ClientResult, Fetch, Pool, PoolConfig, PoolMachine,
};
use rotor::http::server::{self, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Server};
use rotor::http::{Limits, Status};
use rotor::net::{ListenOptions, Listener, StreamSocket};
use rotor::stream::StreamConfig;
use rotor::{
    BoxError, Compose2, EventSet, Future, Infallible, Loop, Machine, Outcome, Response, Scope, Time,
};
use rotor_sim::net::SimTcpListener;
use rotor_sim::{Boot, Busy, Fault, Host, Sim, SimBackend, attempt_failed};

use crate::ground::{Bytes, Ground, ListenerOf, StreamOf};
use crate::stage::{self, FAULTY, PORT};

/// How late an outcome may be. One of the faults stops a host for up to two seconds.
const LATENESS_MAX: Duration = Duration::from_secs(3);

/// How often each request was served, that is, started with its whole body available.
pub(crate) type Ledger = Arc<Mutex<BTreeMap<String, u32>>>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tags of held requests begin with this. Their bodies are not read, and they get no response.
pub(crate) const HELD: &str = "h";

/// Records the tag of its request and sends the body back. A response has no length if its tag ends
/// in 7, and closes the connection if it ends in 3.
pub(crate) struct Serves {
    ledger: Ledger,
    tag: String,
}

impl Server for Serves {
    type Context = ();
    type Seed = Ledger;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        ledger: Ledger,
        head: &server::Head<'_>,
        _: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let tag = head.path().trim_start_matches('/').to_owned();
        if tag.starts_with(HELD) {
            return Next::go_on(Serves { ledger, tag }).no_deadline();
        }
        Next::recv(Serves { ledger, tag }, RecvMode::Buffered(1 << 20)).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        *lock(&self.ledger).entry(self.tag.clone()).or_default() += 1;
        if self.tag.ends_with('3') {
            response.close();
        }
        let answer = [self.tag.as_bytes(), b" ", body].concat();
        let written = if self.tag.ends_with('7') {
            response.status(Status::OK).and_then(|()| response.add_chunked()).and_then(|()| {
                response.done_headers()?;
                answer.chunks(1_000).try_for_each(|chunk| response.write_body(chunk))?;
                response.done()
            })
        } else {
            response.send(Status::OK, "text/plain", &answer)
        };
        written.expect("it is in order");
        Next::finished()
    }
}

/// Some networks of the simulation carry 64 bytes in a fifth of a second. There the default minimum
/// rate would end every body.
pub(crate) fn limits() -> Limits {
    let handshake = Duration::from_secs(60);
    Limits::new().body_rate_min(16).response_rate_min(16).handshake_timeout(handshake)
}

/// The results of the requests.
#[derive(Default)]
struct Log {
    asked: u32,
    answered: u32,
    failed: u32,
    wrong: Vec<String>,
    /// The requests that failed without a server having acted on them.
    untouched: Vec<String>,
    /// The errors of requests that were sent after the faults.
    reasons: Vec<String>,
    /// By how much the latest outcome missed its deadline.
    lateness: Duration,
}

pub(crate) struct World<S: StreamSocket> {
    pool: Pool<Fetch<World<S>>, S::Target>,
    log: Arc<Mutex<Log>>,
}

/// Sends requests of all kinds, and records their outcomes.
pub(crate) struct Asker<S: AskSocket> {
    server: S::Target,
    prefix: &'static str,
    left: u32,
    number: u32,
    open: Vec<PendingRequest<S>>,
}

struct PendingRequest<S: AskSocket> {
    tag: String,
    expected: Vec<u8>,
    deadline: Time,
    future: Future<ClientResult<Fetch<World<S>>>>,
    busy: Busy,
}

impl<S: AskSocket> Asker<S> {
    fn ask(&mut self, scope: &mut Scope<'_, World<S>>) {
        self.left -= 1;
        self.number += 1;
        let tag = format!("{}{}", self.prefix, self.number);
        let body = tag.repeat(self.number as usize % 4 * 1_000 / tag.len());
        let fetch = match self.number % 3 {
            0 => Fetch::get(format!("/{tag}")),
            1 => Fetch::post(format!("/{tag}"), body.as_str()),
            _ => Fetch::new("PUT", format!("/{tag}")).body(body.as_str()),
        };
        let body = if self.number.is_multiple_of(3) { "" } else { &body };
        let time = match self.prefix {
            // During the faults, some requests have far too little time.
            "a" | "b" => Duration::from_millis(500 + u64::from(self.number) * 997 % 9_000),
            // One after the other, over a network that carries 64 bytes in a fifth of a second.
            _ => Duration::from_secs(600),
        };
        let deadline = scope.now() + time;
        let asked =
            scope.pool.ask_until(self.server.clone(), fetch.host("server"), deadline, scope);
        let future = asked.expect("few are asked at a time");
        lock(&scope.log).asked += 1;
        let expected = format!("{tag} {body}").into_bytes();
        self.open.push(PendingRequest { tag, expected, deadline, future, busy: Busy::new(scope) });
    }

    fn collect(mut self, scope: &mut Scope<'_, World<S>>) -> Response<Self, Infallible> {
        for PendingRequest { tag, expected, deadline, future, busy } in
            std::mem::take(&mut self.open)
        {
            let outcome = match future.take() {
                Outcome::Pending(future) => {
                    self.open.push(PendingRequest { tag, expected, deadline, future, busy });
                    continue;
                }
                Outcome::Value(outcome) => outcome,
                Outcome::Lost(lost) => {
                    lock(&scope.log).wrong.push(format!("{tag}: {lost}"));
                    continue;
                }
            };
            let mut log = lock(&scope.log);
            log.lateness = log.lateness.max(scope.now() - deadline);
            match outcome {
                Ok(fetched) if fetched.status == Status::OK && fetched.body == expected => {
                    log.answered += 1
                }
                // One of the faults is a panic in a handler. Another is a clock jump that makes the
                // body appear too slow.
                Ok(fetched) if matches!(fetched.status.code(), 408 | 500..) => {
                    log.failed += 1;
                    if tag.starts_with('c') {
                        log.reasons.push(format!("{tag}: {}", fetched.status));
                    }
                }
                Ok(fetched) => {
                    let body = fetched.body[..fetched.body.len().min(60)].escape_ascii();
                    log.wrong.push(format!("{tag}: {} {body}", fetched.status));
                }
                Err(error) => {
                    if matches!(error, ClientError::NotConnected(_) | ClientError::NotRepeated(_)) {
                        attempt_failed(&error, scope);
                    }
                    log.failed += 1;
                    if tag.starts_with('c') {
                        log.reasons.push(format!("{tag}: {error:?}"));
                    }
                    if !error.may_have_been_processed() {
                        log.untouched.push(tag);
                    }
                }
            }
        }
        if self.left == 0 && self.open.is_empty() { Response::done() } else { Response::keep(self) }
    }
}

impl<S: AskSocket> Machine for Asker<S> {
    type Context = World<S>;
    type Seed = Infallible;

    fn ready(self, _: EventSet, scope: &mut Scope<'_, World<S>>) -> Response<Self, Infallible> {
        self.collect(scope)
    }

    fn wakeup(self, scope: &mut Scope<'_, World<S>>) -> Response<Self, Infallible> {
        self.collect(scope)
    }

    fn timeout(mut self, scope: &mut Scope<'_, World<S>>) -> Response<Self, Infallible> {
        if self.left == 0 {
            return Response::ok(self);
        }
        self.ask(scope);
        let pause = Duration::from_millis(scope.random_u64() % 900);
        Response::ok(self).deadline(scope.now() + pause)
    }
}

/// The sockets of the pool's connections.
pub(crate) trait AskSocket: StreamSocket<Target: Clone + Ord + Debug + Send> {}

impl<S: StreamSocket<Target: Clone + Ord + Debug + Send>> AskSocket for S {}

pub(crate) type Machines<S> = Compose2<PoolMachine<Fetch<World<S>>, ByAddress<S>>, Asker<S>>;

/// A host that sends requests. It is not under test: it never crashes or panics, and has enough
/// slots.
fn client_host<S: AskSocket>(
    sim: &mut Sim,
    log: &Arc<Mutex<Log>>,
    demands: &ScenarioConfig,
) -> Result<Host<Machines<S>>, BoxError> {
    let (connections, client, ground) =
        (demands.connections, demands.client.clone(), demands.ground);
    let faults = sim.faults();
    sim.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
    let log = log.clone();
    let host = sim.host("clients", move |boot| {
        let mut creator: Loop<Machines<S>, _> = Loop::with_backend(ground(boot)?, &boot.config())?;
        let pool = creator.add_part(Compose2::A, |scope| {
            let config = PoolConfig::new().connections_per_origin_max(connections);
            Ok(PoolMachine::new(config, client.clone(), scope))
        })?;
        Ok(creator.instantiate(World { pool, log: log.clone() }))
    })?;
    sim.set_faults(faults);
    sim.protect(host);
    Ok(host)
}

fn add_asker<S: AskSocket>(
    sim: &mut Sim,
    host: Host<Machines<S>>,
    server: S::Target,
    prefix: &'static str,
    left: u32,
) {
    let asker = Asker { server, prefix, left, number: 0, open: Vec::new() };
    let added = sim.with(host, |instance| {
        instance
            .add_machine_with(|scope| Response::ok(Compose2::B(asker)).deadline(scope.now()))
            .is_ok()
    });
    assert_eq!(added, Some(true), "the clients' host is up and has room");
}

/// A host that serves requests and records them.
pub(crate) fn serving(
    sim: &mut Sim,
    ledger: &Ledger,
) -> Result<Host<HttpAccept<Serves, SimTcpListener>>, BoxError> {
    serving_over(sim, ledger, |listener| listener)
}

/// The same, with the listener wrapped.
pub(crate) fn serving_over<L: Listener>(
    sim: &mut Sim,
    ledger: &Ledger,
    over: impl Fn(SimTcpListener) -> L + 'static,
) -> Result<Host<HttpAccept<Serves, L>>, BoxError> {
    serving_with(sim, ledger, || server::ServerConfig::new().limits(limits()), over)
}

/// The same, on any kind of network.
fn serving_on<G: Ground>(
    sim: &mut Sim,
    ledger: &Ledger,
) -> Result<Host<HttpAccept<Serves, ListenerOf<G>>>, BoxError> {
    let config = || server::ServerConfig::new().limits(limits());
    serving_of::<G, _>(sim, ledger, config, |listener| listener)
}

/// The same, with this configuration, and with the listener wrapped.
pub(crate) fn serving_with<L: Listener>(
    sim: &mut Sim,
    ledger: &Ledger,
    config: impl Fn() -> server::ServerConfig + 'static,
    over: impl Fn(SimTcpListener) -> L + 'static,
) -> Result<Host<HttpAccept<Serves, L>>, BoxError> {
    serving_of::<Bytes, L>(sim, ledger, config, over)
}

/// The same, on any kind of network.
pub(crate) fn serving_of<G: Ground, L: Listener>(
    sim: &mut Sim,
    ledger: &Ledger,
    config: impl Fn() -> server::ServerConfig + 'static,
    over: impl Fn(ListenerOf<G>) -> L + 'static,
) -> Result<Host<HttpAccept<Serves, L>>, BoxError> {
    let (ledger, seed) = (ledger.clone(), sim.seed());
    Ok(sim.host("server", move |boot| {
        let mut creator: Loop<HttpAccept<Serves, L>, _> = G::new_loop(boot)?;
        let address = SocketAddr::new(G::server_address(boot.address(), seed), PORT);
        let seed = HttpSeed::<Serves>::new(ledger.clone(), config());
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = ListenerOf::<G>::bind(&address, &ListenOptions::new(), scope)?;
                Ok(server::listen(over(listener), seed, scope))
            })
        })?;
        Ok(creator.instantiate(()))
    })?)
}

/// The differences between scenarios. In each, every request has one outcome, its own and in time,
/// and all requests are answered that are sent after the faults.
pub(crate) struct ScenarioConfig {
    /// How many additional times a request may be served if its method allows it.
    pub(crate) repeats_max: u32,
    /// The number of connections of the pool.
    pub(crate) connections: usize,
    /// The configuration of the client.
    pub(crate) client: ClientConfig,
    /// The backend of the client's host.
    pub(crate) ground: fn(&Boot) -> io::Result<SimBackend>,
}

impl ScenarioConfig {
    /// Three connections on the simulation's own sockets, without an intermediary that repeats
    /// requests.
    pub(crate) fn new(client: ClientConfig) -> ScenarioConfig {
        ScenarioConfig { repeats_max: 1, connections: 3, client, ground: Bytes::backend }
    }
}

/// The usual configuration of the client.
pub(crate) fn client() -> ClientConfig {
    let stream = StreamConfig::new().handshake_timeout(Duration::from_secs(60));
    ClientConfig::new().stream(&stream).limits(limits())
}

/// Checks both sides when all requests are answered and the faults are over. It may
/// [hold](ask_held) some requests first.
pub(crate) type FinalCheck<'a, S> = &'a dyn Fn(&mut Sim, Host<Machines<S>>) -> Result<(), BoxError>;

/// Sends requests that are held.
pub(crate) fn ask_held<S: AskSocket>(
    sim: &mut Sim,
    host: Host<Machines<S>>,
    server: S::Target,
    count: u32,
) {
    add_asker(sim, host, server, HELD, count);
}

/// Sends requests to an address during the faults, and again after them.
pub(crate) fn ask<S: AskSocket>(
    sim: &mut Sim,
    address: S::Target,
    ledger: &Ledger,
    demands: &ScenarioConfig,
    heal: impl FnOnce(&mut Sim) -> Result<(), BoxError>,
) -> Result<(), BoxError> {
    ask_both::<S>(sim, [address.clone(), address], ledger, demands, heal, &|_, _| Ok(()))
}

/// Sends requests to two addresses through one pool: those tagged `a` and `c` to the first, those
/// tagged `b` to the second.
pub(crate) fn ask_both<S: AskSocket>(
    sim: &mut Sim,
    [first, second]: [S::Target; 2],
    ledger: &Ledger,
    demands: &ScenarioConfig,
    heal: impl FnOnce(&mut Sim) -> Result<(), BoxError>,
    look: FinalCheck<'_, S>,
) -> Result<(), BoxError> {
    let log = Arc::new(Mutex::new(Log::default()));
    let clients = client_host::<S>(sim, &log, demands)?;
    add_asker(sim, clients, first.clone(), "a", 40);
    add_asker(sim, clients, second, "b", 40);
    sim.run_for(FAULTY)?;
    heal(sim)?;
    let seen = log.clone();
    let is_over = move |asked: u32| {
        let log = lock(&seen);
        log.asked == asked && log.answered + log.failed + log.wrong.len() as u32 == asked
    };
    let all = is_over.clone();
    sim.eventually(Duration::from_secs(200), move |_| all(80))?;
    let answered = lock(&log).answered;
    // The faults are over. Requests succeed again, once the pool has detected the connections that
    // died silently.
    sim.run_for(Duration::from_secs(180))?;
    add_asker(sim, clients, first, "c", 20);
    sim.eventually(Duration::from_secs(700), move |_| is_over(100))?;
    look(sim, clients)?;
    let log = lock(&log);
    if !log.wrong.is_empty() {
        return Err(log.wrong.join(", ").into());
    }
    // Another fault is a clock jump of a minute.
    if log.lateness > LATENESS_MAX && sim.fault_count(Fault::ClockJump) == 0 {
        return Err(format!("an outcome {:?} after its deadline", log.lateness).into());
    }
    if log.answered != answered + 20 {
        return Err(format!("after the faults: {}", log.reasons.join(", ")).into());
    }
    for (tag, served) in &*lock(ledger) {
        let number: u32 = tag[1..].parse()?;
        let may_repeat = number % 3 != 1;
        if *served > 1 + if may_repeat { demands.repeats_max } else { 0 } {
            return Err(format!("{tag} was served {served} times").into());
        }
    }
    if let Some(tag) = log.untouched.iter().find(|tag| lock(ledger).contains_key(*tag)) {
        return Err(format!("{tag} was served, and no server can have acted upon it").into());
    }
    Ok(())
}

pub(crate) fn scenario<G: Ground>(sim: &mut Sim) -> Result<(), BoxError> {
    let ledger = Ledger::default();
    let server = serving_on::<G>(sim, &ledger)?;
    let address = SocketAddr::new(G::server_address(sim.address(server), sim.seed()), PORT);
    let demands = ScenarioConfig { ground: G::backend, ..ScenarioConfig::new(client()) };
    ask::<StreamOf<G>>(sim, address, &ledger, &demands, |sim| stage::heal(sim, server))
}

#[test]
fn each_request_has_one_outcome_of_its_own_in_time_and_no_post_runs_twice() {
    stage::check(scenario::<Bytes>);
}
