//! Handlers of HTTP/1.1, HTTP/2 and WebSockets that block, in loops that are handed over or taken:
//! what happens to the connection meanwhile is handled afterwards, once, and other connections do
//! not notice.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as StdStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rotor::http::h2::ErrorCode;
use rotor::http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use rotor::http::h2::frame_writer;
use rotor::http::server::{
    self, Counters, Head, Http2Config, HttpAccept, HttpSeed, Next, Response, Server, ServerConfig,
};
use rotor::http::{Limits, Status};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::websocket::{self, Closed, Handler, Message, WebSocket, WebSocketConfig};
use rotor::{Blocking, Config, Exit, Loop, LoopHandle, Permits, Scope, SharedContext};

use crate::rig::{ask, data, request, ws_frame};
use crate::talks::lock;

/// How a handler blocks.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    /// In a section, in a loop that is handed over.
    Declared,
    /// The same, with a permit.
    Permitted,
    /// Without a word, in a loop that is taken.
    Stuck,
}

const WAYS: [Way; 3] = [Way::Declared, Way::Permitted, Way::Stuck];

/// What a handler that blocks hands to the test: dropping it releases the handler.
type Release = Sender<()>;

#[derive(Clone)]
struct World {
    way: Way,
    began: Sender<Release>,
    permits: Permits,
    log: Arc<Mutex<Vec<String>>>,
}

impl SharedContext for World {}

impl World {
    fn record(&self, what: impl Into<String>) {
        lock(&self.log).push(what.into());
    }
}

/// Blocks until the test says otherwise.
fn block(scope: &mut Scope<'_, World>) {
    let (release, released) = mpsc::channel::<()>();
    let (way, began, permits) = (scope.way, scope.began.clone(), scope.permits.clone());
    let wait = move || {
        let _ = began.send(release);
        let _ = released.recv();
    };
    match way {
        Way::Declared => scope.blocking(wait),
        Way::Permitted => scope.blocking_with(&permits, wait).expect("a permit is free"),
        Way::Stuck => wait(),
    }
}

struct Site;

impl Server for Site {
    type Context = World;
    type Seed = Arc<WebSocketConfig>;
    type Upgrade = WebSocket<Talks>;

    fn headers_received(
        config: Arc<WebSocketConfig>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, World>,
    ) -> Next<Self> {
        let path = head.path().to_owned();
        if path == "/ws" {
            return match websocket::accept(head, response, &config) {
                Ok(accepted) => Next::upgrade(accepted.seed(())),
                Err(_) => Next::finished(),
            };
        }
        scope.record(path.clone());
        if path.starts_with("/block") {
            block(scope);
        }
        assert!(!path.ends_with("panic"), "as planted");
        let _ended = response.send(Status::OK, "text/plain", path.as_bytes());
        Next::finished()
    }
}

struct Talks;

impl Handler for Talks {
    type Context = World;
    type Seed = ();

    fn opened(
        _: (),
        _: &mut websocket::Sender<'_>,
        _: &mut Scope<'_, World>,
    ) -> websocket::Next<Self> {
        websocket::Next::go_on(Talks).no_deadline()
    }

    fn message(
        self,
        message: Message<'_>,
        out: &mut websocket::Sender<'_>,
        scope: &mut Scope<'_, World>,
    ) -> websocket::Next<Self> {
        let text = String::from_utf8_lossy(message.as_bytes()).into_owned();
        scope.record(text.clone());
        if text.starts_with("block") {
            block(scope);
        }
        assert!(!text.ends_with("panic"), "as planted");
        out.text(&text).expect("there is room");
        websocket::Next::go_on(self).keep_deadline()
    }

    fn closed(self, end: Closed<'_>, scope: &mut Scope<'_, World>) {
        scope.record(format!("closed {} {:?}", end.code, end.cause));
    }
}

/// A server in a thread of its own.
struct Running {
    address: SocketAddr,
    handle: LoopHandle,
    begins: Receiver<Release>,
    log: Arc<Mutex<Vec<String>>>,
    http: Arc<Counters>,
    thread: JoinHandle<Exit>,
}

const PATIENCE: Duration = Duration::from_secs(100);

impl Running {
    fn start(way: Way) -> Running {
        type Serving = HttpAccept<Site, TcpListener>;
        let (began, begins) = mpsc::channel();
        let log = Arc::new(Mutex::new(Vec::new()));
        let world = World { way, began, permits: Permits::new(1), log: log.clone() };
        let blocking =
            Blocking::new().patience(Duration::from_millis(1)).patience_declared(Duration::ZERO);
        let mut creator: Loop<Serving> =
            Loop::new(&Config::new().blocking(blocking)).expect("descriptors are left");
        let limits = Limits::new().handler_timeout(Duration::from_millis(1));
        let http2 = Http2Config::new().prior_knowledge(true);
        let config = ServerConfig::new().http2(http2).limits(limits);
        let http = config.counters();
        let seed = HttpSeed::new(WebSocketConfig::new().share(), config);
        let mut address = None;
        creator
            .add_machine_with(|scope| {
                rotor::Response::attempt(|| {
                    let any = SocketAddr::from(([127, 0, 0, 1], 0));
                    let listener = TcpListener::bind(&any, &ListenOptions::new(), scope)?;
                    address = listener.local_address();
                    Ok(server::listen(listener, seed, scope))
                })
            })
            .expect("it listens");
        let instance = creator.instantiate(world);
        let mut instance = match way {
            Way::Stuck => instance.taking_over(),
            _ => instance.handing_over(),
        };
        let handle = instance.handle();
        #[expect(clippy::disallowed_methods, reason = "the thread of the server")]
        let thread = std::thread::spawn(move || {
            let exit = instance.run().expect("it waits");
            instance.check_invariants().expect("the books agree");
            exit
        });
        Running { address: address.expect("it listens"), handle, begins, log, http, thread }
    }

    fn connect(&self) -> Client {
        #[expect(clippy::disallowed_methods, reason = "a client outside of any loop")]
        let socket = StdStream::connect(self.address).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
        Client { socket, received: Vec::new() }
    }

    /// Waits until a handler blocks, and until others are served meanwhile.
    fn blocked(&self) -> Release {
        let release = self.begins.recv_timeout(PATIENCE).expect("a handler blocks");
        let mut other = self.connect();
        other.send(b"GET /other HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert!(other.rest().ends_with(b"/other"));
        release
    }

    /// What the handlers have seen, except of other connections.
    fn log(&self) -> Vec<String> {
        lock(&self.log).iter().filter(|what| *what != "/other").cloned().collect()
    }

    fn drain(self, time: Duration) -> Exit {
        self.handle.drain(time);
        self.thread.join().expect("it does not panic")
    }
}

struct Client {
    socket: StdStream,
    received: Vec<u8>,
}

impl Client {
    fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("it is taken");
    }

    /// Reads until this is so.
    fn until(&mut self, is_so: impl Fn(&[u8]) -> bool) {
        while !is_so(&self.received) {
            let mut bytes = [0; 4_096];
            let count = self.socket.read(&mut bytes).expect("it is answered");
            assert!(count > 0, "the end, after {}", self.received.escape_ascii());
            self.received.extend(&bytes[..count]);
        }
    }

    /// Reads until the end.
    fn rest(mut self) -> Vec<u8> {
        match self.socket.read_to_end(&mut self.received) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            result => assert!(result.is_ok(), "{result:?}"),
        }
        self.received
    }

    /// Closes so that the server gets a reset.
    fn reset(self) {
        let socket = socket2::SockRef::from(&self.socket);
        socket.set_linger(Some(Duration::ZERO)).expect("it is a socket");
    }
}

/// The paths that were answered, in order.
fn answers(received: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(received);
    let answered = text.split("HTTP/1.1 ").skip(1).map(|answer| {
        let body = answer.rsplit("\r\n\r\n").next().unwrap_or_default();
        format!("{} {body}", &answer[..3])
    });
    answered.collect()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

const DRAIN: Duration = Duration::from_secs(60);

#[test]
fn pipelined_requests_wait_for_a_handler_that_blocks() {
    for way in WAYS {
        let server = Running::start(way);
        let mut client = server.connect();
        client.send([get("/block/a"), get("/b"), get("/block/c")].concat().as_bytes());
        let release = server.blocked();
        client.send(get("/d").as_bytes());
        assert_eq!(server.log(), ["/block/a"], "{way:?}");
        drop(release);
        let release = server.blocked();
        client.socket.shutdown(Shutdown::Write).expect("it is open");
        drop(release);
        let got = client.rest();
        assert_eq!(answers(&got), ["200 /block/a", "200 /b", "200 /block/c", "200 /d"], "{way:?}");
        assert_eq!(server.log(), ["/block/a", "/b", "/block/c", "/d"], "{way:?}");
        assert_eq!(server.drain(DRAIN), Exit::Drained { dropped: 0 });
    }
}

#[test]
fn a_connection_that_is_lost_meanwhile_ends_afterwards() {
    for (way, path) in WAYS.iter().flat_map(|way| [(*way, "/block"), (*way, "/block/panic")]) {
        let server = Running::start(way);
        let mut client = server.connect();
        client.send([get(path), get("/never")].concat().as_bytes());
        let release = server.blocked();
        client.reset();
        let http = server.http.clone();
        drop(release);
        assert_eq!(server.drain(DRAIN), Exit::Drained { dropped: 0 }, "{way:?}");
        assert_eq!((http.connections_open(), http.requests_open()), (0, 0), "{way:?} {path}");
    }
}

#[test]
fn a_panic_after_blocking_costs_one_response() {
    for way in WAYS {
        let server = Running::start(way);
        let mut client = server.connect();
        client.send([get("/block/panic"), get("/next")].concat().as_bytes());
        let release = server.blocked();
        drop(release);
        client.until(|got| got.starts_with(b"HTTP/1.1 500 "));
        assert_eq!(server.http.panics(), 1, "{way:?}");
        drop(client);
        assert_eq!(server.drain(DRAIN), Exit::Drained { dropped: 0 }, "{way:?}");
    }
}

#[test]
fn a_drain_waits_for_a_handler_that_blocks_and_not_longer_than_it_may() {
    for way in WAYS {
        let server = Running::start(way);
        let mut client = server.connect();
        client.send(get("/block").as_bytes());
        let release = server.blocked();
        server.handle.drain(DRAIN);
        drop(release);
        assert_eq!(answers(&client.rest()), ["200 /block"], "{way:?}");
        let exit = server.thread.join().expect("it does not panic");
        assert_eq!(exit, Exit::Drained { dropped: 0 }, "{way:?}");

        let server = Running::start(way);
        let mut client = server.connect();
        client.send(get("/block").as_bytes());
        let release = server.blocked();
        let http = server.http.clone();
        // The other connection may not have ended by then, either.
        let exit = server.drain(Duration::from_millis(1));
        assert!(matches!(exit, Exit::Drained { dropped: 1 | 2 }), "{way:?}: {exit:?}");
        drop(release);
        // The handler ends in its thread, after the loop. One that is in a section does not go on;
        // another one cannot be kept from that.
        let rest = answers(&client.rest());
        assert!(rest.is_empty() || (way == Way::Stuck && rest == ["200 /block"]), "{way:?}");
        while http.connections_open() > 0 {
            std::thread::yield_now();
        }
    }
}

fn preface() -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    frame_writer::settings(&[], &mut bytes);
    bytes.extend(frame_writer::settings_ack());
    bytes
}

/// The frames of a server: each stream with its DATA, and how it ended.
fn frames(received: &[u8]) -> Vec<(u32, u8, Vec<u8>)> {
    let (mut rest, mut frames) = (received, Vec::new());
    while let Some(header) = FrameHeader::read(rest) {
        let Some(payload) = rest.get(9..9 + header.len) else { break };
        frames.push((header.stream, header.kind, payload.to_vec()));
        rest = &rest[9 + header.len..];
    }
    frames
}

fn has(received: &[u8], stream: u32, of: u8) -> bool {
    frames(received).iter().any(|(id, kind, _)| (*id, *kind) == (stream, of))
}

#[test]
fn streams_wait_for_a_handler_that_blocks_and_their_frames_are_handled_once() {
    for way in WAYS {
        let server = Running::start(way);
        let mut client = server.connect();
        client.send(&preface());
        client.send(&[request(1, "GET", "/block/a", true), request(3, "GET", "/b", true)].concat());
        let release = server.blocked();
        let reset = frame_writer::reset(1, ErrorCode::Cancel);
        let ping = frame_writer::ping([7; 8], false);
        client.send(&[&reset[..], &request(5, "GET", "/c", true), &ping].concat());
        drop(release);
        client.until(|got| {
            frames(got).iter().any(|frame| frame.1 == kind::PING && frame.2 == [7; 8])
        });
        client.until(|got| has(got, 3, kind::DATA) && has(got, 5, kind::DATA));
        let mut data: Vec<_> = frames(&client.received);
        data.retain(|(_, of, _)| *of == kind::DATA);
        for (stream, body) in [(3, "/b"), (5, "/c")] {
            let sent =
                data.iter().filter(|(id, _, bytes)| *id == stream && bytes == body.as_bytes());
            assert_eq!(sent.count(), 1, "{way:?}: {data:?}");
        }
        let mut log = server.log();
        log.sort();
        assert_eq!(log, ["/b", "/block/a", "/c"], "{way:?}");
        // The connection is lost while another handler blocks.
        client.send(&request(7, "GET", "/block/d", true));
        let release = server.blocked();
        client.reset();
        let http = server.http.clone();
        drop(release);
        assert_eq!(server.drain(DRAIN), Exit::Drained { dropped: 0 }, "{way:?}");
        assert_eq!((http.connections_open(), http.requests_open()), (0, 0), "{way:?}");
    }
}

/// Otherwise the first of a hundred responses would wait for a hundred handlers.
#[test]
fn a_response_on_a_stream_is_sent_before_another_handler_blocks() {
    for way in WAYS {
        let server = Running::start(way);
        let mut client = server.connect();
        let requests = [1, 3, 5].map(|stream| request(stream, "GET", "/block", true));
        client.send(&[preface(), requests.concat()].concat());
        drop(server.blocked());
        let release = server.blocked();
        client.until(|got| has(got, 1, kind::DATA));
        drop(release);
        let release = server.blocked();
        client.until(|got| has(got, 3, kind::DATA));
        drop(release);
        client.until(|got| has(got, 5, kind::DATA));
        drop(client);
        assert_eq!(server.drain(DRAIN), Exit::Drained { dropped: 0 }, "{way:?}");
    }
}

#[test]
fn messages_of_a_websocket_wait_for_a_handler_that_blocks() {
    for (way, is_drained) in WAYS.iter().flat_map(|way| [(*way, false), (*way, true)]) {
        let server = Running::start(way);
        let mut client = server.connect();
        client.send(&[preface(), ask(1)].concat());
        let text = |text: &str| data(1, &ws_frame(0x81, text.as_bytes()), false);
        client.send(&[text("a"), text("block"), text("b")].concat());
        let release = server.blocked();
        client.send(&text("c"));
        let close = ws_frame(0x88, &1000_u16.to_be_bytes());
        client.send(&data(1, &close, true));
        if is_drained {
            server.handle.drain(DRAIN);
        }
        drop(release);
        client.until(|got| {
            let mut frames = rest_of(got);
            frames.any(|(header, _)| header.stream == 1 && header.flags & flag::END_STREAM != 0)
        });
        let sent: Vec<u8> = frames(&client.received)
            .into_iter()
            .filter(|(id, of, _)| *id == 1 && *of == kind::DATA)
            .flat_map(|(_, _, bytes)| bytes)
            .collect();
        let log = server.log();
        drop(client);
        assert_eq!(server.drain(DRAIN), Exit::Drained { dropped: 0 }, "{way:?}");
        assert_eq!(log, ["a", "block", "b", "c", "closed 1000 Peer"], "{way:?} {is_drained}");
        assert!(sent.ends_with(b"\x81\x01c\x88\x02\x03\xe8"), "{way:?}: {}", sent.escape_ascii());
    }
}

#[test]
fn an_answer_of_a_websocket_is_sent_before_another_message_blocks() {
    for way in WAYS {
        let server = Running::start(way);
        let mut client = server.connect();
        client.send(&[preface(), ask(1)].concat());
        client.send(&data(1, &ws_frame(0x81, b"block").repeat(3), false));
        drop(server.blocked());
        let release = server.blocked();
        client.until(|got| has(got, 1, kind::DATA));
        drop(release);
        drop(server.blocked());
        drop(client);
        assert_eq!(server.drain(DRAIN), Exit::Drained { dropped: 0 }, "{way:?}");
    }
}

/// The headers and payloads of the whole frames.
fn rest_of(received: &[u8]) -> impl Iterator<Item = (FrameHeader, &[u8])> {
    let mut rest = received;
    std::iter::from_fn(move || {
        let header = FrameHeader::read(rest)?;
        let payload = rest.get(9..9 + header.len)?;
        rest = &rest[9 + header.len..];
        Some((header, payload))
    })
}
