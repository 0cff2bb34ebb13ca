//! The end of a connection, and what happens to the requests that are under way.

use rotor_http::Limits;
use rotor_http::client::{ClientConfig, Http2Config};
use rotor_http::h2::frame::kind;

use super::server::{Server, data, frame, go_away, headers, http2, page, reset, settings};
use crate::probe::{BodyPlan, OnWakeup, Probe, seconds};

/// The number of requests that are to be retried.
fn returned_count(server: &Server) -> usize {
    let jobs = &server.driver.context().returned_jobs;
    assert!(jobs.iter().all(rotor_http::client::Job::is_repeated));
    jobs.len()
}

#[test]
fn requests_beyond_a_goaway_are_retried_whatever_their_method() {
    let plans = [
        Probe::get("/1"),
        Probe::post(BodyPlan::Whole("2")),
        Probe::post(BodyPlan::Later("3")),
        Probe::get("/4"),
    ];
    let mut server = Server::new(plans);
    server.send(&go_away(1, 0));
    assert_eq!(returned_count(&server), 2);
    assert_eq!(server.outcome(2), "Peer: Refused", "the body of this one is not at hand");
    server.driver.context_mut().plans.push_back(Probe::get("/5"));
    server.driver.wakeup();
    assert_eq!(server.request_lines().len(), 4, "nothing more begins");
    assert_eq!(server.end(), None);
    server.send(&page(1, "one"));
    assert_eq!((server.outcome(0).as_str(), server.end()), ("200 one", Some(0)));
    let counters = server.driver.context().events.len();
    assert!(counters > 0);
}

#[test]
fn requests_beyond_a_goaway_are_returned_in_order() {
    let deadline = |at: u64| Probe { deadline: seconds(100 + at), ..Probe::get("/") };
    let mut server = Server::new((0..5).map(deadline));
    server.send(&go_away(1, 0));
    let jobs = server.driver.context().returned_jobs.iter();
    let deadlines: Vec<_> = jobs.map(rotor_http::client::Job::deadline).collect();
    assert_eq!(deadlines.len(), 4);
    assert!(deadlines.is_sorted(), "the oldest first");
}

/// RFC 9113 §7: over HTTP/2, any other connection would refuse them as well.
#[test]
fn requests_beyond_a_goaway_that_requires_http1_report_its_code() {
    let plans = [
        Probe::get("/1"),
        Probe::post(BodyPlan::Whole("2")),
        Probe::post(BodyPlan::Later("3")),
        Probe { defers_write: true, ..Probe::get("/4") },
    ];
    let mut server = Server::new(plans);
    server.send(&go_away(1, 0xd));
    assert_eq!((returned_count(&server), server.outcome(0).as_str()), (0, "nothing yet"));
    let expected = ["Peer: Reset(13)", "Peer: Reset(13)", "Peer: Unsent(Reset(13))"];
    assert_eq!([1, 2, 3].map(|at| server.outcome(at)), expected);
}

/// RFC 9113 §6.8: a later GOAWAY may exclude more streams, but not fewer. A request that was
/// retried elsewhere is not taken back.
#[test]
fn a_second_goaway_may_lower_the_last_stream_but_not_raise_it() {
    let mut server = Server::new(["/1", "/2", "/3"].map(Probe::get));
    for (last, back) in [((1 << 31) - 1, 0), (3, 1), (5, 1), (1, 2), (1, 2)] {
        server.send(&go_away(last, 0));
        assert_eq!((returned_count(&server), server.end()), (back, None), "{last}");
    }
    server.add_request(Probe::get("/4"));
    assert_eq!(server.request_lines().len(), 3, "nothing more begins");
    // Responses to excluded streams may still be in flight.
    server.send(&[page(5, "three"), page(3, "two"), page(1, "one")].concat());
    assert_eq!((server.outcome(0).as_str(), server.end()), ("200 one", Some(0)));
}

#[test]
fn a_request_refused_repeatedly_fails_as_not_processed() {
    let mut server = Server::new([Probe::post(BodyPlan::Whole("x"))]);
    server.driver.context_mut().retakes_jobs = true;
    for attempt in 0..=10 {
        assert_eq!((server.requests.len(), server.outcomes[0].clone()), (attempt + 1, None));
        server.send(&reset(2 * attempt as u32 + 1, 7));
    }
    assert_eq!(server.outcome(0), "Peer: Refused");
    assert_eq!(server.requests.len(), 11);
}

#[test]
fn a_refused_request_is_retried_on_another_connection() {
    let mut server = Server::new([Probe::post(BodyPlan::Whole("x")), Probe::get("/2")]);
    server.send(&reset(1, 7));
    assert_eq!(returned_count(&server), 1);
    assert_eq!(server.end(), None, "the connection goes on");
    // HTTP_1_1_REQUIRED does not say that the request was not processed, and here it cannot be sent
    // over HTTP/1.1.
    server.send(&reset(3, 0xd));
    assert_eq!((returned_count(&server), server.outcome(1).as_str()), (1, "Peer: Reset(13)"));
    server.add_request(Probe::get("/3"));
    server.send(&reset(5, 2));
    assert_eq!(server.outcome(2), "Peer: Reset(2)");
    server.add_request(Probe::get("/4"));
    server.send(&[headers(7, &[(":status", "200")], false), reset(7, 8)].concat());
    assert_eq!(server.outcome(3), "Peer: Reset(8)");
}

#[test]
fn a_request_with_a_started_response_is_not_retried() {
    for begins in
        [headers(1, &[(":status", "103")], false), headers(1, &[(":status", "200")], false)]
    {
        for refuses in [reset(1, 7), go_away(0, 0)] {
            let mut server = Server::new([Probe::post(BodyPlan::Whole("x"))]);
            server.send(&[&begins[..], &refuses].concat());
            assert_eq!(
                (server.outcome(0).as_str(), returned_count(&server)),
                ("Peer: Reset(7)", 0)
            );
        }
    }
}

#[test]
fn idempotent_requests_of_a_lost_used_connection_are_retried() {
    let begun = |has_served: bool| {
        let mut server = Server::new([Probe::get("/0")]);
        if has_served {
            server.send(&page(1, ""));
        }
        server.add_request(Probe::get("/1"));
        server.add_request(Probe::post(BodyPlan::Whole("x")));
        server.add_request(Probe::get("/3").progressive());
        server.send(&headers(7, &[(":status", "200")], false));
        server
    };
    let mut server = begun(true);
    server.driver.end();
    assert_eq!(returned_count(&server), 1);
    assert_eq!(server.outcome(2), "Peer: Closed");
    assert_eq!(server.outcome(3), "Peer: Body(Truncated)");
    let mut server = begun(false);
    server.driver.end();
    assert_eq!((returned_count(&server), server.outcome(1).as_str()), (0, "Peer: Closed"));
    let mut server = begun(true);
    server.driver.reset();
    assert_eq!(returned_count(&server), 1);
    assert!(server.outcome(2).starts_with("Network: Lost(Reset("), "{}", server.outcome(2));
}

#[test]
fn a_request_not_begun_on_its_connection_is_reported_unsent() {
    type Ends = fn(&mut Server);
    let ends: [(Ends, &str); 4] = [
        (|server| server.driver.advance(seconds(3)), "Here: Deadline(Waiting)"),
        (|server| server.driver.end(), "Peer: Unsent(Closed)"),
        (|server| server.driver.reset(), "Network: Unsent(Lost(Reset("),
        (
            |server| server.send(&frame(kind::PING, 0, 1, &[0; 8])),
            "Peer: Unsent(Protocol(\"PING on a stream\"))",
        ),
    ];
    for (end, expected) in ends {
        let plan = Probe { defers_write: true, deadline: seconds(3), ..Probe::get("/late") };
        let mut server = Server::new([plan]);
        end(&mut server);
        let outcome = server.outcome(0);
        assert!(outcome.starts_with(expected), "{outcome}, not {expected}");
    }
}

#[test]
fn a_response_complete_before_the_connection_end_is_accepted() {
    let mut server = Server::new([Probe { holds: true, ..Probe::get("/").progressive() }]);
    server.send(&page(1, "all"));
    server.driver.end();
    assert_eq!(server.outcome(0), "200 all");
    assert!(server.driver.is_ended());
}

/// Sends a whole response, of which the handler holds back the second half.
fn hold_a_whole_response(server: &mut Server) {
    server.send(&headers(1, &[(":status", "200")], false));
    server.send(&[data(1, b"a", false), data(1, b"b", true)].concat());
}

fn resume(server: &mut Server) -> String {
    assert_eq!(server.outcome(0), "nothing yet");
    server.driver.context_mut().on_wakeup = Some(OnWakeup::Resume);
    server.driver.context().handlers[0].wakeup();
    server.driver.settle();
    server.outcome(0)
}

#[test]
fn a_held_complete_response_outlives_its_connection_and_timeouts() {
    let held = || Probe { holds: true, ..Probe::get("/").progressive() };
    // The acknowledgement of the client's settings.
    let mut server = Server::silent(ClientConfig::new().http2(http2()), [held()]);
    server.send(&settings(&[]));
    hold_a_whole_response(&mut server);
    server.driver.end();
    server.driver.advance(seconds(11));
    assert_eq!(resume(&mut server), "200 ab");
    // The acknowledgement of a PING.
    let mut server = Server::new([held(), Probe::get("/2")]);
    hold_a_whole_response(&mut server);
    server.driver.advance(seconds(10));
    server.read();
    assert_eq!(server.pings.len(), 1);
    server.driver.end();
    assert_eq!(server.outcome(1), "Peer: Closed");
    server.driver.advance(seconds(6));
    assert_eq!(resume(&mut server), "200 ab");
    assert!(server.driver.is_ended());
}

#[test]
fn an_idle_connection_times_out_and_a_draining_one_finishes_requests() {
    let mut server = Server::new([Probe::get("/")]);
    server.send(&page(1, ""));
    server.driver.advance(seconds(29));
    assert_eq!(server.end(), None);
    server.driver.advance(seconds(2));
    assert_eq!(server.end(), Some(0));
    let mut server = Server::new([Probe::get("/")]);
    server.driver.drain(seconds(20));
    assert_eq!(server.end(), None);
    server.send(&page(1, "last"));
    assert_eq!((server.outcome(0).as_str(), server.end()), ("200 last", Some(0)));
    let limits = Limits::new().requests_max(2);
    let mut server = Server::with_limits(limits, ["/1", "/2", "/3"].map(Probe::get));
    assert_eq!(server.request_lines().len(), 2);
    server.send(&[page(1, ""), page(3, "")].concat());
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_request_that_asks_to_close_is_the_last() {
    let mut server =
        Server::new([Probe { asks_to_close: true, ..Probe::get("/") }, Probe::get("/2")]);
    server.send(&[page(1, ""), page(3, "too")].concat());
    assert_eq!((server.outcome(1).as_str(), server.end()), ("200 too", Some(0)));
}

fn server_without_response_timeout(plans: impl IntoIterator<Item = Probe>) -> Server {
    Server::with_limits(Limits::new().response_timeout(seconds(100_000)), plans)
}

/// Acknowledges the pings from this index on.
fn answer_pings(server: &mut Server, from: usize) {
    for ping in server.pings.clone().drain(from..) {
        server.send(&super::server::frame(6, 1, 0, &ping));
    }
}

#[test]
fn pings_stay_within_the_ping_strikes_of_grpc_servers() {
    // As those servers count: a PING less than five minutes after another, while the server sends
    // nothing, is a strike, and the third strike is one too many.
    let asks = || Probe { deadline: seconds(100_000), ..Probe::get("/") };
    let mut server = server_without_response_timeout([asks()]);
    let (mut last, mut strikes) = (None, 0);
    for second in 0..7_200 {
        let before = server.pings.len();
        if second % 90 == 0 {
            server.add_request(asks());
        }
        server.driver.advance(seconds(1));
        server.read();
        if server.pings.len() > before {
            answer_pings(&mut server, before);
            strikes += u32::from(last.is_some_and(|last| second - last < 300));
            last = Some(second);
        }
    }
    assert_eq!(strikes, 1, "of {} pings", server.pings.len());
    assert!(server.pings.len() > 20 && server.goaways.is_empty());
}

/// A server that reads nothing: the first request fills the output, and the others are not started.
fn server_with_full_output(others: impl IntoIterator<Item = Probe>) -> Server {
    let much: &'static str = Box::leak("x".repeat(70_000).into_boxed_str());
    let mut server = Server::new([]);
    server.driver.limit_room(0);
    server.add_request(Probe::post(BodyPlan::Whole(much)));
    others.into_iter().for_each(|probe| server.add_request(probe));
    server
}

fn three_requests() -> [Probe; 3] {
    [Probe::post(BodyPlan::Whole("x")), Probe::post(BodyPlan::Later("later")), Probe::get("/")]
}

#[test]
fn unsent_requests_are_retried_whatever_their_method() {
    for how in ["reset", "end", "breach"] {
        let mut server = server_with_full_output(three_requests());
        match how {
            "reset" => server.driver.reset(),
            "end" => server.driver.end(),
            _ => server.send(&data(2, b"x", false)),
        }
        assert_eq!(returned_count(&server), 2, "{how}");
        assert!(!server.outcome(0).starts_with("nothing"), "{how}");
        assert!(!server.outcome(2).starts_with("nothing"), "a part of it is not at hand: {how}");
    }
}

#[test]
fn a_lowered_stream_limit_of_the_server_is_respected() {
    let mut server = server_with_full_output(three_requests());
    server.send(&settings(&[(3, 1)]));
    assert_eq!(returned_count(&server), 2, "others may have room");
    server.driver.make_room(1 << 20);
    server.read();
    assert_eq!(server.request_lines().len(), 1);
    server.grant_window(0, 1 << 20);
    server.grant_window(1, 1 << 20);
    assert_eq!(server.request_lines().len(), 1, "the other has to wait for it");
    server.send(&page(1, "one"));
    assert_eq!(server.request_lines().len(), 2);
    assert!(server.driver.is_alive());
}

#[test]
fn a_connection_to_a_server_that_allows_no_streams_is_closed() {
    for refuses in [false, true] {
        let mut server =
            Server::of(ClientConfig::new().http2(http2()), &[(3, 0)], ["/1", "/2"].map(Probe::get));
        assert_eq!((server.request_lines().len(), server.end()), (1, None));
        server.send(&if refuses { reset(1, 7) } else { page(1, "all the same") });
        assert_eq!((returned_count(&server), server.end()), (usize::from(refuses), Some(0)));
    }
}

#[test]
fn a_silent_server_is_pinged() {
    let mut server = server_without_response_timeout([Probe::get("/"), Probe::get("/2")]);
    let pings_after = |server: &mut Server, time| {
        server.driver.advance(seconds(time));
        server.read();
        server.pings.len()
    };
    assert_eq!((pings_after(&mut server, 9), pings_after(&mut server, 1)), (0, 1));
    answer_pings(&mut server, 0);
    // Other frames show that the server is alive, but do not clear the strikes of a gRPC server.
    for _ in 0..15 {
        server.grant_window(0, 1 << 16);
        assert_eq!(pings_after(&mut server, 20), 1);
    }
    assert_eq!((server.outcome(0).as_str(), pings_after(&mut server, 11)), ("nothing yet", 2));
    answer_pings(&mut server, 1);
    // A response clears them.
    server.send(&page(3, ""));
    assert_eq!((pings_after(&mut server, 9), pings_after(&mut server, 1)), (2, 3));
    server.driver.advance(seconds(5));
    assert!(server.outcome(0).contains("TimedOut"), "{}", server.outcome(0));
    assert!(server.driver.is_ended());
    // No PING is sent while no request is under way.
    let mut server = Server::new([]);
    server.driver.advance(seconds(25));
    server.read();
    assert!(server.pings.is_empty());
}

#[test]
fn a_server_that_sends_a_frame_slowly_counts_as_alive() {
    let mut server = Server::new([Probe::get("/").progressive()]);
    server.send(&headers(1, &[(":status", "200")], false));
    // A little more than `body_rate_min`. The acknowledgement of a PING would come after the frame.
    let frame = data(1, &[b'x'; 16_384], true);
    for piece in frame.chunks(1_050) {
        assert_eq!(server.outcome(0), "nothing yet");
        server.driver.advance(seconds(1));
        server.send(piece);
    }
    assert_eq!(server.outcome(0), "200 16384 octets");
    // A server that stops in the middle of a frame does not.
    server.add_request(Probe::get("/"));
    server.send(&frame[..5]);
    server.driver.advance(seconds(14));
    assert_eq!(returned_count(&server), 0);
    server.driver.advance(seconds(11));
    assert_eq!(returned_count(&server), 1);
}

#[test]
fn a_server_that_reads_queued_output_counts_as_alive() {
    // A PING's acknowledgement comes only after all output queued before the PING, which the
    // windows let pass.
    let much: &'static str = Box::leak("x".repeat(70_000).into_boxed_str());
    let config = ClientConfig::new().http2(http2());
    let mut server = Server::of(config, &[(4, 1 << 20)], []);
    server.grant_window(0, 1 << 20);
    server.driver.limit_room(0);
    server.add_request(Probe::post(BodyPlan::Whole(much)));
    for _ in 0..30 {
        server.driver.advance(seconds(1));
        server.driver.make_room(2_000);
        assert_eq!(server.outcome(0), "nothing yet");
    }
    // A server that reads nothing more does not: `response_grace` ends before the ping timeout.
    server.driver.advance(seconds(11));
    assert!(server.outcome(0).contains("FlushTimeout"), "{}", server.outcome(0));
    assert!(server.driver.is_ended());
    // If the socket buffer accepts all output, that does not show that the server is alive.
    let mut server = Server::new([]);
    server.add_request(Probe::post(BodyPlan::Whole("some")));
    server.driver.advance(seconds(15));
    assert!(server.outcome(0).contains("TimedOut"), "{}", server.outcome(0));
}

#[test]
fn missing_settings_or_acknowledgements_time_out() {
    let config = || ClientConfig::new().http2(Http2Config::settings_timeout(http2(), seconds(3)));
    let mut server = Server::silent(config(), [Probe::get("/")]);
    server.driver.advance(seconds(3));
    assert_eq!((server.outcome(0).as_str(), server.end()), ("Peer: ResponseTimeout", Some(4)));
    let mut server = Server::silent(config(), [Probe::get("/")]);
    server.send(&settings(&[]));
    server.driver.advance(seconds(3));
    let why = "our settings were not acknowledged in time";
    assert_eq!((server.outcome(0), server.end()), (format!("Peer: Protocol({why:?})"), Some(4)));
}

#[test]
fn a_ping_timeout_is_not_reset_by_new_requests() {
    // Each request alone ends before the ping timeout of the server could.
    let asks = || Probe { deadline: seconds(12), ..Probe::get("/") };
    let mut server = server_without_response_timeout([asks()]);
    for _ in 0..3 {
        server.driver.advance(seconds(13));
        server.add_request(asks());
    }
    server.read();
    assert!(server.driver.is_ended(), "{} pings are not answered", server.pings.len());
}

/// After the end of the input, the rest of a block cannot arrive.
#[test]
fn a_broken_off_block_costs_no_complete_response() {
    let held = Probe { holds: true, ..Probe::get("/").progressive() };
    let mut server = Server::new([held]);
    server.send(&headers(1, &[(":status", "200")], false));
    server.send(&data(1, b"a", false));
    server.send(&[data(1, b"b", true), super::server::frame(1, 0, 3, &[0x88])].concat());
    server.driver.end();
    server.driver.advance(seconds(20));
    assert_eq!(server.outcome(0), "nothing yet");
    server.driver.context_mut().on_wakeup = Some(OnWakeup::Resume);
    server.driver.context().handlers[0].wakeup();
    server.driver.settle();
    assert_eq!(server.outcome(0), "200 ab");
}

/// A drain says nothing of the server.
#[test]
fn a_drain_does_not_extend_the_time_for_a_ping() {
    let mut server = server_without_response_timeout([Probe::get("/")]);
    server.driver.advance(seconds(12));
    server.read();
    assert_eq!(server.pings.len(), 1);
    server.driver.drain(seconds(500));
    server.driver.advance(seconds(10));
    server.read();
    assert!(server.driver.is_ended());
}
