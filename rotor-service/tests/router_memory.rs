//! The allocations of a function behind a route, compared with the same as a `Server`.
//!
//! The test has a process of its own, with a counting allocator.

use std::alloc::System;

use rotor_http::Status;
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Reply, Response, Scope, Server,
    ServerConfig,
};
use rotor_service::{Path, RouteFn, Router};
use rotor_stream::testing::Driver;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn answer(body: &[u8], response: &mut Response<'_>) -> Reply {
    response.reply(Status::OK, "text/plain", body)
}

/// The baseline.
struct Echo;

impl Server for Echo {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::recv(Echo, RecvMode::Buffered(100)).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        answer(body, response).into()
    }
}

fn octets(body: &[u8], response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    answer(body, response)
}

fn beside(
    Path(_): Path<u32>,
    body: &[u8],
    response: &mut Response<'_>,
    _: &mut Scope<'_, ()>,
) -> Reply {
    answer(body, response)
}

/// The allocations for one request to this path, after the first ones.
fn count<S: Server<Context = ()> + 'static>(seed: S::Seed, path: &str) -> usize {
    let mut driver = Driver::<Connection<S>>::new(HttpSeed::new(seed, ServerConfig::new()), ());
    let request = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
    let mut counts = [0; 8];
    for count in &mut counts {
        let before = ALLOCATOR.stats().allocations;
        driver.send(request.as_bytes());
        *count = ALLOCATOR.stats().allocations - before;
        assert!(driver.take_received().ends_with(b"\r\n\r\nbody"), "{path}");
    }
    counts.into_iter().min().unwrap_or_default()
}

#[test]
fn a_body_function_allocates_nothing_and_parameters_cost_one_box() {
    let router = Router::new()
        .post("/a/b", octets)
        .and_then(|router| router.post("/c/{id}", beside))
        .and_then(|router| router.nest("/e/{of}", Router::new().post("/f", octets)?))
        .and_then(|router| router.nest("/g", Router::new().fallback(octets)));
    let router = router.expect("routes").fallback(octets);
    let least = count::<Echo>((), "/a/b");
    assert_eq!(count::<RouteFn<()>>(router.seed(), "/a/b"), least);
    assert_eq!(count::<RouteFn<()>>(router.seed(), "/c/7"), least + 1);
    for nested_or_of_a_fallback in ["/e/7/f", "/g", "/g/h", "/none"] {
        let counted = count::<RouteFn<()>>(router.seed(), nested_or_of_a_fallback);
        assert_eq!(counted, least, "{nested_or_of_a_fallback}");
    }
}
