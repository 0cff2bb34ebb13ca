//! What is known of a request's body: whether the handler has asked for it, how much has come,
//! until when more must.

use rotor_core::Time;
use rotor_stream::{Buf, NoRoom, Share};

use super::config::ServerConfig;
use crate::body_watch::BodyWatch;
use crate::h1::{Body, BodyDecoder, BodyError, Limits, RequestSemantics, Trailers};
use crate::recv_mode::{INPUT_BYTES_MAX, RecvMode};

/// The body of one request.
///
/// ```text
/// NotAsked ──ask(mode)──▶ Whole | Decoding ──▶ Ended
/// ```
pub(super) struct Incoming {
    announced: Announced,
    is_asked: bool,
    /// The handler wants no more for now.
    is_held: bool,
    /// Octets that may have to be collected at most: of the whole body, or of a piece.
    collected_max: usize,
    /// What of a whole body waits in the input for the rest.
    waiting: Share,
    pub(super) receiving: Receiving,
    watch: BodyWatch,
}

pub(super) enum Receiving {
    /// The handler has not asked for the body.
    NotAsked,
    /// The body of this length is handed over from where it stands in the input, once it is there.
    Whole(usize),
    Decoding(BodyDecoder, RecvMode),
    Ended,
}

/// What the head has said of the body.
#[derive(Clone, Copy)]
pub(super) struct Announced {
    body: Body,
    expects_continue: bool,
}

impl Announced {
    #[inline]
    pub(super) fn of(terms: &RequestSemantics<'_>) -> Announced {
        Announced { body: terms.body, expects_continue: terms.expects_continue }
    }

    /// Whether an answer that is written before the body was asked for must be the last, because
    /// what follows it cannot be found: the peer may never send the body, or it is too long to be
    /// read for nothing.
    #[inline]
    pub(super) fn must_close(self, limits: &Limits) -> bool {
        self.expects_continue || self.is_too_long(limits)
    }

    /// Whether the body was announced to be longer than what is read for nothing.
    #[inline]
    fn is_too_long(self, limits: &Limits) -> bool {
        matches!(self.body, Body::Length(length) if length > limits.drained_body_bytes_max)
    }
}

/// What is left of a body that nobody wants.
pub(super) enum Rest {
    Nothing,
    Some(Box<Unwanted>),
    TooMuch,
}

/// A body that is read and dropped.
pub(super) struct Unwanted {
    pub(super) decoder: BodyDecoder,
    /// Octets of it that may have been received in all.
    pub(super) received_max: u64,
    pub(super) deadline: Time,
}

impl Incoming {
    pub(super) fn new(announced: Announced) -> Incoming {
        let is_empty = announced.body == Body::Empty;
        Incoming {
            announced,
            is_asked: false,
            is_held: false,
            collected_max: 0,
            waiting: Share::NONE,
            receiving: if is_empty { Receiving::Ended } else { Receiving::NotAsked },
            watch: BodyWatch::NONE,
        }
    }

    /// As [`Announced::must_close`], of an answer that is written now.
    #[inline]
    pub(super) fn must_close(&self, limits: &Limits) -> bool {
        matches!(self.receiving, Receiving::NotAsked) && self.announced.must_close(limits)
    }

    /// Whether nobody has asked for the body, and it was announced to be longer than what is read
    /// for nothing.
    #[inline]
    pub(super) fn is_too_long(&self, limits: &Limits) -> bool {
        matches!(self.receiving, Receiving::NotAsked) && self.announced.is_too_long(limits)
    }

    /// Begins to receive the body; asking again changes nothing. Answers whether the peer waits to
    /// be told.
    ///
    /// # Errors
    ///
    /// `TooLarge`: it was announced to be longer than the handler or the limits allow.
    pub(super) fn ask(
        &mut self,
        mode: RecvMode,
        now: Time,
        limits: &Limits,
    ) -> Result<bool, BodyError> {
        self.is_held = false;
        if std::mem::replace(&mut self.is_asked, true) {
            return Ok(false);
        }
        self.watch = BodyWatch::begin(limits, now);
        let (mode, bytes_max) = match mode {
            RecvMode::Buffered(max) => (mode, limits.buffered_body_bytes_max.min(max as u64)),
            RecvMode::Progressive(min) => {
                (RecvMode::Progressive(min.clamp(1, INPUT_BYTES_MAX / 2)), u64::MAX)
            }
            RecvMode::Blocks => (mode, u64::MAX),
        };
        self.collected_max = match (self.announced.body, mode) {
            (_, RecvMode::Progressive(min)) => min,
            (_, RecvMode::Blocks) => 0,
            (Body::Length(length), _) => {
                usize::try_from(length.min(bytes_max)).unwrap_or(usize::MAX)
            }
            (_, RecvMode::Buffered(_)) => usize::try_from(bytes_max).unwrap_or(usize::MAX),
        };
        self.receiving = match (self.announced.body, mode) {
            (Body::Empty, RecvMode::Buffered(_)) => Receiving::Whole(0),
            (Body::Length(length), RecvMode::Buffered(_))
                if length <= bytes_max.min(INPUT_BYTES_MAX as u64) =>
            {
                Receiving::Whole(length as usize)
            }
            (body, mode) => Receiving::Decoding(BodyDecoder::new(body, bytes_max, limits)?, mode),
        };
        Ok(self.announced.expects_continue)
    }

    /// Octets that may have to be collected at most.
    pub(super) fn collected_max(&self) -> usize {
        self.collected_max
    }

    /// A part of the body waits in the input for the rest: counts the memory that it keeps there.
    ///
    /// # Errors
    ///
    /// The bodies hold as much as they may.
    pub(super) fn wait_in(&mut self, input: &Buf, config: &ServerConfig) -> Result<(), NoRoom> {
        self.waiting.set(kept_of(input), config.bodies())
    }

    /// Whether the peer is to send.
    #[inline]
    pub(super) fn is_receiving(&self) -> bool {
        !self.is_held && matches!(self.receiving, Receiving::Whole(_) | Receiving::Decoding(..))
    }

    /// The handler takes no more until it asks again.
    pub(super) fn hold(&mut self) {
        self.is_held = true;
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// The body has come to its end.
    pub(super) fn end(&mut self) -> Trailers {
        self.waiting = Share::NONE;
        match std::mem::replace(&mut self.receiving, Receiving::Ended) {
            Receiving::Decoding(decoder, _) => decoder.into_trailers(),
            _ => Trailers::default(),
        }
    }

    /// Until when more of the body must have come, of which so much is unread. Time in which
    /// nothing is taken in does not count against the peer: neither while the handler holds the
    /// body off nor while the output waits.
    pub(super) fn deadline(
        &mut self,
        unread: usize,
        is_gated: bool,
        limits: &Limits,
        now: Time,
    ) -> Time {
        let received = match &self.receiving {
            Receiving::NotAsked | Receiving::Ended => return Time::NEVER,
            Receiving::Whole(_) => unread as u64,
            Receiving::Decoding(decoder, _) => decoder.received(),
        };
        self.watch.update(received, is_gated || self.is_held, limits, now);
        self.watch.deadline()
    }

    /// What is left of the body when nobody wants it.
    #[inline]
    pub(super) fn rest(&mut self, now: Time, config: &ServerConfig) -> Rest {
        let limits = config.limits_ref();
        let decoder = match std::mem::replace(&mut self.receiving, Receiving::Ended) {
            Receiving::Ended => return Rest::Nothing,
            Receiving::NotAsked if self.announced.expects_continue => return Rest::TooMuch,
            Receiving::NotAsked | Receiving::Whole(_) => {
                BodyDecoder::new(self.announced.body, u64::MAX, limits)
            }
            Receiving::Decoding(decoder, _) => Ok(decoder),
        };
        match decoder {
            Ok(decoder) if decoder.is_end() => Rest::Nothing,
            Ok(decoder) if decoder.left() <= limits.drained_body_bytes_max => {
                let received_max = decoder.received().saturating_add(limits.drained_body_bytes_max);
                let deadline = now + limits.shutdown_timeout;
                Rest::Some(Box::new(Unwanted { decoder, received_max, deadline }))
            }
            _ => Rest::TooMuch,
        }
    }
}

/// The memory that an input keeps while it waits, at most: a stream at rest moves what fills less
/// than an eighth of its block to a smaller place.
fn kept_of(input: &Buf) -> usize {
    if input.is_empty() { 0 } else { input.capacity().min(input.len().saturating_mul(8).max(64)) }
}
