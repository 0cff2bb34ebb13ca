//! The example `reverse_proxy` between a pool of clients and a server of ours, under all faults.
//! Each request has one outcome before its deadline: either its own intact response, or an error.
//! No POST is served twice. WebSocket messages come back complete, in order and at most once, with
//! either version of HTTP on each side.

#[path = "../../examples/reverse_proxy/back.rs"]
mod back;
#[path = "../../examples/reverse_proxy/fields.rs"]
mod fields;
#[path = "../../examples/reverse_proxy/handshake.rs"]
mod handshake;
#[path = "../../examples/reverse_proxy/machine.rs"]
mod machine;
#[path = "../../examples/reverse_proxy/message.rs"]
mod message;
#[path = "../../examples/reverse_proxy/replay.rs"]
mod replay;
#[path = "../../examples/reverse_proxy/tunnel.rs"]
mod tunnel;
#[path = "../../examples/reverse_proxy/upstream.rs"]
mod upstream;
#[path = "../../examples/reverse_proxy/warnings.rs"]
mod warnings;

use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::client::{ByAddress, Pool, PoolConfig, PoolMachine};
use rotor::http::server::{self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Server};
use rotor::http::{Status, Trailers};
use rotor::net::{ListenOptions, Listener};
use rotor::stream::{Accept, AcceptConfig};
use rotor::{BoxError, Loop, Response, Scope, rotor_compose};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Fault, Host, Script, Sim, TranscriptHandle};

use self::back::Back;
use self::machine::Front;
use self::upstream::Upstream;
use self::warnings::Warnings;
use crate::ground::Bytes;
use crate::http_pool::{self, Ledger, ScenarioConfig};
use crate::stage::{self, Clients, PORT};
use crate::websocket::{self, HttpVersions};

/// Each of two pools may repeat a request once if its method allows it, on a connection that had
/// been used before.
const REPEATS_MAX: u32 = 3;

struct Gateway {
    pool: Pool<Back<Gateway>>,
    warnings: Warnings,
}

impl Upstream for Gateway {
    type Origin = SocketAddr;

    fn authority(&self) -> &str {
        "upstream"
    }

    fn pool(&self) -> &Pool<Back<Gateway>> {
        &self.pool
    }

    fn warnings(&mut self) -> &mut Warnings {
        &mut self.warnings
    }
}

rotor_compose! {
    enum Machines <Gateway> {
        Accept(HttpAccept<Front<Gateway>, SimTcpListener>),
        Pool(PoolMachine<Back<Gateway>, ByAddress<SimTcpStream>>),
    }
}

fn passing_on(
    sim: &mut Sim,
    upstream: SocketAddr,
    clients: AcceptConfig,
    config: PoolConfig,
) -> Result<Host<Machines>, BoxError> {
    passing_on_by(sim, upstream, clients, config, false)
}

/// The same, with HTTP/2 or HTTP/1.1 to the upstream.
fn passing_on_by(
    sim: &mut Sim,
    upstream: SocketAddr,
    clients: AcceptConfig,
    config: PoolConfig,
    http2: bool,
) -> Result<Host<Machines>, BoxError> {
    let client = websocket::client_config(http2).limits(back::upstream_limits(http_pool::limits()));
    Ok(sim.host("proxy", move |boot| {
        let mut creator: Loop<Machines, _> = boot.new_loop()?;
        let pool = creator.add_part(Machines::Pool, |scope| {
            Ok(PoolMachine::new(config.clone(), client.clone(), scope))
        })?;
        let address = SocketAddr::new(boot.address(), PORT);
        let seed = HttpSeed::<Front<Gateway>>::new(upstream, websocket::server_config());
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope)?;
                Ok(Accept::listen(listener, seed, clients.clone(), scope).wrap(Machines::Accept))
            })
        })?;
        Ok(creator.instantiate(Gateway { pool, warnings: Warnings::new() }))
    })?)
}

/// A proxy may have only four slots. Then one of them is for a client, and one for a connection to
/// the server.
fn connections(sim: &Sim) -> usize {
    if sim.faults().rate(Fault::SmallSlab) > 0.0 { 1 } else { 3 }
}

#[test]
fn each_proxied_request_has_one_outcome_of_its_own_and_no_post_runs_twice() {
    stage::check(|sim| {
        let ledger = Ledger::default();
        let server = http_pool::serving(sim, &ledger)?;
        let upstream = SocketAddr::new(sim.address(server), PORT);
        let connections = connections(sim);
        let clients = AcceptConfig::new().connections_max(connections);
        let config = PoolConfig::new().connections_per_origin_max(4).waiting_per_origin_max(100);
        let proxy = passing_on(sim, upstream, clients, config)?;
        let address = SocketAddr::new(sim.address(proxy), PORT);
        let demands = ScenarioConfig {
            repeats_max: REPEATS_MAX,
            connections,
            ..ScenarioConfig::new(http_pool::client())
        };
        http_pool::ask::<SimTcpStream>(sim, address, &ledger, &demands, |sim| {
            stage::heal(sim, server)?;
            stage::heal(sim, proxy)
        })
    });
}

/// WebSockets through the proxy, with these versions of HTTP.
fn tunnels(client_has_http2: bool, upstream_has_http2: bool) {
    stage::check(|sim| {
        let has_http2 = client_has_http2 || upstream_has_http2;
        let server = websocket::serving::<Bytes>(sim, has_http2)?;
        let upstream = SocketAddr::new(sim.address(server), PORT);
        let clients = AcceptConfig::new().connections_max(connections(sim));
        let config = PoolConfig::new().connections_per_origin_max(4).waiting_per_origin_max(100);
        let proxy = passing_on_by(sim, upstream, clients, config, upstream_has_http2)?;
        let address = SocketAddr::new(sim.address(proxy), PORT);
        let way = HttpVersions { asks_by_http2: client_has_http2, has_http2 };
        websocket::converse_with::<Bytes>(sim, address, way, |sim| {
            stage::heal(sim, server)?;
            stage::heal(sim, proxy)
        })
    });
}

#[test]
fn messages_are_echoed_through_the_proxy_with_http2_on_both_sides() {
    tunnels(true, true);
}

#[test]
fn messages_are_echoed_through_the_proxy_with_http2_at_the_client() {
    tunnels(true, false);
}

#[test]
fn messages_are_echoed_through_the_proxy_with_http2_at_the_upstream() {
    tunnels(false, true);
}

/// One request is at the upstream, and one waits.
fn one_at_a_time() -> PoolConfig {
    PoolConfig::new().connections_per_origin_max(1).waiting_per_origin_max(1)
}

/// Starts an upstream; returns its address.
fn serving<S>(sim: &mut Sim) -> Result<SocketAddr, BoxError>
where
    S: Server<Context = (), Seed = ()> + Send + 'static,
    S::Upgrade: Send,
{
    let server = sim.host("server", |boot| {
        let mut creator: Loop<HttpAccept<S, SimTcpListener>, _> = boot.new_loop()?;
        let address = SocketAddr::new(boot.address(), PORT);
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = SimTcpListener::bind(&address, &ListenOptions::new(), scope)?;
                let http2 = server::Http2Config::new().prior_knowledge(true);
                let config = server::ServerConfig::new().http2(http2);
                let seed = HttpSeed::<S>::new((), config);
                Ok(server::listen(listener, seed, scope))
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    Ok(SocketAddr::new(sim.address(server), PORT))
}

/// Sends a few events, with long pauses, and then no more.
struct Events(u32);

impl Events {
    const COUNT: u32 = 5;
    const PAUSE: Duration = Duration::from_secs(50);
}

impl Server for Events {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        _: &Head<'_>,
        response: &mut server::Response<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        response.status(Status::OK).expect("the first");
        response.add_chunked().expect("a response with a body");
        response.done_headers().expect("the end of the fields");
        Next::go_on(Events(0)).deadline(scope.now() + Events::PAUSE)
    }

    fn timeout(self, response: &mut server::Response<'_>, scope: &mut Scope<'_, ()>) -> Next<Self> {
        response.write_body(b":\n").expect("it goes on");
        match self.0 + 1 {
            Events::COUNT => Next::go_on(Events(Events::COUNT)).no_deadline(),
            count => Next::go_on(Events(count)).deadline(scope.now() + Events::PAUSE),
        }
    }
}

#[test]
fn a_response_may_pause_but_not_for_longer_than_the_limit() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let upstream = serving::<Events>(&mut sim)?;
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let script = Script::new().send(request).receive_until(b"\r\n0\r\n");
    let transcript = clients.add(&mut sim, script.patience(Duration::from_secs(1_000)));
    sim.run_for(Events::COUNT * Events::PAUSE + back::SILENCE_MAX - Duration::from_secs(1))?;
    assert!(!transcript.has_ended(), "{:?}", transcript.read());
    let received = transcript.read().received.clone();
    let count = received.windows(4).filter(|part| part == b"\r\n:\n").count();
    assert_eq!(count, Events::COUNT as usize, "{}", received.escape_ascii());
    sim.run_for(Duration::from_secs(2))?;
    assert!(transcript.has_ended());
    Ok(())
}

/// Receives a stream of any pace. It repeats each piece at once, or all of them at the end.
struct Echo {
    is_chat: bool,
    heard: Vec<u8>,
}

impl Server for Echo {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let echo = Echo { is_chat: head.path() == "/chat", heard: Vec::new() };
        if echo.is_chat {
            response.status(Status::OK).expect("the first");
            response.add_chunked().expect("a response with a body");
            response.done_headers().expect("the end of the fields");
        }
        Next::recv_stream(echo, RecvMode::Progressive(1)).no_deadline()
    }

    fn request_chunk(
        mut self,
        chunk: &[u8],
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        match self.is_chat {
            true => response.write_body(chunk).expect("it goes on"),
            false => self.heard.extend_from_slice(chunk),
        }
        Next::go_on(self).no_deadline()
    }

    fn request_end(
        self,
        _: &Trailers,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        match self.is_chat {
            true => response.done().expect("the end"),
            false => {
                response.reply(Status::OK, "text/plain", &self.heard);
            }
        }
        Next::finished()
    }
}

/// The client pauses for nearly as long as it may.
const PAUSE: Duration = back::SILENCE_MAX.saturating_sub(Duration::from_secs(1));

#[test]
fn a_client_may_pause_once_its_response_has_begun() -> Result<(), BoxError> {
    for (path, is_whole) in [("/chat", true), ("/", false)] {
        let mut sim = Sim::new(1);
        let upstream = serving::<Echo>(&mut sim)?;
        let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
        let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        let script = [&b"1\r\nx\r\n"[..]; 4]
            .iter()
            .fold(Script::new().send(head.as_bytes()), |script, chunk| {
                script.send(chunk).pause(PAUSE)
            });
        let script = script.send(b"0\r\n\r\n").receive_until(b"x\r\n0\r\n\r\n");
        let transcript = clients.add(&mut sim, script.patience(Duration::from_secs(1_000)));
        sim.run_for(5 * PAUSE)?;
        let received = transcript.read().received.clone();
        let text = String::from_utf8_lossy(&received);
        assert_eq!(text.matches("1\r\nx\r\n").count() == 4, is_whole, "{path}: {text}");
        assert_eq!(text.starts_with("HTTP/1.1 200 "), is_whole, "{path}: {text}");
    }
    Ok(())
}

/// A frame of HTTP/2 on stream 1 (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).expect("a short one");
    [&[0, 0, len, kind, flags, 0, 0, 0, 1], payload].concat()
}

/// The head of a POST request on HTTP/2, its fields as literals (RFC 7541 §6.2.2).
fn post_head(content_type: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", "/"),
        ("content-type", content_type),
    ];
    let line = |(name, value)| [vec![0], text(name), text(value)].concat();
    frame(1, 4, &fields.map(line).concat())
}

/// gRPC: the server of a stream of messages may respond when the last one has arrived.
#[test]
fn the_client_of_a_call_may_pause_before_the_response() -> Result<(), BoxError> {
    for (content_type, has_http2, is_whole) in [
        ("application/grpc+proto", true, true),
        ("application/octet-stream", true, false),
        ("application/grpc", false, false),
    ] {
        let mut sim = Sim::new(1);
        let upstream = serving::<Echo>(&mut sim)?;
        let clients = AcceptConfig::new();
        let proxy = passing_on_by(&mut sim, upstream, clients, one_at_a_time(), has_http2)?;
        let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        let script = Script::new().send(preface).receive(9).send(b"\0\0\0\x04\x01\0\0\0\0");
        let script =
            [b"piece"; 3].iter().fold(script.send(&post_head(content_type)), |script, piece| {
                script.send(&frame(0, 0, *piece)).pause(PAUSE)
            });
        let script = script.send(&frame(0, 1, b"")).receive_until(b"piecepiecepiece");
        let transcript = clients.add(&mut sim, script.patience(Duration::from_secs(1_000)));
        sim.run_for(4 * PAUSE)?;
        let received = transcript.read().received.clone();
        let is_found = received.windows(15).any(|part| part == b"piecepiecepiece");
        assert_eq!(is_found, is_whole, "{content_type}: {}", received.escape_ascii());
    }
    Ok(())
}

/// Reads each request, and never responds.
struct Silent;

impl Server for Silent {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        _: &Head<'_>,
        _: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::go_on(Silent).no_deadline()
    }
}

/// The sorted status codes of the responses that have arrived completely.
fn answered(transcripts: &[TranscriptHandle]) -> Vec<String> {
    let ended = transcripts.iter().filter(|transcript| transcript.has_ended());
    let code = |transcript: &TranscriptHandle| {
        String::from_utf8_lossy(&transcript.read().received).chars().skip(9).take(3).collect()
    };
    let mut codes: Vec<String> = ended.map(code).collect();
    codes.sort();
    codes
}

#[test]
fn a_request_beyond_the_limit_is_503_and_an_unanswered_one_is_504() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let upstream = serving::<Silent>(&mut sim)?;
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut transcripts = Vec::new();
    for _ in 0..2 {
        let script = Script::new().send(request).receive_until(b"\r\n\r\n");
        transcripts.push(clients.add(&mut sim, script));
        sim.run_for(Duration::from_secs(1))?;
    }
    transcripts.push(clients.add(&mut sim, Script::new().send(request).receive_until(b"\r\n\r\n")));
    // All were sent within the last two seconds and a little more.
    sim.run_for(machine::ANSWER_TIME_MAX - Duration::from_secs(3))?;
    assert_eq!(answered(&transcripts), ["503"]);
    // The time in the queue counts: the request that never reached the upstream, or reached it just
    // now, is answered as early as the other.
    sim.run_for(Duration::from_secs(4))?;
    assert_eq!(answered(&transcripts), ["503", "504", "504"]);
    Ok(())
}

/// Most clients that end their side are gone.
#[test]
fn a_client_that_has_ended_its_side_gets_a_response_only_if_it_comes_soon() -> Result<(), BoxError>
{
    let request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\npiece";
    let script = || Script::new().send(request.as_bytes()).shutdown();
    let mut sim = Sim::new(1);
    let upstream = serving::<Echo>(&mut sim)?;
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let transcript = clients.add(&mut sim, script().receive_until(b"\r\n\r\npiece"));
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(answered(&[transcript]), ["200"]);

    let mut sim = Sim::new(1);
    let upstream = serving::<Silent>(&mut sim)?;
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let transcript = clients.add(&mut sim, script().receive_until(b"\r\n\r\n"));
    sim.run_for(machine::HALF_CLOSED_TIME_MAX)?;
    assert!(!transcript.has_ended(), "{:?}", transcript.read());
    sim.run_for(Duration::from_secs(1))?;
    assert_eq!(answered(&[transcript]), ["504"]);
    Ok(())
}

/// Responds only to `/`.
struct Choosy;

impl Server for Choosy {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        if head.path() != "/" {
            return Next::go_on(Choosy).no_deadline();
        }
        response.reply(Status::OK, "text/plain", b"hi");
        Next::finished()
    }
}

/// The only connection to the upstream is free before the lost request would have timed out.
#[test]
fn a_client_that_leaves_does_not_occupy_the_upstream() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let upstream = serving::<Choosy>(&mut sim)?;
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    let request = |path| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    clients.add(&mut sim, Script::new().send(request("/lost").as_bytes()).shutdown());
    sim.run_for(Duration::from_secs(1))?;
    let script = Script::new().send(request("/").as_bytes()).receive_until(b"\r\n\r\nhi");
    let next = clients.add(&mut sim, script);
    sim.run_for(machine::HALF_CLOSED_TIME_MAX + Duration::from_secs(1))?;
    assert_eq!(answered(&[next]), ["200"]);
    Ok(())
}

#[test]
fn an_upload_in_progress_may_outlast_the_answer_timeout() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let server = http_pool::serving(&mut sim, &Ledger::default())?;
    let upstream = SocketAddr::new(sim.address(server), PORT);
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    // The body comes in pieces. The pauses between them are shorter than the grace of the minimum
    // rate.
    let piece = [b'x'; 8_000];
    let head = "POST /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 120000\r\n\r\n";
    let pause = machine::ANSWER_TIME_MAX / 10;
    let script = (0..15)
        .fold(Script::new().send(head.as_bytes()), |script, _| script.send(&piece).pause(pause));
    let transcript = clients.add(&mut sim, script.receive_until(b"\r\n\r\n"));
    sim.run_for(4 * machine::ANSWER_TIME_MAX)?;
    assert_eq!(answered(&[transcript]), ["200"]);
    Ok(())
}

#[test]
fn an_unreachable_upstream_is_504_after_the_connect_timeout() -> Result<(), BoxError> {
    let mut sim = Sim::new(1);
    let server = http_pool::serving(&mut sim, &Ledger::default())?;
    let upstream = SocketAddr::new(sim.address(server), PORT);
    let proxy = passing_on(&mut sim, upstream, AcceptConfig::new(), one_at_a_time())?;
    let mut clients = Clients::<SimTcpStream>::of(&mut sim, proxy)?;
    sim.partition(proxy, server);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let transcript = clients.add(&mut sim, Script::new().send(request).receive_until(b"\r\n\r\n"));
    sim.run_for(machine::ANSWER_TIME_MAX)?;
    assert_eq!(answered(&[transcript]), ["504"]);
    Ok(())
}
