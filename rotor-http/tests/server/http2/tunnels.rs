//! Other protocols on a stream (RFC 8441), and tunnels (RFC 9113 §8.5).

use rotor_core::{Cursor, Verdict};
use rotor_http::Status;
use rotor_http::h2::frame_writer::window_update;
use rotor_http::server::{Connection, Head, HttpSeed, Next, NoUpgrade, Response, Scope, Server};
use rotor_stream::testing::Driver;

use super::client::{Client, block, config, data, frame, headers, preface_and_settings};
use crate::probe::seconds;

const HEADERS: u8 = 1;
const RESET: u8 = 3;
const PRIORITY_UPDATE: u8 = 16;

/// HEADERS of an extended CONNECT.
pub(super) fn extended_connect(stream: u32, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut all = vec![
        (":method", "CONNECT"),
        (":protocol", "relay"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a"),
    ];
    all.extend_from_slice(fields);
    frame(HEADERS, 4, stream, &block(&all))
}

fn connect(stream: u32, authority: &str) -> Vec<u8> {
    frame(HEADERS, 4, stream, &block(&[(":method", "CONNECT"), (":authority", authority)]))
}

/// A client with a relay on stream 1 that has sent its greeting.
pub(super) fn client_with_relay() -> Client {
    let mut client = Client::new(config());
    client.send(&extended_connect(1, "/up", &[]));
    assert_eq!(client.outcome(1), "200 cut");
    assert_eq!(client.answer(1).text(), "hello");
    client
}

/// The other streams of the connection still work.
fn assert_connection_works(client: &mut Client) {
    client.get(99, "/authority");
    assert_eq!(client.outcome(99), "200 a");
    assert!(client.driver.is_alive() && client.goaways.is_empty());
}

/// It has no other protocol.
struct WithoutUpgrade;

impl Server for WithoutUpgrade {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        response.reply(Status::OK, "text/plain", b"hello").into()
    }
}

#[test]
fn extended_connect_is_offered_only_by_servers_with_an_upgrade() {
    let client = Client::new(config());
    assert!(client.settings.contains(&(8, 1)), "{:?}", client.settings);
    let seed = HttpSeed::new((), config());
    let mut driver = Driver::<Connection<WithoutUpgrade>>::new(seed, ());
    driver.send(&preface_and_settings(&[]));
    let received = driver.take_received();
    assert_eq!(received[..5], [0, 0, 24, 4, 0], "four settings");
    // A client may not request it if the server has not offered it (RFC 8441 §3).
    driver.send(&extended_connect(1, "/", &[]));
    assert!(
        driver
            .take_received()
            .windows(13)
            .any(|reset| reset == [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 1])
    );
}

#[test]
fn a_protocol_runs_on_a_stream_as_on_a_connection() {
    for pieces in [1, 7, usize::MAX] {
        let mut client = Client::silent(config());
        let mut bytes = preface_and_settings(&[]);
        bytes.extend(extended_connect(1, "/up", &[]));
        // Before the client can have received the answer.
        bytes.extend(data(1, b"ab", false));
        bytes.extend(headers(3, "GET", "/authority", &[], true));
        bytes.extend(data(1, b"c", false));
        bytes.chunks(pieces).for_each(|piece| client.send(piece));
        let answer = client.answer(1);
        assert_eq!((answer.status, answer.text()), (200, "hello<a><b><c>"), "{pieces}");
        assert_eq!(answer.field("content-length"), None);
        assert_eq!(client.outcome(3), "200 a");
        // The deadlines of HTTP no longer apply.
        client.driver.advance(seconds(1000));
        client.send(&data(1, b"", true));
        assert!(client.answer(1).is_whole, "its end is answered by the protocol's");
        assert_eq!(client.answer(1).reset, None);
        assert_eq!(client.driver.failures(), [""; 0]);
    }
}

#[test]
fn a_tunnel_request_with_end_stream_gets_the_protocol_output() {
    let mut client = Client::new(config());
    let mut request = extended_connect(1, "/up", &[]);
    request[4] |= 1;
    client.send(&request);
    assert_eq!(client.outcome(1), "200 hello");
    assert_connection_works(&mut client);
}

#[test]
fn a_connect_tunnel_opens_where_one_is_offered() {
    let mut client = Client::new(config());
    client.send(&connect(1, "open:1"));
    client.send(&data(1, b"a", false));
    client.send(&connect(3, "other:1"));
    assert_eq!(client.answer(1).text(), "hello<a>");
    assert_eq!(client.answer(3).status, 405);
    assert_eq!(client.driver.context().events, ["CONNECT ", "CONNECT "]);
    assert_connection_works(&mut client);
}

#[test]
fn a_success_page_is_never_sent_in_reply_to_extended_connect() {
    // A 2xx status would mean that the protocol has started.
    for path in ["/authority", "/chunked", "/big", "/stream", "/status/204", "/wait"] {
        let mut client = Client::new(config());
        client.send(&extended_connect(1, path, &[]));
        if let Some(notifier) = client.driver.context().notifier.clone() {
            client.driver.context_mut().words = "woken".to_owned();
            notifier.wakeup();
            client.driver.settle();
            client.read();
        }
        assert_eq!(client.answer(1).status, 501, "{path}");
        assert!(client.answer(1).is_whole);
        assert_connection_works(&mut client);
    }
    for (path, status) in [("/status/304", 304), ("/fail", 502), ("/panic", 500)] {
        let mut client = Client::new(config());
        client.send(&extended_connect(1, path, &[]));
        assert_eq!(client.answer(1).status, status, "{path}");
        assert_connection_works(&mut client);
    }
}

#[test]
fn malformed_extended_connects_reset_their_stream() {
    let usual = [
        (":method", "CONNECT"),
        (":protocol", "relay"),
        (":scheme", "http"),
        (":path", "/up"),
        (":authority", "a"),
    ];
    let without =
        |name: &str| -> Vec<_> { usual.iter().copied().filter(|field| field.0 != name).collect() };
    let with = |name, value| [&usual[..], &[(name, value)]].concat();
    let instead = |name: &'static str, value: &'static str| -> Vec<_> {
        usual.iter().map(|field| if field.0 == name { (name, value) } else { *field }).collect()
    };
    for fields in [
        without(":scheme"),
        without(":path"),
        without(":authority"),
        without(":method"),
        without(":protocol"),
        instead(":method", "GET"),
        instead(":protocol", ""),
        instead(":protocol", "a, b"),
        instead(":protocol", "a/"),
        instead(":path", "*"),
        with(":protocol", "relay"),
        with("content-length", "0"),
        with("upgrade", "relay"),
        vec![(":method", "CONNECT"), (":authority", "open")],
        vec![(":method", "CONNECT"), ("host", "open:1")],
        vec![(":method", "CONNECT"), (":authority", "open:1"), ("content-length", "1")],
    ] {
        let mut client = Client::new(config());
        client.send(&frame(HEADERS, 4, 1, &block(&fields)));
        assert_eq!(client.outcome(1), "0 reset 1", "{fields:?}");
        assert_eq!(client.driver.context().events, [""; 0], "{fields:?}");
        assert_connection_works(&mut client);
    }
}

#[test]
fn headers_on_a_tunnel_reset_its_stream() {
    let mut client = client_with_relay();
    client.send(&frame(HEADERS, 5, 1, &block(&[("x", "y")])));
    assert_eq!(client.outcome(1), "200 reset 1");
    assert_eq!(client.driver.context().events[1..], ["relay: the connection broke"]);
    assert_connection_works(&mut client);
}

#[test]
fn the_end_of_a_protocol_is_the_end_of_its_stream() {
    for (bytes, outcome) in
        [("Q", "200 hello<Q>"), ("!", "200 reset 2"), ("F", "200 reset 8"), ("E", "200 hello<E>")]
    {
        let mut client = client_with_relay();
        client.send(&data(1, bytes.as_bytes(), false));
        assert_eq!(client.outcome(1), outcome, "{bytes}");
        // Frames that were in flight are no protocol error.
        client.send(&data(1, b"x", true));
        assert_connection_works(&mut client);
    }
}

#[test]
fn a_protocol_panic_resets_one_stream_and_is_counted() {
    for is_at_once in [true, false] {
        let config = config();
        let counters = config.counters();
        let mut client = Client::new(config);
        if is_at_once {
            client.driver.context_mut().words = "panic".to_owned();
        }
        client.send(&extended_connect(1, "/up", &[]));
        let outcome = match is_at_once {
            true => "0 reset 2",
            false => {
                client.send(&data(1, b"!", false));
                "200 reset 2"
            }
        };
        assert_eq!((client.outcome(1).as_str(), counters.panics()), (outcome, 1));
        assert_connection_works(&mut client);
    }
}

#[test]
fn a_protocol_that_ended_its_output_still_reads() {
    let mut client = client_with_relay();
    client.send(&data(1, b"E", false));
    assert!(client.answer(1).is_whole);
    client.send(&data(1, b"W", false));
    assert!(client.driver.context().notifier.is_some(), "it was heard");
}

#[test]
fn the_protocol_is_notified_of_a_reset() {
    let mut client = client_with_relay();
    client.send(&frame(RESET, 0, 1, &[0, 0, 0, 8]));
    assert_eq!(client.driver.context().events[1..], ["relay: the connection broke"]);
    assert_connection_works(&mut client);
}

#[test]
fn the_protocol_is_notified_of_the_end_of_the_connection() {
    let mut client = client_with_relay();
    client.driver.reset();
    client.driver.settle();
    assert_eq!(client.driver.context().events.len(), 2, "{:?}", client.driver.context().events);
    let mut client = client_with_relay();
    client.send(&frame(HEADERS, 4, 2, &block(&[("x", "y")])));
    assert_eq!(client.end(), Some(1), "a stream of an even number");
    assert_eq!(client.driver.context().events.len(), 2, "{:?}", client.driver.context().events);
}

#[test]
fn each_stream_has_its_own_wakeups_and_deadlines() {
    let mut client = client_with_relay();
    client.send(&extended_connect(3, "/up", &[]));
    client.send(&data(3, b"W", false));
    client.send(&data(1, b"T", false));
    client.driver.context_mut().words = "woken".to_owned();
    let notifier = client.driver.context().notifier.clone().expect("it was made");
    assert_eq!(notifier.part(), 3);
    notifier.wakeup();
    client.driver.settle();
    client.read();
    client.driver.advance(seconds(9));
    client.read();
    assert_eq!((client.answer(1).text(), client.answer(3).text()), ("hello<T>", "hello<W>woken"));
    client.driver.advance(seconds(1));
    client.read();
    assert_eq!(client.answer(1).text(), "hello<T>late");
}

#[test]
fn the_protocol_is_notified_of_a_drain() {
    let mut client = client_with_relay();
    client.driver.drain(seconds(30));
    client.read();
    assert_eq!(client.outcome(1), "200 hellobye");
    client.send(&data(1, b"", true));
    client.driver.advance(seconds(2));
    assert!(client.end().is_some());
}

#[test]
fn a_protocol_started_in_a_drain_is_notified_of_it() {
    let mut client = Client::new(config());
    client.driver.drain(seconds(30));
    // A client may begin streams until it has heard of the drain.
    client.send(&extended_connect(1, "/up", &[]));
    assert_eq!(client.outcome(1), "200 hellobye");
}

#[test]
fn a_protocol_started_while_only_its_connection_drains_is_notified() {
    let mut client = Client::new(config());
    let _ = client.driver.test().instance().machines().scan(Cursor::START, |_, _| Verdict::Drain);
    client.driver.settle();
    client.send(&extended_connect(1, "/up", &[]));
    assert_eq!(client.outcome(1), "200 hellobye");
}

#[test]
fn output_waits_for_both_windows_and_input_waits_for_output() {
    let mut client = Client::silent(config());
    client.send(&preface_and_settings(&[(4, 3)]));
    client.send(&extended_connect(1, "/up", &[]));
    assert_eq!(client.answer(1).text(), "hel");
    client.send(&window_update(1, 100));
    assert_eq!(client.answer(1).text(), "hello");
    client.send(&data(1, b"B", false));
    assert_eq!(client.body_len(1), 103);
    // Above its high-water mark the protocol gets no input, so the window stops the peer.
    let mut sent = 0;
    while client.upload(1, 10_000, 0, false) {
        sent += 10_000;
        assert!(sent < 1 << 20, "nothing holds it back");
    }
    assert!(sent > 50_000, "{sent}");
    client.get(3, "/authority");
    assert_eq!(client.answer(3).status, 200, "and nobody else");
    // Now the client opens its windows: the input is answered, and the server's windows open again.
    client.send(&window_update(0, 1 << 24));
    client.send(&window_update(1, 1 << 24));
    assert_eq!(client.body_len(1), 5 + 3 + (1 << 20) + 3 * sent);
    assert!(client.upload(1, 10_000, 0, false));
}

#[test]
fn a_tunnel_without_send_window_times_out() {
    let mut client = Client::silent(config());
    client.send(&preface_and_settings(&[(4, 3)]));
    client.send(&extended_connect(1, "/up", &[]));
    client.driver.advance(seconds(9));
    client.read();
    assert_eq!(client.answer(1).reset, None);
    client.driver.advance(seconds(1));
    client.read();
    assert_eq!(client.outcome(1), "200 reset 8");
    assert!(client.driver.context().events[1].starts_with("relay: "), "it is told");
}

#[test]
fn small_pieces_on_a_tunnel_are_no_flood() {
    let mut client = client_with_relay();
    client.send(&window_update(0, 1 << 24));
    client.send(&window_update(1, 1 << 24));
    for _ in 0..2_000 {
        let ten: Vec<u8> = (0..10).flat_map(|_| data(1, b"x", false)).collect();
        client.send(&ten);
    }
    assert_eq!(client.body_len(1), 5 + 60_000);
    // Empty frames are a flood.
    for _ in 0..10_000 {
        client.send(&data(1, b"", false));
        if client.end().is_some() {
            break;
        }
    }
    assert_eq!(client.end(), Some(11));
}

#[test]
fn a_protocol_may_expect_more_than_the_window() {
    let mut client = Client::new(config());
    client.send(&window_update(0, 1 << 20));
    // On another stream, a body that the handler does not request holds its share of the connection
    // window.
    client.send(&headers(1, "POST", "/wait", &[], false));
    while client.upload(1, 10_000, 0, false) {}
    client.send(&extended_connect(3, "/up", &[]));
    client.send(&window_update(3, 1 << 20));
    client.send(&data(3, b"N", false));
    // With padding, 65,000 bytes are more than the stream window.
    for piece in 0..13 {
        assert_eq!(client.body_len(3), 5 + 3, "it waits");
        assert!(client.upload(3, 5_000, 200, false), "piece {piece}");
    }
    assert_eq!(client.body_len(3), 5 + 3 + 3 * 13 * 5_000);
}

#[test]
fn queued_messages_count_against_the_windows() {
    let mut client = client_with_relay();
    client.send(&window_update(0, 1 << 20));
    let frames: Vec<u8> = (0..4).flat_map(|_| data(1, &[b'.'; 16_000], false)).collect();
    let granted = |client: &Client| client.windows.get(&1).copied().unwrap_or(client.stream_window);
    let before = granted(&client);
    client.driver.peer().send(&frames);
    client.driver.test().turn();
    client.read();
    let at_once = granted(&client) - before;
    // This number of messages is more than the share of one event.
    assert!(at_once < 32_000, "{at_once} octets more may come beside those that wait");
    client.driver.settle();
    client.read();
    assert!(granted(&client) - before > 32_000, "they had their turn");
    client.send(&data(1, b"a", false));
    assert_eq!(client.answer(1).text(), "hello<a>");
}

/// An earlier response takes all of the window that is available, for as long as it lasts.
#[test]
fn protocol_output_does_not_wait_for_the_end_of_a_response() {
    let mut client = Client::silent(config());
    client.send(&preface_and_settings(&[(4, 1 << 20)]));
    client.get(1, "/big");
    client.send(&extended_connect(3, "/up", &[]));
    assert_eq!((client.body_len(1), client.answer(3).text()), (65_535, ""));
    client.send(&window_update(0, 16_384 + 5));
    assert_eq!(client.answer(3).text(), "hello");
    client.send(&data(3, b"a", false));
    client.send(&window_update(0, 2 * 16_384));
    assert_eq!(client.answer(3).text(), "hello<a>");
    assert!(!client.answer(1).is_whole);
}

/// RFC 9218 §7: a priority may change at any time, so also before the protocol begins.
#[test]
fn a_priority_update_before_the_switch_does_not_delay_protocol_output() {
    let mut client = Client::silent(config());
    client.send(&preface_and_settings(&[(4, 1 << 20)]));
    client.send(&headers(1, "GET", "/big", &[("priority", "u=3")], true));
    client.send(&extended_connect(3, "/wait-up", &[]));
    client.send(&frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x03u=3"));
    client.driver.context_mut().words = "switch".to_owned();
    client.driver.context().notifier.clone().expect("it waits").wakeup();
    client.driver.settle();
    client.read();
    assert_eq!((client.body_len(1), client.answer(3).status), (65_535, 200));
    client.send(&window_update(0, 2 * 16_384));
    assert_eq!(client.answer(3).text(), "hello");
    assert!(!client.answer(1).is_whole);
}

/// The server itself sends the other stream first.
#[test]
fn a_protocol_behind_more_urgent_streams_does_not_time_out() {
    for goes_on in [true, false] {
        let mut client = Client::silent(config());
        client.send(&preface_and_settings(&[(4, 2 << 20)]));
        client.send(&headers(1, "GET", "/big", &[("priority", "u=0")], true));
        client.send(&extended_connect(3, "/up", &[]));
        for _ in 0..30 {
            client.send(&window_update(0, 16_384));
            client.driver.advance(seconds(1));
        }
        client.read();
        assert_eq!((client.outcome(1), client.outcome(3)), ("200 cut".into(), "200 cut".into()));
        assert_eq!(client.body_len(3), 0);
        if goes_on {
            client.send(&window_update(0, 1 << 20));
            assert!(client.answer(1).is_whole);
            assert_eq!(client.answer(3).text(), "hello");
        } else {
            client.driver.advance(seconds(21));
            client.read();
            assert_eq!((client.answer(1).reset, client.answer(3).reset), (Some(8), Some(8)));
        }
    }
}
