//! The known floods of HTTP/2, each while an honest client uses the same server.
//!
//! The attacker sends 16 KiB of the flood at a time and reads nothing. After each batch the honest
//! client sends a request. The server must close the attacker's connection with the right error
//! code before it has sent 2 MiB, and the connection must never hold that much. The honest client
//! must get its response within three turns of the loop; in each of them the attacker gets no more
//! than a read budget and about a hundred frames.

use std::time::Duration;

use rotor::stream::testing::Peer;

use crate::http2_peers::{
    END_HEADERS, END_STREAM, Stage, beginning, block, frame, frames, get, goaway, kind, post,
};

/// The limit on what the attacker may send, and on what its connection may hold.
const BYTES_MAX: usize = 2 << 20;
/// How much it sends at a time.
const BATCH: usize = 16 << 10;
/// The maximum number of turns until the honest client has its response.
const TURNS_MAX: usize = 3;

const NO_ERROR: u32 = 0;
const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

struct Attack {
    name: &'static str,
    /// What the attacker sends once, at the beginning.
    first: fn() -> Vec<u8>,
    /// What it then sends repeatedly. The argument is the number of the round.
    again: fn(u32) -> Vec<u8>,
    code: u32,
}

/// The stream id of a round.
fn odd(round: u32) -> u32 {
    2 * round + 1
}

fn nothing() -> Vec<u8> {
    Vec::new()
}

fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

fn reset(stream: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &8u32.to_be_bytes())
}

const fn attack(
    name: &'static str,
    first: fn() -> Vec<u8>,
    again: fn(u32) -> Vec<u8>,
    code: u32,
) -> Attack {
    Attack { name, first, again, code }
}

/// Floods of streams and of field blocks.
const OF_STREAMS: &[Attack] = &[
    attack(
        "rapid reset",
        nothing,
        |n| [get(odd(n), "/wait"), reset(odd(n))].concat(),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "made you reset, by a window of nothing",
        nothing,
        |n| [post(odd(n), "/wait"), window(odd(n), 0)].concat(),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "made you reset, by a window beyond its bound",
        nothing,
        |n| [post(odd(n), "/wait"), window(odd(n), (1 << 31) - 1)].concat(),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "made you reset, by a priority that depends on itself",
        nothing,
        |n| {
            let itself = [&odd(n).to_be_bytes()[..], &[0]].concat();
            [post(odd(n), "/wait"), frame(kind::PRIORITY, 0, odd(n), &itself)].concat()
        },
        ENHANCE_YOUR_CALM,
    ),
    attack("more streams than there may be", nothing, |n| get(odd(n), "/wait"), ENHANCE_YOUR_CALM),
    attack(
        "CONTINUATION of nothing, without end",
        || frame(kind::HEADERS, 0, 1, &block(0x82, "/")),
        |_| frame(kind::CONTINUATION, 0, 1, &[]),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "CONTINUATION of fields, without end",
        || frame(kind::HEADERS, 0, 1, &block(0x82, "/")),
        |_| frame(kind::CONTINUATION, 0, 1, &[0x82; 1000]),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "HEADERS of nothing",
        nothing,
        |n| frame(kind::HEADERS, END_HEADERS | END_STREAM, odd(n), &[]),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "a field that is in the table, a thousand times",
        nothing,
        |n| {
            let mut bomb = block(0x82, "/");
            bomb.extend([0x40, 1, b'a', 0x7f, 0xa1, 0x1e]);
            bomb.extend([b'x'; 4000]);
            bomb.extend([0xbe; 8000]);
            frame(kind::HEADERS, END_HEADERS | END_STREAM, odd(n), &bomb)
        },
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "sizes of the table, up and down",
        nothing,
        |n| frame(kind::HEADERS, END_HEADERS | END_STREAM, odd(n), &[0x20; 100]),
        COMPRESSION_ERROR,
    ),
    attack("HEADERS on a stream that is over", || get(1, "/"), |_| get(1, "/"), STREAM_CLOSED),
];

/// Floods of frames that are no requests.
const OF_FRAMES: &[Attack] = &[
    attack("PING", nothing, |_| frame(kind::PING, 0, 0, &[7; 8]), ENHANCE_YOUR_CALM),
    attack("SETTINGS", nothing, |_| frame(kind::SETTINGS, 0, 0, &[]), ENHANCE_YOUR_CALM),
    attack(
        "SETTINGS that change the table of fields",
        nothing,
        |n| frame(kind::SETTINGS, 0, 0, &[0, 1, 0, 0, 16 * (n % 2) as u8, 0]),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "SETTINGS that change every window",
        || (0..100).flat_map(|n| get(odd(n), "/wait")).collect(),
        |n| frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, (n % 2) as u8, 0]),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "priorities of old",
        nothing,
        |n| frame(kind::PRIORITY, 0, odd(n), &[0, 0, 0, 0, 1]),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "priorities",
        || (0..100).flat_map(|n| get(odd(n), "/stream")).collect(),
        |n| {
            let stream = odd(n % 100).to_be_bytes();
            let urgency = [b'u', b'=', b'0' + (n / 100 % 8) as u8];
            frame(kind::PRIORITY_UPDATE, 0, 0, &[&stream[..], &urgency].concat())
        },
        ENHANCE_YOUR_CALM,
    ),
    attack("windows by one octet", nothing, |_| window(0, 1), ENHANCE_YOUR_CALM),
    attack(
        "windows of a stream by one octet",
        || get(1, "/stream"),
        |_| window(1, 1),
        ENHANCE_YOUR_CALM,
    ),
    attack("windows beyond their bound", nothing, |_| window(0, (1 << 31) - 1), FLOW_CONTROL_ERROR),
    attack("windows of nothing", nothing, |_| window(0, 0), PROTOCOL_ERROR),
    attack("resets of what is over", || get(1, "/"), |_| reset(1), ENHANCE_YOUR_CALM),
    attack(
        "DATA of nothing",
        || post(1, "/upload"),
        |_| frame(kind::DATA, 0, 1, &[]),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "DATA of padding",
        || post(1, "/upload"),
        |_| frame(kind::DATA, 8, 1, &[7, 0, 0, 0, 0, 0, 0, 0]),
        ENHANCE_YOUR_CALM,
    ),
    attack(
        "DATA of one octet",
        || post(1, "/upload"),
        |_| frame(kind::DATA, 0, 1, b"x"),
        ENHANCE_YOUR_CALM,
    ),
    attack("frames of no kind", nothing, |_| frame(0xbb, 0, 0, b"what?"), ENHANCE_YOUR_CALM),
    attack("GOAWAY", nothing, |_| frame(kind::GOAWAY, 0, 0, &[0; 8]), ENHANCE_YOUR_CALM),
];

/// The honest client sends a request. Panics unless the response comes within the allowed turns.
fn ask(stage: &mut Stage, honest: &Peer, stream: u32, what: &str) {
    honest.send(&get(stream, "/"));
    let mut received = Vec::new();
    for _ in 0..TURNS_MAX {
        stage.test.turn();
        received.extend(honest.take_received());
        let is_whole = |(kind, flags, own, payload): &(u8, u8, u32, Vec<u8>)| {
            (*kind, flags & END_STREAM, *own, &payload[..])
                == (kind::DATA, END_STREAM, stream, b"hello")
        };
        if frames(&received).iter().any(is_whole) {
            return;
        }
    }
    panic!("{what}: no answer on stream {stream} within {TURNS_MAX} turns: {received:?}");
}

/// Sends a batch each time `pace` has passed, until the attacker's connection is closed. Returns
/// what the attacker was sent.
fn run(attack: &Attack, pace: Duration) -> Vec<u8> {
    let name = attack.name;
    let mut stage = Stage::new();
    let (honest, attacker) = (stage.connect(65_535), stage.connect(65_535));
    let (mut told, mut sent, mut round, mut stream) = (Vec::new(), 0, 0, 1);
    let mut batch = (attack.first)();
    while !attacker.is_ended() {
        while batch.len() < BATCH {
            batch.extend((attack.again)(round));
            round += 1;
        }
        attacker.send(&batch);
        sent += batch.len();
        assert!(sent <= BYTES_MAX, "{name}: {sent} octets, and he goes on");
        batch.clear();
        ask(&mut stage, &honest, stream, name);
        stream += 2;
        let held = stage.held.bytes();
        assert!(held <= BYTES_MAX, "{name}: {held} bytes are held");
        told.extend(attacker.take_received());
        stage.test.advance(pace);
    }
    ask(&mut stage, &honest, stream, name);
    told.extend(attacker.take_received());
    assert_eq!(stage.counters.protocol_errors(), 1, "{name}");
    told
}

fn ends_all(attacks: &[Attack], pace: Duration) {
    for attack in attacks {
        assert_eq!(goaway(&run(attack, pace)), Some(attack.code), "{}", attack.name);
    }
}

#[test]
fn a_flood_of_streams_is_ended_without_effect_on_other_clients() {
    ends_all(OF_STREAMS, Duration::ZERO);
}

#[test]
fn a_flood_of_frames_is_ended_without_effect_on_other_clients() {
    ends_all(OF_FRAMES, Duration::ZERO);
}

/// A loop that is slow, or gets little CPU time, handles about a megabyte a second. The allowance
/// that grows with time must not let the attacker go on.
#[test]
fn a_flood_of_a_slow_server_is_ended_as_early() {
    let pace = Duration::from_millis(16);
    ends_all(OF_STREAMS, pace);
    ends_all(OF_FRAMES, pace);
}

/// Each request refers three times to a field of 4,000 bytes that is in the table, so 27 bytes cost
/// as much as a head of 12 KiB. In one turn the attacker gets no more of them than of such heads.
#[test]
fn requests_that_expand_take_turns_as_long_heads_do() {
    let mut stage = Stage::new();
    let attacker = stage.connect(1 << 30);
    let of = |stream, fields: &[u8]| {
        let block = [&block(0x82, "/"), fields].concat();
        frame(kind::HEADERS, END_HEADERS | END_STREAM, stream, &block)
    };
    let field = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'x'; 4000]].concat();
    attacker.send(&of(1, &field));
    stage.test.settle();
    for (fields, most) in [(&b""[..], 128), (&[0xbe][..], 128), (&[0xbe; 3][..], 12)] {
        let before = stage.counters.requests();
        let first = before as u32;
        let many: Vec<u8> = (first..first + 200).flat_map(|n| of(odd(n), fields)).collect();
        attacker.send(&many);
        stage.test.turn();
        let now = stage.counters.requests() - before;
        assert!((1..=most).contains(&now), "{now} requests of {} references", fields.len());
        stage.test.settle();
        assert_eq!(stage.counters.requests() - before, 200);
        attacker.take_received();
    }
}

/// The attacker keeps requesting a hundred endless responses and takes nothing: with a window of
/// zero, by not reading, or both.
#[test]
fn a_client_that_takes_no_response_is_ended_and_its_held_bytes_are_bounded() {
    for (window, reads) in [(0, true), (0, false), (1 << 30, false)] {
        let mut stage = Stage::new();
        let honest = stage.connect(65_535);
        let attacker = stage.connect(window);
        if !reads {
            attacker.limit_room(0);
        }
        attacker.send(&self::window(0, 1 << 30));
        for round in 0..100 {
            attacker.send(&get(odd(round), "/stream"));
        }
        let mut told = Vec::new();
        for second in 0..120 {
            ask(&mut stage, &honest, odd(second), "slow reading");
            let held = stage.held.bytes();
            assert!(held <= BYTES_MAX, "window {window}, reads {reads}: {held} bytes are held");
            told.extend(attacker.take_received());
            if attacker.is_dropped() || attacker.is_ended() {
                break;
            }
            stage.test.advance(Duration::from_secs(1));
        }
        assert!(attacker.is_ended(), "window {window}, reads {reads}: he goes on");
        assert!(stage.counters.response_timeouts() > 0);
        // A peer that reads nothing cannot be told.
        let resets = frames(&told).iter().filter(|(kind, ..)| *kind == kind::RST_STREAM).count();
        let expected = if reads { (100, Some(NO_ERROR)) } else { (0, None) };
        assert_eq!((resets, goaway(&told)), expected, "window {window}, reads {reads}");
        assert_eq!(stage.held.bytes(), 0);
    }
}

/// The attacker opens connections and sends a part of the preface, or nothing after it.
#[test]
fn a_client_that_stalls_in_the_preface_is_timed_out() {
    let whole = beginning(65_535);
    for len in [1, 3, 12, 23, 24, 30, whole.len() - 9] {
        let mut stage = Stage::new();
        let honest = stage.connect(65_535);
        let attacker = stage.silent();
        attacker.send(&whole[..len]);
        for second in 0..20 {
            ask(&mut stage, &honest, odd(second), "half a preface");
            stage.test.advance(Duration::from_secs(1));
        }
        assert!(attacker.is_ended(), "after {len} octets");
        let (heads, settings) =
            (stage.counters.head_timeouts(), stage.counters.settings_timeouts());
        assert_eq!(heads + settings, 1, "after {len} octets: {:?}", stage.counters);
    }
}
