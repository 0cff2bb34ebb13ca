//! How connections end: by a drain, by an idle timeout, by a protocol error.

use std::fs::File;
use std::sync::Arc;

use rotor_core::{Cursor, Drain, Scope, Verdict};
use rotor_http::h2::frame::PREFACE;
use rotor_http::h2::frame_writer;
use rotor_http::server::{Connection, Head, HttpSeed, Next, NoUpgrade, Response, Server};
use rotor_http::{Limits, Status};
use rotor_stream::testing::Driver;

use super::client::{Client, config, data, frame, headers, preface_and_settings, settings};
use crate::probe::seconds;

const STREAM_MAX: u32 = (1 << 31) - 1;

#[test]
fn a_drain_sends_two_goaways_and_loses_no_request() {
    let mut client = Client::new(config());
    client.get(1, "/wait");
    client.driver.drain(seconds(60));
    client.read();
    assert_eq!(client.goaways, [(0, STREAM_MAX)], "the peer may have sent others by now");
    // The acknowledgement of a ping that was never sent.
    client.send(&frame_writer::ping([0; 8], true));
    assert_eq!(client.goaways.len(), 1);
    client.get(3, "/authority");
    assert_eq!(client.outcome(3), "200 a");
    let ping = client.pings[0];
    client.send(&frame_writer::ping(ping, true));
    assert_eq!(client.goaways, [(0, STREAM_MAX), (0, 3)]);
    client.get(5, "/authority");
    assert_eq!(client.answer(5).reset, Some(7), "it may be made again elsewhere");
    assert!(!client.driver.is_ended());
    client.driver.context_mut().words = "at last".to_owned();
    client.driver.context().notifier.clone().expect("it waits").wakeup();
    client.driver.settle();
    client.read();
    assert_eq!(client.outcome(1), "200 GET /wait at last");
    assert!(client.driver.is_ended());
    assert_eq!(
        client.driver.context().events.iter().filter(|event| *event == "draining").count(),
        1
    );
}

/// A part of the preface may be one of an HTTP/1.1 request, so the connection has no streams yet.
#[test]
fn a_drain_of_only_the_connection_within_its_preface_is_not_forgotten() {
    let mut client = Client::silent(config());
    let (begun, rest) = PREFACE.split_at(3);
    client.send(begun);
    let instance = client.driver.test().instance();
    let _ = instance.machines().scan(Cursor::START, |_, _| Verdict::Drain);
    client.driver.settle();
    client.send(&[rest, &settings(&[]), &frame_writer::settings_ack()].concat());
    assert_eq!(client.goaways, [(0, STREAM_MAX)]);
    client.get(1, "/wait");
    assert_eq!(client.driver.context().events, ["GET /wait", "draining"]);
    client.driver.advance(seconds(1));
    client.read();
    assert_eq!(client.goaways, [(0, STREAM_MAX), (0, 1)]);
}

/// The server does not wake idle clients for the announcement: a client hears of it with its next
/// request, which is served.
#[test]
fn a_request_after_the_announcement_is_answered_with_a_goaway() {
    let announced = Drain::new(seconds(10)).announce(seconds(5));
    let mut client = Client::new(config());
    client.get(1, "/authority");
    client.driver.drain_with(announced);
    client.send(&frame(6, 0, 0, &[0; 8]));
    assert_eq!((client.pongs, &client.goaways[..]), (1, &[][..]), "a ping is no request");
    client.get(3, "/authority");
    client.get(5, "/authority");
    assert_eq!(client.goaways, [(0, STREAM_MAX)]);
    let ping = client.pings[0];
    client.send(&frame_writer::ping(ping, true));
    assert_eq!((client.outcome(3), client.outcome(5)), ("200 a".into(), "200 a".into()));
    assert_eq!((client.end(), &client.goaways[1..]), (Some(0), &[(0, 5)][..]));
}

/// RFC 9113 §6.8: a higher last stream would mark refused streams as served, and their requests
/// would not be repeated.
#[test]
fn the_last_stream_of_a_goaway_is_not_raised() {
    let mut client = Client::new(config());
    client.get(1, "/wait");
    client.driver.drain(seconds(60));
    client.read();
    let ping = client.pings[0];
    client.send(&frame_writer::ping(ping, true));
    client.get(3, "/authority");
    assert_eq!(client.answer(3).reset, Some(7));
    client.send(&frame(5, 0, 1, &[0; 4]));
    assert_eq!(client.end(), Some(1));
    assert_eq!(client.goaways, [(0, STREAM_MAX), (0, 1), (1, 1)]);
}

#[test]
fn a_peer_that_does_not_answer_the_drain_ping_gets_one_second() {
    let mut client = Client::new(config());
    client.driver.drain(seconds(60));
    assert!(!client.driver.is_ended());
    client.driver.advance(seconds(1));
    assert_eq!((client.end(), client.goaways.len()), (Some(0), 2));
}

#[test]
fn a_connection_ends_after_its_maximum_of_requests() {
    let mut client = Client::new(config().limits(Limits::new().requests_max(2)));
    client.get(1, "/authority");
    assert_eq!(client.goaways, []);
    client.get(3, "/authority");
    assert_eq!(client.goaways, [(0, STREAM_MAX)]);
    client.driver.advance(seconds(1));
    assert_eq!((client.end(), client.outcome(3)), (Some(0), "200 a".into()));
}

#[test]
fn an_aged_connection_sends_a_goaway_and_serves_requests_in_transit() {
    let config = config().limits(Limits::new().connection_age_max(seconds(50)));
    let counters = config.counters();
    let mut client = Client::new(config);
    client.get(1, "/authority");
    client.driver.advance(seconds(60));
    assert_eq!(client.goaways, [], "an idle one waits: a request may be on its way");
    client.get(3, "/authority");
    assert_eq!(client.goaways, [(0, STREAM_MAX)]);
    client.get(5, "/authority");
    client.driver.advance(seconds(1));
    assert_eq!((client.end(), client.outcome(5)), (Some(0), "200 a".into()));
    assert_eq!(counters.aged(), 1);
}

#[test]
fn idle_connections_end_and_busy_ones_do_not() {
    let mut client = Client::new(config());
    client.get(1, "/wait-for-ever");
    client.driver.advance(seconds(100));
    assert!(!client.driver.is_ended());
    client.send(&frame(3, 0, 1, &[0, 0, 0, 8]));
    client.driver.advance(seconds(74));
    // A ping is no request.
    client.send(&frame(6, 0, 0, &[0; 8]));
    assert!(!client.driver.is_ended());
    client.driver.advance(seconds(2));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_settings_acknowledgement_may_follow_a_slow_body() {
    for (octets, ends) in [(1_100, None), (900, Some(4))] {
        let limits = Limits::new().body_grace(seconds(60));
        let mut client = Client::silent(config().limits(limits));
        let all = preface_and_settings(&[]);
        let (begun, acknowledged) = all.split_at(all.len() - 9);
        client.send(begun);
        client.send(&headers(1, "POST", "/stop", &[], false));
        // One DATA frame, which the network delivers in small pieces.
        let body = data(1, &[b'x'; 16 << 10], false);
        for piece in body.chunks(octets).take(14) {
            client.driver.send(piece);
            client.driver.advance(seconds(1));
        }
        assert_eq!(client.end(), ends, "{octets} a second");
        if ends.is_none() {
            client.send(&body[14 * octets..]);
            client.send(acknowledged);
            client.driver.advance(seconds(40));
            assert_eq!(client.end(), None);
        }
    }
}

#[test]
fn settings_must_be_acknowledged() {
    let mut client = Client::silent(config());
    let all = preface_and_settings(&[]);
    client.send(&all[..all.len() - 9]);
    client.get(1, "/wait-for-ever");
    client.driver.advance(seconds(11));
    assert_eq!(client.end(), Some(4));
    let mut client = Client::silent(config());
    client.send(&all[..24]);
    client.driver.advance(seconds(11));
    assert_eq!(client.end(), Some(0), "no settings at all");
}

/// RFC 9113 §6.5.2: there is no limit of streams before the peer has received our settings.
#[test]
fn streams_beyond_a_maximum_that_the_peer_does_not_know_yet_are_no_violation() {
    let config = config();
    let counters = config.counters();
    let mut client = Client::silent(config);
    let all = preface_and_settings(&[]);
    let (begun, acknowledged) = all.split_at(all.len() - 9);
    client.send(begun);
    let get = |number: u32| headers(2 * number + 1, "GET", "/wait-for-ever", &[], true);
    client.send(&(0..1_000).flat_map(get).collect::<Vec<u8>>());
    let refused = client.answers.values().filter(|answer| answer.reset == Some(7)).count();
    assert_eq!((refused, counters.streams_refused(), client.end()), (900, 900, None));
    // From here on the peer knows the limit.
    client.send(acknowledged);
    client.send(&(1_000..1_200).flat_map(get).collect::<Vec<u8>>());
    assert_eq!(client.end(), None);
    client.send(&get(1_200));
    assert_eq!((client.end(), counters.reset_floods()), (Some(11), 1));
}

/// A short beginning of the preface may also be one of an HTTP/1.1 request.
#[test]
fn a_preface_has_the_head_timeout_from_its_first_byte() {
    for (sent, more) in [("P", "RI * H"), ("PRI * HTTP/2.0\r\n\r\nSM", "\r\n"), ("P", "UT /x ")] {
        let config = config();
        let counters = config.counters();
        let mut client = Client::silent(config);
        client.driver.advance(seconds(60));
        client.send(sent.as_bytes());
        for octet in more.as_bytes() {
            client.driver.advance(seconds(9) / more.len() as u32);
            client.send(&[*octet]);
        }
        assert!(!client.driver.is_ended());
        client.driver.advance(seconds(2));
        assert_eq!((client.driver.is_ended(), counters.head_timeouts()), (true, 1), "{sent}{more}");
    }
}

#[test]
fn a_head_within_one_frame_has_the_head_timeout() {
    for busy in [false, true] {
        let config = config();
        let counters = config.counters();
        let mut client = Client::new(config);
        if busy {
            client.get(1, "/wait-for-ever");
        }
        let head = headers(3, "GET", "/authority", &[("x", "a long field")], true);
        let (first, rest) = head.split_at(8);
        client.send(first);
        for byte in &rest[..9] {
            client.driver.advance(seconds(1));
            client.send(&[*byte]);
        }
        assert!(!client.driver.is_ended(), "{busy}");
        client.driver.advance(seconds(2));
        assert_eq!((client.driver.is_ended(), counters.head_timeouts()), (true, 1), "{busy}");
        assert_eq!(client.end(), Some(0), "{busy}");
    }
}

/// RFC 9113, by code: protocol 1, flow control 3, closed 5, size 6, compression 9.
#[test]
fn protocol_errors_end_the_connection() {
    for (what, bytes, code) in [
        ("DATA on stream 0", data(0, b"x", false), 1),
        ("DATA on an idle stream", data(1, b"x", false), 1),
        ("HEADERS of an even number", headers(2, "GET", "/", &[], true), 1),
        (
            "HEADERS of less than before",
            [headers(5, "GET", "/authority", &[], true), headers(3, "GET", "/", &[], true)]
                .concat(),
            5,
        ),
        ("RST_STREAM on an idle stream", frame(3, 0, 1, &[0; 4]), 1),
        ("WINDOW_UPDATE on an idle stream", frame(8, 0, 1, &[0, 0, 0, 1]), 1),
        ("WINDOW_UPDATE of nothing", frame(8, 0, 0, &[0; 4]), 1),
        ("CONTINUATION of nothing", frame(9, 4, 1, &[]), 1),
        (
            "a block that is broken off",
            [frame(1, 0, 1, &[0x82]), frame(6, 0, 0, &[0; 8])].concat(),
            1,
        ),
        (
            "a block that goes on elsewhere",
            [frame(1, 0, 1, &[0x82]), frame(9, 4, 3, &[])].concat(),
            1,
        ),
        ("PUSH_PROMISE", frame(5, 4, 1, &[0, 0, 0, 2]), 1),
        ("a frame that is too long", frame(0xbb, 0, 0, &[0; 16_385]), 6),
        ("SETTINGS on a stream", frame(4, 0, 1, &[]), 1),
        ("SETTINGS of odd length", frame(4, 0, 0, &[0; 5]), 6),
        ("an initial window of 2^31", frame(4, 0, 0, &[0, 4, 0x80, 0, 0, 0]), 3),
        ("PING of seven", frame(6, 0, 0, &[0; 7]), 6),
        ("a field of no table", frame(1, 5, 1, &[0xff, 0x80, 1]), 9),
        ("padding beyond its frame", frame(0, 8, 1, &[9, 0]), 1),
    ] {
        for pieces in [1, usize::MAX] {
            let config = config();
            let counters = config.counters();
            let mut client = Client::new(config);
            for piece in bytes.chunks(pieces) {
                if !client.driver.is_ended() {
                    client.send(piece);
                }
            }
            assert_eq!(client.end(), Some(code), "{what}");
            assert_eq!(counters.protocol_errors(), 1, "{what}");
            assert_eq!(client.driver.failures(), [""; 0], "{what}");
        }
    }
}

/// Other connections may hold the rest of the memory.
#[test]
fn a_connection_that_ends_for_want_of_memory_does_not_blame_its_peer() {
    let config = config().held_bytes_max(3 << 20);
    let counters = config.counters();
    let mut client = Client::silent(config);
    client.send(&preface_and_settings(&[(4, 0)]));
    (1..9).step_by(2).for_each(|stream| client.get(stream, "/big"));
    assert_eq!(client.end(), Some(2));
    assert_eq!((counters.without_room(), counters.protocol_errors()), (1, 0));
}

/// RFC 9113 §5.1: after END_STREAM of the client, HEADERS are a stream error while the response is
/// under way, and a connection error once it is sent. How far a response is depends on how the
/// input was split, so it is always a connection error (§5.4.1 allows that).
#[test]
fn headers_after_end_stream_are_a_connection_error() {
    let nothing = frame(8, 0, 1, &[0; 4]);
    let beyond = frame(8, 0, 1, &[0x7f, 0xff, 0xff, 0xff]);
    for (what, path, between) in [
        ("a handler has the request", "/wait", &[][..]),
        ("the response waits for its window", "/big", &[]),
        ("the response is sent", "/authority", &[]),
        ("a window beyond its bound reset it", "/wait", &beyond),
        ("a window beyond its bound came too late", "/authority", &beyond),
        ("a window of nothing reset it", "/wait", &nothing),
        ("a window of nothing came too late", "/authority", &nothing),
        ("DATA reset it", "/wait", &data(1, b"x", false)),
        ("DATA came too late", "/authority", &data(1, b"x", false)),
    ] {
        let bytes = [
            &headers(1, "GET", path, &[], true)[..],
            between,
            &headers(1, "GET", "/authority", &[], true),
            &headers(3, "GET", "/authority", &[], true),
        ]
        .concat();
        for pieces in [1, 9, usize::MAX] {
            let mut client = Client::new(config());
            for piece in bytes.chunks(pieces) {
                if !client.driver.is_ended() {
                    client.send(piece);
                }
            }
            assert_eq!(client.end(), Some(5), "{what}, in pieces of {pieces}");
            let heads = &client.driver.context().events;
            assert!(
                !heads.iter().any(|event| event == "GET /authority" && path == "/wait"),
                "{what}"
            );
        }
    }
}

#[test]
fn handlers_are_notified_when_the_connection_is_lost() {
    for how in ["reset", "breach", "end"] {
        let mut client = Client::new(config());
        client.send(&headers(1, "POST", "/", &[], false));
        client.send(&headers(3, "POST", "/progressive", &[], false));
        match how {
            "reset" => client.driver.reset(),
            "end" => client.driver.end(),
            _ => client.send(&frame(5, 0, 1, &[])),
        }
        let told = client
            .driver
            .context()
            .events
            .iter()
            .filter(|event| *event == "bad request: Truncated");
        assert_eq!(told.count(), 2, "{how}");
        assert!(!client.driver.is_alive() || client.driver.is_ended(), "{how}");
    }
}

#[test]
fn a_half_closed_peer_gets_the_responses_to_its_complete_requests() {
    let mut client = Client::new(config());
    client.get(1, "/wait");
    client.driver.end();
    assert!(!client.driver.is_ended());
    client.driver.context_mut().words = "still".to_owned();
    client.driver.context().notifier.clone().expect("it waits").wakeup();
    client.driver.settle();
    client.read();
    assert_eq!(client.outcome(1), "200 GET /wait still");
    assert!(client.driver.is_ended());
}

/// After its end no acknowledgement of our settings and no rest of a frame can arrive.
#[test]
fn a_half_closed_peer_is_not_late_with_what_it_cannot_send_any_more() {
    let all = preface_and_settings(&[]);
    let (begun, acknowledged) = all.split_at(all.len() - 9);
    let block = frame(1, 0, 3, &[0x82]);
    for (what, rest) in [
        ("without an acknowledgement", &[][..]),
        ("in a frame", &[acknowledged, &block[..4]].concat()),
        ("in a block", &[acknowledged, &block].concat()),
    ] {
        let mut client = Client::silent(config());
        client.send(begun);
        client.get(1, "/wait");
        client.send(rest);
        client.driver.end();
        client.driver.advance(seconds(20));
        assert!(!client.driver.is_ended(), "{what}");
        client.driver.context_mut().words = "still".to_owned();
        client.driver.context().notifier.clone().expect("it waits").wakeup();
        client.driver.settle();
        client.read();
        assert_eq!(client.outcome(1), "200 GET /wait still", "{what}");
        assert!(client.driver.is_ended(), "{what}");
    }
}

/// RFC 9113 §6.4: RST_STREAM "MUST NOT be sent for a stream in the idle state". Peers treat that as
/// a connection error.
#[test]
fn an_idle_stream_is_not_reset() {
    for stream in [3, 2] {
        let mut client = Client::new(config());
        client.get(1, "/authority");
        client.send(&frame(2, 0, stream, &[0; 4]));
        assert_eq!(client.answer(stream).reset, None, "stream {stream}");
        assert_eq!(client.end(), Some(6), "stream {stream}");
        let mut client = Client::new(config());
        client.get(1, "/wait");
        client.send(&frame(2, 0, 1, &[0; 4]));
        assert_eq!((client.answer(1).reset, client.end()), (Some(6), None), "it was begun");
    }
}

/// Sends twenty bytes of a file, or waits.
struct FileServer;

impl Server for FileServer {
    type Context = ();
    type Seed = Arc<File>;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        file: Arc<File>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        if head.path() == "/wait" {
            return Next::go_on(FileServer).no_deadline();
        }
        response.status(Status::OK).expect("nothing is written");
        response.add_length(20).expect("none was added");
        response.done_headers().expect("it has a length");
        response.write_file(file, 0, 20).expect("it is announced");
        response.done().expect("it is written");
        Next::finished()
    }
}

#[test]
fn a_file_that_is_too_short_ends_all_streams_of_its_connection() {
    let directory = rotor_test_kit::Directory::create();
    let path = directory.join("file");
    for (length, outcome, is_ended) in [(20, "200 ", false), (19, "200 cut", true)] {
        std::fs::write(&path, vec![b' '; length]).expect("a file");
        let file = Arc::new(File::open(&path).expect("it is there"));
        let mut client =
            Client::on(Driver::<Connection<FileServer>>::new(HttpSeed::new(file, config()), ()));
        client.send(&preface_and_settings(&[]));
        client.get(1, "/wait");
        client.get(3, "/file");
        assert_eq!(client.outcome(3).trim(), outcome.trim(), "{length}");
        assert_eq!(client.driver.is_ended(), is_ended, "{length}");
        assert_eq!(client.outcome(1), "0 cut", "{length}");
    }
}
