//! A client on a wrapping socket.

use std::time::Duration;

use rotor_core::{Future, Scope};
use rotor_http::client::{
    Client, ClientConfig, ClientError, ClientResult, Connection, ConnectionSeed, Head, Job, Next,
    NoUpgrade, Offer, RecvMode, Request, RequestSource,
};
use rotor_http::{MessageError, Method};
use rotor_stream::testing::{Peer, ScriptedSocket, TestLoop, pair};
use rotor_stream::{Fatal, Stream};

use crate::record::{Kind, Record, Session, encode};
use crate::{KEY, receive, send};

/// The events, and the futures of the requests.
#[derive(Default)]
struct EventLog {
    lines: Vec<String>,
    futures: Vec<Future<Result<(), ClientError>>>,
}

/// Requests a page, and records its events.
struct PageRequest;

impl PageRequest {
    fn write(request: &mut Request<'_>) -> Result<(), MessageError> {
        request.start(Method::Get, "/")?;
        request.add_header("Host", "h")?;
        request.done_headers()?;
        request.done()
    }
}

impl Client for PageRequest {
    type Context = EventLog;
    type Output = ();
    type Upgrade = NoUpgrade<EventLog>;

    fn prepare_request(self, request: &mut Request<'_>, _: &mut Scope<'_, EventLog>) -> Next<Self> {
        match PageRequest::write(request) {
            Ok(()) => Next::go_on(self).keep_deadline(),
            Err(error) => Next::error(error),
        }
    }

    fn headers_received(
        self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        scope: &mut Scope<'_, EventLog>,
    ) -> Next<Self> {
        let protocol = head.session::<Session>().map(|session| session.protocol.clone());
        let name = String::from_utf8(protocol.unwrap_or_default()).expect("ASCII");
        scope.lines.push(format!("{} {name} {}", head.status().code(), head.is_secure()));
        Next::recv(self, RecvMode::Buffered(1000)).keep_deadline()
    }

    fn response_received(
        self,
        body: &[u8],
        _: &mut Request<'_>,
        scope: &mut Scope<'_, EventLog>,
    ) -> Next<Self> {
        scope.lines.push(String::from_utf8_lossy(body).into_owned());
        Next::finished(())
    }

    fn bad_response(
        self,
        error: ClientError,
        scope: &mut Scope<'_, EventLog>,
    ) -> ClientResult<PageRequest> {
        scope.lines.push(format!("{error:?}"));
        Err(error)
    }
}

/// Uploads a body, and ends it when it is told that there is room.
struct Upload;

impl Client for Upload {
    type Context = EventLog;
    type Output = ();
    type Upgrade = NoUpgrade<EventLog>;

    fn prepare_request(self, request: &mut Request<'_>, _: &mut Scope<'_, EventLog>) -> Next<Self> {
        let mut write = || {
            request.start(Method::Post, "/")?;
            request.add_header("Host", "h")?;
            request.add_chunked()?;
            request.done_headers()?;
            request.write_body(b"body")
        };
        write().expect("a request that begins");
        Next::go_on(self).keep_deadline()
    }

    fn request_flushed(self, request: &mut Request<'_>, _: &mut Scope<'_, EventLog>) -> Next<Self> {
        request.done().expect("a request that ends");
        Next::go_on(self).keep_deadline()
    }

    fn headers_received(
        self,
        _: &Head<'_>,
        _: &mut Request<'_>,
        _: &mut Scope<'_, EventLog>,
    ) -> Next<Self> {
        Next::finished(())
    }

    fn bad_response(self, error: ClientError, _: &mut Scope<'_, EventLog>) -> ClientResult<Upload> {
        Err(error)
    }
}

/// Gives the connection one request after another.
struct RequestSequence<K>(fn() -> K);

impl<K: Client<Context = EventLog, Output = ()>> RequestSource<K> for RequestSequence<K> {
    fn next(&mut self, _: bool, scope: &mut Scope<'_, EventLog>) -> Offer<K> {
        let (port, future) = scope.create_future();
        scope.futures.push(future);
        Offer::Job(Job::new((self.0)(), scope.now() + Duration::from_secs(9), port))
    }

    fn return_job(&mut self, _: Job<K>, scope: &mut Scope<'_, EventLog>) {
        scope.lines.push("to be made again".into());
    }

    fn not_connected(self, error: Fatal, scope: &mut Scope<'_, EventLog>) {
        scope.lines.push(format!("not connected: {error}"));
    }
}

type Test<K> = TestLoop<Stream<Connection<K, RequestSequence<K>>, Record<ScriptedSocket>>>;

/// A client that has begun its handshake.
fn client<K>(test: &mut Test<K>, request: fn() -> K) -> Peer
where
    K: Client<Context = EventLog, Output = ()> + 'static,
{
    let (socket, peer) = pair(test.world());
    test.add(|scope| {
        let seed = ConnectionSeed::new(RequestSequence(request), ClientConfig::new().into());
        Stream::connected(Record::client(socket, b"http"), seed, scope)
    });
    peer
}

/// The peer sends a response and ends its side, with a close record or without.
fn events_with_end(response: &str, in_order: bool) -> Vec<String> {
    let mut test = Test::new(EventLog::default());
    let peer = client(&mut test, || PageRequest);
    peer.send(&encode(Kind::Welcome, b"", KEY));
    test.settle();
    assert!(receive(&peer).starts_with("GET / "));
    send(&peer, response.as_bytes());
    test.settle();
    if in_order {
        peer.send(&encode(Kind::Close, b"", KEY));
    }
    peer.end();
    test.settle();
    std::mem::take(&mut test.context_mut().lines)
}

const HI: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

#[test]
fn a_handler_sees_the_session_of_its_connection() {
    assert_eq!(events_with_end(HI, true)[0], "200 http true");
}

#[test]
fn a_request_is_returned_if_the_server_closes_between_requests() {
    for in_order in [true, false] {
        assert_eq!(events_with_end(HI, in_order), ["200 http true", "hi", "to be made again"]);
    }
}

#[test]
fn an_end_before_the_head_is_reported_as_closed() {
    for in_order in [true, false] {
        assert_eq!(events_with_end("HTTP/1.1 200 O", in_order), ["Closed"]);
    }
}

#[test]
fn a_close_delimited_body_is_complete_only_with_a_close_record() {
    let response = "HTTP/1.1 200 OK\r\n\r\nhi";
    assert_eq!(events_with_end(response, true), ["200 http true", "hi"]);
    assert_eq!(events_with_end(response, false), ["200 http true", "Body(Truncated)"]);
}

#[test]
fn bodies_with_a_length_need_no_close_record() {
    let length = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    let chunked = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    for response in [length, chunked] {
        for in_order in [true, false] {
            assert_eq!(events_with_end(response, in_order), ["200 http true", "hi"]);
            let cut = &response[..response.len() - 1];
            assert_eq!(events_with_end(cut, in_order), ["200 http true", "Body(Truncated)"]);
        }
    }
}

#[test]
fn a_handler_is_told_of_room_although_a_part_of_a_head_came_before_all_was_sent() {
    // With some of these, the output is empty, and the wrapper holds the last record.
    for room in 0..200 {
        let mut test = Test::new(EventLog::default());
        let peer = client(&mut test, || Upload);
        let _hello = peer.take_received();
        peer.limit_room(room);
        peer.send(&encode(Kind::Welcome, b"", KEY));
        test.settle();
        send(&peer, b"HTTP/1.1 1");
        test.settle();
        peer.make_room(1_000);
        test.settle();
        assert!(receive(&peer).ends_with("4\r\nbody\r\n0\r\n\r\n"), "{room}");
    }
}
