//! Other protocols on the same connection: 101 and CONNECT.

use std::io::Write;
use std::marker::PhantomData;
use std::sync::Arc;

use rotor_core::{Config, Cursor, Scope, Time, Verdict};
use rotor_http::Status;
use rotor_http::server::{
    Connection, Head, HttpAccept, HttpSeed, Next, Response, Server, ServerConfig,
};
use rotor_stream::testing::{Driver, ScriptedListener, TestLoop, listener};
use rotor_stream::{
    Accept, AcceptConfig, Exception, Intent, Matched, Protocol, StreamConfig, Transport,
};

use crate::probe::{probe, request, seconds};
use crate::wire::transcript;

const UPGRADE: &str = "Upgrade: relay\r\nConnection: upgrade\r\n";

/// The status of the switch, and what the other protocol wrote after it.
fn after_switch(bytes: &[u8]) -> (String, String) {
    let end = bytes.windows(9).position(|window| window == b"\r\n\r\nhello").expect("a switch") + 4;
    let status = String::from_utf8_lossy(&bytes[9..12]).into_owned();
    assert!(!bytes[..end].windows(8).any(|window| window == b"Content-"), "neither has a body");
    (status, String::from_utf8_lossy(&bytes[end..]).into_owned())
}

#[test]
fn a_protocol_started_while_only_its_connection_drains_is_notified() {
    let mut driver = probe(ServerConfig::new());
    let (begin, rest) = (b"GET /up HTTP/1.1\r\n", format!("Host: a\r\n{UPGRADE}\r\n"));
    driver.send(begin);
    let _ = driver.test().instance().machines().scan(Cursor::START, |_, _| Verdict::Drain);
    driver.settle();
    driver.send(rest.as_bytes());
    let (http, relay) = after_switch(&driver.take_received());
    assert_eq!((http.as_str(), relay.as_str()), ("101", "hellobye"));
    assert!(driver.is_ended());
}

#[test]
fn rule_48_bytes_after_the_head_belong_to_the_new_protocol() {
    let bytes = request("GET /up", UPGRADE, "ab");
    for pieces in [vec![&bytes[..]], bytes.chunks(1).collect()] {
        let mut driver = probe(ServerConfig::new());
        pieces.iter().for_each(|piece| driver.send(piece));
        let (http, relay) = after_switch(&driver.take_received());
        assert_eq!((http.as_str(), relay.as_str()), ("101", "hello<a><b>"));
        // The deadlines of HTTP no longer apply.
        driver.advance(seconds(100_000));
        driver.send(b"c");
        assert_eq!(driver.take_received(), b"<c>");
        driver.end();
        assert!(driver.is_ended());
        assert_eq!(driver.failures(), [""; 0]);
    }
}

#[test]
fn a_protocol_started_in_a_drain_is_notified_of_it() {
    // The switch is on the request itself, which the drain still accepts, and on a body that ends
    // it.
    let body = format!("{UPGRADE}Content-Length: 3\r\n");
    for (before, after) in [
        (Vec::new(), request("GET /up", UPGRADE, "ab")),
        (request("POST /up", &body, "xy"), b"zab".to_vec()),
    ] {
        let mut driver = probe(ServerConfig::new());
        driver.send(&before);
        driver.drain(seconds(30));
        assert!(!driver.is_ended());
        driver.send(&after);
        let (http, relay) = after_switch(&driver.take_received());
        assert_eq!((http.as_str(), relay.as_str()), ("101", "hellobye"));
        assert!(driver.is_ended());
        assert_eq!(driver.failures(), [""; 0]);
    }
}

#[test]
fn rule_48_an_improperly_requested_upgrade_is_ignored() {
    for (start, fields) in [
        ("GET /up", "Upgrade: relay\r\n"),
        ("GET /up", "Connection: upgrade\r\n"),
        ("GET /", UPGRADE),
    ] {
        let mut driver = probe(ServerConfig::new());
        driver.send(&request(start, fields, ""));
        assert_eq!(transcript(&driver.take_received()), format!("200 {start}"));
    }
    let mut driver = probe(ServerConfig::new());
    driver.send(b"GET /up HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: relay\r\n\r\n");
    assert_eq!(transcript(&driver.take_received()), "200 GET /up close");
}

#[test]
fn rule_48_a_body_ends_before_the_switch() {
    let fields = format!("{UPGRADE}Content-Length: 3\r\n");
    let mut driver = probe(ServerConfig::new());
    driver.send(&request("POST /up", &format!("{fields}Expect: 100-continue\r\n"), ""));
    assert_eq!(driver.take_received(), b"HTTP/1.1 100 Continue\r\n\r\n");
    driver.send(b"xyzab");
    let (http, relay) = after_switch(&driver.take_received());
    assert_eq!((http.as_str(), relay.as_str()), ("101", "hello<a><b>"));
    assert_eq!(driver.context().events, ["POST /up", "body xyz"]);
}

#[test]
fn rule_10_connect_becomes_a_tunnel_only_where_one_is_offered() {
    let mut driver = probe(ServerConfig::new());
    driver.send(b"CONNECT open:1 HTTP/1.1\r\nHost: open:1\r\n\r\na");
    let (http, relay) = after_switch(&driver.take_received());
    assert_eq!((http.as_str(), relay.as_str()), ("200", "hello<a>"));
    let mut driver = probe(ServerConfig::new());
    // Data for a refused tunnel is not parsed as a request.
    driver.send(
        b"CONNECT other:1 HTTP/1.1\r\nHost: other:1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(transcript(&driver.take_received()), "405 close");
    assert_eq!(driver.context().events, ["CONNECT "]);
    let mut driver = probe(ServerConfig::new());
    // A body of CONNECT would start where the tunnel data might: refused.
    driver.send(b"CONNECT open:1 HTTP/1.1\r\nHost: open:1\r\nContent-Length: 1\r\n\r\na");
    assert_eq!(transcript(&driver.take_received()), "400 close");
}

#[test]
fn rule_48_a_handler_cannot_switch_before_the_body_has_come() {
    let fields = format!("{UPGRADE}Content-Length: 3\r\n");
    let mut driver = probe(ServerConfig::new());
    driver.send(&request("POST /up-early", &fields, "xyz"));
    // The writer refuses 101, and this handler does not expect that.
    assert_eq!(transcript(&driver.take_received()), "500 close");
}

#[test]
fn a_peer_of_the_new_protocol_must_keep_reading_its_output() {
    let mut driver = probe(ServerConfig::new());
    driver.limit_room(500);
    driver.send(&request("GET /up", UPGRADE, &"x".repeat(20_000)));
    driver.make_room(40_000);
    driver.advance(seconds(9));
    assert!(!driver.is_dropped());
    driver.make_room(10);
    driver.advance(seconds(1));
    assert!(driver.is_dropped(), "what it took at once does not count for longer");
}

/// Waits for more than its input limit, and writes the error that it gets.
struct Greedy;

impl Protocol for Greedy {
    type Context = ();
    type Seed = ();

    fn config(_: &()) -> Arc<StreamConfig> {
        StreamConfig::new().input_max(100).share()
    }

    fn create(_: (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::of(Greedy).bytes(101).no_deadline()
    }

    fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }

    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        write!(transport.output, "{exception}").expect("an open output");
        Intent::done()
    }
}

/// Is always idle, and takes leave.
struct Polite;

impl Protocol for Polite {
    type Context = ();
    type Seed = ();

    fn create(_: (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::of(Polite).bytes(1).no_deadline()
    }

    fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }

    fn idle(&self, _: &[u8]) -> Option<Time> {
        Some(Time::ZERO)
    }

    fn make_room(&mut self, transport: &mut Transport<'_>, _: &mut Scope<'_, ()>) {
        transport.output.write_all(b"bye").expect("an open output");
    }
}

/// Switches to the other protocol immediately.
struct SwitchTo<P>(PhantomData<P>);

impl<P: Protocol<Context = (), Seed = ()>> Server for SwitchTo<P> {
    type Context = ();
    type Seed = ();
    type Upgrade = P;

    fn headers_received(
        _: (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        response.status(Status::SWITCHING_PROTOCOLS).expect("nothing was written");
        response.add_header("Upgrade", "other").expect("a field");
        response.done_headers().and_then(|()| response.done()).expect("no body");
        Next::upgrade(())
    }
}

#[test]
fn the_new_protocol_has_its_own_limits() {
    let mut driver =
        Driver::<Connection<SwitchTo<Greedy>>>::new(HttpSeed::new((), ServerConfig::new()), ());
    driver.send(&request("GET /", "Upgrade: other\r\nConnection: upgrade\r\n", "a"));
    let answer = driver.take_received();
    let told = b"\r\n\r\nthe expected input is longer than 100 bytes";
    assert!(answer.ends_with(told), "{}", answer.escape_ascii());
}

#[test]
fn the_new_protocol_may_write_why_it_makes_room() {
    type Accepting = HttpAccept<SwitchTo<Polite>, ScriptedListener>;
    let mut test = TestLoop::<Accepting>::with_config((), Config::new().machines_max(2));
    let (listener, door) = listener(test.world());
    let seed = HttpSeed::new((), ServerConfig::new());
    test.add(|scope| Accept::listen(listener, seed, AcceptConfig::new(), scope));
    let peer = door.connect();
    peer.send(&request("GET /", "Upgrade: other\r\nConnection: upgrade\r\n", ""));
    test.settle();
    assert!(peer.take_received().starts_with(b"HTTP/1.1 101"));
    test.advance(seconds(9));
    let _other = door.connect();
    test.settle();
    assert_eq!(peer.take_received(), b"bye");
    assert!(peer.is_dropped());
}
