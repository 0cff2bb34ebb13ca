//! Requests over HTTP/2 and TLS in tunnels through a proxy, to a server that ends connections and
//! streams in each way. Each request has one outcome; a body is whole, and is the one that was asked
//! for, also if it comes from a file; nothing that may not be repeated is served twice.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor::http::client::{
    self, ByAddress, ClientConfig, ClientResult, Fetch, Pool, PoolConfig, PoolMachine,
    TunnelStream, TunnelTarget,
};
use rotor::http::server::{
    self, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Server, ServerConfig,
};
use rotor::http::{MessageError, Status};
use rotor::net::{ListenOptions, Listener};
use rotor::stream::{Host as HostName, StreamConfig};
use rotor::tls::{
    Roots, TlsClient, TlsClientConfig, TlsListener, TlsServer, TlsServerConfig, TlsStream,
    TlsTarget,
};
use rotor::{
    BoxError, Compose2, Future, Infallible, Loop, Machine, Outcome, Response, Scope, Time,
};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Check, Crash, Fault, Faults, Host, Network, Sim};
use rotor_test_kit::Directory;

use crate::connect::ConnectListener;
use crate::stack::{PORT, any, identity, slow_limits};
use crate::talks::lock;

/// How often each request was served, with its whole body.
type Ledger = Arc<Mutex<BTreeMap<String, u32>>>;

/// The file, and how much of it is there: less than is promised, for some.
#[derive(Clone)]
struct Served {
    ledger: Ledger,
    file: Arc<File>,
    is_rude: bool,
}

const FILE_LEN: usize = 300_000;

fn file_content() -> Vec<u8> {
    (0..FILE_LEN as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

struct Serves {
    served: Served,
    path: String,
}

impl Serves {
    fn answer(
        &self,
        body: &[u8],
        response: &mut server::Response<'_>,
        chance: u64,
    ) -> Result<(), MessageError> {
        let Some(range) = self.path.strip_prefix("/file/") else {
            let answer = [self.path.as_bytes(), b" ", body].concat();
            return response.send(Status::OK, "text/plain", &answer);
        };
        let mut numbers = range.split('/').skip(1).map(|text| text.parse().expect("a number"));
        let (offset, len): (usize, usize) =
            (numbers.next().expect("one"), numbers.next().expect("two"));
        response.status(Status::OK)?;
        if chance.is_multiple_of(2) {
            response.add_length(len as u64)?;
        } else {
            response.add_chunked()?;
        }
        response.done_headers()?;
        response.write_file(self.served.file.clone(), offset as u64, len)?;
        response.done()
    }
}

impl Server for Serves {
    type Context = ();
    type Seed = Served;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        served: Served,
        head: &server::Head<'_>,
        _: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let path = head.path().to_owned();
        Next::recv(Serves { served, path }, RecvMode::Buffered(1 << 20)).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut server::Response<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        *lock(&self.served.ledger).entry(self.path.clone()).or_default() += 1;
        let chance = scope.random_u64();
        if self.served.is_rude {
            match chance % 29 {
                0 => panic!("as planted"),
                1 => return Next::fail(Status::BAD_GATEWAY),
                2 => response.close(),
                3 => {
                    let begun = response.status(Status::OK).and_then(|()| response.add_length(9));
                    begun.and_then(|()| response.done_headers()).expect("in order");
                    // The response is never completed.
                    return Next::finished();
                }
                4 => {
                    let begun = response.status(Status::OK).and_then(|()| response.add_length(9));
                    begun.and_then(|()| response.done_headers()).expect("in order");
                    // Promised, but behind the end of the file.
                    let file = self.served.file.clone();
                    response.write_file(file, FILE_LEN as u64 - 4, 9).expect("in order");
                    response.done().expect("in order");
                    return Next::finished();
                }
                _ => {}
            }
        }
        self.answer(body, response, chance).expect("it is in order");
        Next::finished()
    }
}

#[derive(Default)]
struct Log {
    asked: u32,
    answered: u32,
    failed: Vec<(String, String, bool)>,
    wrong: Vec<String>,
    lateness: Duration,
}

type Socket = TlsStream<TunnelStream<SimTcpStream>>;
type Target = TlsTarget<TunnelTarget<SocketAddr>>;

struct World {
    pool: Pool<Fetch<World>, Target>,
    log: Arc<Mutex<Log>>,
}

struct Pending {
    path: String,
    expected: Vec<u8>,
    deadline: Time,
    future: Future<ClientResult<Fetch<World>>>,
}

struct Asker {
    target: Target,
    prefix: &'static str,
    left: u32,
    pause: u64,
    content: Arc<Vec<u8>>,
    open: Vec<Pending>,
}

impl Asker {
    fn ask(&mut self, scope: &mut Scope<'_, World>) {
        self.left -= 1;
        let number = self.left;
        let chance = scope.random_u64();
        let (path, fetch, expected) = match chance % 3 {
            0 => {
                let offset = chance as usize / 8 % FILE_LEN;
                let lens = [0, 1, 4_000, 65_536, FILE_LEN];
                let len = lens[chance as usize / 3 % 5].min(FILE_LEN - offset);
                let path = format!("/file/{}{number}/{offset}/{len}", self.prefix);
                let expected = self.content[offset..offset + len].to_vec();
                (path.clone(), Fetch::get(path), expected)
            }
            kind => {
                let path = format!("/{}{number}", self.prefix);
                let body = path.repeat(chance as usize % 2_000);
                let expected = format!("{path} {body}").into_bytes();
                let method = if kind == 1 { "POST" } else { "PUT" };
                (path.clone(), Fetch::new(method, path).body(body), expected)
            }
        };
        let deadline = scope.now() + Duration::from_secs(200);
        let fetch = fetch.host("server");
        let asked = scope.pool.ask_until(self.target.clone(), fetch, deadline, scope);
        let future = asked.expect("few are asked");
        lock(&scope.log).asked += 1;
        self.open.push(Pending { path, expected, deadline, future });
    }
}

impl Machine for Asker {
    type Context = World;
    type Seed = Infallible;

    fn timeout(mut self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        if self.left == 0 {
            return Response::ok(self);
        }
        self.ask(scope);
        let pause = Duration::from_millis(scope.random_u64() % self.pause);
        Response::ok(self).deadline(scope.now() + pause)
    }

    fn wakeup(mut self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        for Pending { path, expected, deadline, future } in std::mem::take(&mut self.open) {
            let outcome = match future.take() {
                Outcome::Pending(future) => {
                    self.open.push(Pending { path, expected, deadline, future });
                    continue;
                }
                Outcome::Value(outcome) => outcome,
                Outcome::Lost(lost) => {
                    lock(&scope.log).wrong.push(format!("{path}: {lost}"));
                    continue;
                }
            };
            let mut log = lock(&scope.log);
            log.lateness = log.lateness.max(scope.now() - deadline);
            match outcome {
                Ok(fetched) if fetched.status == Status::OK && fetched.body == expected => {
                    log.answered += 1;
                }
                Ok(fetched) if matches!(fetched.status.code(), 408 | 500..) => {
                    log.failed.push((path, fetched.status.to_string(), true));
                }
                Ok(fetched) => {
                    let (status, len) = (fetched.status, fetched.body.len());
                    log.wrong.push(format!("{path}: {status}, {len} of {}", expected.len()));
                }
                Err(error) => {
                    let maybe = error.may_have_been_processed();
                    log.failed.push((path, format!("{error:?}"), maybe));
                }
            }
        }
        Response::keep(self)
    }
}

type Serving = HttpAccept<Serves, TlsListener<ConnectListener<SimTcpListener>>>;
type Asking = Compose2<PoolMachine<Fetch<World>, ByAddress<Socket>>, Asker>;

struct Hosts {
    server: Host<Serving>,
    clients: Host<Asking>,
    target: Target,
    ledger: Ledger,
    log: Arc<Mutex<Log>>,
    http: Arc<server::Counters>,
    asks: Arc<client::Counters>,
    content: Arc<Vec<u8>>,
    _directory: Directory,
}

fn hosts(sim: &mut Sim, is_rude: bool) -> Result<Hosts, BoxError> {
    let directory = Directory::create();
    let content = Arc::new(file_content());
    std::fs::write(directory.join("file"), &content[..])?;
    let file = Arc::new(File::open(directory.join("file"))?);
    let ledger = Ledger::default();
    let served = Served { ledger: ledger.clone(), file, is_rude };
    let (identity, certificate) = identity();
    let protocols: &[&[u8]] = match is_rude && any(sim, &[true, false]) {
        true => &[b"http/1.1"],
        false => &[b"h2", b"http/1.1"],
    };
    let tls = TlsServer::new(TlsServerConfig::new(identity.clone()).alpn(protocols))?;
    let http = Arc::new(server::Counters::default());
    let limits = slow_limits()
        .requests_max(any(sim, &[7, 20, u64::MAX]))
        .connection_age_max(Duration::from_millis(any(sim, &[3_000, 1_000_000])))
        .idle_timeout(Duration::from_millis(any(sim, &[1_000, 75_000])))
        .output_high_water(any(sim, &[4_096, 65_536]));
    let slow = Duration::from_secs(100);
    let streams = server::Http2Config::new()
        .streams_max(any(sim, &[1, 3, 100]))
        .connection_window(any(sim, &[65_535, 1 << 20]))
        .settings_timeout(slow);
    let counted = http.clone();
    let server = sim.host("server", move |boot| {
        let mut creator: Loop<Serving, _> = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        let config = ServerConfig::new().limits(limits.clone()).http2(streams.clone());
        let seed = HttpSeed::<Serves>::new(served.clone(), config.count_with(counted.clone()));
        let tls = tls.clone();
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope)?;
                Ok(server::listen(tls.over(ConnectListener(listener)), seed, scope))
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    let roots = Roots::none().der(certificate.clone())?;
    let client = TlsClient::new(TlsClientConfig::new(roots).alpn(protocols))?;
    let address = SocketAddr::new(sim.address(server), PORT);
    let tunnel = TunnelTarget::new(address, &HostName::new("server", 443))?;
    let target = client.to(tunnel, "server")?;
    let streams = client::Http2Config::new().settings_timeout(slow).ping_timeout(slow);
    let stream = StreamConfig::new().handshake_timeout(Duration::from_secs(60));
    let config = ClientConfig::new().stream(&stream).limits(slow_limits()).http2(streams);
    let asks = config.counters();
    let faults = sim.faults();
    sim.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
    let log = Arc::new(Mutex::new(Log::default()));
    let (shared, connections) = (log.clone(), any(sim, &[1, 3]));
    let clients = sim.host("clients", move |boot| {
        let mut creator: Loop<Asking, _> = boot.new_loop()?;
        let pool = creator.add_part(Compose2::A, |scope| {
            let pool = PoolConfig::new().connections_per_origin_max(connections);
            Ok(PoolMachine::new(pool, config.clone(), scope))
        })?;
        Ok(creator.instantiate(World { pool, log: shared.clone() }))
    })?;
    sim.set_faults(faults);
    sim.protect(clients);
    let _directory = directory;
    Ok(Hosts { server, clients, target, ledger, log, http, asks, content, _directory })
}

impl Hosts {
    fn ask(&self, sim: &mut Sim, prefix: &'static str, left: u32, pause: u64) {
        let (target, content) = (self.target.clone(), self.content.clone());
        let asker = Asker { target, prefix, left, pause, content, open: Vec::new() };
        let added = sim.with(self.clients, |instance| {
            instance
                .add_machine_with(|scope| Response::ok(Compose2::B(asker)).deadline(scope.now()))
                .is_ok()
        });
        assert_eq!(added, Some(true), "the clients' host is up and has room");
    }

    /// Waits until all of these have an outcome.
    fn wait(&self, sim: &mut Sim, asked: u32) -> Result<(), BoxError> {
        let log = self.log.clone();
        sim.eventually(Duration::from_secs(900), move |_| {
            let log = lock(&log);
            log.asked == asked
                && log.answered as usize + log.failed.len() + log.wrong.len() == asked as usize
        })?;
        Ok(())
    }

    /// Checks what must be true in any case.
    fn check(&self, sim: &Sim) -> Result<(), BoxError> {
        let log = lock(&self.log);
        if !log.wrong.is_empty() {
            return Err(log.wrong.join(", ").into());
        }
        if log.lateness > Duration::from_secs(3) && sim.fault_count(Fault::ClockJump) == 0 {
            return Err(format!("an outcome {:?} after its deadline", log.lateness).into());
        }
        let ledger = lock(&self.ledger);
        for (path, failed, maybe) in &log.failed {
            if !maybe && ledger.contains_key(path) {
                return Err(format!("{path} was served, and {failed}").into());
            }
        }
        let broken = self.asks.protocol_errors() + self.http.protocol_errors();
        let late = self.asks.settings_timeouts() + self.http.settings_timeouts();
        if broken > late {
            return Err(format!("{:?}\n{:?}", self.asks, self.http).into());
        }
        Ok(())
    }
}

/// A server that ends its connections in order, all the time, loses no request.
fn graceful(sim: &mut Sim) -> Result<(), BoxError> {
    let network = Network::new()
        .window(any(sim, &[1_000, 16_384, 65_536]))
        .latency(Duration::from_millis(1)..Duration::from_millis(any(sim, &[2, 60])));
    sim.set_network(network);
    let hosts = hosts(sim, false)?;
    let pause = any(sim, &[1, 100, 500]);
    hosts.ask(sim, "a", 30, pause);
    hosts.wait(sim, 30)?;
    hosts.check(sim)?;
    let log = lock(&hosts.log);
    if !log.failed.is_empty() {
        return Err(format!("{:?}", log.failed).into());
    }
    let twice = lock(&hosts.ledger).iter().find(|(_, count)| **count > 1).map(|it| it.0.clone());
    twice.map_or(Ok(()), |path| Err(format!("{path} was served twice").into()))
}

/// The server also breaks off, and the network has faults.
fn rude(sim: &mut Sim) -> Result<(), BoxError> {
    let network = Network::new().window(any(sim, &[1_000, 16_384, 65_536]));
    sim.set_network(network);
    if any(sim, &[true, false]) {
        sim.set_faults(Faults::none());
    }
    let hosts = hosts(sim, true)?;
    let pauses = [any(sim, &[1, 100, 900]), any(sim, &[1, 100, 900])];
    hosts.ask(sim, "a", 30, pauses[0]);
    hosts.ask(sim, "b", 30, pauses[1]);
    sim.run_for(Duration::from_secs(20))?;
    sim.heal();
    if sim.fault_count(Fault::HandlerPanics) > 0 {
        sim.crash(hosts.server, Crash::Process);
        sim.restart(hosts.server)?;
    }
    hosts.wait(sim, 60)?;
    hosts.check(sim)
}

#[test]
fn a_server_that_ends_its_connections_in_order_loses_no_request() {
    Check::new().seeds(5).calm().run(graceful);
}

#[test]
fn each_request_in_a_tunnel_has_one_outcome_and_a_whole_body() {
    Check::new().seeds(5).run(rude);
}
