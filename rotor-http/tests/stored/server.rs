//! Requests whose bodies are stored.

mod framed;
mod handlers;
mod waiting;

use std::io::Read;
use std::time::Duration;

use rotor_body::{Body, Faults, Spool};
use rotor_core::Notifier;
use rotor_http::server::{
    Connection, Counters, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Scope, Server,
    ServerConfig,
};
use rotor_http::{BodyError, MessageError, Status};
use rotor_stream::testing::Driver;

use crate::place::{SlowDisk, SpoolDirectory, pattern_bytes, wait_until_empty};

const SECOND: Duration = Duration::from_secs(1);

/// What the handlers record, and what they do when woken.
#[derive(Default)]
struct TestContext {
    bodies: Vec<Body>,
    errors: Vec<BodyError>,
    wakeups: u32,
    notifier: Option<Notifier>,
    on_wakeup: OnWakeup,
}

/// What a handler does when it is woken.
#[derive(Default, Clone, Copy)]
enum OnWakeup {
    #[default]
    More,
    /// Pauses the body, then `Nothing`.
    Hold,
    Nothing,
    /// Waits for a second in its place, once.
    Wait,
    /// Responds without the body.
    Respond,
}

/// Answers with the body of the request.
struct Mirror;

impl Mirror {
    fn answer(body: &Body, response: &mut Response<'_>) -> Result<(), MessageError> {
        response.status(Status::OK)?;
        response.add_length(body.len())?;
        response.done_headers()?;
        response.write_stored(body)?;
        response.done()
    }
}

type Sc<'a, 'b> = &'a mut Scope<'b, TestContext>;

impl Server for Mirror {
    type Context = TestContext;
    type Seed = ();
    type Upgrade = NoUpgrade<TestContext>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        scope.notifier = Some(scope.notifier());
        Next::recv(Mirror, RecvMode::Stored { ram_max: 5_000, max: 200_000 }).keep_deadline()
    }

    fn request_stored(
        self,
        body: Body,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        Mirror::answer(&body, response).expect("it is a whole answer");
        scope.bodies.push(body);
        Next::finished()
    }

    fn wakeup(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        scope.wakeups += 1;
        let mode = RecvMode::Stored { ram_max: 5_000, max: 200_000 };
        match scope.on_wakeup {
            OnWakeup::More => Next::recv(self, mode),
            OnWakeup::Hold => {
                scope.on_wakeup = OnWakeup::Nothing;
                Next::hold(self)
            }
            OnWakeup::Nothing => Next::go_on(self),
            OnWakeup::Wait => {
                scope.on_wakeup = OnWakeup::Nothing;
                return Next::after(scope.now() + SECOND, move |_, _| {
                    Next::recv(self, mode).no_deadline()
                });
            }
            OnWakeup::Respond => {
                return response.reply(Status::CONFLICT, "text/plain", b"no").into();
            }
        }
        .keep_deadline()
    }

    fn bad_request(self, error: BodyError, scope: Sc<'_, '_>) {
        scope.errors.push(error);
    }
}

type Machine<S> = Connection<S>;

fn driver_with(config: ServerConfig) -> Driver<Machine<Mirror>> {
    Driver::new(HttpSeed::new((), config), TestContext::default())
}

fn driver(spool: &Spool) -> Driver<Machine<Mirror>> {
    driver_with(ServerConfig::new().spool(spool.clone()))
}

/// Turns the loop, and gives the spool's threads time, until `is_so`.
fn until(
    driver: &mut Driver<Machine<Mirror>>,
    mut is_so: impl FnMut(&mut Driver<Machine<Mirror>>) -> bool,
) {
    loop {
        driver.settle();
        if is_so(driver) {
            return;
        }
        std::thread::yield_now();
    }
}

fn head(framing: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n").into_bytes()
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let mut request = head(&format!("Content-Length: {}", body.len()));
    request.extend_from_slice(body);
    request
}

fn in_chunks(body: &[u8], size: usize) -> Vec<u8> {
    let mut request = head("Transfer-Encoding: chunked");
    for chunk in body.chunks(size) {
        request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\nX-Sum: 1\r\n\r\n");
    request
}

/// Takes an answer with a length off the front.
fn take_answer(received: &mut Vec<u8>) -> Option<(u16, Vec<u8>)> {
    let end = received.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(received[..end].to_vec()).expect("it is text");
    let status = head[9..12].parse().expect("it is a status");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.map_or(0, |length| length.parse().expect("it is a number"));
    if received.len() < end + length {
        return None;
    }
    let body = received[end..end + length].to_vec();
    received.drain(..end + length);
    Some((status, body))
}

/// Waits for an answer.
fn answer(driver: &mut Driver<Machine<Mirror>>) -> (u16, Vec<u8>) {
    let mut received = Vec::new();
    let mut answer = None;
    until(driver, |driver| {
        received.extend(driver.take_received());
        answer = take_answer(&mut received);
        answer.is_some()
    });
    assert!(received.is_empty(), "one answer");
    answer.expect("there is one")
}

#[test]
fn a_body_of_any_length_in_any_pieces_is_stored_and_sent_back() {
    let place = SpoolDirectory::new();
    let spool = place.spool();
    for length in [0, 1, 999, 1_000, 1_001, 4_000, 8_001, 40_000, 200_000] {
        let body = pattern_bytes(length);
        for request in [with_length(&body), in_chunks(&body, 1_500), in_chunks(&body, 60_000)] {
            for piece in [1_000, 16_384, usize::MAX] {
                let mut driver = driver(&spool);
                for piece in request.chunks(piece.min(request.len())) {
                    driver.send(piece);
                }
                let (status, echoed) = answer(&mut driver);
                assert_eq!(status, 200, "{length}");
                assert!(echoed == body, "{length} in {piece}");
                let stored = driver.context_mut().bodies.pop().expect("it was stored");
                assert_eq!(stored.is_in_memory(), length <= 1_000, "{length}");
                assert!(place.is_empty(), "a file has no name");
                // The connection still works.
                driver.send(&with_length(b"again"));
                assert_eq!(answer(&mut driver), (200, b"again".to_vec()));
            }
        }
    }
    wait_until_empty(&spool);
}

#[test]
fn a_body_that_cannot_be_stored_is_refused_before_it_is_sent() {
    let place = SpoolDirectory::new();
    let gone = Spool::in_memory(place.config(), Faults::none().without_directory());
    let with = |spool: Spool| ServerConfig::new().spool(spool);
    let open = |config: rotor_body::SpoolConfig| config.open().expect("it can be written");
    let rows: [(&str, ServerConfig, usize, u16, BodyError); 8] = [
        ("no spool", ServerConfig::new(), 5_001, 413, BodyError::TooLarge),
        ("too long", with(place.spool()), 200_001, 413, BodyError::TooLarge),
        (
            "too long for the spool",
            with(open(place.config().body_bytes_max(9_999))),
            10_000,
            413,
            BodyError::TooLarge,
        ),
        ("files", with(open(place.config().files_max(0))), 10_000, 503, BodyError::NoRoom),
        ("quota", with(open(place.config().all_bytes_max(9_999))), 10_000, 503, BodyError::NoRoom),
        (
            "full",
            with(open(place.config().keep_free_bytes(u64::MAX))),
            10_000,
            507,
            BodyError::DiskFull,
        ),
        ("no directory", with(gone), 10_000, 500, BodyError::Disk),
        (
            "memory, without a spool",
            ServerConfig::new().bodies_bytes_max(100),
            1_000,
            503,
            BodyError::NoRoom,
        ),
    ];
    for (name, config, length, expected, error) in rows {
        let counters = config.counters();
        let seed = HttpSeed::new((), config);
        let counted = |counter: fn(&Counters) -> u64| counter(&counters);
        let before = counted(unstored_counts);
        for expects in [true, false] {
            let mut driver = Driver::<Machine<Mirror>>::new(seed.clone(), TestContext::default());
            let mut framing = format!("Content-Length: {length}");
            if expects {
                framing += "\r\nExpect: 100-continue";
            }
            driver.send(&head(&framing));
            // The memory limit is reached by received bytes; all other refusals are known before
            // the body comes.
            if name.starts_with("memory") {
                driver.take_received();
                driver.send(&pattern_bytes(length - 1));
            }
            let mut received = Vec::new();
            until(&mut driver, |driver| {
                received.extend(driver.take_received());
                received.windows(4).any(|window| window == b"\r\n\r\n")
            });
            let text = String::from_utf8_lossy(&received).into_owned();
            assert!(text.starts_with(&format!("HTTP/1.1 {expected} ")), "{name}: {text}");
            assert_eq!(text.contains("Retry-After: "), expected == 503, "{name}: {text}");
            assert!(text.contains("Connection: close"), "{name}: {text}");
            assert_eq!(driver.context().errors, [error], "{name}");
        }
        let mut driver = Driver::<Machine<Mirror>>::new(seed.clone(), TestContext::default());
        driver.send(&in_chunks(&pattern_bytes(length), 1_000));
        let mut received = Vec::new();
        until(&mut driver, |driver| {
            received.extend(driver.take_received());
            received.windows(4).any(|window| window == b"\r\n\r\n")
        });
        assert!(received.starts_with(format!("HTTP/1.1 {expected} ").as_bytes()), "{name}");
        assert_eq!(driver.context().errors, [error], "{name}");
        assert_eq!(counted(unstored_counts), before + 3, "{name}");
        assert!(place.is_empty());
    }
}

/// The total of the three counters of refused bodies.
fn unstored_counts(counters: &Counters) -> u64 {
    counters.bodies_too_large() + counters.bodies_without_room() + counters.bodies_not_stored()
}

#[test]
fn a_disconnected_peer_leaves_no_file() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let request = with_length(&pattern_bytes(100_000));
    for sent in [request.len() / 100, request.len() / 2, request.len() - 1, request.len()] {
        for resets in [true, false] {
            for is_slow in [true, false] {
                if is_slow {
                    disk.hold();
                } else {
                    disk.release();
                }
                let mut driver = driver(&spool);
                driver.send(&request[..sent]);
                if !is_slow {
                    until(&mut driver, |driver| {
                        driver.received_len() > 0
                            || driver.peer().unread_len() == 0 && spool.files() == 1
                    });
                }
                if resets {
                    driver.reset()
                } else {
                    driver.end()
                }
                disk.release();
                if !resets && sent == request.len() {
                    // The peer has only shut down its side.
                    assert_eq!(answer(&mut driver).0, 200, "slow: {is_slow}");
                    driver.context_mut().bodies.clear();
                } else {
                    until(&mut driver, |driver| !driver.is_alive() || driver.received_len() > 0);
                }
                drop(driver);
                wait_until_empty(&spool);
                assert!(place.is_empty());
            }
        }
    }
}

#[test]
fn bodies_go_to_files_when_the_memory_limit_is_reached() {
    let place = SpoolDirectory::new();
    let spool = place.spool();
    let config = ServerConfig::new().bodies_bytes_max(100).spool(spool.clone());
    let held = config.bodies_held();
    let mut driver = driver_with(config);
    driver.send(&in_chunks(&pattern_bytes(1_000), 50));
    assert_eq!(answer(&mut driver), (200, pattern_bytes(1_000)));
    assert!(!driver.context().bodies[0].is_in_memory());
    assert_eq!(held.bytes(), 0);
}

#[test]
fn a_retained_body_can_be_read_after_its_connection_ended() {
    let place = SpoolDirectory::new();
    let spool = place.spool();
    let mut driver = driver(&spool);
    driver.send(&with_length(&pattern_bytes(50_000)));
    assert_eq!(answer(&mut driver).0, 200);
    let body = driver.context_mut().bodies.pop().expect("it was stored");
    drop(driver);
    let mut read = Vec::new();
    body.slice(10..).reader().read_to_end(&mut read).expect("it can be read");
    assert!(read == pattern_bytes(50_000)[10..]);
    drop(body);
    wait_until_empty(&spool);
}
