//! Async handlers on a connection: bodies, deadlines, panics, cancelled requests.
#![cfg(feature = "http")]

use std::cell::Cell;
use std::pin::Pin;
use std::time::Duration;

use rotor_async::http::{Answer, AsyncServer, Request, WithScope, with_scope};
use rotor_async::sleep;
use rotor_core::{Port, Scope};
use rotor_http::server::{Connection, HttpSeed, ServerConfig};
use rotor_http::{Limits, Status};
use rotor_stream::testing::Driver;

type BoxedAnswer = Pin<Box<dyn Future<Output = Answer>>>;
type ByPath = fn(Request) -> BoxedAnswer;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

thread_local! {
    /// How many futures of `by_path` are alive on this thread.
    static ALIVE: Cell<u32> = const { Cell::new(0) };
}

struct Alive;

impl Alive {
    fn new() -> Alive {
        ALIVE.set(ALIVE.get() + 1);
        Alive
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}

/// Does what the path of the request says.
fn by_path(request: Request) -> BoxedAnswer {
    let alive = Alive::new();
    Box::pin(async move {
        let _alive = alive;
        match request.path() {
            "/sleep" => {
                for _ in 0..10 {
                    sleep(seconds(1)).await;
                }
                Answer::text(Status::OK, "slept")
            }
            "/long" => loop {
                sleep(seconds(7)).await;
            },
            "/for-ever" => std::future::pending().await,
            "/panic" => {
                sleep(seconds(1)).await;
                panic!("as asked")
            }
            "/cut" => Answer::text(Status::OK, "x").field("X-A", "a\r\nX-B: b"),
            "/gone" => Status::NO_CONTENT.into(),
            "/refused" => refused(&request).into(),
            _ => {
                let (method, target) = (request.method(), request.target());
                let (path, query) = (request.path(), request.query().unwrap_or("-"));
                let host = request.authority().unwrap_or("-");
                let tag = String::from_utf8_lossy(request.field("x-tag").unwrap_or(b"-"));
                let head = format!("{method} {target} {path} {query} {host} {tag} ");
                let body = [head.as_bytes(), request.body()].concat();
                Answer::new(Status::OK).body("text/plain", body).field("X-Fields", "1")
            }
        }
    })
}

fn refused(request: &Request) -> Result<&'static str, Status> {
    let tag = request.field("X-Tag").ok_or(Status::FORBIDDEN)?;
    if tag == b"yes" { Ok("granted") } else { Err(Status::CONFLICT) }
}

fn driver(limits: Limits) -> Driver<Connection<AsyncServer<ByPath, ()>>> {
    let config = ServerConfig::new().limits(limits);
    Driver::new(HttpSeed::new(by_path as ByPath, config), ())
}

fn request(start: &str, fields: &str, body: &str) -> Vec<u8> {
    format!("{start} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}").into_bytes()
}

/// The status and the body of an answer, which must be complete.
fn answer(driver: &mut Driver<Connection<AsyncServer<ByPath, ()>>>) -> (String, String) {
    let text = String::from_utf8(driver.take_received()).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    (head.chars().skip(9).take(3).collect(), body.to_owned())
}

#[test]
fn a_handler_gets_a_whole_request_and_returns_a_whole_answer() {
    for (sent, expected) in [
        (request("GET /a?b=c", "X-Tag: t\r\n", ""), "GET /a?b=c /a b=c a t "),
        (request("PUT /a", "Content-Length: 4\r\n", "body"), "PUT /a /a - a - body"),
        (
            request("POST /", "Transfer-Encoding: chunked\r\n", "2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"),
            "POST / / - a - body",
        ),
        (request("GET http://b", "", ""), "GET http://b / - b - "),
        (request("OPTIONS *", "", ""), "OPTIONS * * - a - "),
    ] {
        let mut driver = driver(Limits::new());
        driver.send(&sent);
        assert_eq!(answer(&mut driver), ("200".to_owned(), expected.to_owned()));
        assert!(!driver.is_ended());
    }
}

#[test]
fn handler_errors_become_responses_and_invalid_fields_give_500() {
    for (start, fields, status, body) in [
        ("GET /refused", "", "403", ""),
        ("GET /refused", "X-Tag: no\r\n", "409", ""),
        ("GET /refused", "X-Tag: yes\r\n", "200", "granted"),
        ("GET /gone", "", "204", ""),
        ("GET /cut", "", "500", "500 Internal Server Error\n"),
        ("HEAD /", "", "200", ""),
    ] {
        let mut driver = driver(Limits::new());
        driver.send(&request(start, fields, ""));
        assert_eq!(answer(&mut driver), (status.to_owned(), body.to_owned()), "{start} {fields}");
    }
}

/// Answers with the status in the query, and with a body at `/body`.
fn by_status(request: Request) -> BoxedAnswer {
    Box::pin(async move {
        let code = request.query().and_then(|code| code.parse().ok()).and_then(Status::new);
        let answer = Answer::new(code.unwrap_or(Status::NOT_FOUND));
        if request.path() == "/body" { answer.body("text/plain", "body") } else { answer }
    })
}

#[test]
fn incomplete_statuses_and_forbidden_bodies_give_500() {
    for (path, status) in [
        ("/?100", "500"),
        ("/?101", "500"),
        ("/?199", "500"),
        ("/?200", "200"),
        ("/?204", "204"),
        ("/body?204", "500"),
        ("/?205", "205"),
        ("/body?205", "500"),
        ("/?304", "304"),
        ("/body?304", "500"),
        ("/?426", "500"),
        ("/body?999", "999"),
    ] {
        for method in ["GET", "HEAD"] {
            let mut driver: Driver<Connection<AsyncServer<ByPath, ()>>> =
                Driver::new(HttpSeed::new(by_status as ByPath, ServerConfig::new()), ());
            driver.send(&request(&format!("{method} {path}"), "", ""));
            assert_eq!(answer(&mut driver).0, status, "{method} {path}");
        }
    }
}

#[test]
fn a_body_beyond_the_limit_is_refused_before_the_handler() {
    for (length, status) in [(100, "200"), (101, "413")] {
        let mut driver = driver(Limits::new().buffered_body_bytes_max(100));
        let body = "x".repeat(length);
        driver.send(&request("POST /", &format!("Content-Length: {length}\r\n"), &body));
        assert_eq!(answer(&mut driver).0, status, "{length}");
    }
}

#[test]
fn a_handler_sleeps_by_the_clock_of_the_loop() {
    let mut driver = driver(Limits::new());
    driver.send(&request("GET /sleep", "", ""));
    driver.advance(seconds(9));
    assert_eq!(driver.take_received(), b"");
    driver.advance(seconds(1));
    assert_eq!(answer(&mut driver), ("200".to_owned(), "slept".to_owned()));
    driver.send(&request("GET /next", "", ""));
    assert_eq!(answer(&mut driver).0, "200", "the connection goes on");
}

#[test]
fn the_handler_timeout_applies_however_the_future_sleeps() {
    for path in ["/long", "/for-ever"] {
        let mut driver = driver(Limits::new());
        driver.send(&request(&format!("GET {path}"), "", ""));
        driver.advance(Duration::from_millis(59_999));
        assert_eq!((driver.take_received(), ALIVE.get()), (Vec::new(), 1), "{path}");
        driver.advance(Duration::from_millis(1));
        assert_eq!((answer(&mut driver).0.as_str(), ALIVE.get()), ("503", 0), "{path}");
    }
}

#[test]
fn a_panic_in_a_handler_fails_only_its_own_request() {
    let mut driver = driver(Limits::new());
    driver.send(&request("GET /panic", "", ""));
    driver.advance(seconds(1));
    assert_eq!((answer(&mut driver).0.as_str(), ALIVE.get()), ("500", 0));
    assert!(driver.failures().is_empty(), "the connection's machine lived on to say so");
}

#[test]
fn a_cancelled_request_drops_its_future() {
    for path in ["/long", "/for-ever"] {
        let mut driver = driver(Limits::new());
        driver.send(&request(&format!("GET {path}"), "", ""));
        assert_eq!(ALIVE.get(), 1);
        driver.reset();
        driver.settle();
        assert_eq!(ALIVE.get(), 0, "{path}");
    }
}

/// What a handler with the scope stores in the context.
#[derive(Default)]
struct World {
    ports: Vec<Port<u32>>,
}

type ScopedHandler = fn(Request, &mut Scope<'_, World>) -> Pin<Box<dyn Future<Output = String>>>;

fn await_value(_: Request, scope: &mut Scope<'_, World>) -> Pin<Box<dyn Future<Output = String>>> {
    let (port, value) = scope.create_future();
    scope.ports.push(port);
    Box::pin(async { format!("{:?}", rotor_async::wait(value).await) })
}

#[test]
fn a_handler_with_the_scope_can_await_a_value() {
    let seed = HttpSeed::new(with_scope(await_value as ScopedHandler), ServerConfig::new());
    let mut driver: Driver<Connection<AsyncServer<WithScope<ScopedHandler>, World>>> =
        Driver::new(seed, World::default());
    driver.send(&request("GET /", "", ""));
    driver.wakeup();
    assert_eq!(driver.take_received(), b"", "a wake-up for nothing");
    let port = driver.context_mut().ports.pop().expect("it was called");
    port.set(7).expect("it waits");
    driver.settle();
    let text = String::from_utf8(driver.take_received()).expect("text");
    assert!(text.ends_with("\r\n\r\nOk(7)"), "{text}");
}

#[test]
fn debug_output_of_an_answer_omits_secrets() {
    let answer = Answer::text(Status::OK, "secret").field("Set-Cookie", "secret");
    assert!(!format!("{answer:?}").contains("secret"));
}
