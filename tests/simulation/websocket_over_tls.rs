//! WebSockets of a client that offers `h2` and `http/1.1` in its TLS handshake: on an HTTP/2 stream
//! if the server supports extended CONNECT (RFC 8441), otherwise over HTTP/1.1.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor::http::client::{ByAddress, ClientConfig, ClientResult, Pool, PoolConfig, PoolMachine};
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener};
use rotor::tls::{
    Roots, TlsClient, TlsClientConfig, TlsListener, TlsServer, TlsServerConfig, TlsStream,
    TlsTarget,
};
use rotor::websocket::{Closed, Code, Dial, Handler, Message, Next, Sender, WebSocketConfig};
use rotor::{BoxError, Future, Infallible, Loop, Machine, Outcome, Response, Scope, rotor_compose};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Check, Sim};

use crate::examples::ws_echo::Site;
use crate::http_pool::lock;
use crate::stage::PORT;
use crate::tls::identity;

type Log = Arc<Mutex<Vec<String>>>;

struct World {
    pool: Pool<Dial<Says>, TlsTarget<SocketAddr>>,
    log: Log,
}

/// The error for a server that negotiates only `h2`, and takes no WebSockets there.
const NO_HTTP1: &str = "Err(NotConnected(Handshake(Custom { kind: ConnectionAborted, \
                        error: Refused(\"alert NoApplicationProtocol\") })))";

/// Sends a word, and keeps the connection open.
struct Says;

impl Handler for Says {
    type Context = World;
    type Seed = ();

    fn opened(_: (), out: &mut Sender<'_>, _: &mut Scope<'_, World>) -> Next<Self> {
        out.text("hello").expect("there is room");
        Next::go_on(Says).no_deadline()
    }

    fn message(
        self,
        message: Message<'_>,
        _: &mut Sender<'_>,
        scope: &mut Scope<'_, World>,
    ) -> Next<Self> {
        lock(&scope.log).push(message.as_bytes().escape_ascii().to_string());
        Next::go_on(self).no_deadline()
    }

    fn closed(self, end: Closed<'_>, scope: &mut Scope<'_, World>) {
        if end.code != Code::GOING_AWAY {
            lock(&scope.log).push(format!("{end:?}"));
        }
    }
}

/// Opens some WebSockets, one after the other.
struct Caller {
    server: TlsTarget<SocketAddr>,
    left: u32,
    future: Option<Future<ClientResult<Dial<Says>>>>,
}

impl Machine for Caller {
    type Context = World;
    type Seed = Infallible;

    fn timeout(mut self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        self.left -= 1;
        let dial = Dial::new("/", "server", (), WebSocketConfig::new().share());
        self.future =
            Some(scope.pool.ask(self.server.clone(), dial, scope).expect("there is room"));
        Response::ok(self)
    }

    fn wakeup(mut self, scope: &mut Scope<'_, World>) -> Response<Self, Infallible> {
        match self.future.take().map(Future::take) {
            Some(Outcome::Pending(future)) => {
                self.future = Some(future);
                return Response::keep(self);
            }
            Some(Outcome::Value(Ok(Ok(_)))) | None => {}
            Some(Outcome::Value(other)) => lock(&scope.log).push(format!("{other:?}")),
            Some(Outcome::Lost(lost)) => lock(&scope.log).push(lost.to_string()),
        }
        if self.left == 0 { Response::done() } else { Response::ok(self).deadline(scope.now()) }
    }
}

rotor_compose! {
    enum Machines <World> {
        Pool(PoolMachine<Dial<Says>, ByAddress<TlsStream<SimTcpStream>>>),
        Caller(Caller),
    }
}

/// The results of two WebSockets: what was received, the number of connections, and how many of
/// them used HTTP/2.
fn outcome(
    sim: &mut Sim,
    connect_protocol: bool,
    spoken: &[&[u8]],
    offered: &[&[u8]],
) -> Result<(Vec<String>, u64, u64), BoxError> {
    let (identity, certificate) = identity();
    let tls = TlsServer::new(TlsServerConfig::new(identity.clone()).alpn(spoken))?;
    let server = sim.host("server", move |boot| {
        type Listens = HttpAccept<Site<()>, TlsListener<SimTcpListener>>;
        let mut creator: Loop<Listens, _> = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        let http2 = server::Http2Config::new().connect_protocol(connect_protocol);
        let http = ServerConfig::new().http2(http2);
        let seed = HttpSeed::<Site<()>>::new(WebSocketConfig::new().share(), http);
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope)?;
                Ok(server::listen(tls.over(listener), seed, scope))
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    let address = SocketAddr::new(sim.address(server), PORT);
    let roots = Roots::none().der(certificate.clone())?;
    let client = TlsClient::new(TlsClientConfig::new(roots).alpn(offered))?;
    let target = client.to(address, "server")?;
    let (log, config) = (Log::default(), ClientConfig::new());
    let (shared, counters) = (log.clone(), config.counters());
    let clients = sim.host("clients", move |boot| {
        let mut creator: Loop<Machines, _> = boot.new_loop()?;
        let pool = creator.add_part(Machines::Pool, |scope| {
            Ok(PoolMachine::new(PoolConfig::new(), config.clone(), scope))
        })?;
        Ok(creator.instantiate(World { pool, log: shared.clone() }))
    })?;
    sim.with(clients, |instance| {
        let caller = Caller { server: target, left: 2, future: None };
        instance
            .add_machine_with(|scope| Response::ok(Machines::Caller(caller)).deadline(scope.now()))
    });
    sim.run_for(Duration::from_secs(20))?;
    let said = lock(&log).clone();
    Ok((said, counters.connections(), counters.http2_connections()))
}

#[test]
fn a_server_without_extended_connect_gets_the_websocket_over_http1() {
    let both: &[&[u8]] = &[b"h2", b"http/1.1"];
    let heard = || vec!["hello".to_owned(); 2];
    let refused = || vec!["Ok(Err(NotOnHttp2(Status(400))))".to_owned(); 2];
    for (connect_protocol, spoken, offered, expected) in [
        (true, both, both, (heard(), 1, 1)),
        // One HTTP/2 connection, which cannot carry a WebSocket, and one HTTP/1.1 connection for
        // each.
        (false, both, both, (heard(), 3, 1)),
        (false, both, &both[1..], (heard(), 2, 0)),
        (false, both, &both[..1], (refused(), 1, 1)),
        (false, &both[..1], both, (vec![NO_HTTP1.to_owned(); 2], 1, 1)),
    ] {
        Check::new().seeds(3).calm().run(|sim| {
            let outcome = outcome(sim, connect_protocol, spoken, offered)?;
            let is_so = outcome == expected;
            is_so.then_some(()).ok_or_else(|| format!("{offered:?}: {outcome:?}").into())
        });
    }
}
