//! HTTP over TLS, in memory: connections that end without `close_notify`, with each kind of body
//! framing; the HTTP version that is used after ALPN; and what a client's requests are told when
//! TLS fails.
#![forbid(unsafe_code)]

#[path = "../rotor-tls/tests/kit/mod.rs"]
mod kit;

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use kit::{Issuer, RawClient};
use rotor::http::Status;
use rotor::http::client::{
    self, ClientConfig, ClientError, ConnectionSeed, Fetch, Fetched, Job, Offer, RequestSource,
};
use rotor::http::server::{
    Connection, Head, Http2Config, HttpSeed, Next, NoUpgrade, RecvMode, Response, Server,
    ServerConfig,
};
use rotor::stream::testing::{Peer, ScriptedSocket, TestLoop, pair};
use rotor::stream::{Fatal, Stream};
use rotor::tls::{TlsClient, TlsClientConfig, TlsError, TlsServer, TlsStream};
use rotor::{Future, Outcome, Scope, with_causes};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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

/// The outcomes of the requests that were begun.
type Asked = Vec<Future<Result<Fetched, ClientError>>>;

/// Has one connection make this many requests.
struct Requests(usize);

impl RequestSource<Fetch<Asked>> for Requests {
    fn next(&mut self, _: bool, scope: &mut Scope<'_, Asked>) -> Offer<Fetch<Asked>> {
        if scope.len() == self.0 {
            return Offer::Idle;
        }
        let (port, future) = scope.create_future();
        let deadline = scope.now() + Duration::from_secs(60);
        scope.push(future);
        Offer::Job(Job::new(Fetch::get("/").host("localhost"), deadline, port))
    }

    fn return_job(&mut self, _: Job<Fetch<Asked>>, _: &mut Scope<'_, Asked>) {}

    fn not_connected(self, error: Fatal, _: &mut Scope<'_, Asked>) {
        panic!("{}", with_causes(&error));
    }
}

type ClientStream = Stream<client::Connection<Fetch<Asked>, Requests>, TlsStream<ScriptedSocket>>;

/// The server of a client under test: rustls itself.
struct RawServer(rustls::ServerConnection);

impl RawServer {
    fn new(issuer: &Issuer) -> RawServer {
        let (chain, key) = issuer.pem_for(&["localhost"]);
        let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).map(|one| one.expect("fine"));
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("fine");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("there are versions")
            .with_no_client_auth()
            .with_single_cert(chain.collect(), key)
            .expect("they belong together");
        RawServer(rustls::ServerConnection::new(Arc::new(config)).expect("it is well made"))
    }

    /// Exchanges bytes with the client until neither sends anything.
    fn talk(&mut self, test: &mut TestLoop<ClientStream>, peer: &Peer) {
        loop {
            test.settle();
            let received = peer.take_received();
            self.receive(&received);
            let records = self.take_records();
            if received.is_empty() && records.is_empty() {
                return;
            }
            peer.send(&records);
        }
    }

    /// Processes records. It answers invalid ones with an alert.
    fn receive(&mut self, mut records: &[u8]) {
        while !records.is_empty() {
            self.0.read_tls(&mut records).expect("a slice gives all");
            if self.0.process_new_packets().is_err() {
                return;
            }
            let mut plain = [0; 1024];
            while let Ok(1..) = self.0.reader().read(&mut plain) {}
        }
    }

    fn take_records(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        while self.0.wants_write() {
            self.0.write_tls(&mut records).expect("a vector takes all");
        }
        records
    }
}

/// A record that cannot be decrypted.
const BAD_RECORD: [u8; 22] = [23, 3, 3, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

#[test]
fn each_request_is_told_how_tls_failed_whatever_the_version_of_http() {
    let issuer = Issuer::new();
    let tls = TlsClientConfig::new(issuer.roots()).alpn(&[]);
    let tls = TlsClient::new(tls).expect("it is well made").to((), "localhost");
    let tls = tls.expect("it is a name");
    for is_http2 in [false, true] {
        for (by_alert, expected) in [
            (true, "the connection broke: the peer refused the connection: alert BadRecordMac"),
            (false, "the connection broke: the peer violated TLS: cannot decrypt peer's message"),
        ] {
            let mut test = TestLoop::<ClientStream>::new(Vec::new());
            let (socket, peer) = pair(test.world());
            let http2 = client::Http2Config::new().prior_knowledge(is_http2);
            let config = ClientConfig::new().http2(http2);
            let count = if is_http2 { 2 } else { 1 };
            let seed = ConnectionSeed::new(Requests(count), Arc::new(config));
            test.add(|scope| Stream::connected(TlsStream::client(socket, &tls), seed, scope));
            let mut server = RawServer::new(&issuer);
            if is_http2 {
                server.0.writer().write_all(&SETTINGS).expect("it takes all");
            }
            server.talk(&mut test, &peer);
            if by_alert {
                server.receive(&BAD_RECORD);
                peer.send(&server.take_records());
            } else {
                peer.send(&BAD_RECORD);
            }
            test.settle();
            assert_eq!(test.context().len(), count);
            for future in std::mem::take(test.context_mut()) {
                let Outcome::Value(Err(ClientError::Lost(error))) = future.take() else {
                    panic!("the request is not lost");
                };
                assert_eq!(with_causes(&error).to_string(), expected, "{is_http2}");
                let reason = TlsError::of(&error);
                let is_found = match by_alert {
                    true => matches!(reason, Some(TlsError::Refused(_))),
                    false => matches!(reason, Some(TlsError::Peer(_))),
                };
                assert!(is_found, "{reason:?}");
            }
        }
    }
}
