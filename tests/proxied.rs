//! HTTP and HTTPS behind a load balancer, in memory: which peer address a handler, the log and the
//! limits see.
#![forbid(unsafe_code)]

#[path = "../rotor-tls/tests/kit/mod.rs"]
mod kit;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use kit::{Issuer, RawClient};
use rotor::Scope;
use rotor::http::Status;
use rotor::http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, Response, Server, ServerConfig,
};
use rotor::proxy_protocol::{
    ProxyHeader, ProxyProtocol, ProxyProtocolConfig, ProxyStream, Version,
};
use rotor::stream::Stream;
use rotor::stream::testing::{Scripted, ScriptedSocket, TestLoop, pair};
use rotor::tls::{TlsSession, TlsStream};

/// Responds with the peer address it sees.
struct WhoAmI;

impl Server for WhoAmI {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let id = head.session::<ProxyHeader>().and_then(ProxyHeader::unique_id).unwrap_or(b"-");
        let id = String::from_utf8_lossy(id);
        let version = head.session::<TlsSession>().map(TlsSession::version);
        let peer = head.peer_address();
        let body = format!("{peer:?} {id} {version:?} {}", head.is_secure());
        response.send(Status::OK, "text/plain", body.as_bytes()).expect("it is in order");
        Next::finished()
    }
}

fn header() -> Vec<u8> {
    let (source, destination) = (([192, 0, 2, 1], 5).into(), ([198, 51, 100, 1], 443).into());
    let header = ProxyHeader::proxied(Version::V2, source, destination);
    header.with_field(5, b"id-1").expect("it fits").to_bytes()
}

fn behind() -> ProxyProtocol {
    ProxyProtocol::new(ProxyProtocolConfig::new(["10.0.0.0/8".parse().expect("it is one")]))
}

const BALANCER: Option<SocketAddr> =
    Some(SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 1));

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_handler_and_the_log_see_the_peer_that_the_balancer_names() {
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = logged.clone();
    let config = ServerConfig::new()
        .log(move |request| log.lock().expect("nobody panicked").push(request.peer));
    let mut test = TestLoop::<Stream<Connection<WhoAmI>, ProxyStream<ScriptedSocket>>>::new(());
    let (socket, peer) = pair(test.world());
    let seed = HttpSeed::new((), config);
    test.add(|scope| Stream::connected(behind().wrap(socket, BALANCER), seed, scope));
    peer.send(&[&header()[..], REQUEST].concat());
    test.settle();
    let answer = String::from_utf8(peer.take_received()).expect("it is text");
    assert!(answer.ends_with("\r\n\r\nSome(192.0.2.1:5) id-1 None false"), "{answer}");
    assert_eq!(logged.lock().expect("nobody panicked")[..], [Some(([192, 0, 2, 1], 5).into())]);
}

#[test]
fn proxy_header_and_tls_details_both_reach_the_handler() {
    let issuer = Issuer::new();
    let tls = issuer.server_with(|config| config.alpn(&[]));
    let whole = header();
    for cut in [0, 1, 12, 20, whole.len()] {
        let mut test =
            TestLoop::<Stream<Connection<WhoAmI>, TlsStream<ProxyStream<ScriptedSocket>>>>::new(());
        test.world().narrow_edges();
        let (socket, peer) = pair(test.world());
        let seed = HttpSeed::new((), ServerConfig::new());
        let socket = tls.wrap(behind().wrap(socket, BALANCER));
        test.add(|scope| Stream::connected(socket, seed, scope));
        let mut client = RawClient::new(issuer.raw_config(), "localhost");
        peer.send(&whole[..cut]);
        test.settle();
        // The rest of the header, together with the ClientHello.
        peer.send(&[&whole[cut..], &client.take_records()].concat());
        test.settle();
        client.receive(&peer.take_received());
        client.talk(&mut test, &peer);
        client.write(REQUEST);
        client.talk(&mut test, &peer);
        let answer = String::from_utf8_lossy(&client.plain).into_owned();
        assert!(answer.ends_with("Some(192.0.2.1:5) id-1 Some(Tls13) true"), "{cut}: {answer}");
    }
}

#[test]
fn an_untrusted_peer_is_refused_before_its_tls_handshake() {
    type Machine = Stream<Connection<WhoAmI>, TlsStream<ProxyStream<Scripted<true>>>>;
    let tls = Issuer::new().server();
    let behind = behind();
    let mut test = TestLoop::<Machine>::new(());
    let (socket, peer) = pair(test.world());
    let seed = HttpSeed::new((), ServerConfig::new());
    let stranger = Some(([192, 0, 2, 9], 1).into());
    let socket = tls.wrap(behind.wrap(socket, stranger));
    let made = test.instance().add_machine_with(|scope| Stream::connected(socket, seed, scope));
    assert!(made.is_err() && peer.is_dropped());
    assert_eq!((behind.counters().untrusted(), peer.operations().reads), (1, 0));
}

#[test]
fn a_connection_closed_before_its_header_is_no_handshake_timeout() {
    let tls = Issuer::new().server();
    for sent in [0, 5, header().len()] {
        let mut test =
            TestLoop::<Stream<Connection<WhoAmI>, TlsStream<ProxyStream<ScriptedSocket>>>>::new(());
        let (socket, peer) = pair(test.world());
        let seed = HttpSeed::new((), ServerConfig::new());
        let socket = tls.wrap(behind().wrap(socket, BALANCER));
        test.add(|scope| Stream::connected(socket, seed, scope));
        // A health check of a load balancer.
        peer.send(&header()[..sent]);
        peer.end();
        test.settle();
        assert!(peer.is_dropped());
    }
    assert_eq!((tls.counters().abandoned(), tls.counters().late()), (3, 0));
}
