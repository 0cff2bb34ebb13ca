//! Both windows, in both directions: pending bytes are bounded, and a stalled stream delays no
//! other.

use rotor_http::client::{ClientConfig, RecvMode};

use super::server::{Server, frame, headers, http2, page, settings};
use crate::probe::{BodyPlan, OnWakeup, Probe, seconds};

/// A server with this window that has answered a first request, which is sent before its settings
/// arrive.
fn with_window(octets: u32, plans: impl IntoIterator<Item = Probe>) -> Server {
    let config = ClientConfig::new().http2(http2());
    let plans = [Probe::get("/first")].into_iter().chain(plans);
    let mut server = Server::of(config, &[(4, octets)], plans);
    server.send(&page(1, ""));
    server
}

#[test]
fn a_request_body_stops_at_its_window_and_other_streams_continue() {
    let plans = [Probe::post(BodyPlan::Much(200_000)), Probe::post(BodyPlan::Whole("small"))];
    let mut server = with_window(10_000, plans);
    assert_eq!(server.requests[&3].body.len(), 10_000);
    assert!(server.requests[&5].is_whole, "the window of the other one is its own");
    server.grant_window(3, 20_000);
    assert_eq!(server.requests[&3].body.len(), 30_000);
    server.grant_window(3, 1 << 20);
    let sent = server.requests.values().map(|request| request.body.len()).sum::<usize>();
    assert_eq!(sent, 65_535, "the window of the connection");
    server.grant_window(0, 1 << 20);
    assert_eq!((server.requests[&3].body.len(), server.requests[&3].is_whole), (200_000, true));
    server.send(&page(3, "ok"));
    assert_eq!(server.outcome(1), "200 ok");
}

#[test]
fn send_windows_follow_settings_even_below_zero() {
    let mut server = with_window(1_000, [Probe::post(BodyPlan::Much(3_000))]);
    assert_eq!(server.requests[&3].body.len(), 1_000);
    server.send(&settings(&[(4, 500)]));
    *server.granted.get_mut(&3).expect("it has begun") -= 500;
    server.grant_window(3, 500);
    assert_eq!(server.requests[&3].body.len(), 1_000, "it was below zero");
    server.grant_window(3, 1);
    assert_eq!(server.requests[&3].body.len(), 1_001);
    *server.granted.get_mut(&3).expect("it has begun") += 2_500;
    server.send(&settings(&[(4, 3_000)]));
    assert!(server.requests[&3].is_whole);
}

#[test]
fn a_request_without_send_window_times_out_and_others_continue() {
    let mut server = with_window(1_000, [Probe::post(BodyPlan::Much(3_000)), Probe::get("/")]);
    // The server is alive: it sends pings.
    for second in 0..9 {
        assert_eq!(server.outcome(1), "nothing yet", "{second}");
        server.driver.advance(seconds(1));
        server.send(&frame(6, 0, 0, b"pingping"));
    }
    server.driver.advance(seconds(2));
    assert_eq!(server.outcome(1), "Network: Lost(FlushTimeout)");
    assert_eq!((server.requests[&3].reset, server.end()), (Some(8), None));
    server.send(&page(5, "ok"));
    assert_eq!(server.outcome(2), "200 ok");
}

#[test]
fn a_held_body_blocks_only_its_stream() {
    let held = Probe { holds: true, ..Probe::get("/held").progressive() };
    let other = Probe { mode: RecvMode::Progressive(1), ..Probe::get("/other") };
    let mut server = Server::new([held, other]);
    for stream in [1, 3] {
        server.send(&headers(stream, &[(":status", "200")], false));
    }
    let mut sent = 0;
    while server.send_body(1, 10_000, false) {
        sent += 10_000;
        assert!(sent < 1 << 20);
    }
    assert!((200_000..600_000).contains(&sent), "{sent}");
    for _ in 0..500 {
        assert!(server.send_body(3, 10_000, false), "the other one is not stopped");
    }
    assert!(server.send_body(3, 0, true));
    assert_eq!(server.outcome(1), "200 5000000 octets");
    // The body continues when its handler resumes.
    for _ in 0..2_000 {
        server.driver.context_mut().on_wakeup = Some(OnWakeup::Resume);
        server.driver.wakeup();
        server.driver.settle();
        server.read();
    }
    assert_eq!(server.outcome(0), "nothing yet");
}

#[test]
fn large_bodies_arrive_whole_and_both_sides_agree_on_the_windows() {
    let plans = (0..10).map(|_| Probe { mode: RecvMode::Buffered(1 << 20), ..Probe::get("/") });
    let mut server = Server::new(plans);
    for stream in (1..20).step_by(2) {
        server.send(&headers(stream, &[(":status", "200"), ("content-length", "1000000")], false));
    }
    for round in 0..100 {
        for stream in (1..20).step_by(2) {
            assert!(server.send_body(stream, 10_000, round == 99), "{stream} in {round}");
        }
    }
    for at in 0..10 {
        assert_eq!(server.outcome(at), "200 1000000 octets");
    }
    assert!(server.windows[&0] >= 65_535, "nothing of the connection's window is lost");
    assert_eq!(server.end(), None);
}

#[test]
fn a_cancelled_stream_returns_its_share_of_the_connection_window() {
    let mut server = Server::new([]);
    for round in 0..30 {
        server.add_request(Probe { holds: true, ..Probe::get("/").progressive() });
        let stream = 2 * round + 1;
        server.send(&headers(stream, &[(":status", "200")], false));
        for piece in 0..20 {
            assert!(server.send_body(stream, 10_000, false), "{piece} of {round}");
        }
        // The waiter drops its future.
        server.driver.context_mut().futures.clear();
        server.driver.settle();
        server.read();
        assert_eq!(server.requests[&stream].reset, Some(8));
    }
}

/// The window of the connection is shared, and may be far too small for a frame of each stream.
#[test]
fn requests_take_turns_however_small_the_shared_window_is() {
    for more in [10_000, 16_384, 33_000, 65_535] {
        let mut server = with_window(1 << 20, (0..8).map(|_| Probe::post(BodyPlan::Much(1 << 20))));
        let streams = (3..18).step_by(2);
        let sent = |server: &Server, stream| server.requests[&stream].body.len() >> 10;
        while streams.clone().map(|stream| sent(&server, stream)).max() < Some(512) {
            server.grant_window(0, more);
        }
        let got: Vec<_> = streams.map(|stream| sent(&server, stream)).collect();
        assert!(got.iter().all(|kib| *kib > 450), "{more}: {got:?}");
    }
}

#[test]
fn requests_that_share_a_slow_window_do_not_time_out_singly() {
    let mut server = with_window(1 << 20, (0..5).map(|_| Probe::post(BodyPlan::Much(1 << 20))));
    for _ in 0..30 {
        server.grant_window(0, 2048);
        server.driver.advance(seconds(1));
    }
    assert!((1..6).all(|at| server.outcome(at) == "nothing yet"));
    let octets =
        |server: &Server| server.requests.values().map(|request| request.body.len()).sum::<usize>();
    assert_eq!(octets(&server), 65_535 + 30 * 2048);
    // A server that grants no more window does.
    for _ in 0..21 {
        server.driver.advance(seconds(1));
        server.send(&frame(6, 1, 0, &[0; 8]));
    }
    assert!((1..6).all(|at| server.outcome(at).contains("FlushTimeout")), "{}", server.outcome(1));
}

/// The WINDOW_UPDATE frames of the response wait behind the request.
#[test]
fn a_response_does_not_time_out_while_a_request_is_sent_slowly() {
    let config = ClientConfig::new().http2(http2().stream_window(0).connection_window(0));
    let mut server = Server::of(config, &[(4, 4 << 20)], []);
    server.grant_window(0, 4 << 20);
    server.driver.peer().limit_room(0);
    server.add_request(Probe::get("/").progressive());
    server.add_request(Probe::post(BodyPlan::Much(1 << 20)));
    server.driver.make_room(1_000);
    server.read();
    server.send(&headers(1, &[(":status", "200")], false));
    let mut sent = 0;
    for second in 0..200 {
        while server.send_body(1, 2_048, false) {
            sent += 2_048;
        }
        server.driver.make_room(2_048);
        server.driver.advance(seconds(1));
        assert_eq!(server.outcome(0), "nothing yet", "after {second} s");
    }
    assert!(sent > 200_000, "{sent}");
    server.driver.make_room(2 << 20);
    server.read();
    // If no output is pending, the usual body timeout applies.
    server.driver.advance(seconds(6));
    assert_eq!(server.outcome(0), "Peer: Body(TooSlow)");
}

/// A body that its handler does not consume uses up the connection window.
#[test]
fn a_response_does_not_time_out_while_others_hold_the_window() {
    let config = ClientConfig::new().http2(http2().stream_window(0).connection_window(0));
    let held = Probe { holds: true, ..Probe::get("/held").progressive() };
    let mut server = Server::of(config, &[], [held, Probe::get("/").progressive()]);
    for stream in [1, 3] {
        server.send(&headers(stream, &[(":status", "200")], false));
    }
    assert!(server.send_body(1, 1, false), "the handler holds what follows off");
    while server.send_body(1, 1_000, false) {}
    while server.send_body(1, 1, false) {}
    assert!(!server.send_body(3, 1, false), "there is nothing left");
    for _ in 0..30 {
        server.driver.advance(seconds(1));
        server.send(&frame(6, 1, 0, &[0; 8]));
    }
    assert_eq!(server.outcome(1), "nothing yet");
    server.driver.context_mut().futures.pop_front();
    server.outcomes[0] = Some("dropped".into());
    server.driver.settle();
    server.read();
    assert!(server.send_body(3, 2, true));
    assert_eq!(server.outcome(1), "200 xx");
}
