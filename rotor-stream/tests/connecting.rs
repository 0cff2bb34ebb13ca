//! Connecting by name: `Connect` and `Persistent` with a resolver controlled by the test.

mod probe;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use probe::{Log, Probe, echo_lines, seed};
use rotor_core::net::StreamSocket;
use rotor_core::{Calls, Compose2, Infallible, Machine, Response, Scope};
use rotor_stream::testing::{ScriptedSocket, Target, TestLoop};
use rotor_stream::{
    AddressService, Connect, Destination, HostName, Link, Persistent, PersistentSeed, Resolution,
    ResolveError, ResolveResult, Stream, StreamConfig, ToTarget,
};

/// Answers one request after the other, and repeats the last answer; or never answers.
struct FakeResolver(Calls<HostName, ResolveResult>, VecDeque<ResolveResult>);

impl Machine for FakeResolver {
    type Context = Log;
    type Seed = Infallible;
    fn wakeup(mut self, _: &mut Scope<'_, Log>) -> Response<Self, Infallible> {
        if self.1.is_empty() {
            return Response::keep(self);
        }
        while let Some(call) = self.0.receive() {
            let next = if self.1.len() > 1 { self.1.pop_front() } else { self.1.front().cloned() };
            call.answer(next.expect("there is one")).expect("somebody waits");
        }
        Response::keep(self)
    }
}

/// Like [`rotor_stream::Host`], but holds the service itself, since the context of these tests is a
/// log.
struct TestHost(AddressService);

impl<S: StreamSocket<Target = SocketAddr>, C> Destination<S, C> for TestHost {
    fn resolve(&self, scope: &Scope<'_, C>) -> Resolution<SocketAddr> {
        let addresses = self.0.ask("host".into(), scope).expect("there is room");
        Resolution::Asked { addresses, port: 80, target: ToTarget::new(|address| address) }
    }
}

type Client = Connect<Probe, ScriptedSocket, TestHost>;
type Test = TestLoop<Compose2<Client, FakeResolver>>;

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().expect("an address")).collect()
}

/// A loop with a resolver that gives these answers, and addresses that each behave as given.
fn loop_with_resolver<M>(
    answers: Vec<ResolveResult>,
    targets: &[(&str, Target)],
) -> (TestLoop<Compose2<M, FakeResolver>>, TestHost)
where
    M: Machine<Context = Log> + 'static,
{
    let mut test = TestLoop::new(Log::new());
    for (text, target) in targets {
        test.world().target(SocketAddr::new(text.parse().expect("an address"), 80), *target);
    }
    let mut service = None;
    test.add(|scope: &mut Scope<'_, Log>| {
        let (handle, calls) = scope.create_service(4);
        service = Some(handle);
        Response::ok(Compose2::B(FakeResolver(calls, answers.into())))
    });
    (test, TestHost(service.expect("made above")))
}

/// A client of a host whose resolution gives this answer.
fn connect(answer: Option<ResolveResult>, targets: &[(&str, Target)]) -> Test {
    let (mut test, named) = loop_with_resolver(Vec::from_iter(answer), targets);
    let seed = seed(StreamConfig::new(), echo_lines);
    test.add(|scope| Client::new::<Infallible>(&named, seed, scope).wrap(Compose2::A));
    test.settle();
    test
}

fn resolved(texts: &[&str]) -> Option<ResolveResult> {
    Some(Ok(addresses(texts).into()))
}

#[test]
fn the_first_address_that_connects_is_used() {
    let mut test = connect(
        resolved(&["10.0.0.1", "::1"]),
        &[("::1", Target::Accepts), ("10.0.0.1", Target::Accepts)],
    );
    let peers = test.world().take_connections();
    assert_eq!((peers.len(), test.context().as_slice()), (1, &["create".to_string()][..]));
    peers[0].send(b"one\n");
    test.settle();
    assert_eq!(peers[0].take_received(), b"one\n");
}

#[test]
fn a_hanging_address_is_given_250_ms_before_the_next_is_tried() {
    let mut test = connect(
        resolved(&["10.0.0.1", "::1"]),
        &[("::1", Target::Hangs), ("10.0.0.1", Target::Accepts)],
    );
    test.advance(Duration::from_millis(249));
    assert!(test.context().is_empty());
    test.advance(Duration::from_millis(2));
    assert_eq!(*test.context(), ["create"]);
    assert!(test.failures().is_empty());
}

#[test]
fn a_drain_that_begins_while_connecting_is_delivered_once_connected() {
    let mut test = connect(
        resolved(&["10.0.0.1", "::1"]),
        &[("::1", Target::Hangs), ("10.0.0.1", Target::Accepts)],
    );
    test.drain(Duration::from_secs(9));
    assert!(test.context().is_empty(), "there is nobody to tell yet");
    test.advance(Duration::from_millis(251));
    assert_eq!(*test.context(), ["create", "draining"]);
}

const REFUSES: Target = Target::Fails(ErrorKind::ConnectionRefused);

#[test]
fn an_attempt_continues_when_the_one_before_it_is_refused() {
    let hang = [("10.0.0.1", Target::Hangs), ("10.0.0.2", Target::Hangs)];
    let mut test = connect(resolved(&["10.0.0.1", "10.0.0.2"]), &hang);
    test.advance(Duration::from_millis(251));
    let attempts = test.world().take_hanging();
    assert_eq!(attempts.len(), 2, "both are under way");
    attempts[0].decide(REFUSES);
    test.settle();
    assert_eq!(*test.context(), Log::new());
    attempts[1].decide(Target::Accepts);
    test.settle();
    assert_eq!(*test.context(), ["create"]);
}

#[test]
fn an_event_of_a_failed_attempt_does_not_end_the_next_one() {
    let hang = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|text| (text, Target::Hangs));
    let mut test = connect(resolved(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]), &hang);
    test.advance(Duration::from_millis(251));
    // One wait delivers both events. At the first, both attempts turn out to have failed, and the
    // third begins; the second event then belongs to a socket that is gone.
    for attempt in test.world().take_hanging() {
        attempt.decide(REFUSES);
    }
    test.settle();
    assert_eq!(*test.context(), Log::new());
    let third = test.world().take_hanging();
    assert_eq!(third.len(), 1, "it is under way");
    third[0].decide(Target::Accepts);
    test.settle();
    assert_eq!(*test.context(), ["create"]);
}

/// The hanging attempt is falsely reported to have ended, and then succeeds or fails.
fn connect_among_false_reports<M: Machine<Context = Log>>(
    test: &mut TestLoop<M>,
    decision: Target,
) -> Vec<String> {
    let attempts = test.world().take_hanging();
    for attempt in &attempts {
        attempt.report_end_falsely();
        test.settle();
        assert_eq!(*test.context(), Log::new());
        attempt.decide(decision);
        test.settle();
    }
    assert_eq!(attempts.len(), 1);
    test.context().clone()
}

#[test]
fn an_attempt_continues_despite_a_false_report_of_its_end() {
    let refused = ["not connected: cannot connect: connection refused".to_string()];
    for (decision, expected) in [(Target::Accepts, &["create".to_string()]), (REFUSES, &refused)] {
        let mut raced = connect(resolved(&["10.0.0.1"]), &[("10.0.0.1", Target::Hangs)]);
        assert_eq!(connect_among_false_reports(&mut raced, decision), expected, "by name");

        let mut single = TestLoop::new(Log::new());
        let address = SocketAddr::new(IpAddr::from([10, 0, 0, 1]), 80);
        single.world().target(address, Target::Hangs);
        let seed = seed(StreamConfig::new(), echo_lines);
        single.add(|scope| Stream::<Probe, ScriptedSocket>::connect(&address, seed, scope));
        assert_eq!(connect_among_false_reports(&mut single, decision), expected, "by address");
    }
}

#[test]
fn attempts_are_250_ms_apart_even_if_the_loop_was_late() {
    let hang = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|text| (text, Target::Hangs));
    let mut test = connect(resolved(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]), &hang);
    assert_eq!(test.world().take_hanging().len(), 1);
    // After 600 ms without a turn, the third attempt would be due as well.
    test.world().advance(Duration::from_millis(600));
    test.settle();
    assert_eq!(test.world().take_hanging().len(), 1);
    test.advance(Duration::from_millis(249));
    assert_eq!(test.world().take_hanging().len(), 0);
    test.advance(Duration::from_millis(2));
    assert_eq!(test.world().take_hanging().len(), 1);
}

#[test]
fn the_next_address_is_tried_at_once_after_a_refusal() {
    for refuses in [
        Target::Fails(ErrorKind::ConnectionRefused),
        Target::FailsAtOnce(ErrorKind::ConnectionRefused),
    ] {
        let test = connect(
            resolved(&["10.0.0.1", "::1"]),
            &[("::1", refuses), ("10.0.0.1", Target::Accepts)],
        );
        assert_eq!(*test.context(), ["create"]);
    }
}

#[test]
fn the_failure_of_all_addresses_is_reported_once() {
    let fails = Target::Fails(ErrorKind::ConnectionRefused);
    let mut test = connect(resolved(&["10.0.0.1", "::1"]), &[("::1", fails), ("10.0.0.1", fails)]);
    assert_eq!(*test.context(), ["not connected: cannot connect: connection refused"]);
    assert_eq!(test.machines(), 1);
}

/// As for a Unix socket, where the system does not wait for room (connect(2)).
#[test]
fn an_address_whose_queue_is_full_is_tried_again_until_the_connect_timeout() {
    let full = Target::FailsAtOnce(ErrorKind::WouldBlock);
    for has_room in [true, false] {
        let mut test = connect(resolved(&["10.0.0.1"]), &[("10.0.0.1", full)]);
        test.advance(Duration::from_millis(9_700));
        assert_eq!(*test.context(), Log::new());
        if has_room {
            let address = SocketAddr::new(IpAddr::from([10, 0, 0, 1]), 80);
            test.world().target(address, Target::Accepts);
        }
        test.advance(Duration::from_millis(301));
        let late = "not connected: connecting took too long";
        assert_eq!(*test.context(), [if has_room { "create" } else { late }]);
    }
    let mut test =
        connect(resolved(&["10.0.0.1", "::1"]), &[("::1", full), ("10.0.0.1", Target::Accepts)]);
    test.advance(Duration::from_millis(251));
    assert_eq!(*test.context(), ["create"], "by the other address");
}

/// As on a computer without IPv6: "network is unreachable" would hide what the server said.
#[test]
fn an_address_without_a_way_to_it_does_not_hide_the_refusal_of_another() {
    let no_way = Target::FailsAtOnce(ErrorKind::NetworkUnreachable);
    let refused = ErrorKind::ConnectionRefused;
    for refuses in [Target::Fails(refused), Target::FailsAtOnce(refused)] {
        for way_to_third in [no_way, refuses] {
            let targets = [("::1", no_way), ("10.0.0.1", refuses), ("::2", way_to_third)];
            let test = connect(resolved(&["10.0.0.1", "::1", "::2"]), &targets);
            assert_eq!(*test.context(), ["not connected: cannot connect: connection refused"]);
        }
    }
    let test = connect(resolved(&["::1"]), &[("::1", no_way)]);
    assert_eq!(*test.context(), ["not connected: cannot connect: network unreachable"]);
}

#[test]
fn the_connect_timeout_includes_the_time_for_resolving() {
    let mut silent = connect(None, &[]);
    silent.advance(Duration::from_millis(10_001));
    assert_eq!(*silent.context(), ["not connected: connecting took too long"]);
    let mut hanging = connect(resolved(&["10.0.0.1"]), &[("10.0.0.1", Target::Hangs)]);
    hanging.advance(Duration::from_millis(10_001));
    assert_eq!(*hanging.context(), ["not connected: connecting took too long"]);
}

#[test]
fn a_failed_name_resolution_is_reported_to_the_protocol() {
    let error = ResolveError::NotFound(Arc::new(std::io::Error::from(ErrorKind::NotFound)));
    let test = connect(Some(Err(error)), &[]);
    assert_eq!(test.context().len(), 1);
    assert!(test.context()[0].starts_with("not connected: cannot resolve"), "{:?}", test.context());
}

#[test]
fn a_persistent_connection_resolves_the_name_for_each_attempt() {
    let none = ResolveError::NotFound(Arc::new(std::io::Error::from(ErrorKind::NotFound)));
    let answers = vec![
        Err(none),
        Ok(addresses(&["10.0.0.1"]).into()),
        Ok(addresses(&["10.0.0.2", "::2"]).into()),
    ];
    let targets =
        [("10.0.0.1", Target::Accepts), ("10.0.0.2", Target::Accepts), ("::2", Target::Hangs)];
    let (mut test, named) =
        loop_with_resolver::<Persistent<Probe, ScriptedSocket, TestHost>>(answers, &targets);
    let link = Link::new();
    let seed = PersistentSeed::new(named, seed(StreamConfig::new(), echo_lines)).link(link.clone());
    test.add(|scope| Persistent::new(seed, scope).map(Compose2::A, |seed| seed));
    test.settle();
    assert!(
        !link.is_up() && test.context()[0].starts_with("not connected: cannot resolve"),
        "{:?}",
        test.context()
    );
    test.advance(Duration::from_millis(101));
    assert!(link.is_up());
    let first = test.world().take_connections();
    // The host moves: its old address no longer works.
    let old = SocketAddr::new(IpAddr::from([10, 0, 0, 1]), 80);
    test.world().target(old, Target::Fails(ErrorKind::ConnectionRefused));
    first[0].end();
    test.settle();
    assert!(!link.is_up());
    test.advance(Duration::from_millis(201));
    assert!(!link.is_up(), "the address that hangs has its lead");
    test.advance(Duration::from_millis(250));
    assert!(link.is_up());
    let second = test.world().take_connections();
    second[0].send(b"two\n");
    test.settle();
    assert_eq!(second[0].take_received(), b"two\n");
}
