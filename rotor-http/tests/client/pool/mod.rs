//! The pool: which request gets which connection, how long requests wait, and that each has one
//! outcome, even if connections or their machines fail.

mod deaths;
mod extremes;
#[cfg(feature = "http2")]
mod http1_alternative;
mod limits;
mod misbehaving;
#[cfg(feature = "http2")]
mod refusals;
mod room;

use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::{
    Config, Cursor, EventSet, Future, Infallible, Machine, Outcome, Response, Scope, SendError,
    Token, Verdict, rotor_compose,
};
use rotor_http::Limits;
use rotor_http::client::{ClientConfig, Connector, Pool, PoolConfig, PoolMachine};
use rotor_stream::testing::{Peer, Scripted, Target, TestLoop};
use rotor_stream::{Protocol, Stream};

#[cfg(feature = "http2")]
use crate::http2::server::{http2, page, settings};
use crate::probe::{Probe, Result, TestContext, describe, seconds};

type Pooled = PoolMachine<Probe, Connects>;

/// Connects by address. One server has a separate address for HTTP/1.1.
struct Connects;

const HTTP1_ELSEWHERE: u16 = 8;
const HTTP1_ALTERNATIVE: u16 = 9;

impl Connector<TestContext> for Connects {
    type Origin = SocketAddr;
    type Connection<P: Protocol<Context = TestContext>> = Stream<P, Scripted<false>>;

    fn without_http2(origin: &SocketAddr) -> Option<SocketAddr> {
        (origin.port() == HTTP1_ELSEWHERE).then(|| address(HTTP1_ALTERNATIVE))
    }

    fn connect<P: Protocol<Context = TestContext>>(
        origin: &SocketAddr,
        seed: P::Seed,
        scope: &mut Scope<'_, TestContext>,
    ) -> Response<Self::Connection<P>> {
        Stream::connect(origin, seed, scope)
    }
}

/// Has sent a request, and records its outcome in the context.
pub(crate) struct Requester {
    pub(crate) name: &'static str,
    pub(crate) future: Option<Future<Result>>,
}

impl Machine for Requester {
    type Context = TestContext;
    type Seed = Infallible;

    /// An event ends the requester and drops its future.
    fn ready(self, _: EventSet, _: &mut Scope<'_, TestContext>) -> Response<Self, Infallible> {
        Response::done()
    }

    fn wakeup(self, scope: &mut Scope<'_, TestContext>) -> Response<Self, Infallible> {
        let Requester { name, future } = self;
        let outcome = match future.map(Future::take) {
            Some(Outcome::Pending(future)) => {
                return Response::keep(Requester { name, future: Some(future) });
            }
            Some(Outcome::Value(result)) => describe(result),
            Some(Outcome::Lost(lost)) => format!("{lost:?}"),
            None => return Response::done(),
        };
        scope.events.push(format!("{name}: {outcome}"));
        Response::done()
    }
}

rotor_compose! {
    enum Machines / Seeds<TestContext> {
        Pool(Pooled),
        Requester(Requester),
    }
}

struct Test {
    test: TestLoop<Machines>,
    pool: Option<Pool<Probe>>,
    peers: Vec<Peer>,
}

fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

impl Test {
    fn new(config: PoolConfig) -> Test {
        Test::with(config, Limits::new(), Config::new().machines_max(100))
    }

    fn with(config: PoolConfig, limits: Limits, of_loop: Config) -> Test {
        Test::of(config, ClientConfig::new().limits(limits), of_loop)
    }

    fn of(config: PoolConfig, client: ClientConfig, of_loop: Config) -> Test {
        let mut test = TestLoop::with_config(TestContext::default(), of_loop);
        for port in 1..10 {
            test.world().target(address(port), Target::Accepts);
        }
        let mut pool = None;
        test.add(|scope| {
            let (handle, response) = PoolMachine::new(config, client, scope);
            pool = Some(handle);
            response.wrap(Machines::Pool)
        });
        test.settle();
        Test { test, pool, peers: Vec::new() }
    }

    fn try_ask(
        &mut self,
        port: u16,
        name: &'static str,
        probe: Probe,
    ) -> std::result::Result<Token, ()> {
        let pool = self.pool.clone().expect("there is a handle");
        let mut asked = Ok(());
        let token = self.test.add(|scope| {
            let deadline = scope.now() + probe.deadline;
            let future = match pool.ask_until(address(port), probe, deadline, scope) {
                Ok(future) => Some(future),
                Err(SendError::Full(_) | SendError::Closed(_)) => {
                    asked = Err(());
                    None
                }
            };
            Response::ok(Machines::Requester(Requester { name, future }))
        });
        self.settle();
        asked.map(|()| token)
    }

    fn ask(&mut self, port: u16, name: &'static str, probe: Probe) -> Token {
        self.try_ask(port, name, probe).expect("the pool takes it")
    }

    fn get(&mut self, port: u16, name: &'static str) -> Token {
        self.ask(port, name, Probe::get(name))
    }

    fn settle(&mut self) {
        self.test.settle();
        self.peers.extend(self.test.world().take_connections());
    }

    /// The targets of the requests that the server of a connection has received since the last
    /// call.
    fn targets(&self, peer: usize) -> Vec<String> {
        let received = String::from_utf8(self.peers[peer].take_received()).expect("ASCII");
        let lines = received.lines().filter(|line| line.ends_with(" HTTP/1.1"));
        lines.map(|line| line.split(' ').nth(1).expect("a request line").to_owned()).collect()
    }

    fn answer(&mut self, peer: usize) {
        self.peers[peer].send(OK);
        self.settle();
    }

    fn end(&mut self, peer: usize) {
        self.peers[peer].end();
        self.settle();
    }

    fn advance(&mut self, time: Duration) {
        self.test.advance(time);
        self.settle();
    }

    /// The outcomes since the last call.
    fn outcomes(&mut self) -> Vec<String> {
        let is_outcome = |event: &String| event.contains(": ");
        let events = std::mem::take(&mut self.test.context_mut().events);
        events.into_iter().filter(is_outcome).collect()
    }

    fn prepared_count(&mut self) -> usize {
        self.test.context().events.iter().filter(|event| event.ends_with(" prepare")).count()
    }
}

#[test]
fn a_connection_serves_requests_one_after_another() {
    let mut test = Test::new(PoolConfig::new());
    for name in ["/1", "/2", "/3"] {
        test.get(1, name);
        assert_eq!(test.peers.len(), 1);
        assert_eq!(test.targets(0), [name]);
        test.answer(0);
        assert_eq!(test.outcomes(), [format!("{name}: 200 hi")]);
    }
}

#[test]
fn each_server_has_its_own_connections() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.answer(0);
    test.get(2, "/2");
    assert_eq!(test.peers.len(), 2);
    assert_eq!(test.targets(1), ["/2"]);
}

#[test]
fn a_cancelled_request_is_not_sent_or_closes_its_connection() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    let under_way = test.get(1, "/1");
    let waits = test.get(1, "/2");
    test.get(1, "/3");
    cancel(&mut test, waits);
    cancel(&mut test, under_way);
    assert!(test.peers[0].is_ended(), "its answer is nobody's");
    test.end(0);
    assert_eq!(test.peers.len(), 2);
    assert_eq!(test.targets(1), ["/3"]);
    test.answer(1);
    assert_eq!(test.outcomes(), ["/3: 200 hi"]);
}

#[test]
fn a_cancelled_request_leaves_the_queue_at_once() {
    let config = PoolConfig::new().connections_per_origin_max(1).waiting_per_origin_max(1);
    let mut test = Test::new(config);
    test.get(1, "/1");
    for _ in 0..3 {
        let waits = test.get(1, "/2");
        cancel(&mut test, waits);
    }
    test.get(1, "/3");
    assert!(test.outcomes().is_empty(), "there is room for one");
    test.answer(0);
    test.answer(0);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/3: 200 hi"]);
}

#[test]
fn a_cancelled_retry_leaves_the_queue_at_once() {
    let mut test = Test::new(PoolConfig::new().waiting_max(1));
    test.get(1, "/1");
    test.answer(0);
    test.test.world().target(address(1), Target::Hangs);
    let again = test.get(1, "/2");
    test.end(0);
    test.get(2, "/3");
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/3: Here: Full"], "it waits");
    cancel(&mut test, again);
    test.get(2, "/4");
    assert!(test.outcomes().is_empty(), "there is room for one");
}

/// Ends a requester, and so cancels its request.
fn cancel(test: &mut Test, requester: Token) {
    end_in_next_turn(test, requester);
    test.settle();
}

fn end_in_next_turn(test: &mut Test, requester: Token) {
    let _ = test.test.instance().machines().scan(Cursor::START, |token, _| {
        if token == requester { Verdict::End } else { Verdict::Keep }
    });
}

#[test]
fn a_draining_pool_ends_after_its_last_request() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.get(1, "/1");
    test.get(1, "/2");
    test.test.drain(seconds(100));
    test.settle();
    test.answer(0);
    test.end(0);
    assert_eq!(test.targets(1), ["/2"], "what waits is still made");
    test.answer(1);
    test.end(1);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: 200 hi"]);
    assert_eq!(test.test.machines(), 0);
}

#[test]
fn a_working_machine_may_still_send_requests_in_a_drain() {
    let mut test = Test::new(PoolConfig::new());
    // The pool has an idle connection and no request under way. It gets no request before the drain
    // has begun.
    test.get(1, "/before");
    test.answer(0);
    let mut at_work = None;
    test.test.add(|scope| {
        at_work = Some(scope.notifier());
        Response::ok(Machines::Requester(Requester { name: "at work", future: None }))
    });
    test.test.drain(seconds(100));
    test.settle();
    test.get(1, "/late");
    assert_eq!(test.targets(1), ["/late"], "on a connection of its own");
    test.answer(1);
    assert_eq!(test.outcomes(), ["/before: 200 hi", "/late: 200 hi"]);
    for peer in [0, 1] {
        test.end(peer);
    }
    assert_eq!(test.test.machines(), 2, "the pool, and who may ask");
    assert!(at_work.is_some_and(|notifier| notifier.wakeup()));
    test.settle();
    assert_eq!(test.test.machines(), 0);
}

#[cfg(feature = "http2")]
#[test]
fn a_request_in_a_drain_is_sent_over_http2_as_well() {
    let client = ClientConfig::new().http2(http2());
    let mut test = Test::of(PoolConfig::new(), client, Config::new().machines_max(100));
    test.test
        .add(|_| Response::ok(Machines::Requester(Requester { name: "at work", future: None })));
    test.test.drain(seconds(100));
    test.get(1, "/1");
    test.get(1, "/2");
    assert_eq!(test.peers.len(), 2, "each request has a connection of its own");
    for peer in &test.peers {
        peer.send(&[settings(&[]), page(1, "a")].concat());
    }
    test.settle();
    assert_eq!(test.outcomes(), ["/1: 200 a", "/2: 200 a"]);
    assert_eq!(test.peers.len(), 2);
    assert!(test.peers.iter().all(Peer::is_ended));
}

#[test]
fn a_pool_without_handles_ends_with_its_last_connection() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.pool = None;
    test.settle();
    test.answer(0);
    assert_eq!(test.outcomes(), ["/1: 200 hi"]);
    test.end(0);
    assert_eq!(test.test.machines(), 0);
}
