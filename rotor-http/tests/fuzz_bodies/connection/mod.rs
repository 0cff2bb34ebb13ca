//! A whole connection of a server, on a scripted socket. The client sends any bytes in any pieces,
//! and reads the answers at any speed. Each request must get exactly the answer that a strict
//! reading of all the bytes requires. If the client also pauses between its actions, it may get
//! fewer of these answers.

mod clock;
mod handler;
mod reference;

use std::sync::Arc;
use std::time::Duration;

use rotor_http::h1::{BodyDecoder, FieldStorage, HeadReader, Limits, Method, ResponseSemantics};
use rotor_http::server::{Connection, Counters, HttpSeed, ServerConfig};
use rotor_stream::testing::Driver;

use super::body::decode_data;
use super::input::{Cuts, HeadLimits, Input};
use super::naive::{self, ChunkLimits, Verdict};
use clock::{Clock, IDLE_LIMIT};
pub(super) use handler::{Site, TestContext};
use reference::{Ending, Expected, Reference, ServerLimits};

/// One parsed answer: its status, whether it is the last, its body.
type Answer = (u16, bool, Vec<u8>);

/// Unread input that a connection may hold: its high-water mark and one read.
const HELD_MAX: usize = (64 << 10) + (16 << 10);

/// Limits, how the peer reads its answers, its pauses if they matter, cuts; then the bytes that it
/// sends.
pub(super) fn run(data: &[u8]) {
    let mut choices = Input::new(data);
    let limited = choose_limits(&mut choices);
    let high_water = choices.pick(&[64 << 10, 400, 1]);
    let room = choices.pick(&[usize::MAX, 1 << 20, 300, 7]);
    let (is_flood, is_timed) = match choices.byte() % 8 {
        7 => (true, false),
        6 => (false, true),
        _ => (false, false),
    };
    let clock = is_timed.then(|| Clock::choose(&mut choices));
    let cuts = Cuts::choose(&mut choices);
    let input = choices.rest();

    let client = ClientBehavior { limited, high_water, room };
    let reference = reference::read(input, &client.limited);
    let whole = client.check(&[input], input, &reference);
    assert_eq!(
        client.check(&cuts.pieces(input), input, &reference),
        whole,
        "cut: {}",
        input.escape_ascii()
    );
    let bytes: Vec<&[u8]> = input.chunks(1 + input.len() / 512).collect();
    assert_eq!(
        client.check(&bytes, input, &reference),
        whole,
        "byte by byte: {}",
        input.escape_ascii()
    );
    if is_flood {
        client.flood(&input.repeat(64));
    }
    if let Some(clock) = clock {
        client.check_timed(&clock, &cuts.pieces(input), input, &reference);
        client.check_timed(&clock, &bytes, input, &reference);
        client.fall_silent(&clock, &cuts.pieces(input), input, &reference);
    }
}

fn choose_limits(choices: &mut Input<'_>) -> ServerLimits {
    let head = HeadLimits::choose(choices);
    let (line, extensions, trailer, trailers) =
        choices.pick(&[(256, 4 << 10, 4 << 10, 32), (20, 30, 50, 3), (1, 0, 2, 0)]);
    let (buffered, drained, requests) =
        choices.pick(&[(1 << 20, 64 << 10, u64::MAX), (20, 10, u64::MAX), (300, 0, 2)]);
    let chunks = ChunkLimits { body: u64::MAX, line, extensions, trailer, trailers };
    ServerLimits { head, chunks, buffered, drained, requests }
}

/// How a client behaves.
struct ClientBehavior {
    limited: ServerLimits,
    high_water: usize,
    /// Bytes that it reads at a time.
    room: usize,
}

impl ClientBehavior {
    fn limits(&self) -> Limits {
        let ServerLimits { head, chunks, buffered, drained, requests } = &self.limited;
        head.limits()
            .chunk_line_bytes_max(chunks.line)
            .extension_bytes_max(chunks.extensions)
            .trailer_bytes_max(chunks.trailer)
            .trailers_max(chunks.trailers)
            .buffered_body_bytes_max(*buffered)
            .drained_body_bytes_max(*drained)
            .requests_max(*requests)
            .output_high_water(self.high_water)
    }

    fn connect(&self, limits: Limits) -> (Driver<Connection<Site>>, Arc<Counters>) {
        let config = ServerConfig::new().limits(limits);
        let counters = config.counters();
        (Driver::new(HttpSeed::new((), config), TestContext::default()), counters)
    }

    /// Sends the pieces and compares the answers with the reference.
    fn check(&self, pieces: &[&[u8]], input: &[u8], reference: &Reference) -> Vec<Answer> {
        let (mut driver, _) = self.connect(self.limits());
        self.send(&mut driver, pieces, |_, _| {});
        self.finish(&mut driver, input, reference, false)
    }

    /// Sends the pieces one after another, and reads something after each.
    fn send(
        &self,
        driver: &mut Driver<Connection<Site>>,
        pieces: &[&[u8]],
        pause: impl Fn(&mut Driver<Connection<Site>>, usize),
    ) {
        if self.room < usize::MAX {
            driver.limit_room(0);
        }
        for (number, piece) in pieces.iter().enumerate() {
            driver.send(piece);
            if self.room < usize::MAX {
                driver.make_room(self.room);
            }
            pause(driver, number);
        }
    }

    /// The same with pauses: a client gets fewer answers only if it was late.
    fn check_timed(&self, clock: &Clock, pieces: &[&[u8]], input: &[u8], reference: &Reference) {
        let (mut driver, counters) = self.connect(clock.limits(self.limits()));
        self.send(&mut driver, pieces, |driver, number| driver.advance(clock.pause(number)));
        let timed_out = has_timed_out(&counters);
        assert!(!(timed_out && clock.is_fast(pieces.len())), "{counters:?} with {clock:?}");
        self.finish(&mut driver, input, reference, timed_out);
    }

    /// Sends the pieces with pauses, and then stays silent. That ends every connection unless it
    /// has switched to another protocol, which has no deadlines.
    fn fall_silent(&self, clock: &Clock, pieces: &[&[u8]], input: &[u8], reference: &Reference) {
        let (mut driver, _) = self.connect(clock.limits(self.limits()));
        self.send(&mut driver, pieces, |driver, number| driver.advance(clock.pause(number)));
        driver.advance(IDLE_LIMIT);
        let is_gone = driver.is_dropped() && !driver.is_alive();
        let is_switched = matches!(reference.ending, Ending::Switched(_));
        assert!(is_gone || is_switched, "{} with {clock:?}", input.escape_ascii());
        compare_after_timeout(&driver.take_received(), input, reference);
    }

    /// Sends much before it reads anything: pending bytes are bounded, and then everything is
    /// answered.
    fn flood(&self, input: &[u8]) {
        let reference = reference::read(input, &self.limited);
        let (mut driver, _) = self.connect(self.limits());
        driver.limit_room(0);
        driver.send(input);
        let begun = driver.context().heads.len();
        let dealt_with = reference.ends.get(begun).copied();
        if let (Some(dealt_with), false) = (dealt_with, driver.is_ended()) {
            let read = input.len() - driver.unread_len();
            assert!(read <= dealt_with + HELD_MAX, "{read} octets were read of {begun} requests");
        }
        self.finish(&mut driver, input, &reference, false);
    }

    /// The client shuts down its side and reads the rest. It may have been late.
    fn finish(
        &self,
        driver: &mut Driver<Connection<Site>>,
        input: &[u8],
        reference: &Reference,
        timed_out: bool,
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
        assert!(seen.unsent_max <= self.high_water, "{} octets wait", seen.unsent_max);
        assert!(seen.buffered_max as u64 <= self.limited.buffered);
        if timed_out {
            assert!(reference.heads.starts_with(&seen.heads), "{}", input.escape_ascii());
            compare_after_timeout(&received, input, reference);
            return Vec::new();
        }
        assert_eq!(seen.heads, reference.heads, "{}", input.escape_ascii());
        compare(&received, input, reference)
    }
}

/// Whether a timeout has passed that may have cost a response.
fn has_timed_out(counters: &Counters) -> bool {
    let of_time = [
        counters.idle_timeouts(),
        counters.head_timeouts(),
        counters.body_timeouts(),
        counters.handler_timeouts(),
        counters.response_timeouts(),
        counters.shutdown_timeouts(),
        // This counter includes bodies that were too long.
        counters.undrained(),
    ];
    of_time.iter().any(|count| *count > 0)
}

/// Reads the output of a connection that may have been ended by a deadline: the beginning of the
/// answers of the reference, of which the last may be cut short or followed by an error.
fn compare_after_timeout(received: &[u8], input: &[u8], reference: &Reference) {
    let shown =
        || format!("{}\nto {}\nnot {reference:?}", received.escape_ascii(), input.escape_ascii());
    let mut rest = received;
    for expected in &reference.answers {
        let method = if expected.is_head { Method::Head } else { Method::Get };
        let Some((answer, len)) = take_response(rest, method, expected) else { return };
        if !matches!(answer.0, 200 | 101) {
            break;
        }
        let body = if expected.is_head { &[][..] } else { &expected.body };
        assert_eq!(answer.2, body, "{}", shown());
        rest = &rest[len..];
    }
    if let (Ending::Switched(from), true) = (&reference.ending, !rest.starts_with(b"HTTP/")) {
        return assert!(input[*from..].starts_with(rest), "{}", shown());
    }
    // An error page that the client did not read is cut short, too.
    if let Some((answer, len)) = take_refusal(rest, true) {
        assert!((400..600).contains(&answer.0) && answer.1 && len == rest.len(), "{}", shown());
    }
}

/// Reads all answers, which must be those of the reference.
fn compare(received: &[u8], input: &[u8], reference: &Reference) -> Vec<Answer> {
    let shown =
        || format!("{}\nto {}\nnot {reference:?}", received.escape_ascii(), input.escape_ascii());
    let (mut answers, mut at) = (Vec::new(), 0);
    for (number, expected) in reference.answers.iter().enumerate() {
        let method = if expected.is_head { Method::Head } else { Method::Get };
        let (answer, len) = take_response(&received[at..], method, expected)
            .unwrap_or_else(|| panic!("{}", shown()));
        let status = if expected.is_switch { 101 } else { 200 };
        let body = if expected.is_head { &[][..] } else { &expected.body };
        assert_eq!((answer.0, &answer.2[..]), (status, body), "answer {number} of {}", shown());
        assert!(
            !answer.1 || number + 1 == reference.answers.len(),
            "{} follow: {}",
            number + 1,
            shown()
        );
        assert!(
            !answer.1 || matches!(reference.ending, Ending::Closed | Ending::Switched(_)),
            "{}",
            shown()
        );
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

/// The error at the end. Whether it has no body, as an answer to HEAD, cannot always be known; then
/// it has one.
fn take_refusal(rest: &[u8], may_continue: bool) -> Option<(Answer, usize)> {
    let body = Vec::new();
    let expected = Expected { is_head: false, may_continue, is_switch: false, body };
    let method = if rest.ends_with(b"\r\n\r\n") { Method::Head } else { Method::Get };
    take_response(rest, method, &expected)
}

/// Takes one answer off the front, with the interim answer that may come before it. Reads it with
/// the client's reader and with the naive one.
fn take_response(
    received: &[u8],
    method: Method<'_>,
    expected: &Expected,
) -> Option<(Answer, usize)> {
    const ALL: HeadLimits =
        HeadLimits { head: 1 << 20, field: 1 << 20, fields: 256, target: 0, empty_lines: 0 };
    let mut at = 0;
    loop {
        let rest = &received[at..];
        let limits = ALL.limits();
        let mut storage = FieldStorage::new();
        let head =
            HeadReader::new().read_response(rest, &mut storage, &limits).expect("a good head")?;
        let terms =
            ResponseSemantics::from_head(&head, method, expected.is_switch).expect("good terms");
        let Verdict::Good(naive) = naive::response_head(rest, &ALL) else { panic!("a good head") };
        assert_eq!(naive.len, head.input_len());
        at += head.input_len();
        if terms.is_interim {
            assert!(expected.may_continue && at == head.input_len() && head.status().code() == 100);
            continue;
        }
        let mut decoder =
            BodyDecoder::new(terms.body, u64::MAX, &limits).expect("no limit on the body");
        let (body, consumed) = decode_data(&mut decoder, &received[at..]);
        decoder.finish().ok()?;
        let is_last = !terms.keep_alive && head.status().code() != 101;
        return Some(((head.status().code(), is_last, body), at + consumed));
    }
}
