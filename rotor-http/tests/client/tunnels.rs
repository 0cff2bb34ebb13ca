//! Requests through a proxy that makes tunnels (CONNECT), on scripted sockets.

use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::{
    Future, Infallible, Machine, Outcome, Response, Scope, rotor_compose, with_causes,
};
use rotor_http::Status;
use rotor_http::client::{
    ByAddress, ClientConfig, ClientError, ClientResult, Fetch, Pool, PoolConfig, PoolMachine,
    TunnelError, TunnelStream, TunnelTarget,
};
use rotor_stream::testing::{Peer, Scripted, Target, TestLoop};
use rotor_stream::{Fatal, Host, Intent, Matched, Protocol, Stream, Transport};

type Socket = TunnelStream<Scripted<false>>;
type Origin = TunnelTarget<SocketAddr>;
type Outcomes = Vec<Result<Vec<u8>, ClientError>>;

/// Waits for a response, and records it.
struct Requester(Future<ClientResult<Fetch<Outcomes>>>);

impl Machine for Requester {
    type Context = Outcomes;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Outcomes>) -> Response<Self, Infallible> {
        match self.0.take() {
            Outcome::Pending(future) => return Response::keep(Requester(future)),
            Outcome::Value(result) => scope.push(result.map(|fetched| fetched.body)),
            Outcome::Lost(lost) => panic!("the pool is there: {lost:?}"),
        }
        Response::done()
    }
}

rotor_compose! {
    enum Machines <Outcomes> {
        Pool(PoolMachine<Fetch<Outcomes>, ByAddress<Socket>>),
        Requester(Requester),
    }
}

fn proxy() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 3128))
}

fn origin() -> Origin {
    TunnelTarget::new(proxy(), &Host::new("example.com", 443)).expect("it is a host")
}

const REQUEST: &[u8] = b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n";
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

struct Test {
    test: TestLoop<Machines>,
    pool: Pool<Fetch<Outcomes>, Origin>,
}

impl Test {
    fn new() -> Test {
        let mut test = TestLoop::new(Outcomes::new());
        test.world().target(proxy(), Target::Accepts);
        let mut pool = None;
        test.add(|scope| {
            let (handle, response) =
                PoolMachine::new(PoolConfig::new(), ClientConfig::new(), scope);
            pool = Some(handle);
            response.wrap(Machines::Pool)
        });
        Test { test, pool: pool.expect("the closure ran") }
    }

    fn ask(&mut self, origin: Origin) {
        let pool = self.pool.clone();
        self.test.add(|scope| {
            let fetch = Fetch::get("/").host("example.com");
            let future = pool.ask(origin, fetch, scope).expect("there is room");
            Response::ok(Machines::Requester(Requester(future)))
        });
        self.test.settle();
    }

    /// The proxy's ends of the connections that were made since the last call.
    fn connections(&self) -> Vec<Peer> {
        self.test.world().take_connections()
    }

    fn outcomes(&mut self) -> Outcomes {
        std::mem::take(self.test.context_mut())
    }
}

#[test]
fn requests_to_a_server_use_one_tunnel() {
    let mut test = Test::new();
    test.ask(origin());
    let [peer] = &test.connections()[..] else { panic!("one connection is made") };
    assert_eq!(peer.take_received(), REQUEST);
    peer.send(ESTABLISHED);
    test.test.settle();
    for _ in 0..2 {
        let received = peer.take_received();
        assert!(received.starts_with(b"GET / HTTP/1.1\r\nHost: example.com\r\n"), "{received:?}");
        peer.send(OK);
        test.test.settle();
        assert!(matches!(&test.outcomes()[..], [Ok(body)] if body == b"hi"));
        test.ask(origin());
    }
    assert!(test.connections().is_empty());
}

#[test]
fn a_tunnel_with_other_credentials_is_another_connection() {
    let mut test = Test::new();
    let with = |value| origin().header("Proxy-Authorization", value).expect("it is a field");
    test.ask(with("Basic eA=="));
    test.ask(with("Basic eQ=="));
    let requests: Vec<_> = test.connections().iter().map(Peer::take_received).collect();
    let [first, second] = &requests[..] else { panic!("two connections are made") };
    assert!(first.ends_with(b"\r\nProxy-Authorization: Basic eA==\r\n\r\n"));
    assert!(second.ends_with(b"\r\nProxy-Authorization: Basic eQ==\r\n\r\n"));
}

#[test]
fn a_refused_tunnel_fails_the_request_with_the_proxys_status() {
    let mut test = Test::new();
    test.ask(origin());
    let peer = test.connections().remove(0);
    peer.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 9\r\n\r\nforbidden");
    test.test.settle();
    assert_eq!(peer.take_received(), REQUEST, "the request itself was not sent");
    assert!(peer.is_dropped());
    let outcomes = test.outcomes();
    let [Err(error)] = &outcomes[..] else { panic!("it failed: {outcomes:?}") };
    let ClientError::NotConnected(Fatal::Handshake(cause)) = error else { panic!("{error:?}") };
    let status = Status::PROXY_AUTHENTICATION_REQUIRED;
    assert_eq!(TunnelError::of(cause), Some(&TunnelError::Refused(status)));
    assert!(!error.may_have_been_processed());
    assert_eq!(error.gateway_status(), Status::BAD_GATEWAY);
    let text = with_causes(error).to_string();
    let reason = "the proxy has refused the tunnel: 407 Proxy Authentication Required";
    assert!(text.ends_with(reason), "{text}");
}

#[test]
fn a_proxy_that_makes_no_tunnel_fails_the_request() {
    for (name, act, expected) in [
        ("closes", Peer::end as fn(&Peer), "the proxy has closed the connection"),
        (
            "closes in its response",
            |peer| {
                peer.send(b"HTTP/1.1 200 OK\r\n");
                peer.end();
            },
            "the proxy has closed the connection",
        ),
        ("resets", Peer::reset, "connection reset"),
        ("speaks TLS", |peer| peer.send(b"\x15\x03\x01\0\x02\x02\x16"), "this is TLS"),
        ("is silent", |_| {}, "handshake"),
    ] {
        let mut test = Test::new();
        test.ask(origin());
        let peer = test.connections().remove(0);
        act(&peer);
        test.test.settle();
        // The silent one has that much time.
        test.test.advance(Duration::from_secs(60));
        let outcomes = test.outcomes();
        let [Err(error)] = &outcomes[..] else { panic!("{name}: {outcomes:?}") };
        let text = with_causes(error).to_string();
        assert!(text.contains(expected), "{name}: {text}");
        assert!(!error.may_have_been_processed(), "{name}");
        assert_eq!(peer.take_received(), REQUEST, "{name}");
        // It may wait a while for what the proxy still sends.
        test.test.advance(Duration::from_secs(10));
        assert!(peer.is_dropped(), "{name}");
    }
}

/// Records each line. The server of this protocol speaks first.
struct Listening;

impl Protocol for Listening {
    type Context = Vec<u8>;
    type Seed = ();

    fn create((): (), _: &mut Transport<'_>, _: &mut Scope<'_, Vec<u8>>) -> Intent<Self> {
        Intent::of(Listening).delimiter(b"\n", 100).no_deadline()
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Vec<u8>>,
    ) -> Intent<Self> {
        scope.extend_from_slice(&transport.input[..line.len()]);
        line.consume(transport.input);
        Intent::of(self).keep().no_deadline()
    }
}

/// Sends the proxy's response and the server's greeting in two pieces. Returns what the protocol
/// reads.
fn greeted<const D: bool>(greeting: &str, cut: usize, read_max: usize) -> String {
    let mut test = TestLoop::<Stream<Listening, TunnelStream<Scripted<D>>>>::new(Vec::new());
    test.world().narrow_edges();
    test.world().target(proxy(), Target::Accepts);
    test.add(|scope| Stream::connect(&origin(), (), scope));
    let peer = test.world().take_connections().remove(0);
    peer.limit_reads(read_max);
    let sent = [ESTABLISHED, greeting.as_bytes()].concat();
    for piece in [&sent[..cut], &sent[cut..]] {
        peer.send(piece);
        test.settle();
    }
    String::from_utf8(test.context().clone()).expect("it is text")
}

#[test]
fn no_byte_of_a_server_that_speaks_first_is_lost() {
    let greeting = "220 ready\r\n250 ok\r\n";
    for cut in 0..ESTABLISHED.len() + greeting.len() {
        for read_max in [1, 7, 4_096] {
            let received = greeted::<false>(greeting, cut, read_max);
            assert_eq!(received, greeting, "cut at {cut}, {read_max} bytes a read");
        }
    }
}

#[test]
fn a_greeting_longer_than_one_read_is_read_whole() {
    let greeting = "250 ok\r\n".repeat(100);
    for cut in 0..ESTABLISHED.len() {
        assert_eq!(greeted::<true>(&greeting, cut, 4_096), greeting, "cut at {cut}");
    }
}

#[test]
fn a_request_for_a_tunnel_may_be_sent_in_pieces() {
    let mut test = TestLoop::<Stream<Listening, Socket>>::new(Vec::new());
    test.world().target(proxy(), Target::Hangs);
    test.add(|scope| Stream::connect(&origin(), (), scope));
    let peer = test.world().take_hanging().remove(0);
    peer.limit_room(0);
    peer.decide(Target::Accepts);
    let mut received = Vec::new();
    for _ in 0..2 * REQUEST.len() {
        test.settle();
        received.extend(peer.take_received());
        peer.make_room(1);
    }
    assert_eq!(received, REQUEST);
    peer.send(&[ESTABLISHED, b"hello\n"].concat());
    test.settle();
    assert_eq!(test.context(), b"hello\n");
}
