//! Determines which part of a body can be handed over, and where its bytes are.

use std::ops::Range;
use std::sync::Arc;

use rotor_stream::{Block, Buf, BytesHeld, NoRoom};

use super::{BodyReceiver, FrameState, Part, ReceiveOutcome, State};
use crate::limits::Limits;
use crate::recv_mode::RecvMode;
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;

impl BodyReceiver {
    /// Looks at the part of the body at the beginning of the input, and removes framing from it.
    /// Bytes that are kept for the handler count in `total`.
    ///
    /// # Errors
    ///
    /// The peer's fault, and nothing more can be read. Except for `NoRoom`: all bodies together
    /// hold as much as they may.
    pub(crate) fn next(
        &mut self,
        input: &mut Buf,
        limits: &Limits,
        total: &Arc<BytesHeld>,
    ) -> Result<ReceiveOutcome, BodyError> {
        // New bytes stay in the input, and then with the peer: this is the backpressure.
        if self.is_held {
            return Ok(ReceiveOutcome::Wait(None));
        }
        let (mut decoded, mode) = match &mut self.state {
            State::Expected | State::Announced | State::Ended(_) => {
                return Ok(ReceiveOutcome::Wait(None));
            }
            State::Whole(length) => {
                let length = *length;
                return self.next_whole(length, input, limits, total);
            }
            State::Decoding(decoding) => (decoding.decoder.decode(input)?, decoding.mode),
        };
        decoded.is_end |=
            self.frame_state == FrameState::Ended && decoded.consumed() == input.len();
        // Framing without data is removed, so that it does not fill the input.
        if decoded.needs_input() {
            input.consume(decoded.skip);
            return Ok(ReceiveOutcome::Wait(Some(input.len() + 1)));
        }
        // First, because the collected bytes may be the last part; then nothing more is collected.
        let trailers = decoded.is_end.then(|| self.end());
        let range = decoded.skip..decoded.consumed();
        let is_collected = trailers.is_none()
            && match mode {
                RecvMode::Buffered(_) => true,
                RecvMode::Progressive(min) => self.collected().len() + decoded.data < min,
                _ => false,
            };
        if is_collected {
            self.collect(range, input, total)?;
            return Ok(ReceiveOutcome::Again);
        }
        #[cfg(feature = "body")]
        if self.is_stored && trailers.is_none() {
            return Ok(self.next_blocks(range, input));
        }
        if mode == RecvMode::Blocks && !range.is_empty() {
            input.consume(range.start);
            return Ok(ReceiveOutcome::Block(Block::take_from(input, range.len()), trailers));
        }
        let part = match (self.collected().is_empty(), range.is_empty()) {
            (true, false) => Part::Input(range),
            // There are no new bytes, or they belong to those that were collected.
            (true, true) | (false, _) => {
                self.collect(range, input, total)?;
                self.collected_part()
            }
        };
        Ok(match mode {
            RecvMode::Buffered(_) => ReceiveOutcome::Whole(part),
            _ => ReceiveOutcome::Piece(part, trailers),
        })
    }

    /// Takes the first data, whose range is known, and all data of the body that follows it in the
    /// input. The input's memory is taken once, however many chunks are in it.
    #[cfg(feature = "body")]
    fn next_blocks(&mut self, first: Range<usize>, input: &mut Buf) -> ReceiveOutcome {
        let (mut at, mut data, mut is_end) = (first.end, first.len(), false);
        let mut ranges = vec![first];
        if let State::Decoding(decoding) = &mut self.state {
            while !is_end && at < input.len() {
                // An error is reported after the data before it was taken: the decoder returns it
                // again.
                let Ok(decoded) = decoding.decoder.decode(&input[at..]) else { break };
                let begin = at + decoded.skip;
                at += decoded.consumed();
                is_end = decoded.is_end;
                if begin < at {
                    data += at - begin;
                    ranges.push(begin..at);
                }
            }
        }
        let blocks = if data >= at - at / FRAMING_PART_MIN {
            let all = Block::take_from(input, at);
            ranges.into_iter().map(|range| all.slice(range)).collect()
        } else {
            // Small chunks: taking the memory would keep the framing too.
            let mut bytes = Vec::with_capacity(data);
            ranges.into_iter().for_each(|range| bytes.extend_from_slice(&input[range]));
            input.consume(at);
            vec![Block::from(bytes)]
        };
        ReceiveOutcome::Blocks(blocks, is_end.then(|| self.end()))
    }

    /// Checks whether a body of this length has arrived. It is handed over from the input.
    fn next_whole(
        &mut self,
        length: usize,
        input: &Buf,
        limits: &Limits,
        total: &Arc<BytesHeld>,
    ) -> Result<ReceiveOutcome, BodyError> {
        let unread = input.len();
        // In frames, nothing is certain before the last one: they may contain more bytes, or fewer.
        if unread >= length && self.frame_state != FrameState::Open {
            // A handler that wants the whole body at once does not get its trailers.
            let _unseen: Trailers = self.end();
            let part = if length == 0 { Part::Nothing } else { Part::Input(0..length) };
            return Ok(ReceiveOutcome::Whole(part));
        }
        // The bytes wait in the input, and count as if they were collected. Otherwise bodies of a
        // little less than the input's capacity would not count at all.
        self.waiting.set(retained_bytes_max(input), total).map_err(|NoRoom| BodyError::NoRoom)?;
        // The watch must be told of each step, not only of the end. Otherwise a peer that sends
        // slowly would be noticed too late.
        let (step, _) = limits.body_step();
        let next = match usize::try_from(step) {
            // Without a minimum rate there are no steps.
            Ok(0) | Err(_) => length,
            Ok(step) => unread.saturating_add(step).min(length),
        };
        Ok(ReceiveOutcome::Wait(Some(next)))
    }

    /// Ends the body when the peer sends no more and the whole input has been decoded. Returns the
    /// last part to hand over.
    ///
    /// # Errors
    ///
    /// `Truncated`: the body is incomplete.
    pub(crate) fn finish(&mut self) -> Result<ReceiveOutcome, BodyError> {
        let mode = match &mut self.state {
            State::Expected | State::Announced | State::Ended(_) => {
                return Ok(ReceiveOutcome::Wait(None));
            }
            // If it was complete, `next` would have handed it over.
            State::Whole(_) => return Err(BodyError::Truncated),
            State::Decoding(decoding) => {
                decoding.decoder.finish()?;
                decoding.mode
            }
        };
        let trailers = self.end();
        let part = self.collected_part();
        Ok(match mode {
            RecvMode::Buffered(_) => ReceiveOutcome::Whole(part),
            _ => ReceiveOutcome::Piece(part, Some(trailers)),
        })
    }

    /// Returns the bytes to hand over.
    pub(crate) fn part_bytes<'a>(&'a self, part: &Part, input: &'a Buf) -> &'a [u8] {
        match part {
            Part::Nothing => &[],
            Part::Input(range) => &input[range.clone()],
            Part::Collected => self.collected(),
        }
    }

    /// Drops a part that the handler has got.
    pub(crate) fn discard_part(&mut self, part: Part, input: &mut Buf) {
        match part {
            Part::Nothing => {}
            Part::Input(range) => input.consume(range.end),
            Part::Collected => match &mut self.state {
                // The next piece needs the memory again.
                State::Decoding(decoding) => decoding.collected.clear(),
                // No more bytes will follow, and the handler may live on for long.
                State::Ended(collected) => *collected = None,
                _ => {}
            },
        }
    }

    fn collect(
        &mut self,
        range: Range<usize>,
        input: &mut Buf,
        total: &Arc<BytesHeld>,
    ) -> Result<(), BodyError> {
        let appended = match &mut self.state {
            State::Decoding(decoding) => {
                decoding.collected.append(&input[range.clone()], decoding.collected_max, total)
            }
            // The last part: nothing follows it.
            State::Ended(Some(collected)) => collected.append(&input[range.clone()], 0, total),
            _ => {
                debug_assert!(range.is_empty(), "there is nothing to collect it in");
                Ok(())
            }
        };
        appended.map_err(|NoRoom| BodyError::NoRoom)?;
        input.consume(range.end);
        Ok(())
    }

    /// Returns the bytes that were collected and not handed over yet.
    fn collected(&self) -> &[u8] {
        match &self.state {
            State::Decoding(decoding) => &decoding.collected,
            State::Ended(Some(collected)) => collected,
            _ => &[],
        }
    }

    fn collected_part(&self) -> Part {
        if self.collected().is_empty() { Part::Nothing } else { Part::Collected }
    }
}

/// If no more than this part of the memory is framing (one eighth), the memory is taken together
/// with it; otherwise the chunks are copied.
#[cfg(feature = "body")]
const FRAMING_PART_MIN: usize = 8;

/// Returns the most memory that an input keeps while it waits. A stream that is idle moves input
/// that fills less than an eighth of its block to a smaller place.
fn retained_bytes_max(input: &Buf) -> usize {
    if input.is_empty() { 0 } else { input.capacity().min(input.len().saturating_mul(8).max(64)) }
}
