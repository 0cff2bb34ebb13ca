//! A body that no handler wants: it is read and dropped, so that the next request can be found
//! after it, or the connection closes.

use rotor_core::Time;

use super::config::ServerConfig;
use crate::body_receiver::BodyReceiver;
use crate::h1::body::BodyDecoder;
use crate::h1::framing::Body;
use crate::h1::request_semantics::RequestSemantics;
use crate::limits::Limits;

/// What the head has announced about the body.
#[derive(Clone, Copy)]
pub(super) struct AnnouncedBody {
    pub(super) body: Body,
    /// Whether the peer waits for `100 Continue`, which it has not been sent.
    pub(super) expects_continue: bool,
}

/// What is left of a body that no handler wants.
pub(super) enum BodyRest {
    Nothing,
    /// It is read and dropped.
    Unwanted(Box<UnwantedBody>),
    /// Closing is cheaper than reading it, or the peer may never send it.
    TooMuch,
}

/// A body that is read and dropped.
pub(super) struct UnwantedBody {
    pub(super) decoder: BodyDecoder,
    /// As soon as more than this number of its bytes has been received, the connection closes.
    pub(super) received_max: u64,
    /// `NEVER` until the responses before it are sent.
    pub(super) deadline: Time,
}

impl AnnouncedBody {
    #[inline]
    pub(super) fn from_semantics(semantics: &RequestSemantics<'_>) -> AnnouncedBody {
        AnnouncedBody { body: semantics.body, expects_continue: semantics.expects_continue }
    }

    /// Returns whether a response that is written before the body was requested must be the last:
    /// the peer may never send the body, or it is too long to be read only to be dropped. In both
    /// cases the next request cannot be found.
    #[inline]
    pub(super) fn must_close(self, limits: &Limits) -> bool {
        self.expects_continue || self.is_too_long(limits)
    }

    /// Returns whether the announced length is more than what is read only to be dropped.
    #[inline]
    pub(super) fn is_too_long(self, limits: &Limits) -> bool {
        matches!(self.body, Body::Length(length) if length > limits.drained_body_bytes_max)
    }

    /// Returns what is left of the body, now that its handler is done.
    #[inline]
    pub(super) fn rest(self, body: &mut BodyReceiver, config: &ServerConfig) -> BodyRest {
        let limits = config.limits_ref();
        if self.expects_continue {
            // The peer waits for `100 Continue`, and may as well send its next request: the next
            // bytes could be either (RFC 9110 §10.1.1).
            return BodyRest::TooMuch;
        }
        let Some(decoder) = body.take_rest(limits) else { return BodyRest::Nothing };
        // This also covers the current chunk, whose size says how much of it is still to come.
        if decoder.left() > limits.drained_body_bytes_max {
            return BodyRest::TooMuch;
        }
        // In addition to what has arrived already, of which the handler may have read any part.
        let received_max = decoder.received().saturating_add(limits.drained_body_bytes_max);
        let deadline = Time::NEVER;
        BodyRest::Unwanted(Box::new(UnwantedBody { decoder, received_max, deadline }))
    }
}
