//! `Serve` over TLS and the PROXY protocol: on each loop, with threads, with a successor, and with
//! clients that do not speak TLS.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "clients with plain blocking sockets, outside of any loop"
)]

#[path = "../rotor-tls/tests/kit/mod.rs"]
mod kit;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use kit::Issuer;
use rotor::hand_over::{HandOver, RejectedSuccessors};
use rotor::http::Status;
use rotor::http::server::{Head, Reply, Response, Scope, Serve, ServeError};
use rotor::net::{ListenOptions, ListenerLayer};
use rotor::proxy_protocol::{ProxyHeader, ProxyProtocol, ProxyProtocolConfig, Version};
use rotor::tls::TlsServer;
use rotor::{Config, Infallible, Loop, LoopKind, Machine, MioKind};
use rotor_test_kit::{Directory, PATIENCE, until};
use rotor_uring::{UringConfig, UringKind};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

/// Answers with the name of the server, which is its context, and with what it knows of the client.
fn who(head: &Head<'_>, response: &mut Response<'_>, name: &mut Scope<'_, &'static str>) -> Reply {
    let secure = head.is_secure();
    let peer = head.peer_address().map(|peer| peer.ip().to_string()).unwrap_or_default();
    let text = format!("{} secure={secure} peer={peer}\n", **name);
    response.reply(Status::OK, "text/plain", text.as_bytes())
}

/// A server in another thread, which ends when it has a successor.
struct Running {
    thread: JoinHandle<Result<(), ServeError>>,
    rejected: RejectedSuccessors,
}

/// Starts a server with this name, which takes over at the path if there is another one.
fn start<K: LoopKind, L: ListenerLayer>(
    serve: Serve<K, L>,
    path: &Path,
    name: &'static str,
) -> Running {
    let serve = serve.hand_over(path).drain_time_max(PATIENCE);
    let rejected = serve.rejected_successors();
    let thread = thread::spawn(move || serve.run_fn(who, move || name));
    until("one serves", || path.exists().then_some(()));
    Running { thread, rejected }
}

fn listeners_of(hand_over: &mut HandOver, scheme: &str) -> SocketAddr {
    assert!(hand_over.has_predecessor());
    let any = ([127, 0, 0, 1], 0).into();
    let queues = hand_over.tcp(scheme, any, &ListenOptions::new(), 1).expect("it has them");
    queues.local_address()
}

/// A machine of a process that serves nobody.
struct Idle;

impl Machine for Idle {
    type Context = ();
    type Seed = Infallible;
}

impl Running {
    /// Learns its address once it serves, by asking for its listeners.
    fn address(&self, path: &Path, scheme: &str) -> SocketAddr {
        let before = self.rejected.count();
        let mut asker = until("it gives its listeners", || HandOver::at(path).ok());
        let address = listeners_of(&mut asker, scheme);
        drop(asker);
        until("it is counted", || (self.rejected.count() > before).then_some(()));
        address
    }

    fn join(self) {
        self.thread.join().expect("no panic").expect("it was served");
    }

    /// Ends the server by a successor that accepts nothing.
    fn end(self, path: &Path, scheme: &str) {
        let mut next = until("it gives its listeners", || HandOver::at(path).ok());
        listeners_of(&mut next, scheme);
        let instance = Loop::<Idle>::new(&Config::new()).expect("descriptors").instantiate(());
        next.ready(instance.handle(), PATIENCE).expect("it follows");
        self.join();
    }
}

fn tls_server(issuer: &Issuer) -> TlsServer {
    issuer.server_with(|config| config.alpn(&[b"h2", b"http/1.1"]))
}

fn behind() -> ProxyProtocol {
    ProxyProtocol::new(ProxyProtocolConfig::new(["127.0.0.0/8".parse().expect("it is one")]))
}

fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("it is open");
    client
}

fn tls_client(issuer: &Issuer) -> ClientConnection {
    let name = ServerName::try_from("localhost").expect("it is a name");
    ClientConnection::new(Arc::new(issuer.raw_config()), name).expect("it begins")
}

fn connect_tls(issuer: &Issuer, address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    StreamOwned::new(tls_client(issuer), connect(address))
}

/// Reads one response.
fn read_response(client: &mut impl Read) -> String {
    let mut got = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = client.read(&mut chunk).expect("the server answers");
        assert!(count > 0, "the end after {}", got.escape_ascii());
        got.extend(&chunk[..count]);
        if got.windows(4).any(|end| end == b"\r\n\r\n") && got.ends_with(b"\n") {
            return String::from_utf8(got).expect("it is text");
        }
    }
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn ask(client: &mut (impl Read + Write)) -> String {
    client.write_all(REQUEST).and_then(|()| client.flush()).expect("it is open");
    read_response(client)
}

/// The header of a balancer, for a client at 192.0.2.1.
fn header() -> Vec<u8> {
    let (source, destination) = (([192, 0, 2, 1], 5).into(), ([198, 51, 100, 1], 443).into());
    ProxyHeader::proxied(Version::V2, source, destination).to_bytes()
}

/// Serves over this layer, with two threads, and returns what some connections are told, which is
/// the same for each.
fn told<K: LoopKind, L: ListenerLayer>(
    kind: K,
    layer: L,
    is_https: bool,
    talk: impl Fn(SocketAddr) -> String,
) -> String {
    let directory = Directory::create();
    let path = directory.join("control");
    let scheme = if is_https { "https" } else { "http" };
    let serve = Serve::new("127.0.0.1:0").over(layer).loop_kind(kind).threads(2);
    let server = start(serve, &path, "it");
    let address = server.address(&path, scheme);
    // The connections are distributed over the threads.
    let body = |answer: String| answer.rsplit("\r\n").next().map(str::to_owned);
    let mut told: Vec<String> = (0..8).filter_map(|_| body(talk(address))).collect();
    server.end(&path, scheme);
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    told.remove(0)
}

fn check_layers<K: LoopKind>(kind: K) {
    let issuer = Issuer::new();
    let tls = tls_server(&issuer);
    let over_tls = |address| ask(&mut connect_tls(&issuer, address));
    let plain = |address| ask(&mut connect(address));
    let behind_header = |address| {
        let mut client = connect(address);
        client.write_all(&header()).expect("it is open");
        client
    };
    const LOCAL: &str = "it secure=false peer=127.0.0.1\n";
    const SECURE: &str = "it secure=true peer=127.0.0.1\n";
    assert_eq!(told(kind.clone(), (), false, plain), LOCAL);
    assert_eq!(told(kind.clone(), tls.clone(), true, over_tls), SECURE);
    assert_eq!(told(kind.clone(), Some(tls.clone()), true, over_tls), SECURE);
    assert_eq!(told(kind.clone(), None::<TlsServer>, false, plain), LOCAL);
    let proxied = |address| ask(&mut behind_header(address));
    assert_eq!(told(kind.clone(), behind(), false, proxied), "it secure=false peer=192.0.2.1\n");
    let both = |address| ask(&mut StreamOwned::new(tls_client(&issuer), behind_header(address)));
    let told = told(kind, (tls, behind()), true, both);
    assert_eq!(told, "it secure=true peer=192.0.2.1\n");
}

#[test]
fn each_layer_works_with_several_threads_on_mio() {
    check_layers(MioKind);
}

#[test]
fn each_layer_works_with_several_threads_on_io_uring() {
    let kind = UringKind::new(&UringConfig::new());
    match kind.probe() {
        Ok(()) => check_layers(kind),
        Err(refused) => eprintln!("skipped: {refused}"),
    }
}

/// Asks on a connection until the response says that the server drains, which is when its successor
/// serves.
fn wait_for_drain(idle: &mut (impl Read + Write)) {
    until("it drains", || {
        let answer = ask(idle);
        assert!(answer.contains("first secure=true"), "{answer}");
        answer.contains("\r\nConnection: close\r\n").then_some(())
    });
}

#[test]
fn handshakes_and_requests_under_way_are_finished_after_a_hand_over() {
    let issuer = Issuer::new();
    let directory = Directory::create();
    let path = directory.join("control");
    let serve = || Serve::new("127.0.0.1:0").over(tls_server(&issuer));
    let first = start(serve(), &path, "first");
    let address = first.address(&path, "https");

    let mut hello = Vec::new();
    let mut begun_tls = tls_client(&issuer);
    begun_tls.write_tls(&mut hello).expect("there is memory");
    let mut begun = connect(address);
    begun.write_all(&hello[..hello.len() / 2]).expect("it is open");
    let mut half = connect_tls(&issuer, address);
    half.write_all(&REQUEST[..9]).and_then(|()| half.flush()).expect("it is open");
    // Accepted after the other two, because there is one queue.
    let mut idle = connect_tls(&issuer, address);
    assert!(ask(&mut idle).contains("first secure=true"));

    let second = start(serve().threads(2), &path, "second");
    wait_for_drain(&mut idle);
    half.write_all(&REQUEST[9..]).and_then(|()| half.flush()).expect("it is open");
    let answer = read_response(&mut half);
    assert!(answer.contains("first secure=true"), "{answer}");
    begun.write_all(&hello[hello.len() / 2..]).expect("it is open");
    let mut begun = StreamOwned::new(begun_tls, begun);
    let answer = ask(&mut begun);
    assert!(answer.contains("first secure=true"), "{answer}");
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    first.join();
    assert_eq!(second.address(&path, "https"), address);
    assert!(ask(&mut connect_tls(&issuer, address)).contains("second secure=true"));
    second.end(&path, "https");
}

#[test]
fn a_server_that_no_longer_encrypts_opens_an_address_of_its_own() {
    let issuer = Issuer::new();
    let directory = Directory::create();
    let path = directory.join("control");
    let first = start(Serve::new("127.0.0.1:0").over(tls_server(&issuer)), &path, "first");
    let address = first.address(&path, "https");
    let mut idle = connect_tls(&issuer, address);
    let second = start(Serve::new("127.0.0.1:0"), &path, "second");
    wait_for_drain(&mut idle);
    drop(idle);
    first.join();
    let plain = second.address(&path, "http");
    assert_ne!(plain, address);
    assert!(ask(&mut connect(plain)).contains("second secure=false"));
    second.end(&path, "http");
}

#[test]
fn clients_that_do_not_speak_tls_are_told_so_and_cost_others_nothing() {
    let issuer = Issuer::new();
    let tls = tls_server(&issuer);
    let counters = tls.counters().clone();
    let directory = Directory::create();
    let path = directory.join("control");
    let server = start(Serve::new("127.0.0.1:0").over(tls).threads(2), &path, "it");
    let address = server.address(&path, "https");
    let read_all = |bytes: &[u8]| {
        let mut client = connect(address);
        client.write_all(bytes).expect("it is open");
        let mut got = Vec::new();
        client.read_to_end(&mut got).expect("it ends in order");
        got
    };
    for _ in 0..4 {
        let answer = String::from_utf8(read_all(REQUEST)).expect("it is text");
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.ends_with("with https:// in front of the address.\n"), "{answer}");
        // A fatal alert (RFC 8446 §6): 21, the version, the length, 2.
        let alert = read_all(b"SSH-2.0-OpenSSH_9.9\r\n");
        assert!(matches!(alert[..], [21, 3, _, 0, 2, 2, _]), "{alert:?}");
        let answer = ask(&mut connect_tls(&issuer, address));
        assert!(answer.contains("it secure=true"), "{answer}");
    }
    assert_eq!((counters.plain_http(), counters.not_tls()), (4, 4));
    server.end(&path, "https");
}
