//! When a connection is reused and when not, and what happens to a request whose connection fails.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use rotor_core::{Event, Machine, Response};
use rotor_http::Limits;
use rotor_http::client::{ClientConfig, Connection, ConnectionSeed};
use rotor_stream::testing::{Peer, Scripted, TestLoop, pair};
use rotor_stream::{Stream, StreamConfig};

use crate::http2::server::Server;
use crate::probe::{BodyPlan, OnWakeup, Probe, Sc, TestContext, outcome_of, seconds};
use crate::script::{
    ProbeDriver, ScriptedSource, connection, connection_with_config, is_reusable, outcome,
};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// A connection that has served one request and has begun another.
fn second_request(probe: Probe) -> ProbeDriver {
    let mut driver = connection(Limits::new(), [Probe::get("/first")]);
    driver.context_mut().plans.push_back(probe);
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert_eq!(outcome(&mut driver), None);
    driver
}

#[test]
fn requests_follow_each_other_on_one_connection() {
    let plans = ["/1", "/2", "/3"].map(Probe::get);
    let mut driver = connection(Limits::new(), plans);
    for target in ["/1", "/2", "/3"] {
        assert_eq!(
            driver.take_received(),
            format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()
        );
        driver.send(OK);
        assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    }
    assert!(is_reusable(&mut driver));
    driver.context_mut().plans.push_back(Probe::get("/4"));
    driver.wakeup();
    assert!(driver.take_received().starts_with(b"GET /4"), "woken, it looks for more");
}

#[test]
fn an_idle_connection_ends_on_a_close_or_unsolicited_bytes() {
    let idle = || connection(Limits::new(), []);
    let mut driver = idle();
    assert!(is_reusable(&mut driver));
    driver.end();
    assert!(driver.is_dropped());
    let mut driver = idle();
    driver.reset();
    assert!(driver.is_dropped());
    for stray in ["HTTP/1.1 408 Request Timeout\r\n\r\n", "x", "\r\n"] {
        let mut driver = idle();
        driver.send(stray.as_bytes());
        assert!(driver.is_ended(), "{stray:?} was not asked for");
    }
}

#[test]
fn a_connection_closed_before_a_wakeup_is_not_used() {
    let mut driver = connection(Limits::new(), []);
    driver.context_mut().plans.push_back(Probe::get("/"));
    driver.context().notifier.as_ref().expect("it is idle").wakeup();
    // The EOF and the wakeup are found in the same turn.
    let peer: &Peer = &driver;
    peer.end();
    driver.settle();
    assert!(driver.is_dropped());
    assert_eq!(driver.context().plans.len(), 1, "nothing was begun on it");
}

#[test]
fn rule_57_bytes_received_before_a_request_do_not_answer_it() {
    for stray in [OK, b"x", b"\r\n"] {
        let mut driver = connection(Limits::new(), ["/1", "/2"].map(Probe::get));
        driver.send(&[OK, stray].concat());
        assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
        assert_eq!(
            driver.context().plans.len(),
            1,
            "the second one is not made here: {}",
            stray.escape_ascii()
        );
        assert!(!is_reusable(&mut driver));
    }
}

#[test]
fn rule_57_bytes_received_before_a_deferred_write_do_not_answer_it() {
    let late = || Probe { defers_write: true, ..Probe::get("/late") };
    let write = |driver: &mut ProbeDriver| {
        driver.context_mut().on_wakeup = Some(OnWakeup::Write);
        let notifier = driver.context().handlers.last().cloned();
        notifier.expect("it was prepared").wakeup();
        driver.settle();
    };
    for stray in [OK, b"x", b"\r\n"] {
        let mut driver = second_request(late());
        driver.take_received();
        driver.send(stray);
        assert_eq!(outcome(&mut driver).as_deref(), Some("Peer: Unsent(Closed)"));
        assert_eq!(driver.take_received(), b"");
        assert!(driver.is_ended());
    }
    let mut driver = second_request(late());
    driver.take_received();
    driver.end();
    assert_eq!(outcome(&mut driver).as_deref(), Some("Peer: Unsent(Closed)"));
    let mut driver = second_request(late());
    driver.take_received();
    write(&mut driver);
    assert_eq!(driver.take_received(), b"GET /late HTTP/1.1\r\nHost: h\r\n\r\n");
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
}

#[test]
fn rule_57_content_of_an_interim_response_does_not_answer_a_request() {
    // RFC 9110 §15.2: no interim response has content. If one announces content, it is read as the
    // final answer; the real final answer then comes when no request is under way.
    for fields in
        ["Content-Length: 40\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n"]
    {
        let mut driver = connection(Limits::new(), ["/1", "/2"].map(Probe::get));
        let interim = format!("HTTP/1.1 103 Early Hints\r\n{fields}\r\n");
        driver.send(&[interim.as_bytes(), OK].concat());
        assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"), "{fields}");
        assert_eq!(driver.context().plans.len(), 1, "the second one is not made here: {fields}");
        assert!(!is_reusable(&mut driver), "{fields}");
    }
}

#[test]
fn rule_57_bytes_without_a_readiness_event_do_not_answer_a_request() {
    // The bytes arrive just before the read that the connection makes for a new request, so no
    // event announces them.
    type PeerAction = fn(&Peer);
    let unseen: [(&str, PeerAction); 4] = [
        ("an answer", |peer| peer.send(OK)),
        ("an octet", |peer| peer.send(b"x")),
        ("the end", |peer| peer.end()),
        ("a reset", |peer| peer.reset()),
    ];
    for (name, happens) in unseen {
        for probe in [Probe::get("/"), Probe::post(BodyPlan::Whole("x"))] {
            let mut driver = connection(Limits::new(), []);
            driver.before_read(happens);
            driver.context_mut().plans.push_back(probe);
            driver.context().notifier.as_ref().expect("it is idle").wakeup();
            driver.settle();
            assert!(driver.take_received().is_empty(), "{name}: nothing was begun");
            assert_eq!(outcome(&mut driver), None, "{name}: it is still to be made");
            assert_eq!(driver.context().returned_jobs.len(), 1, "{name}");
            assert!(
                !driver.context().returned_jobs[0].is_repeated(),
                "{name}: it was not made once"
            );
            assert!(!is_reusable(&mut driver), "{name}");
        }
    }
}

#[test]
fn rule_57_bytes_in_the_kernel_after_a_response_answer_no_request() {
    let mut driver = connection(Limits::new(), ["/1", "/2"].map(Probe::get));
    driver.limit_reads(OK.len());
    driver.send(&[OK, OK].concat());
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert_eq!(outcome(&mut driver), None, "the second one is to be made elsewhere");
    assert_eq!(driver.context().returned_jobs.len(), 1);
    assert_eq!(driver.take_received(), b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(!is_reusable(&mut driver));
}

#[test]
fn a_request_cancelled_or_expired_before_the_poll_is_not_started() {
    let mut driver = connection(Limits::new(), []);
    driver.context_mut().plans.extend([
        Probe { deadline: Duration::ZERO, ..Probe::get("/late") },
        Probe { is_cancelled: true, ..Probe::get("/cancelled") },
        Probe::get("/made"),
    ]);
    driver.wakeup();
    assert_eq!(driver.take_received(), b"GET /made HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(outcome(&mut driver).as_deref(), Some("Here: Deadline(Waiting)"));
}

/// A connection that records when it is notified of a drain.
struct DrainRecorder(Inner);

type Inner = Stream<Connection<Probe, ScriptedSource>, Scripted<false>>;
type Seed = <Inner as Machine>::Seed;

impl Machine for DrainRecorder {
    type Context = TestContext;
    type Seed = Seed;

    fn create(seed: Seed, scope: Sc<'_, '_>) -> Response<DrainRecorder> {
        Inner::create(seed, scope).wrap(DrainRecorder)
    }

    fn handle(self, event: Event<Seed>, scope: Sc<'_, '_>) -> Response<DrainRecorder, Seed> {
        if let Event::Draining(_) = event {
            scope.events.push("drain".to_owned());
        }
        self.0.handle(event, scope).map(DrainRecorder, |seed| seed)
    }
}

#[test]
fn a_request_is_still_sent_if_a_drain_comes_before_the_poll() {
    // One read uses up the budget of an event. The event before the drain may end with the last
    // byte of the answer. The poll for the next request is one more read, so it belongs to the next
    // event.
    let mut is_between = false;
    for body in (10_000..120_000).step_by(10_000) {
        let config =
            ClientConfig::new().stream(&StreamConfig::new().read_budget(1).collect_budget(1));
        let seed = ConnectionSeed::new(ScriptedSource, Arc::new(config));
        let plans = ["/1", "/2"].map(Probe::get).into();
        let mut test =
            TestLoop::new(TestContext { plans, records_jobs: true, ..TestContext::default() });
        let (socket, peer) = pair(test.world());
        test.add(|scope| Stream::connected(socket, seed, scope).wrap(DrainRecorder));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {body}\r\n\r\n");
        peer.send(&[head.as_bytes(), &b"x".repeat(body)].concat());
        test.drain(seconds(100));
        let first = outcome_of(test.context_mut());
        assert!(first.is_some_and(|outcome| outcome.starts_with("200 ")));
        assert!(peer.take_received().ends_with(b"GET /2 HTTP/1.1\r\nHost: h\r\n\r\n"));
        peer.send(OK);
        test.settle();
        let second = outcome_of(test.context_mut());
        assert_eq!(second.as_deref(), Some("200 hi"), "after {body} octets");
        let events: Vec<&str> = test.context().events.iter().map(String::as_str).collect();
        is_between |= events.windows(3).any(|three| three == ["/2 taken", "drain", "/2 prepare"]);
    }
    assert!(is_between, "no drain came between the job and its request");
}

#[test]
fn an_unused_connection_is_closed_after_its_timeout() {
    let mut driver = connection(Limits::new().unused_timeout(seconds(9)), []);
    driver.advance(seconds(8));
    assert!(is_reusable(&mut driver));
    driver.advance(seconds(2));
    assert!(!is_reusable(&mut driver));
}

#[test]
fn an_unused_connection_is_closed_before_its_server_closes_it() {
    let unused = |limit: u64, said: &str| {
        let plans = [Probe::get("/1"), Probe::get("/2")];
        let mut driver = connection(Limits::new().unused_timeout(seconds(limit)), plans);
        let response = |fields: &str| {
            format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nhi").into_bytes()
        };
        // The last response counts.
        driver.send(&response("Keep-Alive: timeout=0\r\n"));
        driver.send(&response(said));
        let mut waited = Duration::ZERO;
        while is_reusable(&mut driver) {
            assert!(waited < seconds(20), "it is kept for too long: {said}");
            driver.advance(Duration::from_millis(500));
            waited += Duration::from_millis(500);
        }
        let outcomes = [outcome(&mut driver), outcome(&mut driver)];
        assert_eq!(outcomes, [Some("200 hi".to_owned()), Some("200 hi".to_owned())]);
        waited.as_millis()
    };
    assert_eq!(unused(9, ""), 9_000);
    assert_eq!(unused(9, "Keep-Alive: timeout=5, max=100\r\n"), 4_000);
    assert_eq!(unused(9, "keep-alive: timeout=1\r\n"), 500);
    assert_eq!(unused(9, "Keep-Alive: timeout=60\r\n"), 9_000);
    assert_eq!(unused(9, "Keep-Alive: max=100\r\nKeep-Alive: timeout=3\r\n"), 2_000);
    let interim = "HTTP/1.1 103 A\r\nKeep-Alive: timeout=2\r\n\r\n";
    let mut driver = connection(Limits::new().unused_timeout(seconds(9)), [Probe::get("/")]);
    driver.send(&[interim.as_bytes(), OK].concat());
    driver.advance(seconds(8));
    assert!(is_reusable(&mut driver), "only the final head says how long");
}

#[test]
fn the_timeout_of_an_unused_connection_ignores_spurious_wakeups() {
    let mut driver = connection(Limits::new(), [Probe::get("/")]);
    driver.send(OK);
    for _ in 0..2 {
        driver.advance(seconds(14));
        driver.wakeup();
    }
    assert!(!driver.is_ended());
    driver.advance(seconds(3));
    assert!(driver.is_ended());
}

#[test]
fn a_connection_stops_at_its_maximum_of_requests() {
    let mut driver = connection(Limits::new().requests_max(2), ["/1", "/2", "/3"].map(Probe::get));
    driver.send(OK);
    assert!(is_reusable(&mut driver));
    driver.send(OK);
    assert!(!is_reusable(&mut driver));
    assert_eq!(driver.context().plans.len(), 1);
}

#[test]
fn a_request_that_says_close_is_the_last() {
    let mut driver = connection(Limits::new(), [Probe { asks_to_close: true, ..Probe::get("/") }]);
    assert!(String::from_utf8_lossy(&driver.take_received()).contains("\r\nConnection: close\r\n"));
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert!(!is_reusable(&mut driver));
}

#[test]
fn rule_61_an_idempotent_request_on_a_lost_connection_is_returned_once() {
    type LossAction = fn(&mut ProbeDriver);
    let deaths: [(&str, LossAction); 4] = [
        ("end", |driver| driver.end()),
        ("reset", |driver| driver.reset()),
        ("write", |driver| {
            driver.fail_writes(ErrorKind::BrokenPipe);
            driver.reset();
        }),
        ("408", |driver| {
            driver.send(
                b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }),
    ];
    for (name, dies) in deaths {
        for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
            let mut driver = second_request(Probe::new(method, "/"));
            dies(&mut driver);
            assert_eq!(driver.context().returned_jobs.len(), 1, "{method}, {name}");
            assert!(driver.context().returned_jobs[0].is_repeated(), "{method}, {name}");
            assert_eq!(outcome(&mut driver), None, "{method}, {name}: it is still to be made");
        }
        let mut driver = second_request(Probe::post(BodyPlan::Whole("x")));
        dies(&mut driver);
        assert!(driver.context().returned_jobs.is_empty(), "POST, {name}");
        assert!(outcome(&mut driver).is_some(), "POST, {name}: it may have been acted upon");
    }
}

/// A pool has such connections: another one was faster for the request that it was made for.
#[test]
fn rule_61_a_request_is_also_returned_by_a_connection_that_has_only_been_idle() {
    type LossAction = fn(&mut ProbeDriver);
    let end: LossAction = |driver| driver.end();
    let deaths: [LossAction; 3] = [
        end,
        |driver| driver.reset(),
        |driver| driver.send(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n"),
    ];
    for (at, dies) in deaths.into_iter().enumerate() {
        let mut driver = connection(Limits::new(), []);
        driver.advance(seconds(20));
        driver.context_mut().plans.push_back(Probe::get("/"));
        driver.wakeup();
        assert_eq!(driver.take_received(), b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        dies(&mut driver);
        assert_eq!(driver.context().returned_jobs.len(), 1, "{at}");
    }
    for (plans, returned) in [(&[][..], 1), (&["/first"], 0)] {
        let mut server = Server::new(plans.iter().map(|target| Probe::get(target)));
        server.driver.advance(seconds(5));
        server.add_request(Probe::get("/"));
        server.driver.end();
        assert_eq!(server.driver.context().returned_jobs.len(), returned, "after {plans:?}");
    }
}

#[test]
fn an_exchange_without_a_request_does_not_make_its_connection_a_used_one() {
    let unwritten = Probe { defers_write: true, timeout: Some(seconds(1)), ..Probe::get("/1") };
    let mut driver = connection(Limits::new().requests_max(1), [unwritten, Probe::get("/2")]);
    driver.advance(seconds(2));
    assert_eq!(outcome(&mut driver).as_deref(), Some("timed out"));
    assert_eq!(driver.take_received(), b"GET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
    driver.end();
    assert_eq!(outcome(&mut driver).as_deref(), Some("Peer: Closed"), "not returned");
}

#[test]
fn a_request_that_may_be_processed_or_cannot_restart_is_not_returned() {
    let mut first = connection(Limits::new(), [Probe::get("/")]);
    first.end();
    assert!(
        first.context().returned_jobs.is_empty(),
        "a new connection: the server does not want it"
    );
    assert_eq!(outcome(&mut first).as_deref(), Some("Peer: Closed"));

    let mut begun = second_request(Probe::get("/"));
    begun.send(b"H");
    begun.end();
    assert!(begun.context().returned_jobs.is_empty(), "an octet of the answer came");
    assert_eq!(outcome(&mut begun).as_deref(), Some("Peer: Closed"));

    let mut cut = second_request(Probe::get("/"));
    cut.send(b"H");
    cut.reset();
    assert!(cut.context().returned_jobs.is_empty(), "an octet of the answer came");
    assert!(outcome(&mut cut).is_some_and(|outcome| outcome.starts_with("Network: Lost")));

    let mut interim = second_request(Probe::get("/"));
    interim.send(b"HTTP/1.1 103 Early Hints\r\n\r\n");
    interim.end();
    assert!(interim.context().returned_jobs.is_empty(), "the server had begun");

    let mut streamed = second_request(Probe { method: "PUT", ..Probe::post(BodyPlan::Later("x")) });
    streamed.end();
    assert!(streamed.context().returned_jobs.is_empty(), "a part of the body is gone");
    assert_eq!(outcome(&mut streamed).as_deref(), Some("Peer: Closed"));

    let mut told = second_request(Probe::get("/"));
    told.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
    assert!(told.context().returned_jobs.is_empty(), "it goes on, so it has not given up waiting");
    assert!(outcome(&mut told).is_some_and(|outcome| outcome.starts_with("408")));
    assert!(is_reusable(&mut told));

    let mut late = second_request(Probe::get("/"));
    late.advance(seconds(60));
    assert!(late.context().returned_jobs.is_empty(), "it lives, and does not answer");
    assert_eq!(outcome(&mut late).as_deref(), Some("Peer: ResponseTimeout"));
}

/// A retry would not be read either, or find no room again.
#[test]
fn a_request_unread_by_its_server_or_without_room_is_not_returned() {
    let limits = Limits::new().response_grace(seconds(10));
    for (held, expected) in [(1 << 20, "Network: Lost(FlushTimeout)"), (1, "Here: Lost(NoRoom)")] {
        let config = ClientConfig::new().limits(limits.clone()).held_bytes_max(held);
        let mut driver = connection_with_config(&Arc::new(config), [Probe::get("/first")]);
        driver.limit_room(0);
        driver.context_mut().plans.push_back(Probe::get("/"));
        driver.send(OK);
        assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
        driver.advance(seconds(11));
        assert!(driver.context().returned_jobs.is_empty(), "{expected}");
        assert_eq!(outcome(&mut driver).as_deref(), Some(expected));
        assert!(driver.is_dropped());
    }
}

#[test]
fn a_returned_job_is_marked_as_repeated() {
    let mut driver = second_request(Probe::get("/"));
    driver.end();
    let job = driver.context_mut().returned_jobs.pop().expect("it was returned");
    assert!(job.is_repeated());
}

/// How much one event may read of a message that is collected in memory is more than the usual.
#[test]
fn a_protocol_after_an_abandoned_body_reads_within_its_own_budget() {
    let switches = Probe { upgrade: Some("roar"), ..Probe::get("/2") };
    let mut driver = connection(Limits::new(), [Probe::get("/1"), switches]);
    driver.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
    // The rest arrives in one read, in too many chunks for the turn in which the handler gives up.
    driver.peer().send(&[&b"1\r\nx\r\n".repeat(2_600)[..], b"0\r\n\r\n"].concat());
    driver.context_mut().on_wakeup = Some(OnWakeup::Finish);
    driver.context().handlers[0].wakeup();
    driver.settle();
    assert_eq!(outcome(&mut driver).as_deref(), Some("200"), "it gave up");
    driver.send(b"HTTP/1.1 101 S\r\nUpgrade: roar\r\nConnection: upgrade\r\n\r\n");
    assert_eq!(outcome(&mut driver).as_deref(), Some("switched"));
    driver.peer().send(&vec![b'x'; 1 << 20]);
    assert!(driver.test().turn(), "there is input");
    let read = (1 << 20) - driver.unread_len();
    assert!(read <= 128 << 10, "{read} octets in one turn");
}
