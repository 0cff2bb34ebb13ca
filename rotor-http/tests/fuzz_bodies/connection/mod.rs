//! A whole connection of a server, on a scripted socket: whatever bytes a client sends, in whatever pieces and however
//! slowly it takes the answers, each request gets one answer, the one that a strict reading of all the bytes asks for.

mod handler;
mod reference;

use std::time::Duration;

use rotor_http::h1::{BodyDecoder, FieldStorage, HeadReader, Limits, Method, ResponseTerms};
use rotor_http::server::{Connection, HttpSeed, ServerConfig};
use rotor_stream::testing::Driver;

use super::body::data_of;
use super::input::{Cuts, HeadLimits, Input};
use super::naive::{self, ChunkLimits, Verdict};
use handler::{Seen, Site};
use reference::{Ending, Expected, Limited, Reference};

/// One answer that was read back: its status, whether it is the last, its body.
type Answer = (u16, bool, Vec<u8>);

/// Unread input that a connection may hold: its high-water mark and one read.
const HELD_MAX: usize = (64 << 10) + (16 << 10);

/// Limits, how the peer takes its answers, cuts; then what it sends.
pub(super) fn run(data: &[u8]) {
    let mut choices = Input::new(data);
    let limited = choose_limits(&mut choices);
    let high_water = choices.pick(&[64 << 10, 400, 1]);
    let room = choices.pick(&[usize::MAX, 1 << 20, 300, 7]);
    let is_flood = choices.byte() % 8 == 7;
    let cuts = Cuts::choose(&mut choices);
    let input = choices.rest();

    let talk = Talk { limited, high_water, room };
    let reference = reference::read(input, &talk.limited);
    let whole = talk.check(&[input], input, &reference);
    assert_eq!(talk.check(&cuts.pieces(input), input, &reference), whole, "cut: {}", input.escape_ascii());
    let bytes: Vec<&[u8]> = input.chunks(1 + input.len() / 512).collect();
    assert_eq!(talk.check(&bytes, input, &reference), whole, "byte by byte: {}", input.escape_ascii());
    if is_flood {
        talk.flood(&input.repeat(64));
    }
}

fn choose_limits(choices: &mut Input<'_>) -> Limited {
    let head = HeadLimits::choose(choices);
    let (line, extensions, trailer, trailers) =
        choices.pick(&[(256, 4 << 10, 4 << 10, 32), (20, 30, 50, 3), (1, 0, 2, 0)]);
    let (buffered, drained, requests) =
        choices.pick(&[(1 << 20, 64 << 10, u64::MAX), (20, 10, u64::MAX), (300, 0, 2)]);
    let chunks = ChunkLimits { body: u64::MAX, line, extensions, trailer, trailers };
    Limited { head, chunks, buffered, drained, requests }
}

/// How a client talks to the server.
struct Talk {
    limited: Limited,
    high_water: usize,
    /// Octets that it takes at a time.
    room: usize,
}

impl Talk {
    fn connect(&self) -> Driver<Connection<Site>> {
        let Limited { head, chunks, buffered, drained, requests } = &self.limited;
        let limits: Limits = head
            .limits()
            .chunk_line_bytes_max(chunks.line)
            .extension_bytes_max(chunks.extensions)
            .trailer_bytes_max(chunks.trailer)
            .trailers_max(chunks.trailers)
            .buffered_body_bytes_max(*buffered)
            .drained_body_bytes_max(*drained)
            .requests_max(*requests)
            .output_high_water(self.high_water);
        Driver::new(HttpSeed::new((), ServerConfig::new().limits(limits)), Seen::default())
    }

    /// Sends the pieces and holds the answers against the reference.
    fn check(&self, pieces: &[&[u8]], input: &[u8], reference: &Reference) -> Vec<Answer> {
        let mut driver = self.connect();
        if self.room < usize::MAX {
            driver.limit_room(0);
        }
        for piece in pieces {
            driver.send(piece);
            if self.room < usize::MAX {
                driver.make_room(self.room);
            }
        }
        self.finish(&mut driver, input, reference)
    }

    /// Sends much before it takes anything: what waits is bounded, and then everything is answered.
    fn flood(&self, input: &[u8]) {
        let reference = reference::read(input, &self.limited);
        let mut driver = self.connect();
        driver.limit_room(0);
        driver.send(input);
        let begun = driver.context().heads.len();
        let dealt_with = reference.ends.get(begun).copied();
        if let (Some(dealt_with), false) = (dealt_with, driver.is_ended()) {
            let read = input.len() - driver.unread_len();
            assert!(read <= dealt_with + HELD_MAX, "{read} octets were read of {begun} requests");
        }
        self.finish(&mut driver, input, &reference);
    }

    /// The client ends its side, and takes the rest.
    fn finish(
        &self,
        driver: &mut Driver<Connection<Site>>,
        input: &[u8],
        reference: &Reference,
    ) -> Vec<Answer> {
        driver.end();
        let mut received = driver.take_received();
        loop {
            driver.make_room(self.room.max(received.len() / 4));
            let more = driver.take_received();
            if more.is_empty() {
                break;
            }
            received.extend(more);
        }
        assert!(driver.is_ended(), "it ends: {}", input.escape_ascii());
        driver.advance(Duration::from_secs(10));
        assert!(driver.is_dropped() && !driver.is_alive(), "nothing is left");
        assert_eq!(driver.failures(), [""; 0]);
        let seen = driver.context();
        assert_eq!(seen.misuses, 0);
        assert_eq!(seen.heads, reference.heads, "{}", input.escape_ascii());
        assert!(seen.unsent_max <= self.high_water, "{} octets wait", seen.unsent_max);
        assert!(seen.buffered_max as u64 <= self.limited.buffered);
        compare(&received, input, reference)
    }
}

/// Reads all answers, and demands those of the reference.
fn compare(received: &[u8], input: &[u8], reference: &Reference) -> Vec<Answer> {
    let shown = || format!("{}\nto {}\nnot {reference:?}", received.escape_ascii(), input.escape_ascii());
    let (mut answers, mut at) = (Vec::new(), 0);
    for (number, expected) in reference.answers.iter().enumerate() {
        let method = if expected.is_head { Method::Head } else { Method::Get };
        let (answer, len) = take(&received[at..], method, expected).unwrap_or_else(|| panic!("{}", shown()));
        let status = if expected.is_switch { 101 } else { 200 };
        let body = if expected.is_head { &[][..] } else { &expected.body };
        assert_eq!((answer.0, &answer.2[..]), (status, body), "answer {number} of {}", shown());
        assert!(!answer.1 || number + 1 == reference.answers.len(), "{} follow: {}", number + 1, shown());
        assert!(!answer.1 || matches!(reference.ending, Ending::Closed | Ending::Switched(_)), "{}", shown());
        at += len;
        answers.push(answer);
    }
    let rest = &received[at..];
    match reference.ending {
        Ending::Closed => assert_eq!(rest, b"", "{}", shown()),
        Ending::Switched(from) => assert_eq!(rest, &input[from..], "{}", shown()),
        Ending::HeadCut if rest.is_empty() => {}
        Ending::HeadCut | Ending::Refused => {
            let (answer, len) =
                take_refusal(rest, reference.may_continue).unwrap_or_else(|| panic!("{}", shown()));
            assert!((400..600).contains(&answer.0) && answer.1 && len == rest.len(), "{}", shown());
            answers.push(answer);
        }
    }
    answers
}

/// The error at the end. Whether its request asked for a body in the answer cannot always be told, and then one comes.
fn take_refusal(rest: &[u8], may_continue: bool) -> Option<(Answer, usize)> {
    let body = Vec::new();
    let expected = Expected { is_head: false, may_continue, is_switch: false, body };
    let method = if rest.ends_with(b"\r\n\r\n") { Method::Head } else { Method::Get };
    take(rest, method, &expected)
}

/// Takes one answer off the front, after the interim one that may come before it: read as a client reads it, and in the
/// naive way.
fn take(received: &[u8], method: Method<'_>, expected: &Expected) -> Option<(Answer, usize)> {
    const ALL: HeadLimits =
        HeadLimits { head: 1 << 20, field: 1 << 20, fields: 256, target: 0, empty_lines: 0 };
    let mut at = 0;
    loop {
        let rest = &received[at..];
        let limits = ALL.limits();
        let mut storage = FieldStorage::new();
        let head = HeadReader::new().read_response(rest, &mut storage, &limits).expect("a good head")?;
        let terms = ResponseTerms::of(&head, method, expected.is_switch).expect("good terms");
        let Verdict::Good(naive) = naive::response_head(rest, &ALL) else { panic!("a good head") };
        assert_eq!(naive.len, head.input_len());
        at += head.input_len();
        if terms.is_interim {
            assert!(expected.may_continue && at == head.input_len() && head.status().code() == 100);
            continue;
        }
        let mut decoder = BodyDecoder::new(terms.body, u64::MAX, &limits).expect("no limit on the body");
        let (body, consumed) = data_of(&mut decoder, &received[at..]);
        decoder.finish().ok()?;
        let is_last = !terms.keep_alive && head.status().code() != 101;
        return Some(((head.status().code(), is_last, body), at + consumed));
    }
}
