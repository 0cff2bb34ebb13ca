//! Answers whose bodies are stored, and requests that send stored bodies.

use std::sync::Arc;
use std::time::Duration;

use rotor_body::{Body, Spool};
use rotor_core::{Future, Outcome};
use rotor_http::client::{
    Client, ClientConfig, ClientError, ClientResult, Connection, ConnectionSeed, Head, Http2Config,
    Job, Next, NoUpgrade, Offer, RecvMode, Request, RequestSource, Scope,
};
use rotor_http::h2::frame::{flag, kind};
use rotor_http::h2::frame_writer::{self, frame_header};
use rotor_http::h2::hpack::HpackEncoder;
use rotor_http::{BodyError, MessageError, Method};
use rotor_stream::Fatal;
use rotor_stream::testing::Driver;

use crate::place::{SlowDisk, SpoolDirectory, pattern_bytes, wait_until_empty};

#[derive(Default)]
struct TestContext {
    outcome: Option<Future<ClientResult<StoringRequest>>>,
}

/// Sends a body and stores that of the answer.
#[derive(Debug)]
struct StoringRequest {
    sends: Body,
}

impl StoringRequest {
    fn write(&self, request: &mut Request<'_>) -> Result<(), MessageError> {
        request.start(Method::Put, "/")?;
        request.add_header("Host", "h")?;
        request.add_length(self.sends.len())?;
        request.done_headers()?;
        request.write_stored(&self.sends)?;
        request.done()
    }
}

impl Client for StoringRequest {
    type Context = TestContext;
    type Output = Body;
    type Upgrade = NoUpgrade<TestContext>;

    fn prepare_request(
        self,
        request: &mut Request<'_>,
        _: &mut Scope<'_, TestContext>,
    ) -> Next<Self> {
        self.write(request).expect("it is a request");
        Next::go_on(self).no_deadline()
    }

    fn headers_received(
        self,
        _: &Head<'_>,
        _: &mut Request<'_>,
        _: &mut Scope<'_, TestContext>,
    ) -> Next<Self> {
        Next::recv(self, RecvMode::Stored { ram_max: 5_000, max: 200_000 }).keep_deadline()
    }

    fn response_stored(
        self,
        body: Body,
        _: &mut Request<'_>,
        _: &mut Scope<'_, TestContext>,
    ) -> Next<Self> {
        Next::finished(body)
    }
}

/// One request.
struct SingleRequest(Option<Body>);

impl RequestSource<StoringRequest> for SingleRequest {
    fn next(&mut self, _: bool, scope: &mut Scope<'_, TestContext>) -> Offer<StoringRequest> {
        let Some(sends) = self.0.take() else { return Offer::Idle };
        let (port, future) = scope.create_future();
        scope.outcome = Some(future);
        Offer::Job(Job::new(
            StoringRequest { sends },
            scope.now() + Duration::from_secs(1_000),
            port,
        ))
    }

    fn return_job(&mut self, _: Job<StoringRequest>, _: &mut Scope<'_, TestContext>) {}

    fn not_connected(self, _: Fatal, _: &mut Scope<'_, TestContext>) {}
}

type FetchDriver = Driver<Connection<StoringRequest, SingleRequest>>;

fn driver(config: ClientConfig, sends: Body) -> FetchDriver {
    Driver::new(
        ConnectionSeed::new(SingleRequest(Some(sends)), Arc::new(config)),
        TestContext::default(),
    )
}

fn result(driver: &mut FetchDriver) -> Result<Body, ClientError> {
    loop {
        driver.settle();
        match driver.context_mut().outcome.take().expect("it was asked").take() {
            Outcome::Value(result) => return result,
            Outcome::Pending(future) => driver.context_mut().outcome = Some(future),
            Outcome::Lost(lost) => panic!("{lost}"),
        }
        std::thread::yield_now();
    }
}

fn read(body: &Body) -> Vec<u8> {
    let mut bytes = vec![0; body.len() as usize];
    let mut at = 0;
    while at < bytes.len() {
        at += body.read_at(at as u64, &mut bytes[at..]).expect("it can be read");
    }
    bytes
}

fn answers(body: &[u8]) -> [(&'static str, Vec<u8>); 3] {
    let with = |head: String, rest: &[u8]| [head.as_bytes(), rest].concat();
    let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(3_000) {
        chunks.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        chunks.extend_from_slice(chunk);
        chunks.extend_from_slice(b"\r\n");
    }
    chunks.extend_from_slice(b"0\r\n\r\n");
    let until_end = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_owned();
    [("length", with(length, body)), ("chunks", chunks), ("end", with(until_end, body))]
}

#[test]
fn a_response_of_any_length_and_framing_is_stored_whole() {
    let place = SpoolDirectory::new();
    let spool = place.spool();
    for length in [0, 1_000, 1_001, 8_000, 200_000] {
        let body = pattern_bytes(length);
        for (framing, answer) in answers(&body) {
            for piece in [1_000, usize::MAX] {
                let mut driver = driver(ClientConfig::new().spool(spool.clone()), Body::Empty);
                for piece in answer.chunks(piece.min(answer.len())) {
                    driver.send(piece);
                }
                if framing == "end" {
                    driver.end();
                }
                let stored = result(&mut driver).expect("it is stored");
                assert!(read(&stored) == body, "{framing} {length}");
                assert_eq!(stored.is_in_memory(), length <= 1_000, "{framing} {length}");
                assert_eq!(driver.is_alive(), framing != "end", "it can be used again");
            }
        }
    }
    wait_until_empty(&spool);
}

#[test]
fn a_stored_body_is_sent_from_memory_and_from_its_file() {
    let place = SpoolDirectory::new();
    let spool = place.spool();
    for length in [0, 10, 1_000, 100_000] {
        let mut first = driver(ClientConfig::new().spool(spool.clone()), Body::Empty);
        first.send(&answers(&pattern_bytes(length))[0].1);
        let stored = result(&mut first).expect("it is stored");
        for part in [stored.clone(), stored.slice(..length as u64 / 2), stored.slice(5..)] {
            let expected = read(&part);
            let second = driver(ClientConfig::new(), part);
            let sent = second.peer().take_received();
            assert!(sent.ends_with(&expected), "{length}");
            assert!(sent.len() < expected.len() + 100, "{length}");
        }
    }
    wait_until_empty(&spool);
}

#[test]
fn a_response_that_cannot_be_stored_fails_with_the_right_fault() {
    let place = SpoolDirectory::new();
    let with = |spool: Spool| ClientConfig::new().spool(spool);
    let open = |config: rotor_body::SpoolConfig| config.open().expect("it can be written");
    type ErrorCheck = fn(&ClientError) -> bool;
    let too_large: ErrorCheck = |error| matches!(error, ClientError::Body(BodyError::TooLarge));
    let no_room: ErrorCheck = |error| matches!(error, ClientError::BodiesFull);
    let full: ErrorCheck = |error| matches!(error, ClientError::NotStored(BodyError::DiskFull));
    let rows: [(&str, ClientConfig, ErrorCheck); 4] = [
        ("no spool", ClientConfig::new(), too_large),
        ("too long", with(open(place.config().body_bytes_max(9_999))), too_large),
        ("files", with(open(place.config().files_max(0))), no_room),
        ("full", with(open(place.config().keep_free_bytes(u64::MAX))), full),
    ];
    for (name, config, is_expected) in rows {
        for (framing, answer) in answers(&pattern_bytes(10_000)) {
            let mut driver = driver(config.clone(), Body::Empty);
            driver.send(&answer);
            let error = result(&mut driver).expect_err("it cannot be stored");
            assert!(is_expected(&error), "{name} {framing}: {error:?}");
            assert!(driver.peer().is_ended(), "{name} {framing}: it is not used again");
        }
    }
}

#[test]
fn a_slow_disk_pauses_the_server_and_a_cancelled_fetch_leaves_no_file() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let body = pattern_bytes(200_000);
    let mut driver = driver(ClientConfig::new().spool(spool.clone()), Body::Empty);
    driver.send(&answers(&body)[0].1);
    let unread = driver.peer().unread_len();
    assert!(unread > 100_000, "{unread}");
    driver.advance(Duration::from_secs(100));
    assert_eq!(driver.peer().unread_len(), unread, "it is not timed");
    disk.release();
    assert!(read(&result(&mut driver).expect("it is stored")) == body);
    disk.hold();
    let mut given_up = crate::client::driver(ClientConfig::new().spool(spool.clone()), Body::Empty);
    given_up.send(&answers(&body)[0].1);
    given_up.context_mut().outcome = None;
    given_up.wakeup();
    assert!(!given_up.is_alive());
    disk.release();
    wait_until_empty(&spool);
}

/// What arrives for stream 1 of HTTP/2: a whole response with this body.
fn framed_answer(body: &[u8]) -> Vec<u8> {
    let frame = |kind, flags, payload: &[u8]| {
        [&frame_header(payload.len(), kind, flags, 1)[..], payload].concat()
    };
    let mut bytes = Vec::new();
    frame_writer::settings(&[], &mut bytes);
    bytes.extend_from_slice(&frame_writer::settings_ack());
    let mut block = Vec::new();
    HpackEncoder::new().field(b":status", b"200", &mut block);
    bytes.extend(frame(kind::HEADERS, flag::END_HEADERS, &block));
    bytes.extend(frame(kind::DATA, flag::END_STREAM, body));
    bytes
}

#[test]
fn a_complete_response_is_stored_even_if_its_connection_is_lost_meanwhile() {
    type Loss = fn(&mut FetchDriver);
    let reset: Loss = |driver| driver.reset();
    let ends: Loss = |driver| driver.end();
    // DATA on a stream that was never begun.
    let violates: Loss = |driver| driver.send(&frame_header(0, kind::DATA, 0, 2));
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let body = pattern_bytes(2_000);
    let http1 = ClientConfig::new().spool(spool.clone());
    let http2 = http1.clone().http2(Http2Config::new().prior_knowledge(true));
    let [(_, length), (_, chunks), _] = answers(&body);
    for (name, config, answer, lose) in [
        ("length, reset", &http1, &length, reset),
        ("chunks, reset", &http1, &chunks, reset),
        ("length, end", &http1, &length, ends),
        ("frames, reset", &http2, &framed_answer(&body), reset),
        ("frames, end", &http2, &framed_answer(&body), ends),
        ("frames, violation", &http2, &framed_answer(&body), violates),
    ] {
        disk.hold();
        let mut driver = driver(config.clone(), Body::Empty);
        driver.send(answer);
        assert_eq!(driver.peer().unread_len(), 0, "{name}: all of it has arrived");
        lose(&mut driver);
        disk.release();
        let stored = result(&mut driver).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert!(read(&stored) == body && !stored.is_in_memory(), "{name}");
        driver.settle();
        assert!(!driver.is_alive() || driver.peer().is_ended(), "{name}: it is not used again");
    }
    wait_until_empty(&spool);
}
