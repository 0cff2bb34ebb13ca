//! A server on a wrapping socket.

use std::time::Duration;

use rotor_core::Scope;
use rotor_core::net::{Either, StreamSocket};
use rotor_http::Status;
use rotor_http::server::{Connection, Head, HttpSeed, Reply, Response, ServerConfig, ServerFn};
use rotor_stream::Stream;
use rotor_stream::testing::{Peer, ScriptedSocket, TestLoop, pair};

use crate::record::{Kind, Record, Session, encode};
use crate::{KEY, receive, send};

type Handler = fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, ()>) -> Reply;
type Test<S> = TestLoop<Stream<Connection<ServerFn<Handler, ()>>, S>>;

/// Answers with what the handler knows about the connection.
fn describe_session(head: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    let protocol = head.session::<Session>().map(|session| &session.protocol[..]);
    let other = head.session::<String>();
    let text = format!("{protocol:?} {other:?} {}", head.is_secure());
    response.reply(Status::OK, "text/plain", text.as_bytes())
}

/// A server on a socket in this wrapper.
fn server<S: StreamSocket>(
    wrap: impl FnOnce(ScriptedSocket) -> S,
    config: ServerConfig,
) -> (Test<S>, Peer) {
    let mut test = Test::new(());
    let (socket, peer) = pair(test.world());
    test.add(|scope| {
        Stream::connected(wrap(socket), HttpSeed::new(describe_session as Handler, config), scope)
    });
    (test, peer)
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// The server's answer to a request that is sent in records.
fn answer_in_records<S: StreamSocket>(wrap: impl FnOnce(ScriptedSocket) -> S) -> String {
    let (mut test, peer) = server(wrap, ServerConfig::new());
    peer.send(&encode(Kind::Hello, b"http", KEY));
    send(&peer, REQUEST);
    test.settle();
    receive(&peer)
}

#[test]
fn a_handler_sees_the_session_of_its_connection() {
    let one_kind = answer_in_records(Record::server);
    let one_of_two =
        answer_in_records(|socket| Either::<_, ScriptedSocket>::A(Record::server(socket)));
    for answer in [one_kind, one_of_two] {
        assert!(answer.ends_with(&format!("{:?} None true", Some(b"http"))), "{answer}");
    }
}

#[test]
fn a_plain_socket_has_no_session() {
    let plain = |socket| Either::<Record<ScriptedSocket>, _>::B(socket);
    let (mut test, peer) = server(plain, ServerConfig::new());
    peer.send(REQUEST);
    test.settle();
    assert!(peer.take_received().ends_with(b"None None false"));
}

#[test]
fn a_client_that_closes_between_requests_is_no_error() {
    for in_order in [true, false] {
        let (mut test, peer) = server(Record::server, ServerConfig::new());
        peer.send(&encode(Kind::Hello, b"http", KEY));
        send(&peer, REQUEST);
        test.settle();
        if in_order {
            peer.send(&encode(Kind::Close, b"", KEY));
        }
        peer.end();
        test.settle();
        assert!(peer.is_dropped());
        assert_eq!(test.failures(), [""; 0]);
    }
}

#[test]
fn failed_handshakes_get_a_reason_and_are_counted() {
    let configs = [ServerConfig::new(), ServerConfig::new()];
    let [failed, late] = [0, 1].map(|index| configs[index].counters());
    let [one, another] = configs;
    let (mut test, peer) = server(Record::server, one);
    peer.send(&encode(Kind::Data, b"", KEY));
    test.settle();
    assert_eq!(peer.take_received(), encode(Kind::Alert, b"no hello", KEY));
    assert_eq!((failed.handshakes_failed(), failed.handshake_timeouts()), (1, 0));
    let (mut test, peer) = server(Record::server, another);
    test.advance(Duration::from_secs(11));
    assert!(peer.is_dropped());
    assert_eq!((late.handshakes_failed(), late.handshake_timeouts()), (0, 1));
    assert_eq!((failed.connections(), late.connections()), (0, 0));
}
