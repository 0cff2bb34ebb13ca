//! Idle connections make room for new ones: which ones are idle, since when, and what their peers
//! see.

use rotor_core::{Config, Idle, Machine, Time};
use rotor_http::server::{HttpAccept, HttpSeed, ServerConfig};
use rotor_stream::testing::{Peer, ScriptedListener, TestLoop, listener};
use rotor_stream::{Accept, AcceptConfig};

use crate::http2::client::{config, headers, preface_and_settings};
use crate::probe::{BIG, Probe, ProbeDriver, TestContext, get, probe, request, seconds};
use crate::wire::transcript;

/// The second of its life since which the connection is idle, if it is.
fn idle_since(driver: &mut ProbeDriver, began: Time) -> Option<u64> {
    let (_, machine) = driver.test().instance().machines().iter().next().expect("it lives");
    let idle = machine.idle()?;
    (0..1_000).find(|second| idle == Idle::since(began + seconds(*second)))
}

#[test]
fn a_connection_is_idle_between_a_response_and_the_next_request() {
    let chunked = request("POST /", "Transfer-Encoding: chunked\r\n", "");
    // Each piece is sent one second after the previous one; with it, the second since which the
    // connection is idle afterwards.
    let scripts: &[&[(&[u8], Option<u64>)]] = &[
        &[(b"", Some(0)), (b"", Some(0))],
        &[(&get("/"), Some(1)), (b"", Some(1)), (&get("/"), Some(3))],
        &[(b"G", None), (b"ET / HTTP/1.1\r\nHost: a\r\n", None), (b"\r\n", Some(3))],
        &[(&get("/"), Some(1)), (b"\r\n", Some(2)), (b"G", None)],
        &[(&[&get("/")[..], b"G"].concat(), None)],
        &[(&get("/wait"), None), (b"", None)],
        &[(&chunked, None), (b"1\r\nx\r\n", None), (b"0\r\n\r\n", Some(3))],
        &[(&request("POST /ignore", "Content-Length: 2\r\n", ""), None), (b"xx", Some(2))],
        &[(&request("GET /up", "Connection: upgrade\r\nUpgrade: relay\r\n", ""), None)],
    ];
    for script in scripts {
        let mut driver = probe(ServerConfig::new());
        let began = driver.now();
        for (piece, expected) in *script {
            driver.advance(seconds(1));
            driver.send(piece);
            assert_eq!(
                idle_since(&mut driver, began),
                *expected,
                "{:?}",
                piece.escape_ascii().to_string()
            );
        }
    }
}

#[test]
fn a_connection_is_not_idle_before_its_response_is_read() {
    let mut driver = probe(ServerConfig::new());
    let began = driver.now();
    driver.limit_room(1_000);
    driver.send(&get("/big"));
    assert_eq!(idle_since(&mut driver, began), None);
    driver.advance(seconds(3));
    driver.make_room(2 * BIG);
    assert!(driver.received_len() > BIG);
    assert_eq!(idle_since(&mut driver, began), Some(3));
}

struct Test {
    test: TestLoop<HttpAccept<Probe, ScriptedListener>>,
    door: rotor_stream::testing::Door,
}

impl Test {
    /// A server with this number of connection slots.
    fn new(slots: usize) -> Test {
        Test::with_config(slots, ServerConfig::new())
    }

    fn with_config(slots: usize, config: ServerConfig) -> Test {
        let mut test =
            TestLoop::with_config(TestContext::default(), Config::new().machines_max(1 + slots));
        let (listener, door) = listener(test.world());
        let seed = HttpSeed::new((), config);
        test.add(|scope| Accept::listen(listener, seed, AcceptConfig::new(), scope));
        Test { test, door }
    }

    fn connect(&mut self) -> Peer {
        let peer = self.door.connect();
        self.test.settle();
        peer
    }

    fn ask(&mut self, peer: &Peer, bytes: &[u8]) -> String {
        peer.send(bytes);
        self.test.settle();
        transcript(&peer.take_received())
    }
}

#[test]
fn idle_connections_make_room_and_those_with_a_request_do_not() {
    let mut test = Test::new(4);
    let [silent, begun, waiting, kept] = [(); 4].map(|()| test.connect());
    test.ask(&begun, b"GET / HT");
    test.ask(&waiting, &get("/wait"));
    test.test.advance(seconds(1));
    assert!(test.ask(&kept, &get("/")).starts_with("200"));
    test.test.advance(seconds(3));
    for (new, closed) in [(0, &silent), (1, &kept)] {
        let peer = test.connect();
        assert!(
            test.ask(&peer, &get("/")).starts_with("200"),
            "the client {new} is served at once"
        );
        assert!(closed.is_ended() && closed.is_dropped() && closed.take_received().is_empty());
    }
    // The remaining connections were active just now, or are busy.
    let _last = test.connect();
    assert_eq!(test.door.waiting(), 1);
    assert!(test.ask(&begun, b"TP/1.1\r\nHost: a\r\n\r\n").starts_with("200"));
    assert!(!waiting.is_dropped());
    let stats = test.test.instance().stats().read();
    assert_eq!((stats.made_room, stats.failed), (2, 0));
}

#[test]
fn an_http2_connection_that_makes_room_names_its_last_request() {
    let mut test = Test::with_config(1, config());
    let old = test.connect();
    old.send(&preface_and_settings(&[]));
    old.send(&headers(5, "GET", "/", &[], true));
    test.test.settle();
    assert!(!old.take_received().is_empty());
    test.test.advance(seconds(3));
    let new = test.connect();
    assert!(test.ask(&new, &get("/")).starts_with("200"));
    assert!(old.is_ended() && old.is_dropped());
    // GOAWAY, without an error.
    assert_eq!(old.take_received(), [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0]);
}

#[test]
fn a_request_arriving_as_its_connection_makes_room_is_answered() {
    let mut test = Test::new(2);
    let [first, second] = [(); 2].map(|()| test.connect());
    test.test.advance(seconds(10));
    first.before_read(|peer| peer.send(&get("/")));
    let new = test.connect();
    assert!(transcript(&first.take_received()).starts_with("200"));
    assert!(second.is_dropped() && test.ask(&new, &get("/")).starts_with("200"));
}
