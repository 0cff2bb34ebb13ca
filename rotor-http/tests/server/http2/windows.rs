//! Flow control in both directions, and (`order`) the order in which responses are sent.

mod order;

use rotor_http::server::ServerConfig;

use super::client::{Client, config, data, frame, headers, http2, preface_and_settings, settings};
use crate::probe::{BIG, seconds};

fn window_update(stream: u32, more: u32) -> Vec<u8> {
    frame(8, 0, stream, &more.to_be_bytes())
}

#[test]
fn an_unread_body_blocks_only_its_stream() {
    let mut client = Client::silent(config());
    client.send(&preface_and_settings(&[(4, 1 << 20)]));
    client.send(&window_update(0, 1 << 20));
    client.send(&headers(1, "POST", "/hold", &[], false));
    for _ in 0..4 {
        client.send(&data(1, &[b'x'; 16_384], false));
    }
    let told = client.windows.get(&1).copied();
    assert_eq!(told, Some((64 + 16) << 10), "one piece was taken, and nothing is left to send");
    client.send(&data(1, &[b'x'; 16_384], false));
    client.send(&headers(3, "POST", "/", &[], false));
    for _ in 0..20 {
        client.send(&data(3, &[b'y'; 16_000], false));
    }
    client.send(&data(3, b"z", true));
    assert_eq!(client.answer(3).status, 200);
    assert_eq!(client.body_len(3), "POST / ".len() + 320_001);
    client.send(&data(1, &[b'x'; 16_384], false));
    assert_eq!(client.answer(1).reset, Some(3), "beyond its window");
}

#[test]
fn data_beyond_a_window_is_refused() {
    let mut client = Client::new(config());
    client.send(&headers(1, "POST", "/wait", &[], false));
    for _ in 0..4 {
        client.send(&data(1, &[b'x'; 16_384], false));
    }
    assert_eq!(client.answer(1).reset, None);
    client.send(&data(1, b"x", false));
    assert_eq!(client.answer(1).reset, Some(3));
    assert!(client.driver.is_alive());
    let mut client = Client::new(config().http2(http2().connection_window(65_535)));
    client.send(&headers(1, "POST", "/wait", &[], false));
    client.send(&headers(3, "POST", "/wait", &[], false));
    for stream in [1, 3, 1, 3] {
        client.send(&data(stream, &[b'x'; 16_383], false));
    }
    client.send(&data(1, b"1234", false));
    assert_eq!(client.end(), Some(3));
}

/// Bytes that are received and never credited back would close the window for good.
#[test]
fn the_connection_window_is_restored_however_streams_end() {
    const WINDOW: u32 = 65_535;
    let mut client = Client::new(config().http2(http2().connection_window(WINDOW)));
    for (round, path) in (0..400u32).zip(
        ["/", "/hold", "/ignore", "/wait", "/stop", "/panic-in-body", "no path"].iter().cycle(),
    ) {
        let stream = 2 * round + 1;
        let reset = frame(3, 0, stream, &[0, 0, 0, 8]);
        client.send(&headers(stream, "POST", path, &[], false));
        let padded = [&[200][..], &[b'x'; 9_000]].concat();
        client.send(&frame(0, 8 | u8::from(round % 4 == 0), stream, &padded));
        *client.windows.entry(0).or_default() -= 9_001;
        match round % 4 {
            1 => client.send(&reset),
            // Beyond the maximum window: the server resets the stream.
            2 => client.send(&window_update(stream, (1 << 31) - 1)),
            _ => {}
        }
        client.driver.advance(seconds(1));
        // Otherwise the waiting streams would soon reach the stream limit, and further ones would
        // be refused.
        client.send(&reset);
        assert_ne!(client.answer(stream).reset, Some(7), "round {round}, {path}: refused");
        assert!(!client.driver.is_ended(), "round {round}, {path}: {:?}", client.goaways);
        // The stream is over: the credit that the peer has not yet been told of is less than half
        // of the window.
        let left = client.windows[&0];
        assert!(left > i64::from(WINDOW / 2), "round {round}, {path}: {left}");
    }
}

/// The free part of the window is announced to the peer, however much is held.
#[test]
fn held_bodies_leave_the_rest_of_the_window_to_others() {
    let mut client = Client::new(config());
    for stream in (1..18).step_by(2) {
        client.send(&headers(stream, "POST", "/wait-for-ever", &[], false));
        for _ in 0..8 {
            assert!(client.upload(stream, 8_192, 0, false), "stream {stream}");
        }
    }
    client.send(&headers(19, "POST", "/progressive", &[], false));
    for round in 0..1_000 {
        assert!(client.upload(19, 8_192, 0, round == 999), "round {round}: {:?}", client.windows);
    }
    assert_eq!(client.answer(19).status, 200);
}

/// The remaining bytes of each body. The bodies are sent as the windows allow.
struct Bodies {
    left: Vec<usize>,
    stalls: usize,
}

impl Bodies {
    fn begin(client: &mut Client, count: usize, octets: usize) -> Bodies {
        for at in 0..count {
            client.send(&headers(2 * at as u32 + 1, "POST", "/", &[], false));
        }
        Bodies { left: vec![octets; count], stalls: count }
    }

    /// Sends a piece of each body except the stalled one, if its window allows; returns the number
    /// of bytes.
    fn send(&mut self, client: &mut Client) -> usize {
        let mut sent = 0;
        for at in 0..self.left.len() {
            let count = self.left[at].min(8_192);
            if at == self.stalls || count == 0 {
                continue;
            }
            if client.upload(2 * at as u32 + 1, count, 0, count == self.left[at]) {
                self.left[at] -= count;
                sent += count;
            }
        }
        sent
    }
}

#[test]
fn many_collected_bodies_are_received_one_after_another() {
    const MAX: usize = 256 << 10;
    const OCTETS: usize = 500_000;
    let config = config().http2(http2().collected_bytes_max(MAX));
    let (held, counters) = (config.bodies_held(), config.counters());
    let mut client = Client::silent(config);
    client.send(&preface_and_settings(&[(4, 1 << 20)]));
    client.send(&window_update(0, 1 << 30));
    let mut bodies = Bodies::begin(&mut client, 20, OCTETS);
    while bodies.left.iter().any(|left| *left > 0) {
        assert!(bodies.send(&mut client) > 0, "nobody may send: {:?}", bodies.left);
        // Window that was already granted comes on top, and buffers may allocate twice what they
        // contain.
        let most = 2 * (MAX + 20 * (64 << 10));
        assert!(held.bytes() <= most, "{} of {most}", held.bytes());
    }
    for stream in (1..40).step_by(2) {
        assert_eq!(client.body_len(stream), "POST / ".len() + OCTETS, "stream {stream}");
    }
    assert!(counters.bodies_held_back() >= 10, "{}", counters.bodies_held_back());
    assert_eq!(held.bytes(), 0);
}

#[test]
fn bodies_held_back_do_not_time_out_and_a_stalled_one_releases_them() {
    const OCTETS: usize = 300_000;
    let config = config().http2(http2().collected_bytes_max(100_000));
    let counters = config.counters();
    let mut client = Client::new(config);
    let mut bodies = Bodies::begin(&mut client, 3, OCTETS);
    assert_eq!(bodies.send(&mut client), 3 * 8_192);
    // The first body continues slowly; the ones behind it have sent all that they may.
    for _ in 0..100 {
        while bodies.send(&mut client) > 0 && bodies.left[0] > OCTETS / 2 {}
        client.driver.advance(seconds(1));
        client.send(&frame(6, 0, 0, &[0; 8]));
        if bodies.left[0] > 0 {
            assert!(client.upload(1, 1_500, 0, false));
            bodies.left[0] -= 1_500;
        }
        assert_eq!(counters.body_timeouts(), 0, "{:?}", bodies.left);
        if bodies.left[0] < 30_000 {
            break;
        }
    }
    // Now the first body stalls.
    bodies.stalls = 0;
    while client.answer(1).status == 0 {
        client.driver.advance(seconds(1));
        client.read();
    }
    assert_eq!((client.answer(1).status, counters.body_timeouts()), (408, 1));
    bodies.left[0] = 0;
    while bodies.left[1..].iter().any(|left| *left > 0) {
        assert!(bodies.send(&mut client) > 0, "nobody may send: {:?}", bodies.left);
    }
    assert_eq!((client.answer(3).status, client.answer(5).status), (200, 200));
}

#[test]
fn padding_does_not_exhaust_the_window_of_a_collected_body() {
    let mut client = Client::new(config());
    client.send(&headers(1, "POST", "/", &[("content-length", "65536")], false));
    let mut left = 65_536;
    while left > 0 {
        // Padding of nine bytes costs ten with its length field.
        let window = client.windows.get(&1).map_or(65_536, |window| *window as usize);
        let padding = if window > 10 { 9 } else { 0 };
        let octets = left.min(2_048).min(if window > 10 { window - 10 } else { window });
        assert!(octets > 0, "{left} are left to send: {:?}", client.windows);
        left -= octets;
        assert!(client.upload(1, octets, padding, left == 0));
    }
    assert_eq!(client.answer(1).status, 200);
}

/// Like browsers: each body gets a part of the connection window, and none is complete.
#[test]
fn interleaved_collected_bodies_all_complete() {
    for (count, path, length) in
        [(100, "/", 20_480), (20, "/", 61_440), (100, "/no-length", 20_480)]
    {
        let mut client = Client::new(config());
        let streams = move || (0..count).map(|number| 2 * number + 1);
        let text = length.to_string();
        let field = [("content-length", text.as_str())];
        let fields = if path == "/" { &field[..] } else { &[] };
        for stream in streams() {
            client.send(&headers(stream, "POST", path, fields, false));
        }
        for sent in (0..length).step_by(2_048) {
            for stream in streams() {
                let is_end = sent + 2_048 == length;
                assert!(client.upload(stream, 2_048, 0, is_end), "stream {stream} after {sent}");
            }
        }
        assert!(streams().all(|stream| client.answer(stream).status == 200), "{path}");
    }
}

/// The peer sends at the minimum rate, one body after the other, which is allowed.
#[test]
fn a_body_does_not_time_out_while_the_peer_sends_others() {
    let mut client = Client::new(config());
    for stream in [1, 3] {
        client.send(&headers(stream, "POST", "/", &[], false));
    }
    // A frame of 16 KiB, sent at 2 KiB/s.
    let long = data(1, &[b'x'; 16_384], false);
    for second in 0..40 {
        let frame = &long[second % 8 * 2_048..];
        client.send(if second % 8 == 7 { frame } else { &frame[..2_048] });
        client.driver.advance(seconds(1));
    }
    client.send(&data(1, b"", true));
    client.send(&data(3, b"y", true));
    assert_eq!([1, 3].map(|stream| client.answer(stream).status), [200, 200]);
    // But a body may not wait forever, and not while no DATA arrives.
    client.send(&headers(5, "POST", "/", &[], false));
    client.send(&headers(7, "POST", "/progressive", &[], false));
    for second in 0..70 {
        client.driver.advance(seconds(1));
        assert_eq!(client.answer(5).status, 0, "{second}");
        client.send(&data(7, &[b'x'; 2_048], false));
        if client.answer(5).status != 0 {
            assert!((60..=66).contains(&second), "{second}");
            break;
        }
    }
    client.driver.advance(seconds(6));
    client.read();
    assert_eq!([5, 7].map(|stream| client.answer(stream).status), [408, 408]);
}

#[test]
fn responses_without_connection_window_wait_without_empty_frames() {
    let mut client = Client::silent(config());
    client.send(&preface_and_settings(&[(4, 1 << 20)]));
    for stream in (1..40).step_by(2) {
        client.get(stream, "/stream");
    }
    // The client checks that no DATA frame is empty.
    for _ in 0..20 * 17 {
        client.send(&window_update(0, 65_535));
    }
    assert!((1..40).step_by(2).all(|stream| client.answer(stream).is_whole));
}

#[test]
fn a_response_stops_at_its_windows() {
    let mut client = Client::silent(config());
    client.send(&preface_and_settings(&[(4, 10)]));
    client.get(1, "/big");
    assert_eq!((client.answer(1).status, client.body_len(1)), (200, 10));
    client.send(&window_update(1, 5));
    assert_eq!(client.body_len(1), 15);
    client.send(&settings(&[(4, 0)]));
    client.send(&window_update(1, 9));
    assert_eq!(client.body_len(1), 15, "the window is at -1");
    client.send(&window_update(1, 2));
    assert_eq!(client.body_len(1), 16);
    client.send(&settings(&[(4, 1 << 20)]));
    assert_eq!(client.body_len(1), 65_535, "the connection's");
    client.send(&window_update(0, 2 << 20));
    assert_eq!(client.body_len(1), BIG);
    assert!(client.answer(1).is_whole);
}

#[test]
fn windows_beyond_the_maximum_are_refused() {
    let mut client = Client::new(config());
    client.get(1, "/wait");
    client.send(&window_update(1, (1 << 31) - 1));
    assert_eq!(client.answer(1).reset, Some(3));
    client.send(&window_update(0, (1 << 31) - 1));
    assert_eq!(client.end(), Some(3));
    // Settings that make the window of one stream too large, while the other stream has room.
    let mut client = Client::new(config());
    client.get(1, "/wait");
    client.get(3, "/wait");
    client.send(&window_update(3, (1 << 31) - 1 - 65_535));
    client.send(&settings(&[(4, 65_535)]));
    assert_eq!((client.end(), client.answer(3).reset), (None, None));
    client.send(&settings(&[(4, 65_536)]));
    assert_eq!(client.end(), Some(3));
    assert_eq!(client.answer(3).reset, None, "it is the connection's");
}

/// Otherwise the frames that open the windows would never be read.
#[test]
fn the_output_never_exceeds_its_high_water_mark() {
    let mut client = Client::silent(config());
    client.driver.limit_room(1000);
    client.send(&preface_and_settings(&[(4, 4 << 20)]));
    client.send(&window_update(0, 16 << 20));
    (1..20).step_by(2).for_each(|stream| client.get(stream, "/stream"));
    (21..40).step_by(2).for_each(|stream| client.get(stream, "/authority"));
    let mut rounds = 0;
    while client.answers.values().filter(|answer| answer.is_whole).count() < 20 {
        client.driver.make_room(5000);
        client.read();
        rounds += 1;
        assert!(rounds < 10_000, "{:?}", client.answers.keys());
        if rounds % 100 == 0 {
            // The ping is read immediately, whatever is pending.
            let pongs = client.pongs;
            client.send(&frame(6, 0, 0, &[0; 8]));
            for _ in 0..40 {
                client.driver.make_room(5000);
                client.read();
            }
            assert_eq!(client.pongs, pongs + 1);
        }
    }
    assert!((1..20).step_by(2).all(|stream| client.body_len(stream) == BIG));
}

#[test]
fn the_memory_of_waiting_responses_is_configurable() {
    // Each response is a megabyte, with its head.
    for (max, answered) in [(1, 1), (BIG, 1), (BIG + (1 << 19), 2), (5 * BIG, 5)] {
        let config = ServerConfig::new().http2(http2().responses_bytes_max(max));
        let counters = config.counters();
        let mut client = Client::silent(config);
        client.send(&preface_and_settings(&[(4, 0)]));
        for stream in (1..20).step_by(2) {
            client.get(stream, "/big");
        }
        let refused = client.answers.values().filter(|answer| answer.reset == Some(7)).count();
        assert_eq!((refused, counters.streams_refused()), (10 - answered, 10 - answered as u64));
    }
}

/// Existing frames are sent before later responses: at most up to the output's high-water mark.
#[test]
fn no_further_frames_are_made_of_an_aborted_response() {
    const MARK: usize = 64 << 10;
    let mut client = Client::silent(config());
    client.send(&[preface_and_settings(&[(4, 1 << 21)]), window_update(0, 1 << 21)].concat());
    client.driver.peer().limit_room(0);
    client.get(1, "/big");
    client.send(&[frame(3, 0, 1, &[0, 0, 0, 8]), headers(3, "GET", "/", &[], true)].concat());
    client.driver.make_room(2 * BIG);
    client.read();
    assert_eq!(client.answer(3).status, 200);
    let sent = client.body_len(1);
    assert!((MARK / 2..=MARK).contains(&sent), "{sent} octets of the one that was given up");
}

#[test]
fn a_connection_without_response_memory_answers_one_at_a_time() {
    let mut client = Client::new(ServerConfig::new().http2(http2().responses_bytes_max(0)));
    for stream in [1, 3] {
        client.get(stream, "/authority");
        assert_eq!(client.outcome(stream), "200 a");
    }
}
