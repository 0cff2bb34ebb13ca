//! `PartialMessage`: an incomplete message, and the limits of a message.

use std::sync::Arc;

use flate2::Decompress;
use rotor_stream::{BytesHeld, NoRoom, Share};

use crate::config::WebSocketConfig;
use crate::deflate::codec;
use crate::frame::fault::Fault;
use crate::frame::header::Opcode;
use crate::frame::utf8::Utf8Validator;
use crate::message::{Kind, Piece};
use crate::next::Mode;

/// The maximum length of a decompressed piece.
const PIECE_MAX: usize = 16 << 10;

/// How much of a complete message is decompressed in a step, and about how much output a step may
/// produce.
const STEP_MAX: usize = 16 << 10;
const STEP_INFLATED_MAX: usize = 256 << 10;

/// How many times longer data can get by decompression: a match of 258 bytes takes at least two bits
/// (RFC 1951 §3.2.5), so 1,032 times.
const INFLATION_MAX: usize = 1_032;

/// How much longer a compressed message may be than the decompressed one. Data that cannot be
/// compressed is wrapped in blocks (RFC 1951 §3.2.4) and flushes.
const OVERHEAD_MIN: usize = 1024;
const OVERHEAD_DIVISOR: usize = 64;

/// An incomplete message.
pub(crate) struct PartialMessage {
    pub(crate) kind: Kind,
    pub(crate) is_compressed: bool,
    pub(crate) mode: Mode,
    /// How many fragments there were; of a message taken in pieces, only the empty ones.
    fragments: u32,
    /// For text that is not compressed, or is handed over in pieces.
    utf8: Utf8Validator,
    /// The bytes received, compressed or not; empty if the message is taken in pieces.
    pub(crate) bytes: Vec<u8>,
    /// The share of these bytes, and of the decompressed ones, in the total of all connections.
    share: Share,
    /// Set once the message is complete and is decompressed in steps.
    inflating: Option<InflateState>,
    /// Lent by the thread, for a message that is decompressed in pieces or in steps.
    pub(crate) codec: Option<Decompress>,
    /// No piece has been handed over yet.
    is_first: bool,
    /// The whole message has been handed over.
    pub(crate) is_finished: bool,
}

/// A message that is complete, but too long to be decompressed at once.
#[derive(Default)]
struct InflateState {
    /// How many bytes of the message were decompressed.
    used: usize,
    bytes: Vec<u8>,
}

/// The limits of messages and control frames, from [`WebSocketConfig`].
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) message_max: usize,
    inflated_max: usize,
    fragments_max: u32,
    pub(crate) control_max: u32,
    pub(crate) control_rate: u32,
}

impl Limits {
    pub(crate) fn of(config: &WebSocketConfig) -> Limits {
        let WebSocketConfig { message_max, inflated_max, .. } = *config;
        let WebSocketConfig { fragments_max, control_max, control_rate, .. } = *config;
        Limits { message_max, inflated_max, fragments_max, control_max, control_rate }
    }

    /// Returns whether a message of so many compressed bytes is decompressed at once: it is short,
    /// and cannot become much longer than what a turn may decompress.
    pub(crate) fn inflates_at_once(&self, len: usize) -> bool {
        let inflated_max = self.message_max.min(len.saturating_mul(INFLATION_MAX));
        len <= STEP_MAX && inflated_max <= self.inflated_max.max(STEP_INFLATED_MAX)
    }
}

impl PartialMessage {
    pub(crate) fn new(opcode: Opcode, is_compressed: bool, mode: Mode) -> Box<PartialMessage> {
        Box::new(PartialMessage {
            kind: kind_of(opcode),
            is_compressed,
            mode,
            fragments: 0,
            utf8: Utf8Validator::default(),
            bytes: Vec::new(),
            share: Share::NONE,
            inflating: None,
            codec: None,
            is_first: true,
            is_finished: false,
        })
    }

    pub(crate) fn count_fragment(&mut self, len: u64, limits: Limits) -> Result<(), Fault> {
        if self.mode == Mode::Messages || len == 0 {
            // Saturates, since the greatest limit means that there is none.
            self.fragments = self.fragments.saturating_add(1);
        }
        if self.fragments > limits.fragments_max { Err(Fault::Fragments) } else { Ok(()) }
    }

    pub(crate) fn check_len(&self, len: u64, limits: Limits) -> Result<(), Fault> {
        let most = wire_bytes_max(self.is_compressed, limits) as u64;
        let is_delivered_whole = self.mode == Mode::Messages;
        let all = len.saturating_add(self.bytes.len() as u64);
        if is_delivered_whole && all > most { Err(Fault::TooLong) } else { Ok(()) }
    }

    /// Adds a part to a message that is handed over whole.
    pub(crate) fn add(&mut self, part: &[u8]) -> Result<(), Fault> {
        // Invalid text is refused at the first wrong byte, before the rest has arrived.
        if self.kind == Kind::Text && !self.is_compressed {
            self.utf8.push(part)?;
        }
        // Grows with the received bytes, not with the announced length.
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    /// Counts the memory of this message in the total of all incomplete messages.
    ///
    /// # Errors
    ///
    /// `NoRoom`: the total would exceed its limit.
    pub(crate) fn reserve_memory(&mut self, held: &Arc<BytesHeld>) -> Result<(), NoRoom> {
        let inflated = self.inflating.as_ref().map_or(0, |inflating| inflating.bytes.capacity());
        self.share.set(self.bytes.capacity() + inflated, held)
    }

    /// Returns how many bytes the message takes, with the codec that it was lent.
    pub(crate) fn held_bytes(&self) -> usize {
        let codec = if self.codec.is_some() { codec::DECOMPRESSOR_BYTES } else { 0 };
        let inflated = self.inflating.as_ref().map_or(0, |inflating| inflating.bytes.capacity());
        size_of::<PartialMessage>() + self.bytes.capacity() + inflated + codec
    }

    /// Returns whether the message, which is complete now, is decompressed in steps; begins that.
    pub(crate) fn needs_stepwise_inflation(&mut self, limits: Limits) -> bool {
        if self.is_compressed && !limits.inflates_at_once(self.bytes.len()) {
            self.inflating.get_or_insert_default();
        }
        self.inflating.is_some()
    }

    /// Returns whether the message is complete and being decompressed.
    pub(crate) fn is_inflating(&self) -> bool {
        self.inflating.is_some()
    }

    /// Decompresses a part. Returns how many bytes of input were used, how many bytes of output
    /// were produced, and the message once it is complete.
    pub(crate) fn inflate_step(
        &mut self,
        own: Option<&mut Decompress>,
        max: usize,
    ) -> Result<(usize, usize, Option<Vec<u8>>), Fault> {
        let Some(inflating) = &mut self.inflating else { return Ok((0, 0, None)) };
        let InflateState { used, bytes } = inflating;
        let is_alone = own.is_none();
        let codec = match own {
            Some(own) => own,
            None => self.codec.get_or_insert_with(codec::take_decompressor),
        };
        let before = bytes.len();
        // One byte more than allowed, to detect that there is more.
        let most = max.saturating_add(1).min(before + STEP_INFLATED_MAX);
        let rest = &self.bytes[*used..];
        let part = &rest[..rest.len().min(STEP_MAX)];
        let step = codec::decompress_to(codec, part, bytes, most)?;
        *used += step;
        let mut is_complete = false;
        if *used == self.bytes.len() {
            is_complete = codec::decompress_tail(codec, is_alone, bytes, most)?;
        }
        if bytes.len() > max {
            return Err(Fault::TooLong);
        }
        let whole = is_complete.then(|| std::mem::take(bytes));
        let inflated = whole.as_ref().map_or(bytes.len(), Vec::len) - before;
        Ok((step, inflated, whole))
    }

    /// Discards what has arrived of the message, and what will arrive.
    pub(crate) fn discard(&mut self) {
        self.bytes = Vec::new();
        self.inflating = None;
        self.share = Share::NONE;
    }

    /// Hands over a piece of the message.
    pub(crate) fn piece(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        emit: impl FnOnce(Piece<'_>),
    ) -> Result<(), Fault> {
        if self.kind == Kind::Text {
            self.utf8.push(bytes)?;
            if is_last && !self.utf8.is_complete() {
                return Err(Fault::NotUtf8);
            }
        }
        if !bytes.is_empty() || is_last {
            let is_first = std::mem::replace(&mut self.is_first, false);
            emit(Piece { kind: self.kind, bytes, is_first, is_last });
        }
        Ok(())
    }

    /// Decompresses up to the length of a piece, and hands that over. Returns how much of the part
    /// was used, and how much output was produced.
    pub(crate) fn inflate_piece(
        &mut self,
        part: &[u8],
        is_end: bool,
        own: Option<&mut Decompress>,
        emit: impl FnOnce(Piece<'_>),
    ) -> Result<(usize, usize), Fault> {
        let mut lent = self.codec.take();
        let is_alone = own.is_none();
        codec::with_scratch(|scratch| {
            let codec = match own {
                Some(own) => own,
                None => lent.get_or_insert_with(codec::take_decompressor),
            };
            let used = codec::decompress_to(codec, part, scratch, PIECE_MAX)?;
            if is_end && used == part.len() {
                self.is_finished = codec::decompress_tail(codec, is_alone, scratch, PIECE_MAX)?;
            }
            self.codec = lent;
            self.piece(scratch, self.is_finished, emit)?;
            Ok((used, scratch.len()))
        })
    }
}

/// Returns how many bytes of a message may arrive, before decompression.
pub(crate) fn wire_bytes_max(is_compressed: bool, limits: Limits) -> usize {
    let max = limits.message_max;
    if is_compressed { max.saturating_add(max / OVERHEAD_DIVISOR + OVERHEAD_MIN) } else { max }
}

pub(crate) fn kind_of(opcode: Opcode) -> Kind {
    if opcode == Opcode::Text { Kind::Text } else { Kind::Binary }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_fragments_is_allowed_without_a_limit() {
        let limits = Limits::of(&WebSocketConfig::new().fragments_max(u32::MAX));
        for mode in [Mode::Messages, Mode::Pieces] {
            let mut message = PartialMessage::new(Opcode::Binary, false, mode);
            message.fragments = u32::MAX - 1;
            for _ in 0..3 {
                assert_eq!(message.count_fragment(0, limits), Ok(()));
            }
        }
    }
}
