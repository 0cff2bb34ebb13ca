//! The maximum memory of a connection, whatever its peer announces, sends and does not read; and
//! the memory of a waiting stream.
//!
//! A separate process, whose allocator counts the bytes.

use std::alloc::System;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream as Client};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{Config, Loop, LoopInstance, Response as Answer};
use rotor_http::Status;
use rotor_http::server::{
    self, Head, Http2Config, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Response, Scope,
    Server, ServerConfig,
};
use rotor_stream::testing::{self, ScriptedListener, TestLoop};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Tests run one after another, since the allocator counts for all threads.
static SERIAL: Mutex<()> = Mutex::new(());

/// `/whole` takes the whole body, `/pieces` takes it piece by piece and keeps none, `/large` and
/// `/small` answer immediately with a large or a small body, `/wait` never answers.
struct TestServer;

/// Bytes of a large answer.
const LARGE: usize = 100_000;

impl Server for TestServer {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let mode = match head.path() {
            "/whole" => RecvMode::Buffered(usize::MAX),
            "/pieces" => RecvMode::Progressive(1),
            "/wait" => return Next::go_on(TestServer).no_deadline(),
            "/small" => {
                response.send(Status::OK, "text/plain", b"small").expect("the first answer");
                return Next::finished();
            }
            _ => {
                response.send(Status::OK, "text/plain", &[b'x'; LARGE]).expect("the first answer");
                return Next::finished();
            }
        };
        Next::recv(TestServer, mode).keep_deadline()
    }
}

type ServerLoop = LoopInstance<HttpAccept<TestServer, TcpListener>>;

fn serve() -> (ServerLoop, SocketAddr) {
    let mut creator =
        Loop::<HttpAccept<TestServer, TcpListener>>::new(&Config::new()).expect("a loop");
    let mut address = None;
    creator
        .add_machine_with(|scope| {
            Answer::attempt(|| {
                let listener =
                    TcpListener::bind(&"127.0.0.1:0".parse()?, &ListenOptions::new(), scope)?;
                address = listener.local_address();
                let http2 = Http2Config::new().prior_knowledge(true).streams_max(STREAMS + 1);
                let config = ServerConfig::new().http2(http2);
                Ok(server::listen(listener, HttpSeed::new((), config), scope))
            })
        })
        .expect("a listener");
    (creator.instantiate(()), address.expect("it is bound"))
}

fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Lets the loop do everything that it can do now.
fn settle(site: &mut ServerLoop) {
    for _ in 0..3 {
        site.turn(Some(Duration::from_millis(1))).expect("a turn");
    }
}

/// Writes as much as the server reads. Returns the maximum of bytes held meanwhile, beyond those of
/// an empty loop. Blocks that the loop's thread keeps for reuse count.
fn peak_held(input: &[u8]) -> usize {
    let (mut site, address) = serve();
    settle(&mut site);
    let before = held();
    #[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
    let mut client = Client::connect(address).expect("the listener listens");
    client.set_nonblocking(true).expect("a socket that does not block");
    let (mut most, mut sent, mut refusals) = (0, 0, 0);
    while sent < input.len() && refusals < 3 {
        match client.write(&input[sent..input.len().min(sent + 4096)]) {
            Ok(count) => (sent, refusals) = (sent + count, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => refusals += 1,
            Err(_) => break,
        }
        site.turn(Some(Duration::ZERO)).expect("a turn");
        most = most.max(held().saturating_sub(before));
    }
    settle(&mut site);
    most = most.max(held().saturating_sub(before));
    // The answer does not matter; the connection ends, and its memory is freed.
    let _ = client.read(&mut [0; 1024]);
    drop(client);
    while site.machines().len() > 1 {
        site.turn(Some(Duration::from_millis(5))).expect("a turn");
    }
    most
}

fn post(path: &str, fields: &str, body: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}").into_bytes()
}

/// Memory apart from the buffers: the values of the connection itself, and allocations of the test
/// meanwhile.
const REST: usize = 4 << 10;

/// How much the loop's queues and the test may have grown.
const LEFT_MAX: usize = 4 << 10;

#[test]
fn a_connection_holds_no_more_than_its_limits_allow() {
    let _serial = SERIAL.lock();
    let chunked = "Transfer-Encoding: chunked\r\n";
    let tiny = "1;a=b\r\nx\r\n".repeat(400);
    // The limit, and input that is not yet collected.
    let buffered = (1 << 20) + (32 << 10);
    // The high-water mark plus the answer that exceeds it, in a buffer that grows by doubling, and
    // a block of input.
    let unread = ((64 << 10) + LARGE).next_power_of_two() + (16 << 10);
    let cases: [(&str, Vec<u8>, usize); 11] = [
        ("nothing", Vec::new(), 0),
        ("half a head", b"GET / HTTP/1.1\r\nHost".to_vec(), 16 << 10),
        ("an endless head", post("/whole", &"B: c\r\n".repeat(50_000), ""), 32 << 10),
        ("an endless field", post("/whole", &format!("B: {}", "c".repeat(1 << 20)), ""), 32 << 10),
        (
            "a length of 2^63",
            post("/pieces", "Content-Length: 9223372036854775808\r\n", &"x".repeat(1 << 20)),
            64 << 10,
        ),
        (
            "a chunk of 2^64 - 1",
            post("/pieces", chunked, &format!("ffffffffffffffff\r\n{}", "x".repeat(1 << 20))),
            64 << 10,
        ),
        (
            "a whole body",
            post("/whole", "Content-Length: 1048576\r\n", &"x".repeat((1 << 20) - 1)),
            buffered,
        ),
        (
            "a whole body in chunks",
            post("/whole", chunked, &format!("100000\r\n{}", "x".repeat(1 << 20))),
            buffered,
        ),
        ("tiny chunks", post("/pieces", chunked, &tiny), 64 << 10),
        (
            "endless trailers",
            post(
                "/pieces",
                chunked,
                &format!("0\r\n{}", "X: y\r\n".repeat(30) + &"y".repeat(1 << 20)),
            ),
            32 << 10,
        ),
        (
            "answers that nobody reads",
            b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50_000),
            unread,
        ),
    ];
    let begin = held();
    for (name, input, max) in &cases {
        // A new thread keeps no blocks from an earlier case.
        let most =
            thread::scope(|scope| scope.spawn(|| peak_held(input)).join()).expect("no panic");
        assert!(most <= max + REST, "{name}: {most} octets are held, not {max}");
        let left = held().saturating_sub(begin);
        assert!(left <= LEFT_MAX, "{name}: {left} octets are left behind");
    }
}

/// An HTTP/2 frame with only these flags.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [.., high, low] = payload.len().to_be_bytes();
    let mut frame = vec![0, high, low, kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// GET `/wait` for the authority `a`, with END_STREAM.
fn waiting_request(stream: u32) -> Vec<u8> {
    frame(1, 5, stream, b"\x82\x86\x04\x05/wait\x01\x01a")
}

/// So many streams that the memory shared by all of them, of the connection and the thread, is
/// small per stream.
const STREAMS: u32 = 900;

/// The bytes that each HTTP/2 stream holds while its handler waits.
fn held_by_a_stream() -> usize {
    let (mut site, address) = serve();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let begin = [&preface[..], &frame(4, 0, 0, b""), &waiting_request(1)].concat();
    let mut connect_and_wait = || {
        #[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
        let mut client = Client::connect(address).expect("the listener listens");
        let mut send = |octets: &[u8]| {
            client.write_all(octets).expect("the server reads");
            settle(&mut site);
            held()
        };
        let before = send(&begin);
        // In parts, so that little memory is needed for the input.
        let streams: Vec<u32> = (0..STREAMS).map(|number| 2 * number + 3).collect();
        let parts = streams
            .chunks(50)
            .map(|part| part.iter().flat_map(|own| waiting_request(*own)).collect());
        let after = parts.map(|part: Vec<u8>| send(&part)).last().expect("there are streams");
        (client, after.saturating_sub(before) / streams.len())
    };
    // The first connection makes the thread allocate that memory.
    let (_first, _) = connect_and_wait();
    connect_and_wait().1
}

#[test]
fn a_stream_whose_handler_waits_holds_half_a_kibibyte() {
    let _serial = SERIAL.lock();
    let each = thread::scope(|scope| scope.spawn(held_by_a_stream).join()).expect("no panic");
    assert!((300..=512).contains(&each), "{each} octets");
}

/// The bytes that each HTTP/2 connection holds after it has sent an answer.
fn held_by_an_idle_connection() -> usize {
    const CONNECTIONS: usize = 100;
    let (mut site, address) = serve();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let get = b"\x82\x86\x04\x06/small\x01\x01a\x0f\x2b\x07browser";
    let begin = [&preface[..], &frame(4, 0, 0, b""), &frame(1, 5, 1, get)].concat();
    let mut connect = || {
        #[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
        let mut client = Client::connect(address).expect("the listener listens");
        client.write_all(&begin).expect("the server reads");
        client.set_read_timeout(Some(Duration::from_millis(1))).expect("a socket that waits");
        // The last DATA frame of the answer ends with its body.
        let mut answer = Vec::new();
        while !answer.ends_with(b"small") {
            site.turn(Some(Duration::from_millis(1))).expect("a turn");
            let mut piece = [0; 1024];
            match client.read(&mut piece) {
                Ok(count) => {
                    assert!(count > 0, "it ended");
                    answer.extend(&piece[..count]);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        client
    };
    // The first connections make thread and loop allocate what they keep for many.
    let _first: Vec<Client> = (0..CONNECTIONS).map(|_| connect()).collect();
    let mut clients = Vec::with_capacity(CONNECTIONS);
    let before = held();
    clients.extend((0..CONNECTIONS).map(|_| connect()));
    (held() - before) / CONNECTIONS
}

#[test]
fn an_idle_http2_connection_holds_no_fields() {
    let _serial = SERIAL.lock();
    let each =
        thread::scope(|scope| scope.spawn(held_by_an_idle_connection).join()).expect("no panic");
    // With the memory of the fields that it has read and written, it would be 816.
    assert!((400..=640).contains(&each), "{each} octets");
}

/// Sends this on two HTTP/2 connections in memory, one after the other. Returns what the second
/// holds, and how much of it the server counts.
fn held_and_counted(input: &[u8]) -> (usize, usize) {
    let config = ServerConfig::new().http2(Http2Config::new().prior_knowledge(true));
    let counted = config.held();
    let mut test = TestLoop::<HttpAccept<TestServer, ScriptedListener>>::new(());
    let (listener, door) = testing::listener(test.world());
    test.add(|scope| server::listen(listener, HttpSeed::new((), config), scope));
    let mut connect = || {
        let peer = door.connect();
        peer.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        peer.send(&frame(4, 0, 0, b""));
        test.settle();
        peer.take_received();
        let before = (held(), counted.bytes());
        // In parts, since a large block of input would be kept by the thread.
        for part in input.chunks(2048) {
            peer.send(part);
            test.settle();
            peer.take_received();
        }
        (peer, held().saturating_sub(before.0), counted.bytes() - before.1)
    };
    // The first connection makes the thread and the test allocate what they keep.
    let (_first, ..) = connect();
    let (_second, held, counted) = connect();
    (held, counted)
}

#[test]
fn an_http2_peer_is_charged_for_what_it_leaves_unfinished() {
    /// What is not counted: less than 4 KiB of requests, and the steps in which lists grow. Nor are
    /// the parts of a request that are allocated on their own, up to a third of it.
    const UNCOUNTED: usize = 6 << 10;
    let _serial = SERIAL.lock();
    let begin = b"\x82\x86\x04\x01/\x01\x01a";
    let long = [&begin[..], b"\x00\x01a\x7f\x81\x1d", &[b'x'; 3_840]].concat();
    let odd = |number: u32| 2 * number + 1;
    let cases: [(&str, Vec<u8>); 4] = [
        (
            "a block of fields in nine frames",
            (0..8).fold(frame(1, 0, 1, &long), |frames, _| {
                [frames, frame(9, 0, 1, &[0x82; 1_500])].concat()
            }),
        ),
        ("a hundred requests", (0..100).flat_map(|number| waiting_request(odd(number))).collect()),
        (
            "bodies that do not come",
            (0..100)
                .flat_map(|number| frame(1, 4, odd(number), b"\x83\x86\x04\x06/whole\x01\x01a"))
                .collect(),
        ),
        (
            "malformed requests with bodies",
            (0..199).flat_map(|number| frame(1, 4, odd(number), b"\x82\x86\x01\x01a")).collect(),
        ),
    ];
    for (name, input) in &cases {
        let (held, counted) = thread::scope(|scope| scope.spawn(|| held_and_counted(input)).join())
            .expect("no panic");
        assert!(held > UNCOUNTED, "{name}: {held} octets are held");
        let most = counted * 4 / 3 + UNCOUNTED;
        assert!(held <= most, "{name}: {held} octets are held, {counted} counted");
        assert!(counted <= 2 * held, "{name}: {held} octets are held, {counted} counted");
    }
}
