//! Other ends of requests: not ready, failed, panicked, upgraded, cancelled; and event streams,
//! which do not end.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use rotor_core::Scope;
use rotor_http::server::{Connection, HttpSeed, ServerConfig};
use rotor_stream::testing::Driver;
use rotor_stream::{Intent, Matched, Protocol, Transport};
use rotor_tower::{Body, Tower, TowerServer, Upgrade};
use tower_service::Service;

use crate::stage::{exchange, request, serving, serving_as};

/// A service that becomes ready when the test opens it, and must be ready for each call.
#[derive(Clone, Default)]
struct Gate {
    is_open: Arc<Mutex<(bool, Vec<Waker>)>>,
    is_ready: bool,
}

impl Service<http::Request<Body>> for Gate {
    type Response = http::Response<String>;
    type Error = io::Error;
    type Future = std::future::Ready<Result<http::Response<String>, io::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gate = self.is_open.lock().expect("alone");
        self.is_ready = gate.0;
        if gate.0 {
            return Poll::Ready(Ok(()));
        }
        gate.1.push(context.waker().clone());
        Poll::Pending
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        assert!(self.is_ready, "the one that is called is the one that was ready");
        std::future::ready(Ok(http::Response::new(request.uri().to_string())))
    }
}

#[test]
fn a_service_is_not_called_before_it_is_ready() {
    let gate = Gate::default();
    let mut stage = serving(gate.clone());
    stage.send(&request("GET /a", "", ""));
    stage.send(&request("GET /b", "", ""));
    stage.wakeup();
    assert_eq!(stage.take_received(), b"");
    let wakers = {
        let mut gate = gate.is_open.lock().expect("alone");
        gate.0 = true;
        std::mem::take(&mut gate.1)
    };
    wakers.into_iter().for_each(Waker::wake);
    stage.settle();
    let text = String::from_utf8(stage.take_received()).expect("text");
    assert!(text.contains("\r\n\r\n/aHTTP/1.1 200 OK\r\n") && text.ends_with("/b"), "{text}");
    // A service that never becomes ready is limited by the handler's timeout.
    gate.is_open.lock().expect("alone").0 = false;
    stage.send(&request("GET /c", "", ""));
    stage.advance(Duration::from_secs(60));
    assert_eq!(&exchange(&stage.take_received())[..3], "503");
}

/// Fails in the way that the path of the request names.
fn failing(
    request: http::Request<Body>,
) -> impl Future<Output = Result<http::Response<FailingBody>, io::Error>> {
    let path = request.uri().path().to_owned();
    async move {
        let answer = http::Response::new(FailingBody(path.clone()));
        match path.as_str() {
            "/error" => Err(io::Error::other("as asked")),
            "/panic" => panic!("as asked"),
            "/length" | "/longer" => {
                let mut answer = answer;
                answer.headers_mut().insert("content-length", "2".parse().expect("a value"));
                Ok(answer)
            }
            _ => Ok(answer),
        }
    }
}

struct FailingBody(String);

impl http_body::Body for FailingBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut FailingBody>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match std::mem::take(&mut self.0).as_str() {
            "/body" => Poll::Ready(Some(Err(io::Error::other("as asked")))),
            "/late" => {
                self.0 = "/body".to_owned();
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"half")))))
            }
            "/length" => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"more"))))),
            "/longer" => {
                self.0 = "/length".to_owned();
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"so")))))
            }
            "/empty" => {
                self.0 = "/empty".to_owned();
                context.waker().wake_by_ref();
                Poll::Ready(Some(Ok(Frame::data(Bytes::new()))))
            }
            "/body-panic" => panic!("as asked"),
            _ => Poll::Ready(None),
        }
    }
}

#[test]
fn a_failed_response_never_looks_complete() {
    for (path, status, is_ended) in [
        ("/error", "500", false),
        ("/panic", "500", true),
        ("/body", "500", true),
        ("/body-panic", "500", true),
        ("/length", "500", true),
        ("/longer", "500", true),
        ("/late", "500", true),
        ("/fine", "200", false),
    ] {
        let mut stage = serving(tower::service_fn(failing));
        stage.send(&request(&format!("GET {path}"), "", ""));
        let answer = String::from_utf8(stage.take_received()).expect("text");
        let found = (answer.get(9..12).unwrap_or_default(), stage.is_ended());
        assert_eq!(found, (status, is_ended), "{path}: {answer}");
        let is_whole = answer.ends_with("0\r\n\r\n");
        assert!(status == "500" || is_whole != is_ended, "{path}: {answer}");
    }
}

#[test]
fn a_response_with_its_announced_length_ends_though_its_body_does_not() {
    let service = tower::service_fn(|request: http::Request<Body>| async move {
        let length = request.uri().path()[1..].parse::<usize>();
        let text = if length == Ok(0) { "" } else { "hello" };
        let pieces = text.split_inclusive('l').map(Bytes::from).map(Frame::data);
        let endless = stream::iter(pieces.map(Ok::<_, Infallible>)).chain(stream::pending());
        let mut answer = http::Response::new(StreamBody::new(endless));
        if let Ok(length) = length {
            answer.headers_mut().insert("content-length", length.into());
        }
        Ok::<_, Infallible>(answer)
    });
    let mut stage = serving(service);
    for (path, expected) in [("/5", "200 hello"), ("/0", "200 "), ("/5", "200 hello")] {
        stage.send(&request(&format!("GET {path}"), "", ""));
        assert_eq!(exchange(&stage.take_received()), expected, "{path}");
    }
    stage.send(&request("GET /unknown", "", ""));
    assert!(
        stage.take_received().ends_with(b"3\r\nhel\r\n1\r\nl\r\n1\r\no\r\n"),
        "more may follow"
    );
}

#[test]
fn the_extend_function_can_add_request_extensions() {
    let service = tower::service_fn(|request: http::Request<Body>| async move {
        let length = request.extensions().get::<usize>().copied();
        Ok::<_, Infallible>(http::Response::new(format!("{length:?}")))
    });
    let tower = Tower::new(service).extend(|head, extensions| {
        extensions.insert(head.target().len());
    });
    let mut stage = serving_as(tower);
    stage.send(&request("GET /abc", "", ""));
    assert_eq!(exchange(&stage.take_received()), "200 Some(4)");
}

thread_local! {
    static ALIVE: Cell<u32> = const { Cell::new(0) };
}

struct Alive;

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}

#[test]
fn a_cancelled_request_drops_its_future() {
    let service = tower::service_fn(|_| async {
        ALIVE.set(ALIVE.get() + 1);
        let _alive = Alive;
        std::future::pending::<Result<http::Response<String>, Infallible>>().await
    });
    let mut stage = serving(service);
    stage.send(&request("GET /", "", ""));
    assert_eq!(ALIVE.get(), 1);
    stage.reset();
    stage.settle();
    assert_eq!(ALIVE.get(), 0);
}

/// A dropped future may need tokio's runtime once more, for example to spawn a task.
#[test]
fn a_cancelled_future_is_dropped_in_the_tokio_runtime() {
    struct Farewell(Arc<Mutex<Vec<bool>>>);

    impl Drop for Farewell {
        fn drop(&mut self) {
            let is_there = tokio::runtime::Handle::try_current().is_ok();
            self.0.lock().expect("alone").push(is_there);
        }
    }

    let dropped = Arc::new(Mutex::new(Vec::new()));
    let farewells = dropped.clone();
    let service = tower::service_fn(move |_| {
        let farewell = Farewell(farewells.clone());
        async move {
            let _farewell = farewell;
            std::future::pending::<Result<http::Response<String>, Infallible>>().await
        }
    });
    let tokio = rotor_async::Tokio::new().expect("there is a thread for it");
    let mut stage = serving_as(Tower::new(service).tokio(tokio));
    stage.send(&request("GET /", "", ""));
    assert_eq!(*dropped.lock().expect("alone"), [false; 0]);
    stage.reset();
    stage.settle();
    assert_eq!(*dropped.lock().expect("alone"), [true]);
}

#[test]
fn a_stream_of_events_outlives_the_handler_timeout() {
    let service = tower::service_fn(|_| async {
        let events = futures_util::stream::unfold(0_u32, |number| async move {
            rotor_async::sleep(Duration::from_secs(20)).await;
            let event = Bytes::from(format!("data: {number}\n\n"));
            Some((Ok::<_, Infallible>(Frame::data(event)), number + 1))
        });
        Ok::<_, Infallible>(http::Response::new(Box::pin(StreamBody::new(events))))
    });
    let mut stage = serving(service);
    stage.send(&request("GET /", "", ""));
    assert!(stage.take_received().ends_with(b"\r\n\r\n"), "the head comes at once");
    for number in 0..100 {
        stage.advance(Duration::from_secs(20));
        let expected = format!("data: {number}\n\n");
        let text = String::from_utf8(stage.take_received()).expect("text");
        assert!(text.ends_with(&format!("\r\n{expected}\r\n")), "{text}");
    }
    stage.reset();
    stage.settle();
    assert!(stage.is_dropped());
}

/// A body that sends a word after each of these pauses, in seconds, and never ends.
fn words(pauses: &'static [u64]) -> impl http_body::Body<Data = Bytes, Error = Infallible> {
    ALIVE.set(ALIVE.get() + 1);
    let words = futures_util::stream::unfold((pauses, Alive), |(pauses, alive)| async move {
        let Some((first, rest)) = pauses.split_first() else { return std::future::pending().await };
        rotor_async::sleep(Duration::from_secs(*first)).await;
        Some((Ok(Frame::data(Bytes::from_static(b"word"))), (rest, alive)))
    });
    Box::pin(StreamBody::new(words))
}

fn talkative(
    pauses: &'static [u64],
) -> impl Fn(http::Request<Body>) -> std::future::Ready<Result<http::Response<TalkBody>, Infallible>>
+ Clone {
    move |_| {
        let body: TalkBody = Box::pin(words(pauses));
        std::future::ready(Ok(http::Response::new(body)))
    }
}

type TalkBody = Pin<Box<dyn http_body::Body<Data = Bytes, Error = Infallible>>>;

#[test]
fn a_silent_body_is_dropped_some_time_after_its_peer_has_ended() {
    let seconds = Duration::from_secs;
    let mut stage = serving(tower::service_fn(talkative(&[9, 9, 9])));
    stage.send(&request("GET /", "", ""));
    stage.end();
    // The peer may still read: words that come in time are sent.
    for _ in 0..3 {
        stage.take_received();
        stage.advance(seconds(9));
        assert!(stage.take_received().ends_with(b"\r\nword\r\n"));
    }
    stage.advance(seconds(10) - Duration::from_millis(1));
    assert_eq!((ALIVE.get(), stage.is_ended()), (1, false));
    stage.advance(Duration::from_millis(1));
    assert_eq!((ALIVE.get(), stage.is_ended()), (0, true));
    assert_eq!(stage.take_received(), b"", "it does not look whole");
    // A peer that has not ended its side is waited for.
    let mut stage = serving(tower::service_fn(talkative(&[])));
    stage.send(&request("GET /", "", ""));
    stage.advance(seconds(10_000));
    assert_eq!(ALIVE.get(), 1);
    // It may end its side later.
    stage.end();
    stage.advance(seconds(10));
    assert_eq!(ALIVE.get(), 0);
}

#[test]
fn the_half_close_timeout_is_configurable() {
    // An unread body does not hide the end behind it.
    for sent in [request("GET /", "", ""), request("POST /", "Content-Length: 4\r\n", "word")] {
        let tower = Tower::new(tower::service_fn(talkative(&[])));
        let mut stage = serving_as(tower.half_close_timeout(Duration::ZERO));
        stage.send(&sent);
        assert_eq!(ALIVE.get(), 1);
        stage.end();
        stage.settle();
        assert_eq!((ALIVE.get(), stage.is_ended()), (0, true));
    }
}

#[test]
fn a_service_may_still_respond_after_its_peer_has_ended() {
    let service = tower::service_fn(|_| async {
        rotor_async::sleep(Duration::from_secs(30)).await;
        Ok::<_, Infallible>(http::Response::new("late".to_owned()))
    });
    let mut stage = serving(service);
    stage.send(&request("GET /", "", ""));
    stage.end();
    stage.advance(Duration::from_secs(30));
    assert_eq!(exchange(&stage.take_received()), "200 late");
}

#[test]
fn a_body_of_empty_frames_does_not_starve_others() {
    let service = tower::service_fn(failing);
    let config = rotor_core::Config::new();
    let mut creator = rotor_core::Loop::<
        rotor_http::server::HttpAccept<TowerServer<_, FailingBody>, rotor_core::net::TcpListener>,
    >::new(&config)
    .expect("a loop");
    let mut bound = None;
    let added = creator.add_machine_with(|scope| {
        let address = "127.0.0.1:0".parse().expect("an address");
        let options = rotor_core::net::ListenOptions::new();
        let listener = <rotor_core::net::TcpListener as rotor_core::net::Listener>::bind(
            &address, &options, scope,
        )
        .expect("a port");
        bound = rotor_core::net::Listener::local_address(&listener);
        let seed = HttpSeed::new(Tower::new(service), ServerConfig::new());
        rotor_http::server::listen(listener, seed, scope)
    });
    added.expect("there is room");
    let mut instance = creator.instantiate(());
    let ask = || {
        let address = bound.expect("it was bound");
        let mut socket = std::net::TcpStream::connect(address).expect("it listens");
        socket.set_nonblocking(true).expect("a socket");
        let sent = io::Write::write(&mut socket, &request("GET /empty", "", ""));
        assert!(sent.expect("there is room") > 0);
        socket
    };
    let sockets = [ask(), ask()];
    for mut socket in sockets {
        // Both get their head, although the other's body is always ready.
        let mut byte = [0];
        let mut has_come = || io::Read::read(&mut socket, &mut byte).is_ok_and(|count| count == 1);
        let turns = (0..100_000).find(|_| {
            instance.turn(Some(Duration::ZERO)).expect("it runs");
            has_come()
        });
        assert!(turns.is_some(), "nothing came");
    }
}

/// Sends back what it receives, in brackets.
struct Relay;

impl Protocol for Relay {
    type Context = ();
    type Seed = String;

    fn create(seed: String, transport: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        io::Write::write_all(&mut transport.output, seed.as_bytes()).expect("an open output");
        Intent::of(Relay).bytes(1).keep_deadline()
    }

    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        let word = transport.input.to_vec();
        transport.input.clear();
        let word = [&b"<"[..], &word, b">"].concat();
        io::Write::write_all(&mut transport.output, &word).expect("an open output");
        Intent::of(self).keep().keep_deadline()
    }
}

/// Switches protocols: with our upgrade, or only by the status.
fn switching(
    request: http::Request<Body>,
) -> std::future::Ready<io::Result<http::Response<String>>> {
    let mut answer = http::Response::new(String::new());
    *answer.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
    if request.uri().path() != "/nameless" {
        answer.headers_mut().insert("upgrade", "relay".parse().expect("a value"));
    }
    answer.headers_mut().insert("connection", "upgrade".parse().expect("a value"));
    if request.uri().path() != "/words" {
        answer.extensions_mut().insert(Upgrade::to("hello".to_owned()));
    }
    std::future::ready(Ok(answer))
}

#[test]
fn an_upgrade_continues_in_a_rotor_protocol_or_fails_with_501() {
    type Switching = TowerServer<
        tower::util::ServiceFn<
            fn(http::Request<Body>) -> std::future::Ready<io::Result<http::Response<String>>>,
        >,
        String,
        (),
        Relay,
    >;
    let fields = "Upgrade: relay\r\nConnection: upgrade\r\n";
    for (path, status) in [("/", "101"), ("/words", "501"), ("/nameless", "501")] {
        let tower = Tower::new(tower::service_fn(switching as fn(_) -> _));
        let mut stage: Driver<Connection<Switching>> =
            Driver::new(HttpSeed::new(tower, ServerConfig::new()), ());
        stage.send(&request(&format!("GET {path}"), fields, ""));
        let answer = String::from_utf8(stage.take_received()).expect("text");
        assert_eq!(&answer[9..12], status, "{path}: {answer}");
        if status == "101" {
            assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
            stage.send(b"word");
            assert_eq!(stage.take_received(), b"<word>");
        }
    }
}

#[test]
fn axum_websockets_are_refused_with_501() {
    let socket = get(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(|_| async {}) });
    let mut stage = serving(Router::new().route("/", socket));
    let fields = "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    stage.send(&request("GET /", fields, ""));
    assert_eq!(exchange(&stage.take_received()), "501 501 Not Implemented\n");
}
