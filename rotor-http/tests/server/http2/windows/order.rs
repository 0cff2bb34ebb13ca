//! The order in which responses are sent: by priority, and in turns.

use rotor_http::server::ServerConfig;

use super::window_update;
use crate::http2::client::{Client, config, frame, headers, http2, preface_and_settings};
use crate::probe::BIG;

#[test]
fn urgent_responses_go_first_and_incremental_ones_take_turns() {
    let order = |priorities: &[&str]| -> Vec<usize> {
        let mut client = Client::silent(ServerConfig::new().http2(http2()));
        client.send(&preface_and_settings(&[(4, 1 << 20)]));
        client.get(1, "/big");
        for (at, priority) in (0u32..).zip(priorities) {
            let fields = [("priority", *priority)];
            client.send(&headers(3 + 2 * at, "GET", "/big", &fields, true));
        }
        // Stream 1 has used up the connection window.
        assert_eq!(client.body_len(1), 65_535);
        client.send(&frame(3, 0, 1, &[0, 0, 0, 8]));
        client.send(&window_update(0, 64 << 10));
        (0u32..).zip(priorities).map(|(at, _)| client.body_len(3 + 2 * at) >> 14).collect()
    };
    assert_eq!(order(&["", ""]), [4, 0]);
    assert_eq!(order(&["", "u=2"]), [0, 4]);
    assert_eq!(order(&["i", "i"]), [2, 2]);
    assert_eq!(order(&["u=0,i", "u=0", "u=1"]), [2, 2, 0]);
}

#[test]
fn responses_take_turns_while_no_priority_is_sent() {
    let wish = frame(16, 0, 0, b"\0\0\0\x09u=3");
    let said = [("priority", "u=7")];
    let said = headers(9, "GET", "/", &said, true);
    for (before, between, expected) in [
        (&[][..], &[][..], [2, 2]),
        // The first priority comes after stream 11 has begun, which stays incremental.
        (&[], &wish, [2, 2]),
        (&wish, &[], [4, 0]),
        // Stream 9 is the one that goes last.
        (&said, &[], [4, 0]),
    ] {
        let mut client = Client::silent(ServerConfig::new().http2(http2()));
        client.send(&preface_and_settings(&[(4, 1 << 20)]));
        client.get(1, "/big");
        assert_eq!(client.body_len(1), 65_535, "the window of the connection");
        client.send(before);
        client.get(11, "/big");
        client.send(between);
        client.get(13, "/big");
        client.send(&frame(3, 0, 1, &[0, 0, 0, 8]));
        client.send(&window_update(0, 64 << 10));
        let got = [11, 13].map(|stream| client.body_len(stream) >> 14);
        assert_eq!(got, expected, "{before:?}, {between:?}");
    }
}

/// With every number of streams, because a turn that is lost each time may always be the same one's.
#[test]
fn responses_take_turns_however_much_the_socket_takes_at_a_time() {
    for count in 2..8u32 {
        for piece in [20_000, 30_000, 60_000, 100_000] {
            let mut client = Client::silent(config());
            client.send(&preface_and_settings(&[(4, 1 << 30)]));
            client.send(&window_update(0, 1 << 30));
            client.driver.peer().limit_room(0);
            let streams = (1..2 * count).step_by(2);
            streams.clone().for_each(|stream| client.get(stream, "/big"));
            while streams.clone().map(|stream| client.body_len(stream)).max() < Some(BIG / 2) {
                client.driver.make_room(piece);
                client.read();
            }
            let got: Vec<_> = streams.map(|stream| client.body_len(stream) >> 10).collect();
            assert!(got.iter().all(|kib| *kib > 400), "{count}, {piece}: {got:?}");
        }
    }
}

/// The window of the connection is shared, and may be far too small for a frame of each stream.
#[test]
fn responses_take_turns_however_small_the_shared_window_is() {
    for more in [10_000, 16_384, 33_000, 65_535] {
        let mut client = Client::silent(config());
        client.send(&preface_and_settings(&[(4, 1 << 30)]));
        let streams = (1..16).step_by(2);
        streams.clone().for_each(|stream| client.get(stream, "/big"));
        while streams.clone().map(|stream| client.body_len(stream)).max() < Some(BIG / 2) {
            client.send(&window_update(0, more));
        }
        let got: Vec<_> = streams.map(|stream| client.body_len(stream) >> 10).collect();
        assert!(got.iter().all(|kib| *kib > 450), "{more}: {got:?}");
    }
}

/// A stream that finds the window used up has not had its turn.
#[test]
fn responses_of_both_kinds_take_turns_however_small_the_window_is() {
    const BOTH: &[&[&str]] = &[
        &["u=3", "u=3,i"],
        &["u=3,i", "u=3"],
        &["u=3", "u=3,i", "u=3"],
        &["u=3,i", "u=3", "u=3,i", "u=3,i"],
    ];
    for (priorities, more) in BOTH
        .iter()
        .flat_map(|priorities| [10_000, 16_384, 33_000, 65_535].map(|more| (*priorities, more)))
    {
        let mut client = Client::silent(config());
        client.send(&preface_and_settings(&[(4, 1 << 30)]));
        for (stream, priority) in (1..).step_by(2).zip(priorities) {
            let fields = [("priority", *priority)];
            client.send(&headers(stream, "GET", "/big", &fields, true));
        }
        let mut got = [0, 0];
        while got[0].max(got[1]) < BIG / 2 {
            client.send(&window_update(0, more));
            got = [0, 0];
            for (stream, priority) in (1..).step_by(2).zip(priorities) {
                got[usize::from(priority.ends_with('i'))] += client.body_len(stream);
            }
        }
        assert!(got.iter().all(|octets| *octets > BIG * 2 / 5), "{priorities:?}, {more}: {got:?}");
    }
}

#[test]
fn a_priority_may_be_sent_before_and_after_the_request() {
    let mut client = Client::silent(config());
    client.send(&preface_and_settings(&[(4, 1 << 20)]));
    let wish = |stream: u32, text: &str| {
        frame(16, 0, 0, &[&stream.to_be_bytes()[..], text.as_bytes()].concat())
    };
    client.get(1, "/big");
    client.send(&wish(5, "u=0"));
    client.get(3, "/big");
    client.get(5, "/big");
    client.get(7, "/big");
    client.send(&wish(7, "u=1"));
    client.send(&frame(3, 0, 1, &[0, 0, 0, 8]));
    client.send(&window_update(0, 1 << 20));
    client.send(&window_update(0, 16 << 10));
    let got = [3, 5, 7].map(|stream| client.body_len(stream));
    assert_eq!(got, [0, BIG, 16 << 10]);
}
