//! `Partial`: a message that has begun and is not whole, and what it may come to.

use std::sync::Arc;

use flate2::Decompress;
use rotor_stream::{BytesHeld, NoRoom, Share};

use crate::config::WebSocketConfig;
use crate::deflate::codec;
use crate::frame::fault::Fault;
use crate::frame::header::Opcode;
use crate::frame::utf8::Utf8;
use crate::message::{Kind, Piece};
use crate::next::Mode;

/// The longest piece of what is decompressed.
const PIECE_MAX: usize = 16 << 10;

/// How much of a message that has come whole is decompressed in a step, and about how much may come of it.
pub(crate) const STEP_MAX: usize = 16 << 10;
const STEP_INFLATED_MAX: usize = 256 << 10;

/// How much longer a compressed message may be than what it is decompressed to: what cannot be
/// shortened is wrapped in blocks (RFC 1951 §3.2.4), and in flushes.
const OVERHEAD_MIN: usize = 1024;
const OVERHEAD_PART: usize = 64;

/// A message that has begun and is not whole.
pub(crate) struct Partial {
    pub(crate) kind: Kind,
    pub(crate) is_compressed: bool,
    pub(crate) mode: Mode,
    /// Of pieces, those that were empty.
    fragments: u32,
    /// Of text that is not compressed, or that is handed over in pieces.
    utf8: Utf8,
    /// What has come of it, compressed or not; nothing if it goes in pieces.
    pub(crate) bytes: Vec<u8>,
    /// What that takes of the total of all connections, with what it is decompressed to.
    share: Share,
    /// Of one that has come whole, and is decompressed in steps.
    inflating: Option<Inflating>,
    /// Of one that is decompressed in pieces, or in steps: lent by the thread.
    pub(crate) codec: Option<Decompress>,
    /// No piece was handed over yet.
    is_first: bool,
    /// How much of what ends a compressed message was decompressed, once all of it has come.
    tail_used: usize,
    /// All of it was handed over.
    pub(crate) is_over: bool,
}

/// A message that has come whole, and is too long to be decompressed at once.
#[derive(Default)]
struct Inflating {
    /// How much of it was decompressed.
    used: usize,
    bytes: Vec<u8>,
}

/// What a message and control frames may come to, of [`WebSocketConfig`].
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) message_max: usize,
    fragments_max: u32,
    pub(crate) control_max: u32,
    pub(crate) control_rate: u32,
}

impl Limits {
    pub(crate) fn of(config: &WebSocketConfig) -> Limits {
        let WebSocketConfig { message_max, fragments_max, control_max, control_rate, .. } = *config;
        Limits { message_max, fragments_max, control_max, control_rate }
    }
}

impl Partial {
    pub(crate) fn begin(opcode: Opcode, is_compressed: bool, mode: Mode) -> Box<Partial> {
        Box::new(Partial {
            kind: kind_of(opcode),
            is_compressed,
            mode,
            fragments: 0,
            utf8: Utf8::default(),
            bytes: Vec::new(),
            share: Share::NONE,
            inflating: None,
            codec: None,
            is_first: true,
            tail_used: 0,
            is_over: false,
        })
    }

    pub(crate) fn count_fragment(&mut self, len: u64, limits: Limits) -> Result<(), Fault> {
        if self.mode == Mode::Messages || len == 0 {
            // At the greatest limit there is, any number may come.
            self.fragments = self.fragments.saturating_add(1);
        }
        if self.fragments > limits.fragments_max { Err(Fault::Fragments) } else { Ok(()) }
    }

    pub(crate) fn check_len(&self, len: u64, limits: Limits) -> Result<(), Fault> {
        let most = most_bytes(self.is_compressed, limits) as u64;
        let is_whole = self.mode == Mode::Messages;
        let all = len.saturating_add(self.bytes.len() as u64);
        if is_whole && all > most { Err(Fault::TooLong) } else { Ok(()) }
    }

    /// Adds what has come to a message that is handed over whole.
    pub(crate) fn add(&mut self, part: &[u8]) -> Result<(), Fault> {
        // Invalid text is refused at the first bad byte, however long the rest would take.
        if self.kind == Kind::Text && !self.is_compressed {
            self.utf8.push(part)?;
        }
        // Grown by what came, never by what was announced.
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    /// Counts what it takes among what all such messages do.
    ///
    /// # Errors
    ///
    /// `NoRoom`: they may not take as much.
    pub(crate) fn hold(&mut self, held: &Arc<BytesHeld>) -> Result<(), NoRoom> {
        let inflated = self.inflating.as_ref().map_or(0, |inflating| inflating.bytes.capacity());
        self.share.set(self.bytes.capacity() + inflated, held)
    }

    /// What it takes, with what it has been lent.
    pub(crate) fn held_bytes(&self) -> usize {
        let codec = if self.codec.is_some() { codec::DECOMPRESSOR_BYTES } else { 0 };
        let inflated = self.inflating.as_ref().map_or(0, |inflating| inflating.bytes.capacity());
        size_of::<Partial>() + self.bytes.capacity() + inflated + codec
    }

    /// Whether it is decompressed in steps, now that it has come whole.
    pub(crate) fn inflates_in_steps(&mut self) -> bool {
        if self.is_compressed && self.bytes.len() > STEP_MAX {
            self.inflating.get_or_insert_default();
        }
        self.inflating.is_some()
    }

    /// All of it was handed to it, and it is being decompressed.
    pub(crate) fn is_inflating(&self) -> bool {
        self.inflating.is_some()
    }

    /// Decompresses some of it. Returns how much was used for that, and how much came of it; and the message, once
    /// that is all.
    pub(crate) fn inflate_step(
        &mut self,
        own: Option<&mut Decompress>,
        max: usize,
    ) -> Result<(usize, usize, Option<Vec<u8>>), Fault> {
        let Some(inflating) = &mut self.inflating else { return Ok((0, 0, None)) };
        let Inflating { used, bytes } = inflating;
        let codec = match own {
            Some(own) => own,
            None => self.codec.get_or_insert_with(codec::decompressor),
        };
        let before = bytes.len();
        // One more than there may be, to see that there is more.
        let most = max.saturating_add(1).min(before + STEP_INFLATED_MAX);
        let rest = &self.bytes[*used..];
        let part = &rest[..rest.len().min(STEP_MAX)];
        let step = codec::decompress_to(codec, part, bytes, most)?;
        *used += step;
        let mut is_whole = false;
        if *used == self.bytes.len() {
            let tail = &codec::tail()[self.tail_used..];
            self.tail_used += codec::decompress_to(codec, tail, bytes, most)?;
            // Where the step is full there may be more, even if all input was read.
            is_whole = bytes.len() < most;
        }
        if bytes.len() > max {
            return Err(Fault::TooLong);
        }
        let whole = is_whole.then(|| std::mem::take(bytes));
        let inflated = whole.as_ref().map_or(bytes.len(), Vec::len) - before;
        Ok((step, inflated, whole))
    }

    /// Throws away what has come of it, and what will.
    pub(crate) fn discard(&mut self) {
        self.bytes = Vec::new();
        self.inflating = None;
        self.share = Share::NONE;
    }

    /// Hands over a piece of it, of `bytes`.
    pub(crate) fn piece(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        give: impl FnOnce(Piece<'_>),
    ) -> Result<(), Fault> {
        if self.kind == Kind::Text {
            self.utf8.push(bytes)?;
            if is_last && !self.utf8.is_whole() {
                return Err(Fault::NotUtf8);
            }
        }
        if !bytes.is_empty() || is_last {
            let is_first = std::mem::replace(&mut self.is_first, false);
            give(Piece { kind: self.kind, bytes, is_first, is_last });
        }
        Ok(())
    }

    /// Decompresses as much as makes a piece. Returns how much of the part was used, and how much
    /// came of it.
    pub(crate) fn inflated_piece(
        &mut self,
        part: &[u8],
        is_end: bool,
        own: Option<&mut Decompress>,
        give: impl FnOnce(Piece<'_>),
    ) -> Result<(usize, usize), Fault> {
        let mut lent = self.codec.take();
        codec::with_scratch(|scratch| {
            let codec = match own {
                Some(own) => own,
                None => lent.get_or_insert_with(codec::decompressor),
            };
            let used = codec::decompress_to(codec, part, scratch, PIECE_MAX)?;
            if is_end && used == part.len() {
                let tail = &codec::tail()[self.tail_used..];
                self.tail_used += codec::decompress_to(codec, tail, scratch, PIECE_MAX)?;
                // After a full piece there may be more, even if all input was read.
                self.is_over = scratch.len() < PIECE_MAX;
            }
            self.codec = lent;
            self.piece(scratch, self.is_over, give)?;
            Ok((used, scratch.len()))
        })
    }
}

/// How many bytes of a message may come, before they are decompressed.
pub(crate) fn most_bytes(is_compressed: bool, limits: Limits) -> usize {
    let max = limits.message_max;
    if is_compressed { max.saturating_add(max / OVERHEAD_PART + OVERHEAD_MIN) } else { max }
}

pub(crate) fn kind_of(opcode: Opcode) -> Kind {
    if opcode == Opcode::Text { Kind::Text } else { Kind::Binary }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_any_number_of_fragments_may_come() {
        let limits = Limits::of(&WebSocketConfig::new().fragments_max(u32::MAX));
        for mode in [Mode::Messages, Mode::Pieces] {
            let mut message = Partial::begin(Opcode::Binary, false, mode);
            message.fragments = u32::MAX - 1;
            for _ in 0..3 {
                assert_eq!(message.count_fragment(0, limits), Ok(()));
            }
        }
    }
}
