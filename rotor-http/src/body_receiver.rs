//! `BodyReceiver`: what is known of the body that a peer sends: whether the handler has asked for
//! it, how much has come, until when more must come. Of requests and of responses. What can be
//! handed over next is in `handing_over`.

mod handing_over;

use std::ops::Range;
use std::time::Duration;

use rotor_core::Time;
use rotor_stream::{Block, Buf, Share};

use crate::body_watch::BodyWatch;
use crate::collected::Collected;
use crate::h1::body::BodyDecoder;
use crate::h1::framing::Body;
use crate::limits::Limits;
use crate::recv_mode::{INPUT_BYTES_MAX, RecvMode};
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;

/// The body of one message, as it is received.
///
/// ```text
///            announce(body)              ask(mode)                     next(), finish()
///   Expected ─────────────▶ Announced ─────────────▶ Whole | Decoding ─────────────────▶ Ended
///                              │                       ▲  │ hold()                        ▲
///                              │                       └──┘ ask()                         │
///                              └── no body; nobody wants it: rest(), skip_rest() ─────────┘
/// ```
pub(crate) struct BodyReceiver {
    body: Body,
    state: State,
    is_asked: bool,
    /// The handler wants no more for now.
    is_held: bool,
    /// It is stored for the handler: as many blocks as there are can be taken at once.
    #[cfg(feature = "body")]
    is_stored: bool,
    framed: Framed,
    /// Those that the last frame brought; behind the end of the body, those that its handler is still
    /// to be told of. Few messages have any: a stream should stay small.
    trailers: Option<Box<Trailers>>,
    /// What of a whole body waits in the input for the rest.
    waiting: Share,
    watch: BodyWatch,
}

/// Who knows where the body ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framed {
    /// It says so itself (HTTP/1.1).
    No,
    /// The frames in which it comes (HTTP/2): its octets alone are in the input, and the last are
    /// still to come.
    Open,
    /// The same, and all are there.
    Ended,
}

enum State {
    /// The head that announces it is still to come.
    Expected,
    /// The handler has not asked for it.
    Announced,
    /// The body of this length is handed over from where it stands in the input, once it is there.
    Whole(usize),
    /// Behind an allocation, as what follows: handlers that wait have had their body, or none.
    Decoding(Box<Decoding>),
    /// With what was collected and is still to be handed over.
    Ended(Option<Box<Collected>>),
}

/// A body that is taken as it comes.
struct Decoding {
    decoder: BodyDecoder,
    mode: RecvMode,
    /// What was collected of the body for the handler.
    collected: Collected,
    /// Octets that may have to be collected at most: of the whole body, or of a piece.
    collected_max: usize,
}

/// What can be done with what has come.
#[derive(Debug)]
pub(crate) enum Received {
    /// Nothing before so many bytes are unread in all; with `None`, nothing of the body is wanted.
    Wait(Option<usize>),
    /// Something was put aside; there may be more.
    Again,
    /// The whole body is to be handed over.
    Whole(Part),
    /// A piece is, and it is the last one if there are trailers; only then it may be empty.
    Piece(Part, Option<Trailers>),
    /// The same, with the memory in which it came. It is out of the input already.
    Block(Block, Option<Trailers>),
    /// The same of a body that is stored: as many as have come.
    #[cfg(feature = "body")]
    Blocks(Vec<Block>, Option<Trailers>),
}

/// Where the octets are that are to be handed over. To be given back when they were, by
/// [`BodyReceiver::handed_over`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Nothing,
    /// In the input; what is before the end of it is framing.
    Input(Range<usize>),
    Collected,
}

impl BodyReceiver {
    /// The body of a message whose head is still to come.
    pub(crate) fn expected() -> BodyReceiver {
        BodyReceiver {
            body: Body::Empty,
            state: State::Expected,
            is_asked: false,
            is_held: false,
            #[cfg(feature = "body")]
            is_stored: false,
            framed: Framed::No,
            trailers: None,
            waiting: Share::NONE,
            watch: BodyWatch::NONE,
        }
    }

    /// The body of a message that comes in frames: its length, if that was said, was checked
    /// against theirs by the time that it ends.
    pub(crate) fn framed(body: Body) -> BodyReceiver {
        let mut receiver = BodyReceiver::announced(body);
        receiver.framed = match body {
            Body::Empty => Framed::Ended,
            _ => Framed::Open,
        };
        receiver
    }

    /// The last frame of it has come, and its octets are in the input.
    pub(crate) fn frames_ended(&mut self, trailers: Trailers) {
        self.framed = Framed::Ended;
        self.trailers = (!trailers.is_empty()).then(|| Box::new(trailers));
    }

    /// Returns whether it comes in frames.
    pub(crate) fn is_framed(&self) -> bool {
        self.framed != Framed::No
    }

    /// The body that a head has announced.
    pub(crate) fn announced(body: Body) -> BodyReceiver {
        let mut receiver = BodyReceiver::expected();
        receiver.announce(body);
        receiver
    }

    /// The head has come.
    pub(crate) fn announce(&mut self, body: Body) {
        self.body = body;
        self.state = if body == Body::Empty { State::Ended(None) } else { State::Announced };
    }

    /// Returns how it is delimited, once it was announced.
    pub(crate) fn body(&self) -> Body {
        self.body
    }

    pub(crate) fn is_expected(&self) -> bool {
        matches!(self.state, State::Expected)
    }

    /// Returns whether there is a body and nobody has asked for it yet.
    #[inline]
    pub(crate) fn is_unasked(&self) -> bool {
        matches!(self.state, State::Announced)
    }

    /// Returns whether the handler waits for the peer to send.
    #[inline]
    pub(crate) fn is_receiving(&self) -> bool {
        !self.is_held && matches!(self.state, State::Whole(_) | State::Decoding(_))
    }

    /// Whether all of it has come, by a connection of its own: what else comes there is another
    /// request, or the peer's end.
    pub(crate) fn is_behind(&self) -> bool {
        matches!(self.state, State::Ended(_)) && !self.is_framed()
    }

    /// Whether the handler has asked for it.
    #[cfg(feature = "body")]
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Goes on after [`hold`](BodyReceiver::hold).
    #[cfg(feature = "body")]
    pub(crate) fn release(&mut self) {
        self.is_held = false;
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Begins to receive the body, or goes on after [`hold`](BodyReceiver::hold); the mode is what
    /// was said first. Returns whether it begins. Before the head it does nothing.
    ///
    /// # Errors
    ///
    /// `TooLarge`: it was announced to be longer than the handler or the limits allow.
    pub(crate) fn ask(
        &mut self,
        mode: RecvMode,
        now: Time,
        limits: &Limits,
    ) -> Result<bool, BodyError> {
        // Even if nothing else is to be done: after `hold` this is all that the call is for.
        self.is_held = false;
        if self.is_expected() || std::mem::replace(&mut self.is_asked, true) {
            return Ok(false);
        }
        #[cfg(feature = "body")]
        {
            self.is_stored = matches!(mode, RecvMode::Stored { .. });
        }
        // From now on, because a peer that had to wait for the handler is not late.
        self.watch = BodyWatch::begin(limits, now);
        let (mode, bytes_max) = match mode {
            // The lower of the two: a handler may ask for less than the connection allows, never
            // for more.
            RecvMode::Buffered(max) => (mode, limits.buffered_body_bytes_max.min(max as u64)),
            // A piece must fit into the input together with what follows it.
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
            // What fits into the input is not copied out of it.
            (Body::Length(length), RecvMode::Buffered(_))
                if length <= bytes_max.min(INPUT_BYTES_MAX as u64) =>
            {
                State::Whole(length as usize)
            }
            (body, mode) => {
                let body = self.decoded_as(body, bytes_max)?;
                let decoder = BodyDecoder::new(body, bytes_max, limits)?;
                let collected = Collected::NOTHING;
                State::Decoding(Box::new(Decoding { decoder, mode, collected, collected_max }))
            }
        };
        Ok(true)
    }

    /// Whether what comes is collected until all of it is there.
    pub(crate) fn is_collecting(&self) -> bool {
        let State::Decoding(decoding) = &self.state else { return false };
        matches!(decoding.mode, RecvMode::Buffered(_))
    }

    /// How the octets are told from what follows them: in frames, nothing does.
    fn decoded_as(&self, body: Body, bytes_max: u64) -> Result<Body, BodyError> {
        match body {
            Body::Length(length) if self.is_framed() && length > bytes_max => {
                Err(BodyError::TooLarge)
            }
            Body::Empty => Ok(body),
            _ if self.is_framed() => Ok(Body::UntilClose),
            body => Ok(body),
        }
    }

    /// The handler takes no more until it asks again.
    pub(crate) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Returns whether more of a body that was asked for has to come, or, of one that lasts until
    /// close, its end.
    pub(crate) fn is_incomplete(&self) -> bool {
        match &self.state {
            State::Expected | State::Announced | State::Ended(_) => false,
            State::Whole(_) => true,
            State::Decoding(decoding) => !decoding.decoder.is_end(),
        }
    }

    /// The body has come to its end.
    fn end(&mut self) -> Trailers {
        self.waiting = Share::NONE;
        let State::Decoding(decoding) = std::mem::replace(&mut self.state, State::Ended(None))
        else {
            return self.framed_trailers();
        };
        let Decoding { decoder, collected, .. } = *decoding;
        // Its handler may live on for long, and needs no room for further pieces.
        self.state = State::Ended((!collected.is_empty()).then(|| Box::new(collected)));
        match self.framed {
            Framed::Ended => self.framed_trailers(),
            _ => decoder.into_trailers(),
        }
    }

    /// The body has ended, and its handler is to be told of that later.
    pub(crate) fn owe_end(&mut self, trailers: Trailers) {
        self.trailers = Some(Box::new(trailers));
    }

    /// Returns the trailers of a body that has ended, if its handler has not been told of that.
    pub(crate) fn take_owed_end(&mut self) -> Option<Trailers> {
        let has_ended = matches!(self.state, State::Ended(_));
        self.trailers.take_if(|_| has_ended).map(|trailers| *trailers)
    }

    fn framed_trailers(&mut self) -> Trailers {
        self.trailers.take().map(|trailers| *trailers).unwrap_or_default()
    }

    /// Nobody wants the body any more: how what is left of it can be told from what follows.
    /// `None`: nothing is left.
    pub(crate) fn rest(&mut self, limits: &Limits) -> Option<BodyDecoder> {
        let decoder = match std::mem::replace(&mut self.state, State::Ended(None)) {
            State::Expected | State::Ended(_) => return None,
            // Any length is within this limit.
            State::Announced | State::Whole(_) => {
                BodyDecoder::new(self.body, u64::MAX, limits).ok()?
            }
            State::Decoding(decoding) => decoding.decoder,
        };
        if decoder.is_end() { None } else { Some(decoder) }
    }

    /// Nobody wants the body any more: drops what is left of it, and returns whether all of that
    /// had come. If not, where the next message begins is not known.
    pub(crate) fn skip_rest(&mut self, input: &mut Buf, limits: &Limits) -> bool {
        // Before the head it is unknown whether there is a body.
        if self.is_expected() {
            return false;
        }
        let Some(mut decoder) = self.rest(limits) else { return true };
        loop {
            // After malformed framing it is unknown where the next message begins.
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

    /// So long the peer is excused.
    pub(crate) fn put_off(&mut self, time: Duration) {
        self.watch.put_off(time);
    }

    /// Until when more of the body must have come, of which so much is unread. Time in which
    /// nothing is taken in does not count against the peer: neither while the handler holds the
    /// body off, nor while its own output waits for the peer, which `is_gated` says.
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
