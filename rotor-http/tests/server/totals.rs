//! The memory that the bodies of all connections share: what counts against it, which requests it
//! refuses, and that every end of a connection releases what it held.

use rotor_http::Limits;
use rotor_http::server::{HttpSeed, ServerConfig};
use rotor_stream::testing::Driver;

use crate::probe::{Probe, ProbeDriver, TestContext, get, post, request, seconds};
use crate::wire::take;

/// A head, and this many bytes of its body.
fn partial_request(path: &str, fields: &str, octets: usize) -> Vec<u8> {
    request(&format!("POST {path}"), fields, &"x".repeat(octets))
}

/// A body that fits into the input, a collected one, and one of unknown length; none is complete.
const BODIES: [(&str, usize); 3] = [
    ("Content-Length: 20000\r\n", 10_000),
    ("Content-Length: 200000\r\n", 100_000),
    ("Transfer-Encoding: chunked\r\n", 0),
];

fn partial_body_request(path: &str, (fields, octets): (&str, usize)) -> Vec<u8> {
    if fields.contains("chunked") {
        return [
            partial_request(path, fields, 0),
            format!("186a0\r\n{}", "x".repeat(50_000)).into_bytes(),
        ]
        .concat();
    }
    partial_request(path, fields, octets)
}

/// Connects to one server, and reads its held bytes.
fn server(config: ServerConfig) -> (impl Fn() -> ProbeDriver, impl Fn() -> usize) {
    let held = config.bodies_held();
    let seed = HttpSeed::<Probe>::new((), config);
    (move || Driver::new(seed.clone(), TestContext::default()), move || held.bytes())
}

#[test]
fn body_memory_is_released_however_a_connection_ends() {
    type End = fn(ProbeDriver, &[u8]);
    let ends: [(&str, &str, End); 9] = [
        ("its body comes to its end", "/", |mut driver, rest| {
            driver.send(rest);
            assert!(driver.take_received().starts_with(b"HTTP/1.1 200 "));
        }),
        ("the handler panics", "/panic-in-body", |mut driver, rest| {
            driver.send(rest);
            assert!(driver.take_received().starts_with(b"HTTP/1.1 500 "));
        }),
        ("the handler goes on with the body in hand", "/slow", |mut driver, rest| {
            driver.send(rest);
            assert!(driver.take_received().is_empty() && driver.is_alive());
            // The handler has received the body. What it keeps of the body is its own.
            std::mem::forget(driver);
        }),
        ("the peer resets", "/", |mut driver, _| driver.reset()),
        ("the peer ends", "/", |mut driver, _| driver.end()),
        ("the body is late", "/", |mut driver, _| {
            driver.advance(seconds(1_000));
            assert!(driver.take_received().starts_with(b"HTTP/1.1 408 "));
        }),
        ("the peer sends what is no chunk", "/", |mut driver, rest| {
            driver.send(&vec![b'x'; rest.len() + 100]);
        }),
        ("the loop drains and gives up", "/", |mut driver, _| driver.drain(seconds(0))),
        ("the loop is dropped", "/", |driver, _| drop(driver)),
    ];
    for body in BODIES {
        for (name, path, end) in &ends {
            let (connect, held) = server(ServerConfig::new());
            let mut driver = connect();
            driver.send(&partial_body_request(path, body));
            let least = if body.0.contains("chunked") { 50_000 } else { body.1 };
            assert!((least..2 * least + 6_400).contains(&held()), "{name} {body:?}: {}", held());
            let rest = match body.0.contains("chunked") {
                true => format!("{}\r\n0\r\n\r\n", "x".repeat(50_000)),
                false => "x".repeat(body.1),
            };
            end(driver, rest.as_bytes());
            assert_eq!(held(), 0, "{name} {body:?}");
        }
    }
}

#[test]
fn a_body_over_the_memory_limit_gets_retry_after_and_others_continue() {
    for body in BODIES {
        let (connect, held) = server(ServerConfig::new().bodies_bytes_max(300_000));
        let mut drivers: Vec<ProbeDriver> = (0..40).map(|_| connect()).collect();
        for driver in &mut drivers {
            driver.send(&partial_body_request("/", body));
            assert!(held() <= 300_000, "{body:?}");
        }
        let refused = drivers.iter().filter(|driver| driver.received_len() > 0).count();
        assert!((1..40).contains(&refused), "{body:?}: {refused}");
        for driver in &mut drivers {
            let received = driver.take_received();
            let Ok(answer) = take(&mut &received[..]) else { continue };
            assert_eq!((answer.status, answer.field("Retry-After")), (503, Some("5")), "{body:?}");
            assert!(answer.closes());
            assert_eq!(
                driver.context().events.last().map(String::as_str),
                Some("bad request: NoRoom")
            );
        }
        // Requests that need no shared memory pass, on any connection.
        let mut small = connect();
        for request in [get("/authority"), post("/", "abc")] {
            small.send(&request);
            assert!(small.take_received().starts_with(b"HTTP/1.1 200 "), "{body:?}");
        }
        // There is room again when the other connections are gone.
        drop(drivers);
        assert_eq!(held(), 0);
        let mut driver = connect();
        driver.send(&partial_body_request("/", body));
        assert!(held() > 0 && driver.received_len() == 0, "{body:?}");
    }
}

#[test]
fn the_body_memory_limit_is_exact_and_rejections_are_counted() {
    for (max, is_taken) in [(99_999, false), (100_000, true), (100_001, true)] {
        let config = ServerConfig::new().bodies_bytes_max(max);
        let counters = config.counters();
        let (connect, held) = server(config);
        let mut driver = connect();
        driver.send(&partial_request("/", "Content-Length: 100000\r\n", 50_000));
        driver.send(&[b'x'; 49_999]);
        assert_eq!(held(), if is_taken { 100_000 } else { 99_999 }, "{max}");
        driver.send(b"x");
        let status: &[u8] = if is_taken { b"HTTP/1.1 200 " } else { b"HTTP/1.1 503 " };
        assert!(driver.take_received().starts_with(status), "{max}");
        assert_eq!(counters.bodies_without_room(), u64::from(!is_taken), "{max}");
        assert_eq!(held(), 0, "{max}");
    }
}

#[test]
fn collected_pieces_count_against_the_limit_and_blocks_do_not() {
    let (connect, held) = server(ServerConfig::new());
    let mut pieces = connect();
    pieces.send(&partial_request("/progressive", "Content-Length: 1000\r\n", 3));
    assert_eq!(held(), 3);
    let mut blocks = connect();
    blocks.send(&partial_request("/blocks", "Content-Length: 100000\r\n", 50_000));
    assert_eq!(held(), 3);
}

#[test]
fn a_server_without_body_memory_serves_bodies_read_at_once() {
    let limits = Limits::new().buffered_body_bytes_max(1 << 20);
    let (connect, held) = server(ServerConfig::new().limits(limits).bodies_bytes_max(0));
    let mut driver = connect();
    driver.send(&post("/", &"x".repeat(10_000)));
    assert!(driver.take_received().starts_with(b"HTTP/1.1 200 "), "it came in one read");
    driver.send(&partial_request("/", "Content-Length: 10000\r\n", 1));
    assert!(driver.take_received().starts_with(b"HTTP/1.1 503 "));
    assert_eq!(held(), 0);
}

#[test]
fn connections_over_the_held_bytes_limit_end_and_others_are_served() {
    let config = ServerConfig::new().held_bytes_max(4 << 20);
    let (held, counters) = (config.held(), config.counters());
    let (connect, _) = server(config);
    let mut drivers = Vec::new();
    for number in 0..10 {
        // A megabyte of an answer that the peer does not read, or half a head.
        let mut driver = connect();
        driver.limit_room(1_000);
        driver.send(&if number % 2 == 0 {
            get("/big")
        } else {
            b"GET / HTTP/1.1\r\nHost: a\r\nA: b".to_vec()
        });
        assert!(held.bytes() <= 4 << 20);
        drivers.push(driver);
    }
    let alive = drivers.iter_mut().filter_map(|driver| driver.is_alive().then_some(())).count();
    assert_eq!(
        (alive, counters.without_room()),
        (8, 2),
        "three answers of a megabyte fit, which are held whole until the last octet is gone, and all half heads"
    );
    let mut honest = connect();
    for path in ["/authority", "/big"] {
        honest.send(&get(path));
        assert!(honest.take_received().starts_with(b"HTTP/1.1 200 "), "{path}");
    }
    drop(drivers);
    assert_eq!(held.bytes(), 0);
}
