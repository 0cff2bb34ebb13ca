//! The pool: who gets which connection, how long requests wait, and that each has one outcome, whatever dies.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::{
    Config, EventSet, Future, Machine, Outcome, Response, Scope, SendError, Token, Void, rotor_compose,
};
use rotor_http::client::{ByAddress, ClientConfig, Pool, PoolConfig, PoolMachine};
use rotor_http::h1::Limits;
use rotor_stream::testing::{Peer, Scripted, Target, TestLoop};

use crate::probe::{Probe, Result, Seen, Sends, describe, seconds};

type Pooled = PoolMachine<Probe, ByAddress<Scripted<false>>>;

/// Has asked for something, and notes in the context what came of it.
struct Asker {
    name: &'static str,
    future: Option<Future<Result>>,
}

impl Machine for Asker {
    type Context = Seen;
    type Seed = Void;

    fn create(seed: Void, _: &mut Scope<'_, Seen>) -> Response<Self> {
        match seed {}
    }

    /// An event is the end of it, and of what it waits for.
    fn ready(self, _: EventSet, _: &mut Scope<'_, Seen>) -> Response<Self, Void> {
        Response::done()
    }

    fn wakeup(self, scope: &mut Scope<'_, Seen>) -> Response<Self, Void> {
        let Asker { name, future } = self;
        let outcome = match future.map(Future::take) {
            Some(Outcome::Pending(future)) => return Response::keep(Asker { name, future: Some(future) }),
            Some(Outcome::Value(result)) => describe(result),
            Some(Outcome::Lost(lost)) => format!("{lost:?}"),
            None => return Response::done(),
        };
        scope.events.push(format!("{name}: {outcome}"));
        Response::done()
    }
}

rotor_compose! {
    enum Machines <Seen> {
        Pool(Pooled),
        Asker(Asker),
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
        let mut test = TestLoop::with_config(Seen::default(), of_loop);
        for port in 1..10 {
            test.world().target(address(port), Target::Accepts);
        }
        let mut pool = None;
        test.add(|scope| {
            let (handle, response) = PoolMachine::new(config, ClientConfig::new().limits(limits), scope);
            pool = Some(handle);
            response.wrap(Machines::Pool)
        });
        test.settle();
        Test { test, pool, peers: Vec::new() }
    }

    fn try_ask(&mut self, port: u16, name: &'static str, probe: Probe) -> std::result::Result<Token, ()> {
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
            Response::ok(Machines::Asker(Asker { name, future }))
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

    /// What the server at the other end of a connection has been sent since it was last asked: the targets.
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

    /// Those that have an outcome since this was last asked.
    fn outcomes(&mut self) -> Vec<String> {
        let is_outcome = |event: &String| event.contains(": ");
        let events = std::mem::take(&mut self.test.context_mut().events);
        events.into_iter().filter(is_outcome).collect()
    }

    fn prepared(&mut self) -> usize {
        self.test.context().events.iter().filter(|event| event.ends_with(" prepare")).count()
    }
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
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
fn requests_at_the_same_time_have_connections_of_their_own_up_to_the_limit_and_wait_in_order_then() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(2));
    for name in ["/1", "/2", "/3", "/4", "/5"] {
        test.get(1, name);
    }
    assert_eq!(test.peers.len(), 2);
    assert_eq!([test.targets(0), test.targets(1)], [["/1"], ["/2"]]);
    test.answer(1);
    assert_eq!(test.targets(1), ["/3"]);
    test.answer(0);
    assert_eq!(test.targets(0), ["/4"]);
    test.answer(0);
    test.answer(0);
    test.answer(1);
    assert_eq!(test.outcomes(), ["/2: 200 hi", "/1: 200 hi", "/4: 200 hi", "/5: 200 hi", "/3: 200 hi"]);
    assert_eq!(test.peers.len(), 2);
}

#[test]
fn each_server_has_connections_of_its_own() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.answer(0);
    test.get(2, "/2");
    assert_eq!(test.peers.len(), 2);
    assert_eq!(test.targets(1), ["/2"]);
}

#[test]
fn as_many_wait_as_may_and_one_more_is_told_so() {
    let config = PoolConfig::new().connections_per_origin_max(1).waiting_per_origin_max(2);
    let mut test = Test::new(config);
    for name in ["/1", "/2", "/3", "/4"] {
        test.get(1, name);
    }
    assert_eq!(test.outcomes(), ["/4: Here: Full"]);
    test.get(2, "/elsewhere");
    assert!(test.outcomes().is_empty());
    for _ in 0..3 {
        test.answer(0);
    }
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: 200 hi", "/3: 200 hi"]);
}

#[test]
fn a_deadline_covers_waiting_connecting_and_answering() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.test.world().target(address(2), Target::Hangs);
    let within = |name, time| Probe { deadline: time, ..Probe::get(name) };
    test.ask(1, "/answering", within("/answering", seconds(5)));
    test.ask(1, "/waiting", within("/waiting", seconds(3)));
    test.ask(2, "/connecting", within("/connecting", seconds(4)));
    test.advance(Duration::from_millis(2_990));
    assert!(test.outcomes().is_empty());
    test.advance(Duration::from_millis(20));
    assert_eq!(test.outcomes(), ["/waiting: Here: Deadline(Waiting)"]);
    test.advance(seconds(1));
    assert_eq!(test.outcomes(), ["/connecting: Here: Deadline(Waiting)"]);
    test.advance(seconds(1));
    assert_eq!(test.outcomes(), ["/answering: Peer: Deadline(Answering)"]);
    assert!(test.peers[0].is_ended());
}

#[test]
fn a_request_without_a_deadline_gets_that_of_the_pool() {
    let mut test = Test::new(PoolConfig::new().request_timeout(seconds(2)));
    let pool = test.pool.clone().expect("there is a handle");
    test.test.add(|scope| {
        let future = pool.ask(address(1), Probe::get("/"), scope).ok();
        Response::ok(Machines::Asker(Asker { name: "/", future }))
    });
    test.settle();
    test.advance(Duration::from_millis(1_990));
    assert!(test.outcomes().is_empty());
    test.advance(Duration::from_millis(20));
    assert_eq!(test.outcomes(), ["/: Peer: Deadline(Answering)"]);
}

#[test]
fn a_cancelled_request_is_never_made_or_cut_off() {
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

/// Ends an asker, and with it what it waits for.
fn cancel(test: &mut Test, asker: Token) {
    let _ = test.test.instance().machines().scan(rotor_core::Cursor::START, |token, _| {
        if token == asker { rotor_core::Verdict::End } else { rotor_core::Verdict::Keep }
    });
    test.settle();
}

#[test]
fn a_server_that_refuses_costs_the_request_for_which_it_was_asked() {
    for at_once in [false, true] {
        let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
        let refused = ErrorKind::ConnectionRefused;
        let target = if at_once { Target::FailsAtOnce(refused) } else { Target::Fails(refused) };
        test.test.world().target(address(1), target);
        test.get(1, "/1");
        let expected = "Network: NotConnected(Connect(Kind(ConnectionRefused)))";
        assert_eq!(test.outcomes(), [format!("/1: {expected}")], "at once: {at_once}");
        test.test.world().target(address(1), Target::Accepts);
        test.get(1, "/2");
        test.answer(0);
        assert_eq!(test.outcomes(), ["/2: 200 hi"], "the next one tries anew");
    }
}

#[test]
fn connecting_has_a_time_of_its_own() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.test.world().target(address(1), Target::Hangs);
    test.get(1, "/1");
    test.get(1, "/2");
    test.advance(seconds(11));
    assert_eq!(test.outcomes(), ["/1: Network: NotConnected(ConnectTimeout)"]);
    test.advance(seconds(11));
    assert_eq!(test.outcomes(), ["/2: Network: NotConnected(ConnectTimeout)"]);
}

#[test]
fn a_request_whose_used_connection_died_is_made_again_on_a_new_one_once() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.answer(0);
    test.get(1, "/2");
    assert_eq!(test.targets(0), ["/1", "/2"]);
    test.end(0);
    assert_eq!(test.targets(1), ["/2"], "on a new connection");
    test.answer(1);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: 200 hi"]);

    test.get(1, "/3");
    test.end(1);
    test.end(2);
    assert_eq!(test.outcomes(), ["/3: Peer: Closed"], "twice is enough");
    assert_eq!(test.peers.len(), 3);
}

#[test]
fn a_post_whose_used_connection_died_is_not_made_again() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.answer(0);
    test.ask(1, "/2", Probe::post(Sends::Whole("x")));
    test.end(0);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: Peer: Closed"]);
    assert_eq!(test.peers.len(), 1);
}

#[test]
fn an_idle_connection_that_dies_is_not_used_and_those_that_wait_go_on_when_one_dies() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.get(1, "/1");
    test.answer(0);
    test.end(0);
    test.get(1, "/2");
    test.get(1, "/3");
    assert_eq!(test.targets(1), ["/2"]);
    test.peers[1].reset();
    test.settle();
    assert_eq!(test.targets(2), ["/3"]);
    test.answer(2);
    let lost = "/2: Network: Lost(Reset(Kind(ConnectionReset)))";
    assert_eq!(test.outcomes(), ["/1: 200 hi", lost, "/3: 200 hi"]);
}

#[test]
fn a_connection_that_may_not_be_used_again_makes_room_for_the_next() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.get(1, "/1");
    test.get(1, "/2");
    test.peers[0].send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    test.settle();
    assert!(test.peers[0].is_ended() && !test.peers[0].is_dropped());
    assert_eq!(test.targets(1), ["/2"], "nobody waits for the server to end its side");
}

#[test]
fn at_the_limit_of_all_connections_an_idle_one_is_closed_for_another_server() {
    let mut test = Test::new(PoolConfig::new().connections_max(1));
    test.get(1, "/1");
    test.get(2, "/2");
    assert_eq!(test.peers.len(), 1);
    test.answer(0);
    assert!(test.peers[0].is_ended());
    test.end(0);
    assert_eq!(test.targets(1), ["/2"]);
    test.answer(1);
    assert_eq!(test.outcomes(), ["/1: 200 hi", "/2: 200 hi"]);
}

#[test]
fn a_pool_without_a_slot_waits_for_one() {
    // The pool, two askers, and one place for a connection less than are wanted.
    let mut test = Test::with(PoolConfig::new(), Limits::new(), Config::new().machines_max(4));
    test.get(1, "/1");
    test.get(1, "/2");
    assert_eq!(test.peers.len(), 1);
    assert!(test.outcomes().is_empty());
    test.answer(0);
    assert_eq!(test.outcomes(), ["/1: 200 hi"]);
    test.settle();
    let peer = test.peers.len() - 1;
    test.answer(peer);
    assert_eq!(test.outcomes(), ["/2: 200 hi"]);
}

#[test]
fn asks_beyond_what_is_looked_at_come_back() {
    let mut test = Test::new(PoolConfig::new().asks_max(2));
    let pool = test.pool.clone().expect("there is a handle");
    let mut asked = Vec::new();
    test.test.add(|scope| {
        for _ in 0..3 {
            asked.push(pool.ask(address(1), Probe::get("/"), scope).is_ok());
        }
        Response::ok(Machines::Asker(Asker { name: "", future: None }))
    });
    assert_eq!(asked, [true, true, false]);
    test.settle();
    assert_eq!(test.prepared(), 0, "both were cancelled");
}

#[test]
fn a_panic_of_a_handler_costs_its_own_request() {
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.ask(1, "/1", Probe { panics_in: "head", ..Probe::get("/1") });
    test.get(1, "/2");
    test.answer(0);
    test.end(0);
    test.answer(1);
    assert_eq!(test.outcomes(), ["/1: Caller: Panicked", "/2: 200 hi"]);
    let mut test = Test::new(PoolConfig::new().connections_per_origin_max(1));
    test.ask(1, "/1", Probe { panics_in: "bad", deadline: seconds(1), ..Probe::get("/1") });
    test.ask(1, "/2", Probe { panics_in: "bad", deadline: seconds(1), ..Probe::get("/2") });
    test.advance(seconds(2));
    let mut outcomes = test.outcomes();
    outcomes.sort();
    assert_eq!(outcomes, ["/1: Caller: Panicked", "/2: Caller: Panicked"]);
    test.end(0);
    test.get(1, "/3");
    test.answer(1);
    assert_eq!(test.outcomes(), ["/3: 200 hi"]);
}

#[test]
fn a_drain_ends_the_pool_when_all_is_done() {
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
fn in_a_drain_who_is_still_at_work_may_still_ask() {
    let mut test = Test::new(PoolConfig::new());
    // Has an idle connection, and nothing under way; then it is not asked before the drain has begun.
    test.get(1, "/before");
    test.answer(0);
    let mut at_work = None;
    test.test.add(|scope| {
        at_work = Some(scope.notifier());
        Response::ok(Machines::Asker(Asker { name: "at work", future: None }))
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

#[test]
fn a_pool_that_nobody_can_ask_ends_with_its_last_connection() {
    let mut test = Test::new(PoolConfig::new());
    test.get(1, "/1");
    test.pool = None;
    test.settle();
    test.answer(0);
    assert_eq!(test.outcomes(), ["/1: 200 hi"]);
    test.end(0);
    assert_eq!(test.test.machines(), 0);
}
