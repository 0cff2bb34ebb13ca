//! The client: against our own server, and against servers that violate the protocol.

use rotor_core::{Future, Scope, Time};
use rotor_http::client::{
    self, ClientConfig, ClientResult, Connection, ConnectionSeed, Job, Offer, RequestSource,
};
use rotor_http::server::{Http2Config, ServerConfig};
use rotor_stream::Fatal;
use rotor_stream::testing::Driver;
use rotor_websocket::{Code, Deflate, Dial, WebSocketConfig};
use std::sync::Arc;
use std::time::Duration;

use crate::kit::{
    CLOSE, PING, Probe, Seen, ServerDriver, TEXT, close_payload, frame, seconds, server,
    server_frame, server_with, shown_frames,
};

/// A source of one request.
struct Once(Option<Dial<Probe>>, Option<Future<ClientResult<Dial<Probe>>>>);

impl RequestSource<Dial<Probe>> for Once {
    fn next(&mut self, _: bool, scope: &mut Scope<'_, Seen>) -> Offer<Dial<Probe>> {
        // The outcome is shown by the events, or by the refusal's counter.
        let Some(dial) = self.0.take() else { return Offer::Close };
        let (port, future) = scope.create_future();
        self.1 = Some(future);
        Offer::Job(Job::new(dial, Time::NEVER, port))
    }
    fn return_job(&mut self, _: Job<Dial<Probe>>, _: &mut Scope<'_, Seen>) {}
    fn not_connected(self, _: Fatal, _: &mut Scope<'_, Seen>) {}
}

type Client = Driver<Connection<Dial<Probe>, Once>>;

fn dial(config: WebSocketConfig, seed: &str) -> (Client, Arc<rotor_websocket::Counters>) {
    dial_with(config, ClientConfig::new(), seed)
}

fn dial_with(
    config: WebSocketConfig,
    http: ClientConfig,
    seed: &str,
) -> (Client, Arc<rotor_websocket::Counters>) {
    let counters = config.counters().clone();
    let dial = Dial::new("/", "a.example", seed.to_string(), config.share());
    let seed = ConnectionSeed::new(Once(Some(dial), None), Arc::new(http));
    (Driver::new(seed, Seen::default()), counters)
}

/// A connected client and server; each has received what the other has sent so far.
fn connected(config: impl Fn() -> WebSocketConfig, seed: &str) -> (Client, ServerDriver) {
    let (client, _) = dial(config(), seed);
    let (server, _) = server(config());
    let mut pair = (client, server);
    relay(&mut pair);
    (pair.0, pair.1)
}

/// The same on an HTTP/2 stream.
fn connected_http2(config: impl Fn() -> WebSocketConfig, seed: &str) -> (Client, ServerDriver) {
    let http = ClientConfig::new().http2(client::Http2Config::new().prior_knowledge(true));
    let (client, _) = dial_with(config(), http, seed);
    let http = ServerConfig::new().http2(Http2Config::new().prior_knowledge(true));
    let (server, _) = server_with(config(), http);
    let mut pair = (client, server);
    relay(&mut pair);
    (pair.0, pair.1)
}

/// Carries what both have sent to the other side, a few times only: both echo forever.
fn relay((client, server): &mut (Client, ServerDriver)) {
    for _ in 0..5 {
        let (up, down) = (client.take_received(), server.take_received());
        if up.is_empty() && down.is_empty() {
            break;
        }
        server.send(&up);
        client.send(&down);
    }
}

#[test]
fn a_client_and_a_server_exchange_messages() {
    for deflate in [None, Some(Deflate::new()), Some(Deflate::new().context_takeover(true))] {
        // Both sides echo every message forever, so the text is a command to the server.
        let text = format!("/fragments+{}", "long+".repeat(200));
        let config = || WebSocketConfig::new().deflate(deflate);
        for (client, server) in [connected(config, &text), connected_http2(config, &text)] {
            let events = &client.context().events;
            assert!(events[0].starts_with("opened "), "{events:?}");
            let heard = &server.context().events;
            assert_eq!(heard[0], "opened /", "{heard:?}");
            assert!(heard[1].starts_with("text longlong"), "{heard:?}");
        }
    }
}

#[test]
fn the_request_matches_the_rfc() {
    let config = WebSocketConfig::new().subprotocols(&["v2", "v1"]).deflate(Deflate::new());
    let (client, _) = dial(config, "/");
    let request = String::from_utf8(client.take_received()).expect("ASCII");
    for line in [
        "GET / HTTP/1.1",
        "Host: a.example",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: v2, v1",
        "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; \
         client_no_context_takeover; client_max_window_bits",
    ] {
        assert!(request.lines().any(|found| found == line), "{line}:\n{request}");
    }
    assert!(request.to_lowercase().contains("\r\nconnection: upgrade\r\n"), "{request}");
}

#[test]
fn invalid_handshake_responses_are_refused() {
    let good = |request: &[u8]| {
        let (mut server, _) = server(WebSocketConfig::new());
        server.send(request);
        String::from_utf8(server.take_received()).expect("ASCII")
    };
    let with = |field: &str| format!("\r\n{field}\r\n\r\n");
    type Change = Box<dyn Fn(String) -> String>;
    let cases: [(&str, bool, Change); 14] = [
        ("good", true, Box::new(|answer| answer)),
        (
            "another status",
            false,
            Box::new(|answer| answer.replace("101 Switching Protocols", "200 OK")),
        ),
        ("no Connection", false, Box::new(|answer| answer.replace("Connection: upgrade\r\n", ""))),
        (
            "another Connection",
            false,
            Box::new(|answer| answer.replace("Connection: upgrade", "Connection: close")),
        ),
        (
            "other case",
            true,
            Box::new(|answer| {
                answer
                    .replace(": upgrade", ": close-not, UPGRADE")
                    .replace(": websocket", ": WebSocket")
            }),
        ),
        ("no Upgrade", false, Box::new(|answer| answer.replace("Upgrade: websocket\r\n", ""))),
        ("another proof", false, Box::new(|answer| answer.replace("Accept: ", "Accept: x"))),
        (
            "two proofs",
            false,
            Box::new(move |answer| {
                let proof = answer.lines().find(|line| line.starts_with("Sec-WebSocket-Accept"));
                let again = with(proof.expect("a proof"));
                answer.replace("\r\n\r\n", &again)
            }),
        ),
        (
            "its own subprotocol",
            true,
            Box::new(move |answer| answer.replace("\r\n\r\n", &with("Sec-WebSocket-Protocol: v1"))),
        ),
        (
            "two of them",
            false,
            Box::new(move |answer| {
                let twice = "Sec-WebSocket-Protocol: v1\r\nSec-WebSocket-Protocol: v1";
                answer.replace("\r\n\r\n", &with(twice))
            }),
        ),
        ("no proof", false, Box::new(|answer| answer.replace("Sec-WebSocket-Accept", "X"))),
        ("another protocol", false, Box::new(|answer| answer.replace(": websocket", ": other"))),
        (
            "a subprotocol",
            false,
            Box::new(move |answer| answer.replace("\r\n\r\n", &with("Sec-WebSocket-Protocol: v3"))),
        ),
        (
            "an extension",
            false,
            Box::new(move |answer| {
                answer.replace("\r\n\r\n", &with("Sec-WebSocket-Extensions: permessage-deflate"))
            }),
        ),
    ];
    for (what, is_taken, change) in cases {
        let (mut client, counters) = dial(WebSocketConfig::new().subprotocols(&["v1"]), "/");
        let answer = change(good(&client.take_received()));
        client.send(answer.as_bytes());
        assert_eq!(!client.context().events.is_empty(), is_taken, "{what}");
        assert_eq!((counters.opened(), counters.refused()), (is_taken.into(), (!is_taken).into()));
    }
}

/// A client whose server is played by the test.
fn open() -> Client {
    let (mut client, _) = dial(WebSocketConfig::new(), "/");
    let (mut server, _) = server(WebSocketConfig::new());
    server.send(&client.take_received());
    client.send(&server.take_received());
    assert_eq!(client.context().events, ["opened /"]);
    client
}

/// Removes the mask from a frame.
fn unmasked(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes[1] & 0x80 != 0 && bytes[1] & 0x7f < 126, "{bytes:x?}");
    let (mask, payload) = bytes[2..].split_first_chunk::<4>().expect("a mask");
    let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key);
    [bytes[0], bytes[1] & 0x7f].into_iter().chain(payload).collect()
}

#[test]
fn a_client_masks_its_frames_and_refuses_masked_ones() {
    let mut client = open();
    client.send(&server_frame(TEXT, "hello"));
    let (first, second) = (client.take_received(), {
        client.send(&server_frame(TEXT, "hello"));
        client.take_received()
    });
    assert_eq!(shown_frames(&unmasked(&first)), ["text hello"]);
    assert_eq!(shown_frames(&unmasked(&second)), ["text hello"]);
    assert_ne!(first[2..6], second[2..6], "each frame has a mask of its own");
    client.send(&server_frame(PING, "x"));
    assert_eq!(shown_frames(&unmasked(&client.take_received())), ["pong x"]);
    client.send(&frame(TEXT, "hello"));
    assert_eq!(shown_frames(&unmasked(&client.take_received())), ["close 1002"]);
    assert!(client.is_ended(), "it does not wait for the server to end");
}

#[test]
fn a_client_lets_the_server_end_the_connection() {
    let mut client = open();
    client.send(&server_frame(CLOSE, close_payload(1000, "bye")));
    assert_eq!(shown_frames(&unmasked(&client.take_received())), ["close 1000"]);
    assert_eq!(client.context().events.last().unwrap(), "closed 1000 Peer bye");
    assert!(!client.is_ended());
    client.end();
    assert!(client.is_ended() && !client.is_alive());
    assert_eq!(client.failures(), [""; 0]);
    // The client does not wait for a server that does not end the connection.
    let mut client = open();
    client.send(&server_frame(TEXT, "close 1000"));
    client.send(&server_frame(CLOSE, close_payload(1000, "")));
    assert_eq!(client.context().events.last().unwrap(), "closed 1000 Handler");
    // Further bytes of the server are not kept either.
    client.send(&vec![b'x'; 3_000_000]);
    assert!(client.unread_len() == 0 && !client.is_ended());
    client.advance(seconds(5));
    assert!(client.is_ended());
    assert_eq!(Code::NORMAL.number(), 1000);
}

#[test]
fn a_client_discards_unsent_output_if_the_server_does_not_end() {
    let mut client = open();
    client.limit_room(100);
    client.send(&server_frame(TEXT, "binary 5000"));
    client.send(&server_frame(CLOSE, close_payload(1000, "")));
    assert_eq!(client.context().events.last().unwrap(), "closed 1000 Peer");
    client.advance(seconds(5));
    client.make_room(10_000);
    assert_eq!(client.received_len(), 100);
    assert!(client.is_ended());
}

#[test]
fn a_client_gives_a_slow_server_time_for_what_was_sent_before_the_end() {
    let mut client = open();
    client.limit_room(100);
    client.send(&server_frame(TEXT, "binary 30000"));
    client.send(&server_frame(CLOSE, close_payload(1000, "")));
    client.take_received();
    for _ in 0..3 {
        client.advance(Duration::from_millis(4_900));
        assert!(!client.is_ended());
        client.make_room(10_300);
    }
    assert!(client.received_len() > 29_900);
    // The server has the whole time to end the connection.
    client.advance(Duration::from_millis(4_900));
    assert!(!client.is_ended());
    client.advance(Duration::from_millis(100));
    assert!(client.is_ended());
}
