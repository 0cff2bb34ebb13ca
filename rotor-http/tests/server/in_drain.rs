//! Handlers that are created during a drain, or that follow a wait in it, are notified of the drain
//! like the handlers that are in flight when it begins.

use std::time::Duration;

use rotor_core::{Cursor, Drain, Grace, Verdict};
use rotor_http::Status;
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Scope, Server, ServerConfig,
};
use rotor_stream::testing::Driver;

use crate::http2::client::{config, headers, preface_and_settings};
use crate::probe::{get, request};
use crate::wire::transcript;

const SECOND: Duration = Duration::from_secs(1);

/// Starts a response without an end, and ends it when a drain begins.
struct EndlessResponse;

/// Starts a response that has no end.
fn start_response<S: Server>(handler: S, response: &mut Response<'_>) -> Next<S> {
    response.status(Status::OK).and_then(|()| response.add_chunked()).expect("fields");
    response.done_headers().and_then(|()| response.write_body("on")).expect("a body");
    Next::go_on(handler).no_deadline()
}

impl Server for EndlessResponse {
    type Context = u32;
    type Seed = ();
    type Upgrade = NoUpgrade<u32>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, u32>,
    ) -> Next<Self> {
        match head.path() {
            "/after" => Next::after(scope.now() + SECOND, |response, _| {
                start_response(EndlessResponse, response)
            }),
            "/body" => Next::recv(EndlessResponse, RecvMode::Buffered(9)).no_deadline(),
            _ => start_response(EndlessResponse, response),
        }
    }

    fn draining(
        self,
        _: rotor_core::Time,
        response: &mut Response<'_>,
        notified: &mut Scope<'_, u32>,
    ) -> Next<Self> {
        **notified += 1;
        if response.is_started() {
            response.write_body(" and off").and_then(|()| response.done()).expect("its end");
        } else {
            response.reply(Status::OK, "text/plain", b"no body");
        }
        Next::finished()
    }
}

fn driver(config: ServerConfig) -> Driver<Connection<EndlessResponse>> {
    Driver::new(HttpSeed::new((), config), 0)
}

fn drain() -> Drain {
    Drain::new(60 * SECOND).grace(Grace::WholeDrain)
}

#[test]
fn a_handler_in_flight_is_notified_of_a_drain() {
    let mut driver = driver(ServerConfig::new());
    driver.send(&get("/"));
    driver.drain_with(drain());
    assert_eq!(transcript(&driver.take_received()), "200 on and off");
    assert_eq!((*driver.context(), driver.is_ended()), (1, false), "it was promised to go on");
    // A client that was cut off in this way repeats its request, on the same connection if that
    // continues.
    driver.send(&get("/"));
    assert_eq!(transcript(&driver.take_received()), "200 on and off close");
    assert_eq!((*driver.context(), driver.is_ended()), (2, true));
}

#[test]
fn a_handler_created_during_a_drain_is_notified() {
    let body = request("POST /body", "Content-Length: 3\r\n", "a");
    for (asked, expected) in [(get("/"), "200 on and off close"), (body, "200 no body close")] {
        let mut driver = driver(ServerConfig::new());
        driver.drain_with(drain());
        assert!(!driver.is_ended(), "it waits for a request that may be on its way");
        driver.send(&asked);
        assert_eq!(transcript(&driver.take_received()), expected);
        assert_eq!((*driver.context(), driver.is_ended()), (1, true));
        assert_eq!(driver.failures(), [""; 0]);
    }
}

#[test]
fn a_handler_after_a_wait_is_notified_whenever_the_drain_began() {
    for is_before in [true, false] {
        let mut driver = driver(ServerConfig::new());
        if is_before {
            driver.drain_with(drain());
        }
        driver.send(&get("/after"));
        if !is_before {
            driver.drain_with(drain());
        }
        assert_eq!(driver.take_received(), b"");
        driver.advance(SECOND);
        assert_eq!(transcript(&driver.take_received()), "200 on and off close");
        assert_eq!((*driver.context(), driver.is_ended()), (1, true));
    }
}

#[test]
fn handlers_on_http2_are_notified_of_a_drain() {
    for path in ["/", "/after"] {
        let mut driver = driver(config());
        driver.send(&preface_and_settings(&[]));
        driver.drain_with(drain());
        driver.take_received();
        driver.send(&headers(1, "GET", path, &[], true));
        driver.advance(SECOND);
        let received = driver.take_received();
        let text = String::from_utf8_lossy(&received);
        assert!(text.contains("on and off"), "{path}: {text:?}");
        assert_eq!(*driver.context(), 1, "{path}");
    }
}

/// Writes a goodbye when it is notified of a drain, and continues.
struct RepliesWhileDraining;

impl Server for RepliesWhileDraining {
    type Context = u32;
    type Seed = ();
    type Upgrade = NoUpgrade<u32>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, u32>,
    ) -> Next<Self> {
        match head.path() {
            "/after" => Next::after(scope.now() + SECOND, |response, _| {
                start_response(RepliesWhileDraining, response)
            }),
            _ => start_response(RepliesWhileDraining, response),
        }
    }

    fn draining(
        self,
        _: rotor_core::Time,
        response: &mut Response<'_>,
        notified: &mut Scope<'_, u32>,
    ) -> Next<Self> {
        **notified += 1;
        response.write_body(" goodbye").expect("a piece");
        Next::go_on(self).no_deadline()
    }
}

#[test]
fn a_handler_created_in_the_turn_of_the_drain_is_notified_once() {
    let http2 = [preface_and_settings(&[]), headers(1, "GET", "/", &[], true)].concat();
    for (config, asked) in [(ServerConfig::new(), get("/")), (config(), http2)] {
        let mut driver =
            Driver::<Connection<RepliesWhileDraining>>::new(HttpSeed::new((), config), 0);
        driver.peer().send(&asked);
        driver.drain_with(drain());
        let received = driver.take_received();
        let text = String::from_utf8_lossy(&received);
        assert_eq!(text.matches("goodbye").count(), 1, "{text:?}");
        assert_eq!(*driver.context(), 1);
    }
}

#[test]
fn a_handler_after_a_wait_is_notified_if_only_its_connection_drains() {
    let mut driver =
        Driver::<Connection<RepliesWhileDraining>>::new(HttpSeed::new((), ServerConfig::new()), 0);
    driver.send(&get("/after"));
    let _ = driver.test().instance().machines().scan(Cursor::START, |_, _| Verdict::Drain);
    driver.settle();
    driver.advance(SECOND);
    let text = String::from_utf8_lossy(&driver.take_received()).into_owned();
    assert_eq!((text.matches("goodbye").count(), *driver.context()), (1, 1), "{text:?}");
}

#[test]
fn a_handler_created_while_only_its_connection_drains_is_notified() {
    // A part of the head has arrived when the drain begins; on HTTP/2 the request is on its way.
    let (head, rest) = (b"GET / HTTP/1.1\r\n".to_vec(), b"Host: a\r\n\r\n".to_vec());
    let request = headers(1, "GET", "/", &[], true);
    for (config, before, after) in
        [(ServerConfig::new(), head, rest), (config(), preface_and_settings(&[]), request)]
    {
        let mut driver =
            Driver::<Connection<RepliesWhileDraining>>::new(HttpSeed::new((), config), 0);
        driver.send(&before);
        let _ = driver.test().instance().machines().scan(Cursor::START, |_, _| Verdict::Drain);
        driver.settle();
        driver.send(&after);
        let text = String::from_utf8_lossy(&driver.take_received()).into_owned();
        assert_eq!((text.matches("goodbye").count(), *driver.context()), (1, 1), "{text:?}");
    }
}
