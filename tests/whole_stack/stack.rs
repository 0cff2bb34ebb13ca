//! A host that serves WebSockets through all layers, and a host whose pool asks for them.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, SerialNumber};
use rotor::http::Limits;
use rotor::http::client::{self, ByAddress, ClientConfig, ClientResult, PoolConfig, PoolMachine};
use rotor::http::server::{self, HttpAccept, HttpSeed, Server, ServerConfig};
use rotor::net::{ListenOptions, Listener};
use rotor::proxy_protocol::{
    ProxyHeader, ProxyListener, ProxyProtocol, ProxyProtocolConfig, ProxyStream, ProxyTarget,
    Version,
};
use rotor::stream::{PeerConnections, StreamConfig};
use rotor::tls::{
    Identity, Roots, TlsClient, TlsClientConfig, TlsListener, TlsServer, TlsServerConfig,
    TlsStream, TlsTarget,
};
use rotor::websocket::{self, Cause, Code, Deflate, Dial, WebSocket, WebSocketConfig};
use rotor::{BoxError, Compose2, Future, Infallible, Loop, Machine, Outcome, Response, Scope};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Fault, Host, Sim};

use crate::talks::{ClientWorld, End, ServerWorld, SharedLog, Talks, lock, messages};

pub(crate) const PORT: u16 = 443;

/// Some networks of the simulation are slow.
pub(crate) fn slow_limits() -> Limits {
    let handshake = Duration::from_secs(60);
    Limits::new().body_rate_min(16).response_rate_min(16).handshake_timeout(handshake)
}

/// The server's self-signed certificate and its key. They are the same in each run, and signatures
/// of Ed25519 have the same length.
pub(crate) fn identity() -> &'static (Identity, Vec<u8>) {
    static IDENTITY: OnceLock<(Identity, Vec<u8>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("there is randomness");
        let mut params = CertificateParams::new(["server".to_owned()]).expect("it is a name");
        params.serial_number = Some(SerialNumber::from(1));
        let certificate = params.self_signed(&key).expect("it signs").der().to_vec();
        let identity = Identity::from_der(vec![certificate.clone()], key.serialize_der());
        (identity.expect("they belong together"), certificate)
    })
}

pub(crate) type Socket = TlsStream<ProxyStream<SimTcpStream>>;
pub(crate) type Target = TlsTarget<ProxyTarget<SocketAddr>>;

/// Takes WebSockets whose path is the number of their conversation.
pub(crate) struct Site;

impl Server for Site {
    type Context = ServerWorld;
    type Seed = (Arc<WebSocketConfig>, bool);
    type Upgrade = WebSocket<Talks<ServerWorld>>;

    fn headers_received(
        (config, large): (Arc<WebSocketConfig>, bool),
        head: &server::Head<'_>,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ServerWorld>,
    ) -> server::Next<Self> {
        let conversation = head.path().trim_start_matches('/').parse().expect("a number");
        match websocket::accept(head, response, &config) {
            Ok(accepted) => server::Next::upgrade(accepted.seed((conversation, 1, large))),
            Err(_) => server::Next::finished(),
        }
    }
}

pub(crate) type Serving = HttpAccept<Site, TlsListener<ProxyListener<SimTcpListener>>>;

/// Begins conversations.
pub(crate) struct Caller {
    target: Target,
    config: Arc<WebSocketConfig>,
    large: bool,
    left: u32,
    next: u32,
    futures: Vec<Future<ClientResult<Dial<Talks<ClientWorld>>>>>,
}

impl Machine for Caller {
    type Context = ClientWorld;
    type Seed = Infallible;

    fn timeout(mut self, scope: &mut Scope<'_, ClientWorld>) -> Response<Self, Infallible> {
        if self.left == 0 {
            return Response::ok(self);
        }
        (self.left, self.next) = (self.left - 1, self.next + 1);
        let seed = (self.next, 0, self.large);
        let dial = Dial::new(format!("/{}", self.next), "server", seed, self.config.clone());
        lock(&scope.log).asked += 1;
        let until = scope.now() + Duration::from_secs(300);
        let asked = scope.pool.ask_until(self.target.clone(), dial, until, scope);
        self.futures.push(asked.expect("few are asked"));
        let pause = Duration::from_millis(scope.random_u64() % 1_500);
        Response::ok(self).deadline(scope.now() + pause)
    }

    fn wakeup(mut self, scope: &mut Scope<'_, ClientWorld>) -> Response<Self, Infallible> {
        for future in std::mem::take(&mut self.futures) {
            let refused = match future.take() {
                Outcome::Pending(future) => {
                    self.futures.push(future);
                    continue;
                }
                Outcome::Value(Ok(Ok(_))) => continue,
                Outcome::Value(Ok(Err(refusal))) => format!("{refusal:?}"),
                Outcome::Value(Err(error)) => format!("{error:?}"),
                Outcome::Lost(lost) => format!("{lost:?}"),
            };
            lock(&scope.log).refused.push(refused);
        }
        Response::keep(self)
    }
}

pub(crate) type Calling =
    Compose2<PoolMachine<Dial<Talks<ClientWorld>>, ByAddress<Socket>>, Caller>;

/// Any of these.
pub(crate) fn any<T: Copy>(sim: &mut Sim, of: &[T]) -> T {
    of[sim.random_u64() as usize % of.len()]
}

pub(crate) fn websocket_config(sim: &mut Sim) -> WebSocketConfig {
    let config = WebSocketConfig::new().unsent_high_water(any(sim, &[20_000, 65_536, 1 << 20]));
    let config =
        config.pong_within(Duration::from_secs(100)).close_within(Duration::from_secs(300));
    if any(sim, &[true, false]) { config.deflate(Deflate::new()) } else { config }
}

pub(crate) struct Stack {
    pub(crate) server: Host<Serving>,
    pub(crate) clients: Host<Calling>,
    pub(crate) target: Target,
    pub(crate) peers: Arc<PeerConnections>,
    pub(crate) tls: TlsServer,
    pub(crate) log: SharedLog,
    pub(crate) websocket: Arc<WebSocketConfig>,
    pub(crate) large: bool,
    pub(crate) http: Arc<server::Counters>,
    pub(crate) asks: Arc<client::Counters>,
}

pub(crate) fn stack(sim: &mut Sim, large: bool) -> Result<Stack, BoxError> {
    let log = SharedLog::default();
    let (identity, certificate) = identity();
    let tls = TlsServer::new(TlsServerConfig::new(identity.clone()).alpn(&[b"h2"]))?;
    let peers = PeerConnections::new(50).share();
    let config = ProxyProtocolConfig::new(["0.0.0.0/0".parse()?, "::/0".parse()?]);
    let behind = ProxyProtocol::new(config.per_peer(Some(peers.clone())));
    let windows = [65_535, 70_000, 1 << 20];
    let slow = Duration::from_secs(100);
    let limits = slow_limits().output_high_water(any(sim, &[4_096, 65_536]));
    let http2 = server::Http2Config::new()
        .stream_window(any(sim, &windows))
        .connection_window(any(sim, &windows))
        .settings_timeout(slow);
    let http = Arc::new(server::Counters::default());
    let counted = http.clone();
    let (served, listens) = (log.clone(), (tls.clone(), behind.clone()));
    let websocket = websocket_config(sim).share();
    let limited = limits.clone();
    let server = sim.host("server", move |boot| {
        let mut creator: Loop<Serving, _> = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        let config = ServerConfig::new().limits(limited.clone()).http2(http2.clone());
        let seed =
            HttpSeed::<Site>::new((websocket.clone(), large), config.count_with(counted.clone()));
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope)?;
                Ok(server::listen(listens.0.over(listens.1.over(listener)), seed, scope))
            })
        })?;
        Ok(creator.instantiate(ServerWorld { log: served.clone() }))
    })?;
    let roots = Roots::none().der(certificate.clone())?;
    let client = TlsClient::new(TlsClientConfig::new(roots).alpn(&[b"h2"]))?;
    let address = SocketAddr::new(sim.address(server), PORT);
    let header = ProxyHeader::proxied(
        Version::V2,
        ([192, 0, 2, 1], 5).into(),
        ([198, 51, 100, 1], 443).into(),
    );
    let target = client.to(ProxyTarget::new(address, header), "server")?;
    let http2 = client::Http2Config::new()
        .stream_window(any(sim, &windows))
        .connection_window(any(sim, &windows))
        .settings_timeout(slow)
        .ping_timeout(slow);
    let limits = slow_limits().output_high_water(any(sim, &[4_096, 65_536]));
    let config = ClientConfig::new()
        .stream(&StreamConfig::new().handshake_timeout(Duration::from_secs(60)))
        .limits(limits)
        .http2(http2);
    let asks = config.counters();
    let faults = sim.faults();
    sim.set_faults(faults.clone().set(Fault::SmallSlab, 0.0));
    let shared = log.clone();
    let clients = sim.host("clients", move |boot| {
        let mut creator: Loop<Calling, _> = boot.new_loop()?;
        let pool = creator.add_part(Compose2::A, |scope| {
            let pool = PoolConfig::new().connections_per_origin_max(2);
            Ok(PoolMachine::new(pool, config.clone(), scope))
        })?;
        Ok(creator.instantiate(ClientWorld { pool, log: shared.clone() }))
    })?;
    sim.set_faults(faults);
    sim.protect(clients);
    let websocket = websocket_config(sim).share();
    Ok(Stack { server, clients, target, peers, tls, log, websocket, large, http, asks })
}

impl Stack {
    pub(crate) fn call(&self, sim: &mut Sim, first: u32, count: u32) {
        let caller = Caller {
            target: self.target.clone(),
            config: self.websocket.clone(),
            large: self.large,
            left: count,
            next: first,
            futures: Vec::new(),
        };
        let added = sim.with(self.clients, |instance| {
            instance
                .add_machine_with(|scope| Response::ok(Compose2::B(caller)).deadline(scope.now()))
                .is_ok()
        });
        assert_eq!(added, Some(true), "the clients' host is up and has room");
    }

    /// Returns how many conversations have ended in order; each was ended in order on both sides.
    pub(crate) fn check(&self) -> Result<u32, BoxError> {
        let log = lock(&self.log);
        if !log.wrong.is_empty() {
            return Err(log.wrong.join(", ").into());
        }
        let mut finished = 0;
        for (conversation, ends) in &log.ends {
            let all = messages(*conversation);
            let is_whole = |end: &End| end.sent == all && end.received == all;
            let [client, server] = ends;
            match client {
                Some(end) if end.cause == Cause::Handler && end.code == Code::NORMAL => {
                    // A server that closes at the same time drops what comes after that.
                    let is_both = server.as_ref().is_some_and(|end| match end.cause {
                        Cause::Peer => end.code == Code::NORMAL && is_whole(end),
                        Cause::Handler => end.code == Code::GOING_AWAY && end.sent == all,
                        _ => false,
                    });
                    if !is_whole(end) || !is_both {
                        return Err(format!("{conversation}: {ends:?}").into());
                    }
                    finished += 1;
                }
                Some(End { cause: Cause::Peer, code, .. }) if *code == Code::GOING_AWAY => {}
                Some(end) if end.is_lost() => {}
                Some(_) => return Err(format!("{conversation}: {ends:?}").into()),
                None => {}
            }
            match server {
                None => {}
                Some(end) if end.is_lost() => {}
                Some(End { cause: Cause::Peer, code, .. }) if *code == Code::NORMAL => {}
                Some(End { cause: Cause::Handler, code, .. }) if *code == Code::GOING_AWAY => {}
                Some(_) => return Err(format!("{conversation}: {ends:?}").into()),
            }
        }
        Ok(finished)
    }

    /// Checks what both sides have counted.
    pub(crate) fn check_counters(&self) -> Result<(), BoxError> {
        let broken = self.asks.protocol_errors() + self.http.protocol_errors();
        let late = self.asks.settings_timeouts() + self.http.settings_timeouts();
        let tls = self.tls.counters();
        if broken > late || tls.broken() > 0 {
            return Err(format!("{:?}\n{:?}\n{tls:?}", self.asks, self.http).into());
        }
        Ok(())
    }
}
