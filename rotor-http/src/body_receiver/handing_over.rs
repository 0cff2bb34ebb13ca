//! What of a body can be handed over with what has come, and where its octets are.

use std::ops::Range;
use std::sync::Arc;

use rotor_stream::{Block, Buf, BytesHeld, NoRoom};

use super::{BodyReceiver, Framed, Part, Received, State};
use crate::limits::Limits;
use crate::recv_mode::RecvMode;
use crate::semantics::error::BodyError;
use crate::semantics::trailers::Trailers;

impl BodyReceiver {
    /// Looks at what has come of the body, at the beginning of the input, and takes framing out of
    /// it. What is to be kept for the handler counts in `total`.
    ///
    /// # Errors
    ///
    /// The peer's fault, and nothing more can be read; but `NoRoom`: all bodies together hold as
    /// much as they may.
    pub(crate) fn next(
        &mut self,
        input: &mut Buf,
        limits: &Limits,
        total: &Arc<BytesHeld>,
    ) -> Result<Received, BodyError> {
        // What comes stays in the input, and then with the peer: this is the backpressure.
        if self.is_held {
            return Ok(Received::Wait(None));
        }
        let (mut decoded, mode) = match &mut self.state {
            State::Expected | State::Announced | State::Ended(_) => {
                return Ok(Received::Wait(None));
            }
            State::Whole(length) => {
                let length = *length;
                return self.next_of_whole(length, input, limits, total);
            }
            State::Decoding(decoding) => (decoding.decoder.decode(input)?, decoding.mode),
        };
        decoded.is_end |= self.framed == Framed::Ended && decoded.consumed() == input.len();
        // Framing without data is taken out, so that it does not fill the input.
        if decoded.needs_input() {
            input.consume(decoded.skip);
            return Ok(Received::Wait(Some(input.len() + 1)));
        }
        // First, because what is collected may be the last part, and then nothing is put aside.
        let trailers = decoded.is_end.then(|| self.end());
        let range = decoded.skip..decoded.consumed();
        let is_put_aside = trailers.is_none()
            && match mode {
                RecvMode::Buffered(_) => true,
                RecvMode::Progressive(min) => self.collected().len() + decoded.data < min,
                _ => false,
            };
        if is_put_aside {
            self.put_aside(range, input, total)?;
            return Ok(Received::Again);
        }
        #[cfg(feature = "body")]
        if self.is_stored && trailers.is_none() {
            return Ok(self.next_blocks(range, input));
        }
        if mode == RecvMode::Blocks && !range.is_empty() {
            input.consume(range.start);
            return Ok(Received::Block(Block::take_from(input, range.len()), trailers));
        }
        let part = match (self.collected().is_empty(), range.is_empty()) {
            (true, false) => Part::Input(range),
            // Nothing, or it belongs to what was put aside.
            (true, true) | (false, _) => {
                self.put_aside(range, input, total)?;
                self.collected_part()
            }
        };
        Ok(match mode {
            RecvMode::Buffered(_) => Received::Whole(part),
            _ => Received::Piece(part, trailers),
        })
    }

    /// Takes the first data of the input, which is known, and what of the body follows it there.
    /// The memory goes along, once, however many chunks there are in it.
    #[cfg(feature = "body")]
    fn next_blocks(&mut self, first: Range<usize>, input: &mut Buf) -> Received {
        let (mut at, mut data, mut is_end) = (first.end, first.len(), false);
        let mut ranges = vec![first];
        if let State::Decoding(decoding) = &mut self.state {
            while !is_end && at < input.len() {
                // An error is reported once the data before it is taken: the decoder reports it
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
            // Small chunks: the framing would be kept with them.
            let mut bytes = Vec::with_capacity(data);
            ranges.into_iter().for_each(|range| bytes.extend_from_slice(&input[range]));
            input.consume(at);
            vec![Block::from(bytes)]
        };
        Received::Blocks(blocks, is_end.then(|| self.end()))
    }

    /// Looks whether a body of this length is there, which is handed over from the input.
    fn next_of_whole(
        &mut self,
        length: usize,
        input: &Buf,
        limits: &Limits,
        total: &Arc<BytesHeld>,
    ) -> Result<Received, BodyError> {
        let unread = input.len();
        // With frames, nothing is certain before the last one: their octets may be more, or fewer.
        if unread >= length && self.framed != Framed::Open {
            // A handler that wants a body whole does not get its trailers.
            let _unseen: Trailers = self.end();
            let part = if length == 0 { Part::Nothing } else { Part::Input(0..length) };
            return Ok(Received::Whole(part));
        }
        // It waits in the input, and is counted as if it were collected. Otherwise bodies of just
        // less than the input holds would not count at all.
        self.waiting.set(kept_of(input), total).map_err(|NoRoom| BodyError::NoRoom)?;
        // The watch must hear of each step, not only of the end. Otherwise a peer that drips would
        // be noticed too late.
        let (step, _) = limits.body_step();
        let next = match usize::try_from(step) {
            // Without a least rate there are no steps.
            Ok(0) | Err(_) => length,
            Ok(step) => unread.saturating_add(step).min(length),
        };
        Ok(Received::Wait(Some(next)))
    }

    /// The peer sends no more, and all that has come was looked at: what there is to hand over
    /// last.
    ///
    /// # Errors
    ///
    /// `Truncated`: what came is not all of it.
    pub(crate) fn finish(&mut self) -> Result<Received, BodyError> {
        let mode = match &mut self.state {
            State::Expected | State::Announced | State::Ended(_) => {
                return Ok(Received::Wait(None));
            }
            // If it were complete, `next` would have handed it over.
            State::Whole(_) => return Err(BodyError::Truncated),
            State::Decoding(decoding) => {
                decoding.decoder.finish()?;
                decoding.mode
            }
        };
        let trailers = self.end();
        let part = self.collected_part();
        Ok(match mode {
            RecvMode::Buffered(_) => Received::Whole(part),
            _ => Received::Piece(part, Some(trailers)),
        })
    }

    /// The octets that are to be handed over.
    pub(crate) fn octets<'a>(&'a self, part: &Part, input: &'a Buf) -> &'a [u8] {
        match part {
            Part::Nothing => &[],
            Part::Input(range) => &input[range.clone()],
            Part::Collected => self.collected(),
        }
    }

    /// The handler has seen them: they are not needed any more.
    pub(crate) fn handed_over(&mut self, part: Part, input: &mut Buf) {
        match part {
            Part::Nothing => {}
            Part::Input(range) => input.consume(range.end),
            Part::Collected => match &mut self.state {
                // The next piece needs the room again.
                State::Decoding(decoding) => decoding.collected.clear(),
                // Nothing more comes of it, and its handler may go on for long.
                State::Ended(collected) => *collected = None,
                _ => {}
            },
        }
    }

    fn put_aside(
        &mut self,
        range: Range<usize>,
        input: &mut Buf,
        total: &Arc<BytesHeld>,
    ) -> Result<(), BodyError> {
        let appended = match &mut self.state {
            State::Decoding(decoding) => {
                decoding.collected.append(&input[range.clone()], decoding.collected_max, total)
            }
            // The last of it: nothing comes behind it.
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

    /// What was collected and not handed over.
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

/// Memory goes along with the chunks in it if no more than this part of it is
/// framing; else they are copied.
#[cfg(feature = "body")]
const FRAMING_PART_MIN: usize = 8;

/// The memory that an input keeps while it waits, at most: a stream at rest moves what fills less
/// than an eighth of its block to a smaller place.
fn kept_of(input: &Buf) -> usize {
    if input.is_empty() { 0 } else { input.capacity().min(input.len().saturating_mul(8).max(64)) }
}
