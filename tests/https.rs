//! HTTP over TLS, in memory: connections that end without `close_notify`, with each kind of body
//! framing; and the HTTP version that is used after ALPN.
#![forbid(unsafe_code)]

#[path = "../rotor-tls/tests/kit/mod.rs"]
mod kit;

use std::time::Duration;

use kit::{Issuer, RawClient};
use rotor::Scope;
use rotor::http::Status;
use rotor::http::server::{
    Connection, Head, Http2Config, HttpSeed, Next, NoUpgrade, RecvMode, Response, Server,
    ServerConfig,
};
use rotor::stream::Stream;
use rotor::stream::testing::{Peer, ScriptedSocket, TestLoop, pair};
use rotor::tls::{TlsServer, TlsStream};

/// Records each complete request, and responds to it.
struct Notes;

impl Server for Notes {
    type Context = Vec<String>;
    type Seed = ();
    type Upgrade = NoUpgrade<Vec<String>>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, Vec<String>>,
    ) -> Next<Self> {
        assert!(head.is_secure());
        Next::recv(Notes, RecvMode::Buffered(1 << 20)).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Vec<String>>,
    ) -> Next<Self> {
        scope.push(String::from_utf8_lossy(body).into_owned());
        response.send(Status::OK, "text/plain", b"done").expect("it is in order");
        Next::finished()
    }
}

type Test = TestLoop<Stream<Connection<Notes>, TlsStream<ScriptedSocket>>>;

fn connect(test: &mut Test, tls: &TlsServer, issuer: &Issuer) -> (Peer, RawClient) {
    let (socket, peer) = pair(test.world());
    let seed = HttpSeed::new((), ServerConfig::new());
    test.add(|scope| Stream::connected(tls.wrap(socket), seed, scope));
    let mut client = RawClient::new(issuer.raw_config(), "localhost");
    client.talk(test, &peer);
    (peer, client)
}

#[test]
fn a_truncated_request_is_rejected_and_a_complete_one_is_answered() {
    let issuer = Issuer::new();
    let tls = issuer.server_with(|config| config.alpn(&[]));
    let mut test = Test::new(Vec::new());
    let (other_peer, mut other) = connect(&mut test, &tls, &issuer);
    for (request, is_whole) in [
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nfour", true),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nfou", false),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
            true,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n",
            false,
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfo", false),
        ("GET / HTTP/1.1\r\nHost: a\r\n", false),
    ] {
        for in_order in [true, false] {
            let (peer, mut client) = connect(&mut test, &tls, &issuer);
            client.write(request.as_bytes());
            client.talk(&mut test, &peer);
            if in_order {
                client.tls.send_close_notify();
                peer.send(&client.take_records());
            }
            peer.end();
            test.settle();
            client.receive(&peer.take_received());
            let answer = String::from_utf8_lossy(&client.plain).into_owned();
            assert_eq!(answer.starts_with("HTTP/1.1 200 OK"), is_whole, "{request:?}: {answer}");
            let whole: Vec<String> = std::mem::take(test.context_mut());
            assert_eq!(whole.len(), usize::from(is_whole), "{request:?}: {whole:?}");
            test.advance(Duration::from_secs(3));
            assert!(peer.is_dropped());
        }
    }
    assert!(tls.counters().truncated() >= 6, "{:?}", tls.counters());
    other.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    other.talk(&mut test, &other_peer);
    assert!(other.plain.starts_with(b"HTTP/1.1 200 OK"), "others are served");
    assert_eq!(test.failures(), [""; 0]);
}

/// With prior knowledge a plain connection may start with HTTP/2. A connection that has negotiated
/// HTTP/1.1 may not.
#[test]
fn a_preface_does_not_start_http2_after_http1_was_negotiated() {
    let issuer = Issuer::new();
    for (protocols, is_http2) in [(&[][..], true), (&[&b"http/1.1"[..]][..], false)] {
        let tls = issuer.server_with(|config| config.alpn(protocols));
        let mut test = Test::new(Vec::new());
        let (socket, peer) = pair(test.world());
        let http2 = Http2Config::new().prior_knowledge(true);
        let seed = HttpSeed::new((), ServerConfig::new().http2(http2));
        test.add(|scope| Stream::connected(tls.wrap(socket), seed, scope));
        let mut config = issuer.raw_config();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let mut client = RawClient::new(config, "localhost");
        client.talk(&mut test, &peer);
        client.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.talk(&mut test, &peer);
        let is_refused = client.plain.starts_with(b"HTTP/1.1 505 ");
        assert_eq!((is_refused, client.plain.is_empty()), (!is_http2, false), "{protocols:?}");
    }
}
