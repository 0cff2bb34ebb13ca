//! Every limit of a connection at n − 1, n and n + 1: the answer, whether the connection closes,
//! and the counter, with the bytes sent whole and one by one. Time limits are in `deadlines`.

use rotor_http::Limits;
use rotor_http::server::ServerConfig;

use crate::probe::{BIG, ProbeDriver, get, probe, request};
use crate::wire::transcript;

/// A limit: its value, the input with `size` of the limited quantity, and the result of one more.
struct Limit {
    name: &'static str,
    set: fn(Limits, usize) -> Limits,
    n: usize,
    input: fn(usize) -> Vec<u8>,
    /// How the answers end at n + 1. At n the connection goes on.
    refusal: &'static str,
    counter: &'static str,
}

fn with_field(line: &str) -> Vec<u8> {
    request("GET /", &format!("{line}\r\n"), "")
}

fn chunked(body: &str) -> Vec<u8> {
    request("POST /", "Transfer-Encoding: chunked\r\n", body)
}

/// A body of this length, split into two chunks.
fn two_chunks(size: usize) -> String {
    let (first, second) = (size / 2, size - size / 2);
    format!(
        "{first:x}\r\n{}\r\n{second:x}\r\n{}\r\n0\r\n\r\n",
        "x".repeat(first),
        "x".repeat(second)
    )
}

const LIMITS: [Limit; 16] = [
    Limit {
        name: "head",
        set: Limits::head_bytes_max,
        n: 300,
        input: |size| {
            let frame = request("GET /", "B: \r\n", "").len();
            with_field(&format!("B: {}", "c".repeat(size - frame)))
        },
        refusal: "431 close",
        counter: "heads_too_large",
    },
    Limit {
        name: "one field line",
        set: Limits::field_bytes_max,
        n: 60,
        input: |size| with_field(&format!("B: {}", "c".repeat(size - 3))),
        refusal: "431 close",
        counter: "heads_too_large",
    },
    Limit {
        name: "fields",
        set: Limits::fields_max,
        n: 7,
        input: |count| with_field(&"B: c\r\n".repeat(count - 1)[..6 * (count - 1) - 2]),
        refusal: "431 close",
        counter: "heads_too_large",
    },
    Limit {
        name: "target",
        set: Limits::target_bytes_max,
        n: 40,
        input: |size| get(&format!("/{}", "a".repeat(size - 1))),
        refusal: "414 close",
        counter: "heads_too_large",
    },
    Limit {
        name: "empty lines",
        set: |limits, n| limits.empty_lines_max(n as u8),
        n: 3,
        input: |count| [b"\r\n".repeat(count), get("/")].concat(),
        refusal: "400 close",
        counter: "heads_too_large",
    },
    Limit {
        name: "chunk-size line, extensions",
        set: Limits::chunk_line_bytes_max,
        n: 20,
        input: |size| chunked(&format!("1;{}\r\nx\r\n0\r\n\r\n", "a".repeat(size - 2))),
        refusal: "400 close",
        counter: "bodies_too_large",
    },
    Limit {
        name: "chunk-size line, zeros",
        set: Limits::chunk_line_bytes_max,
        n: 20,
        input: |size| chunked(&format!("{}1\r\nx\r\n0\r\n\r\n", "0".repeat(size - 1))),
        refusal: "400 close",
        counter: "bodies_too_large",
    },
    Limit {
        name: "extensions of a body",
        set: Limits::extension_bytes_max,
        n: 40,
        input: |size| {
            chunked(&format!("1;{}\r\nx\r\n0;{}\r\n\r\n", "a".repeat(18), "b".repeat(size - 20)))
        },
        refusal: "400 close",
        counter: "bodies_too_large",
    },
    Limit {
        name: "trailer section",
        set: Limits::trailer_bytes_max,
        n: 50,
        input: |size| chunked(&format!("0\r\nX: {}\r\n\r\n", "y".repeat(size - 7))),
        refusal: "431 close",
        counter: "bodies_too_large",
    },
    Limit {
        name: "trailers",
        set: Limits::trailers_max,
        n: 3,
        input: |count| chunked(&format!("0\r\n{}\r\n", "X: y\r\n".repeat(count))),
        refusal: "431 close",
        counter: "bodies_too_large",
    },
    Limit {
        name: "buffered body, announced",
        set: |limits, n| limits.buffered_body_bytes_max(n as u64),
        n: 30,
        input: |size| request("POST /", &format!("Content-Length: {size}\r\n"), &"x".repeat(size)),
        refusal: "413 close",
        counter: "bodies_too_large",
    },
    Limit {
        name: "buffered body, chunked",
        set: |limits, n| limits.buffered_body_bytes_max(n as u64),
        n: 30,
        input: |size| chunked(&two_chunks(size)),
        refusal: "413 close",
        counter: "bodies_too_large",
    },
    Limit {
        name: "ignored body, announced",
        set: |limits, n| limits.drained_body_bytes_max(n as u64),
        n: 30,
        input: |size| {
            request("POST /ignore", &format!("Content-Length: {size}\r\n"), &"x".repeat(size))
        },
        refusal: "200 POST /ignore close",
        counter: "undrained",
    },
    Limit {
        name: "ignored body, chunked",
        set: |limits, n| limits.drained_body_bytes_max(n as u64),
        n: 30,
        input: |size| request("POST /ignore", "Transfer-Encoding: chunked\r\n", &two_chunks(size)),
        // The length of the body is not known when the answer is written.
        refusal: "200 POST /ignore",
        counter: "undrained",
    },
    Limit {
        name: "requests",
        set: |limits, n| limits.requests_max(n as u64 + 1),
        n: 3,
        input: |count| get("/").repeat(count),
        refusal: "200 GET / | 200 GET / | 200 GET / | 200 GET / close",
        counter: "used_up",
    },
    Limit {
        name: "method (a constant)",
        set: |limits, _| limits,
        n: 32,
        input: |size| format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "A".repeat(size)).into_bytes(),
        // Within the limit it is an unknown method, and the answer is the same for another reason.
        refusal: "501 close",
        counter: "heads_too_large",
    },
];

fn send_limited(limit: &Limit, size: usize, is_bytewise: bool) -> (ProbeDriver, u64) {
    let config = ServerConfig::new().limits((limit.set)(Limits::new(), limit.n));
    let counters = config.counters();
    let mut driver = probe(config);
    let input = (limit.input)(size);
    for piece in input.chunks(if is_bytewise { 1 } else { input.len() }) {
        driver.send(piece);
    }
    let mut counts = counters.iter();
    let count = counts.find(|(name, _)| *name == limit.counter).expect("a counter of this name").1;
    (driver, count)
}

#[test]
fn every_limit_is_exact_and_violations_are_counted() {
    for limit in &LIMITS {
        for is_bytewise in [false, true] {
            let name = format!("{}, byte by byte: {is_bytewise}", limit.name);
            for size in [limit.n - 1, limit.n] {
                let (mut driver, count) = send_limited(limit, size, is_bytewise);
                assert_eq!(count, 0, "{name}: {size} is within the limit");
                if limit.name.starts_with("method") {
                    continue;
                }
                assert!(!driver.is_ended(), "{name}: {size} is within the limit");
                driver.take_received();
                driver.send(&get("/next"));
                let answer = transcript(&driver.take_received());
                assert!(answer.starts_with("200 GET /next"), "{name}: {size}: {answer:?}");
            }
            let (driver, count) = send_limited(limit, limit.n + 1, is_bytewise);
            assert!(driver.is_ended(), "{name}: it ends");
            assert_eq!(
                (transcript(&driver.take_received()).as_str(), count),
                (limit.refusal, 1),
                "{name}"
            );
            assert_eq!(driver.failures(), [""; 0], "{name}");
        }
    }
}

#[test]
fn a_malformed_trailer_is_a_broken_body_and_not_a_too_large_one() {
    let config = ServerConfig::new();
    let counters = config.counters();
    let mut driver = probe(config);
    driver.send(&chunked("0\r\nX : y\r\n\r\n"));
    assert_eq!(transcript(&driver.take_received()), "400 close");
    assert_eq!((counters.bodies_broken(), counters.bodies_too_large()), (1, 0));
}

/// The high-water mark of the output: at the mark requests are parsed, above it none is, and that
/// is counted.
#[test]
fn output_above_the_high_water_mark_holds_requests_back() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&get("/"));
    let len = driver.take_received().len();
    for (mark, begun) in [(2 * len - 1, 2), (2 * len, 3), (2 * len + 1, 3)] {
        let config = ServerConfig::new().limits(Limits::new().output_high_water(mark));
        let counters = config.counters();
        let mut driver = probe(config);
        driver.limit_room(0);
        driver.send(&get("/").repeat(4));
        assert_eq!(
            (counters.requests(), counters.held_back() > 0),
            (begun, true),
            "a mark of {mark}"
        );
    }
}

#[test]
fn a_handler_can_write_with_a_high_water_mark_of_zero() {
    for octets in [0, 1, 2] {
        let mut driver = probe(ServerConfig::new().limits(Limits::new().output_high_water(octets)));
        driver.send(&get("/stream"));
        let mut received = 0;
        while let taken = driver.take_received().len()
            && taken > 0
        {
            received += taken;
        }
        assert!(received > BIG, "{octets}: {received}");
    }
}
