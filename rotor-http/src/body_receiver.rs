//! `BodyReceiver`: the body that a peer sends, of a request or a response: whether the handler has
//! requested it, how much has arrived, and when more must arrive. `handing_over` determines which
//! part can be handed over next.

mod handing_over;

use std::ops::Range;
use std::time::Duration;

use rotor_core::Time;
use rotor_stream::{Block, Buf, Share};

use crate::body_watch::BodyWatch;
use crate::collected::CollectedBytes;
use crate::h1::body::BodyDecoder;
use crate::h1::framing::Body;
use crate::limits::Limits;
use crate::recv_mode::{INPUT_BYTES_MAX, RecvMode};
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;

/// The body of one message, while it is received.
///
/// ```text
///            announce(body)         start_or_resume(mode)                 next(), finish()
///   Expected ─────────────▶ Announced ──────────────▶ Whole | Decoding ─────────────────▶ Ended
///                              │                        ▲  │ hold()                        ▲
///                              │                        └──┘ start_or_resume()             │
///                              └── no body; nobody wants it: take_rest(), skip_rest() ─────┘
/// ```
pub(crate) struct BodyReceiver {
    body: Body,
    state: State,
    is_requested: bool,
    /// The handler wants no more for now.
    is_held: bool,
    /// The peer may pause as long as it likes: no rate is watched.
    may_pause: bool,
    /// The body is stored for the handler, which takes all available blocks at once.
    #[cfg(feature = "body")]
    is_stored: bool,
    frame_state: FrameState,
    /// The trailers that the last frame brought, or, after the end of the body, those that its
    /// handler has not been told of yet. Few messages have any, and a stream should stay small, so
    /// they are boxed.
    trailers: Option<Box<Trailers>>,
    /// The memory of a whole body that waits in the input for the rest.
    waiting: Share,
    watch: BodyWatch,
}

/// What marks the end of the body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameState {
    /// The body itself (HTTP/1.1).
    Unframed,
    /// The frames in which it arrives (HTTP/2). The input contains only the bytes of the body, and
    /// more frames will follow.
    Open,
    /// As `Open`, but the last frame has arrived.
    Ended,
}

enum State {
    /// The head that announces the body has not arrived.
    Expected,
    /// The handler has not requested it.
    Announced,
    /// The body of this length is handed over from the input, once it has arrived completely.
    Whole(usize),
    /// Boxed, like the next variant: handlers that wait have received their body, or have none.
    Decoding(Box<DecodingBody>),
    /// With collected bytes that have not been handed over yet.
    Ended(Option<Box<CollectedBytes>>),
}

/// A body that is taken piece by piece.
struct DecodingBody {
    decoder: BodyDecoder,
    mode: RecvMode,
    /// The bytes that were collected for the handler.
    collected: CollectedBytes,
    /// How many bytes may have to be collected at most: the whole body, or a piece.
    collected_max: usize,
}

/// What can be done with the input.
#[derive(Debug)]
pub(crate) enum ReceiveOutcome {
    /// Nothing before this many bytes are unread in all; with `None`, nothing of the body is
    /// wanted.
    Wait(Option<usize>),
    /// Some bytes were collected; there may be more to do.
    Again,
    /// The whole body can be handed over.
    Whole(Part),
    /// A piece can be handed over. With trailers it is the last one, and only then it may be empty.
    Piece(Part, Option<Trailers>),
    /// The same, as a block with the memory in which it arrived. It has been removed from the
    /// input.
    Block(Block, Option<Trailers>),
    /// The same for a body that is stored: all blocks that have arrived.
    #[cfg(feature = "body")]
    Blocks(Vec<Block>, Option<Trailers>),
}

/// The position of the bytes to hand over. When the handler has got them, pass this to
/// [`BodyReceiver::discard_part`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Nothing,
    /// In the input; anything before the range is framing.
    Input(Range<usize>),
    Collected,
}

impl BodyReceiver {
    /// Creates a receiver for a message whose head has not arrived.
    pub(crate) fn expected() -> BodyReceiver {
        BodyReceiver {
            body: Body::Empty,
            state: State::Expected,
            is_requested: false,
            is_held: false,
            may_pause: false,
            #[cfg(feature = "body")]
            is_stored: false,
            frame_state: FrameState::Unframed,
            trailers: None,
            waiting: Share::NONE,
            watch: BodyWatch::NONE,
        }
    }

    /// Creates a receiver for a message that arrives in frames. If a length was announced, it has
    /// been checked against the frames by the time that the body ends.
    pub(crate) fn framed(body: Body) -> BodyReceiver {
        let mut receiver = BodyReceiver::announced(body);
        receiver.frame_state = match body {
            Body::Empty => FrameState::Ended,
            _ => FrameState::Open,
        };
        receiver
    }

    /// Records that the last frame has arrived, and its bytes are in the input.
    pub(crate) fn frames_ended(&mut self, trailers: Trailers) {
        self.frame_state = FrameState::Ended;
        self.trailers = (!trailers.is_empty()).then(|| Box::new(trailers));
    }

    /// Returns whether the body arrives in frames.
    pub(crate) fn is_framed(&self) -> bool {
        self.frame_state != FrameState::Unframed
    }

    /// Creates a receiver for the body that a head has announced.
    pub(crate) fn announced(body: Body) -> BodyReceiver {
        let mut receiver = BodyReceiver::expected();
        receiver.announce(body);
        receiver
    }

    /// Sets the body that the head has announced.
    pub(crate) fn announce(&mut self, body: Body) {
        self.body = body;
        self.state = if body == Body::Empty { State::Ended(None) } else { State::Announced };
    }

    /// Returns how the body is delimited, once it was announced.
    pub(crate) fn body(&self) -> Body {
        self.body
    }

    pub(crate) fn awaits_head(&self) -> bool {
        matches!(self.state, State::Expected)
    }

    /// Returns whether there is a body that nobody has requested yet.
    #[inline]
    pub(crate) fn is_unrequested(&self) -> bool {
        matches!(self.state, State::Announced)
    }

    /// Returns whether the handler waits for the peer to send.
    #[inline]
    pub(crate) fn is_receiving(&self) -> bool {
        !self.is_held && matches!(self.state, State::Whole(_) | State::Decoding(_))
    }

    /// Returns whether a part of the body was decoded, or its end.
    pub(crate) fn has_received(&self) -> bool {
        match &self.state {
            State::Decoding(decoding) => decoding.decoder.received() > 0,
            state => matches!(state, State::Ended(_)),
        }
    }

    /// Returns whether the whole body has arrived on a connection of its own. Whatever arrives next
    /// is another request, or the peer's end.
    pub(crate) fn has_ended_unframed(&self) -> bool {
        matches!(self.state, State::Ended(_)) && !self.is_framed()
    }

    /// Returns whether the handler has requested the body.
    #[cfg(feature = "body")]
    pub(crate) fn is_requested(&self) -> bool {
        self.is_requested
    }

    /// Continues after [`hold`](BodyReceiver::hold).
    #[cfg(feature = "body")]
    pub(crate) fn release(&mut self) {
        self.is_held = false;
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Starts to receive the body, or continues after [`hold`](BodyReceiver::hold); the mode of the
    /// first call counts. Returns whether this is the start. Does nothing before the head has
    /// arrived.
    ///
    /// # Errors
    ///
    /// `TooLarge`: the announced length is greater than the handler or the limits allow.
    pub(crate) fn start_or_resume(
        &mut self,
        mode: RecvMode,
        now: Time,
        limits: &Limits,
    ) -> Result<bool, BodyError> {
        // Even if there is nothing else to do: after `hold` this is the only purpose of the call.
        self.is_held = false;
        if self.awaits_head() || std::mem::replace(&mut self.is_requested, true) {
            return Ok(false);
        }
        #[cfg(feature = "body")]
        {
            self.is_stored = matches!(mode, RecvMode::Stored { .. });
        }
        // From now on, because a peer that had to wait for the handler is not late.
        self.watch = BodyWatch::begin(limits, now);
        let (mode, bytes_max) = match mode {
            // The lower of the two: a handler may ask for less than the connection allows, but not
            // for more.
            RecvMode::Buffered(max) => (mode, limits.buffered_body_bytes_max.min(max as u64)),
            // A piece must fit into the input together with the bytes after it.
            RecvMode::Progressive(min) => {
                (RecvMode::Progressive(min.clamp(1, INPUT_BYTES_MAX / 2)), u64::MAX)
            }
            // The collector limits what is stored.
            _ => (RecvMode::Blocks, u64::MAX),
        };
        let collected_max = match (self.body, mode) {
            (_, RecvMode::Progressive(min)) => min as u64,
            (Body::Length(length), RecvMode::Buffered(_)) => length.min(bytes_max),
            (_, RecvMode::Buffered(_)) => bytes_max,
            _ => 0,
        };
        let collected_max = usize::try_from(collected_max).unwrap_or(usize::MAX);
        self.state = match (self.body, mode) {
            (Body::Empty, RecvMode::Buffered(_)) => State::Whole(0),
            // A body that fits into the input is not copied out of it.
            (Body::Length(length), RecvMode::Buffered(_))
                if length <= bytes_max.min(INPUT_BYTES_MAX as u64) =>
            {
                State::Whole(length as usize)
            }
            (body, mode) => {
                let body = self.decoder_body(body, bytes_max)?;
                let decoder = BodyDecoder::new(body, bytes_max, limits)?;
                let collected = CollectedBytes::EMPTY;
                State::Decoding(Box::new(DecodingBody { decoder, mode, collected, collected_max }))
            }
        };
        Ok(true)
    }

    /// Lets the peer pause as long as it likes from now on.
    pub(crate) fn allow_pauses(&mut self) {
        self.may_pause = true;
        self.watch = BodyWatch::NONE;
    }

    /// Returns whether the peer may pause as long as it likes.
    pub(crate) fn may_pause(&self) -> bool {
        self.may_pause
    }

    /// Returns whether bytes are collected until the whole body has arrived.
    pub(crate) fn is_collecting(&self) -> bool {
        let State::Decoding(decoding) = &self.state else { return false };
        matches!(decoding.mode, RecvMode::Buffered(_))
    }

    /// Returns how the decoder finds the end: in frames, nothing follows the body.
    fn decoder_body(&self, body: Body, bytes_max: u64) -> Result<Body, BodyError> {
        match body {
            Body::Length(length) if self.is_framed() && length > bytes_max => {
                Err(BodyError::TooLarge)
            }
            Body::Empty => Ok(body),
            _ if self.is_framed() => Ok(Body::UntilClose),
            body => Ok(body),
        }
    }

    /// Stops receiving until the handler requests more.
    pub(crate) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Returns whether the body was announced, and its end was not handed over.
    pub(crate) fn has_rest(&self) -> bool {
        !matches!(self.state, State::Expected | State::Ended(_))
    }

    /// Returns whether the body was requested and is incomplete. A body that lasts until close is
    /// incomplete until the end of the connection.
    pub(crate) fn is_incomplete(&self) -> bool {
        match &self.state {
            State::Expected | State::Announced | State::Ended(_) => false,
            State::Whole(_) => true,
            State::Decoding(decoding) => !decoding.decoder.is_end(),
        }
    }

    /// Records the end of the body, and returns its trailers.
    fn end(&mut self) -> Trailers {
        self.waiting = Share::NONE;
        let State::Decoding(decoding) = std::mem::replace(&mut self.state, State::Ended(None))
        else {
            return self.framed_trailers();
        };
        let DecodingBody { decoder, collected, .. } = *decoding;
        // The handler may live on for long, and needs no room for further pieces.
        self.state = State::Ended((!collected.is_empty()).then(|| Box::new(collected)));
        match self.frame_state {
            FrameState::Ended => self.framed_trailers(),
            _ => decoder.into_trailers(),
        }
    }

    /// Records that the body has ended, and that its handler must be told so later.
    pub(crate) fn set_pending_end(&mut self, trailers: Trailers) {
        self.trailers = Some(Box::new(trailers));
    }

    /// Returns the trailers of a body that has ended, if its handler has not been told of the end.
    pub(crate) fn take_pending_end(&mut self) -> Option<Trailers> {
        let has_ended = matches!(self.state, State::Ended(_));
        self.trailers.take_if(|_| has_ended).map(|trailers| *trailers)
    }

    fn framed_trailers(&mut self) -> Trailers {
        self.trailers.take().map(|trailers| *trailers).unwrap_or_default()
    }

    /// Gives up the body, which nobody wants any more. Returns a decoder for the rest of it, or
    /// `None` if nothing is left.
    pub(crate) fn take_rest(&mut self, limits: &Limits) -> Option<BodyDecoder> {
        let decoder = match std::mem::replace(&mut self.state, State::Ended(None)) {
            State::Expected | State::Ended(_) => return None,
            // This limit allows any length.
            State::Announced | State::Whole(_) => {
                BodyDecoder::new(self.body, u64::MAX, limits).ok()?
            }
            State::Decoding(decoding) => decoding.decoder,
        };
        if decoder.is_end() { None } else { Some(decoder) }
    }

    /// Gives up the body, which nobody wants any more, and drops the rest. Returns whether all of
    /// it had arrived; if not, it is not known where the next message begins.
    pub(crate) fn skip_rest(&mut self, input: &mut Buf, limits: &Limits) -> bool {
        // Before the head has arrived it is not known whether there is a body.
        if self.awaits_head() {
            return false;
        }
        let Some(mut decoder) = self.take_rest(limits) else { return true };
        loop {
            // After invalid framing it is not known where the next message begins.
            let Ok(decoded) = decoder.decode(input) else { return false };
            if !decoded.is_end && decoded.needs_input() {
                return false;
            }
            input.consume(decoded.consumed());
            if decoded.is_end {
                return true;
            }
        }
    }

    /// Gives the peer this much more time.
    pub(crate) fn extend_deadline(&mut self, time: Duration) {
        self.watch.extend_deadline(time);
    }

    /// Returns the time by which more of the body must have arrived, of which `unread` bytes are in
    /// the input. Time in which no input is taken does not count against the peer: while the
    /// handler holds the body, or while output waits for the peer (`is_gated`).
    pub(crate) fn deadline(
        &mut self,
        unread: usize,
        is_gated: bool,
        limits: &Limits,
        now: Time,
    ) -> Time {
        let received = match &self.state {
            State::Expected | State::Announced | State::Ended(_) => return Time::NEVER,
            State::Whole(_) => unread as u64,
            State::Decoding(decoding) => decoding.decoder.received(),
        };
        self.watch.update(received, is_gated || self.is_held, limits, now);
        self.watch.deadline()
    }
}

#[cfg(test)]
mod tests;
