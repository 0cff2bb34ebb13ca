//! What is known of an answer's body: whether the handler has asked for it, how much has come,
//! until when more must.

use std::sync::Arc;

use rotor_core::Time;
use rotor_stream::{BytesHeld, NoRoom};

use crate::body_watch::BodyWatch;
use crate::collected::Collected;
use crate::h1::{Body, BodyDecoder, BodyError, Limits, Trailers};
use crate::recv_mode::{INPUT_BYTES_MAX, RecvMode};

/// The answer as far as it is read.
///
/// ```text
///         final head                recv(mode)
///  Head ─────────────▶ NotAsked ───────────────▶ Body ──end──▶ Ended
///                         │                      ▲  │ hold()
///                         └── no body: Ended     └──┘ recv()
/// ```
pub(super) struct Receiving {
    stage: Reading,
    /// What was collected of the body for the handler.
    pub(super) collected: Collected,
    /// Octets that may have to be collected at most: of the whole body, or of a piece.
    collected_max: usize,
    watch: BodyWatch,
    /// The handler holds the body off.
    is_held: bool,
}

enum Reading {
    /// The final head is still to come.
    Head,
    /// The handler has not asked for the body.
    NotAsked(Body),
    Body(Box<BodyDecoder>, RecvMode),
    Ended,
}

/// What a look at the body has found at the beginning of the input.
pub(super) struct Found {
    /// Octets of framing before the data, octets of data.
    pub(super) skip: usize,
    pub(super) data: usize,
    /// The trailers, if the body has ended.
    pub(super) end: Option<Trailers>,
    pub(super) mode: RecvMode,
}

impl Receiving {
    pub(super) fn new() -> Receiving {
        Receiving {
            stage: Reading::Head,
            collected: Collected::NOTHING,
            collected_max: 0,
            watch: BodyWatch::NONE,
            is_held: false,
        }
    }

    /// The final head has come.
    pub(super) fn head_came(&mut self, body: Body) {
        self.stage = Reading::NotAsked(body);
    }

    pub(super) fn is_before_head(&self) -> bool {
        matches!(self.stage, Reading::Head)
    }

    /// Whether something of the answer is wanted: else nothing is read.
    pub(super) fn wants_input(&self) -> bool {
        !self.is_held && matches!(self.stage, Reading::Head | Reading::Body(..))
    }

    /// Begins to receive the body, or goes on with it.
    ///
    /// # Errors
    ///
    /// `TooLarge`: it was announced to be longer than the handler or the limits allow.
    pub(super) fn ask(
        &mut self,
        mode: RecvMode,
        now: Time,
        limits: &Limits,
    ) -> Result<(), BodyError> {
        self.is_held = false;
        let Reading::NotAsked(body) = self.stage else { return Ok(()) };
        self.watch = BodyWatch::begin(limits, now);
        let (mode, bytes_max) = match mode {
            RecvMode::Buffered(max) => (mode, limits.buffered_body_bytes_max.min(max as u64)),
            RecvMode::Progressive(min) => {
                (RecvMode::Progressive(min.clamp(1, INPUT_BYTES_MAX / 2)), u64::MAX)
            }
            RecvMode::Blocks => (mode, u64::MAX),
        };
        let collected_max = match (body, mode) {
            (_, RecvMode::Progressive(min)) => min as u64,
            (_, RecvMode::Blocks) => 0,
            (Body::Length(length), RecvMode::Buffered(_)) => length.min(bytes_max),
            (_, RecvMode::Buffered(_)) => bytes_max,
        };
        self.collected_max = usize::try_from(collected_max).unwrap_or(usize::MAX);
        self.stage = Reading::Body(Box::new(BodyDecoder::new(body, bytes_max, limits)?), mode);
        Ok(())
    }

    /// Adds a part of the body to what was collected.
    ///
    /// # Errors
    ///
    /// The bodies of all answers hold as much as they may.
    pub(super) fn collect(&mut self, part: &[u8], total: &Arc<BytesHeld>) -> Result<(), NoRoom> {
        self.collected.append(part, self.collected_max, total)
    }

    /// Takes no more of the body.
    pub(super) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Looks at the beginning of the input; `None` when more is needed, or nothing wanted.
    ///
    /// # Errors
    ///
    /// The server's fault; nothing more can be read.
    pub(super) fn look(&mut self, input: &[u8]) -> Result<Option<Found>, BodyError> {
        if self.is_held {
            return Ok(None);
        }
        let Reading::Body(decoder, mode) = &mut self.stage else { return Ok(None) };
        let mode = *mode;
        let decoded = decoder.decode(input)?;
        let end = decoded.is_end.then(|| self.take_trailers());
        if decoded.data == 0 && decoded.skip == 0 && end.is_none() {
            return Ok(None);
        }
        Ok(Some(Found { skip: decoded.skip, data: decoded.data, end, mode }))
    }

    fn take_trailers(&mut self) -> Trailers {
        match std::mem::replace(&mut self.stage, Reading::Ended) {
            Reading::Body(decoder, _) => decoder.into_trailers(),
            _ => Trailers::default(),
        }
    }

    /// The server sends no more: answers how the handler gets the body, if that was its end.
    ///
    /// # Errors
    ///
    /// `Truncated`: what came is not all of it.
    pub(super) fn finish(&mut self) -> Result<Option<RecvMode>, BodyError> {
        let Reading::Body(decoder, mode) = &mut self.stage else { return Ok(None) };
        let mode = *mode;
        decoder.finish()?;
        self.stage = Reading::Ended;
        Ok(Some(mode))
    }

    /// The handler is done: reads what is left of the body, if all of it has come. Answers how much
    /// of the input that is; `None` if where the answer ends is not known yet.
    pub(super) fn skip_rest(&mut self, input: &[u8], limits: &Limits) -> Option<usize> {
        let mut decoder = match std::mem::replace(&mut self.stage, Reading::Ended) {
            Reading::Ended => return Some(0),
            Reading::Head => return None,
            Reading::NotAsked(body) => BodyDecoder::new(body, u64::MAX, limits).ok()?,
            Reading::Body(decoder, _) => *decoder,
        };
        let mut consumed = 0;
        while !decoder.is_end() {
            let decoded = decoder.decode(&input[consumed..]).ok()?;
            consumed += decoded.consumed();
            if decoded.needs_input() {
                return None;
            }
        }
        Some(consumed)
    }

    /// Until when more of the body must have come. Time in which the handler holds it off does not
    /// count.
    pub(super) fn deadline(&mut self, limits: &Limits, now: Time) -> Time {
        let Reading::Body(decoder, _) = &self.stage else { return Time::NEVER };
        self.watch.update(decoder.received(), self.is_held, limits, now);
        self.watch.deadline()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn receiving(body: Body, mode: RecvMode) -> Receiving {
        let mut receiving = Receiving::new();
        receiving.head_came(body);
        receiving.ask(mode, Time::ZERO, &Limits::new()).expect("within the limits");
        receiving
    }

    #[test]
    fn what_is_left_of_a_body_is_skipped_if_all_of_it_has_come() {
        let limits = Limits::new();
        let rows: [(Body, &[u8], Option<usize>); 8] = [
            (Body::Empty, b"", Some(0)),
            (Body::Empty, b"x", Some(0)),
            (Body::Length(3), b"abcx", Some(3)),
            (Body::Length(3), b"ab", None),
            (Body::Chunked, b"1\r\na\r\n0\r\n\r\n", Some(11)),
            (Body::Chunked, b"1\r\na\r\n0\r\n", None),
            (Body::Chunked, b"zz\r\n", None),
            (Body::UntilClose, b"abc", None),
        ];
        for (body, input, expected) in rows {
            let mut asked = receiving(body, RecvMode::Progressive(1));
            assert_eq!(
                asked.skip_rest(input, &limits),
                expected,
                "asked: {body:?} {}",
                input.escape_ascii()
            );
            let mut not_asked = Receiving::new();
            not_asked.head_came(body);
            assert_eq!(not_asked.skip_rest(input, &limits), expected, "not asked: {body:?}");
        }
        assert_eq!(Receiving::new().skip_rest(b"", &limits), None, "no head has come");
    }

    #[test]
    fn a_body_beyond_what_the_handler_takes_is_refused_by_its_announcement() {
        let limits = Limits::new().buffered_body_bytes_max(10);
        for (length, mode, is_taken) in [
            (9, RecvMode::Buffered(9), true),
            (10, RecvMode::Buffered(9), false),
            (10, RecvMode::Buffered(99), true),
            (11, RecvMode::Buffered(99), false),
            (1 << 40, RecvMode::Progressive(1), true),
        ] {
            let mut receiving = Receiving::new();
            receiving.head_came(Body::Length(length));
            let asked = receiving.ask(mode, Time::ZERO, &limits);
            assert_eq!(asked.is_ok(), is_taken, "{length} {mode:?}");
        }
    }

    #[test]
    fn time_in_which_the_handler_holds_the_body_off_does_not_count() {
        let limits = Limits::new().body_grace(Duration::from_secs(5)).body_rate_min(1);
        let mut receiving = receiving(Body::Length(100), RecvMode::Progressive(1));
        let second = |seconds| Time::ZERO + Duration::from_secs(seconds);
        assert_eq!(receiving.deadline(&limits, second(0)), second(5));
        let _ = receiving.look(b"abc").expect("it is a body");
        assert_eq!(receiving.deadline(&limits, second(4)), second(8), "a second for each octet");
        receiving.hold();
        assert_eq!(receiving.deadline(&limits, second(6)), Time::NEVER);
        assert!(!receiving.wants_input());
        receiving.ask(RecvMode::Progressive(1), second(16), &limits).expect("asked before");
        assert_eq!(receiving.deadline(&limits, second(16)), second(18));
        assert!(receiving.wants_input());
    }
}
