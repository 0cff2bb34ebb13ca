//! `FieldReader`: decodes the blocks of fields that a peer sends, in one frame or in several, into
//! lists.

use rotor_core::Time;

use super::error::{ErrorCode, Violation};
use super::field_block::{BlockBounds, FieldBlock, whole_frame};
use super::frame::{FRAME_KIND_AT, FrameHeader, kind};
use super::hpack::{Bounds, FieldList, HpackDecoder, HpackError};
use crate::limits::Limits;

/// The size of our decoding table, in bytes: the default.
const TABLE_BYTES_MAX: usize = 4096;

/// How much of a block is decoded, in multiples of what is kept. Decoding keeps the tables in step,
/// so that a large head fails only its own message, and a request can be responded to (431).
const DECODED_FACTOR: usize = 4;

/// How many bytes of fields count as a step: about as many as a browser sends with a request.
const STEP_BYTES: usize = 1024;

/// How many fields a block may have before each further one counts as 32 bytes: more than any
/// browser sends. A field of one byte takes as long as many bytes of a long one.
const FREE_FIELDS: usize = 100;

/// How much of a block is accepted, and how many of its fields are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldBounds {
    pub(crate) block: BlockBounds,
    pub(crate) list: Bounds,
}

impl FieldBounds {
    /// Creates the limits for heads.
    #[inline]
    pub(crate) fn new(limits: &Limits, continuations_max: u32) -> Self {
        // With 32 bytes for each field, as in SETTINGS_MAX_HEADER_LIST_SIZE.
        let list_bytes_max = limits.head_bytes_max;
        let decoded_bytes_max = list_bytes_max.saturating_mul(DECODED_FACTOR);
        FieldBounds {
            // A block that is longer than this before it is decoded is so afterwards, unless its
            // sender wastes bytes.
            block: BlockBounds { bytes_max: decoded_bytes_max, continuations_max },
            list: Bounds { list_bytes_max, decoded_bytes_max },
        }
    }
}

/// The stream whose fields were decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FieldBlockInfo {
    pub(crate) stream: u32,
    /// Whether the stream ends with the fields.
    pub(crate) is_end: bool,
}

/// Decodes the blocks of one direction of a connection, each of which may be in several frames.
#[derive(Debug)]
pub(crate) struct FieldReader {
    decoder: HpackDecoder,
    /// An incomplete block. Rare: most blocks fit into one frame.
    block: Option<Box<FieldBlock>>,
    /// Until when the frame at the front of the input must be complete.
    frame_until: Time,
    /// Bytes of fields that were decoded since `take_steps`.
    decoded: usize,
}

impl FieldReader {
    /// Creates a reader for a new connection.
    pub(crate) fn new() -> FieldReader {
        let decoder = HpackDecoder::new(TABLE_BYTES_MAX);
        FieldReader { decoder, block: None, frame_until: Time::NEVER, decoded: 0 }
    }

    /// Returns the header of the first frame of the input once the whole frame has arrived.
    ///
    /// # Errors
    ///
    /// The peer's fault: see [`whole_frame`].
    #[inline]
    pub(crate) fn whole_frame(&self, input: &[u8]) -> Result<Option<FrameHeader>, Violation> {
        whole_frame(input, self.block.as_deref())
    }

    /// Decodes a block that was in one frame.
    ///
    /// # Errors
    ///
    /// The peer's fault, which ends the connection: the block is invalid, or a
    /// [flood](Violation::is_flood).
    #[inline]
    pub(crate) fn read(
        &mut self,
        block: &[u8],
        list: &mut FieldList,
        bounds: &FieldBounds,
    ) -> Result<(), Violation> {
        self.decoder.decode(block, list, &bounds.list).map_err(to_violation)?;
        self.decoded += match list.is_truncated() {
            false => list.bytes.len() + 32 * list.len().saturating_sub(FREE_FIELDS),
            true => bounds.list.decoded_bytes_max,
        };
        Ok(())
    }

    /// Returns how many steps the blocks count that were decoded since the last call, in addition to
    /// their frames.
    ///
    /// A byte of a block may stand for a field of 4 KiB, which is copied and checked whole. So
    /// frames alone do not limit what an event costs, nor do the bytes that are read.
    #[inline]
    pub(crate) fn take_steps(&mut self) -> u32 {
        (std::mem::take(&mut self.decoded) / STEP_BYTES) as u32
    }

    /// Starts a block whose rest must arrive by `until`.
    pub(crate) fn start_block(&mut self, info: FieldBlockInfo, fragment: &[u8], until: Time) {
        self.block = Some(Box::new(FieldBlock::new(info.stream, info.is_end, fragment, until)));
    }

    /// Adds a fragment to the block. Returns the block's stream once all of it has been decoded.
    ///
    /// # Errors
    ///
    /// As for [`read`](FieldReader::read); also if there is no such block.
    pub(crate) fn continue_block(
        &mut self,
        fragment: &[u8],
        is_last: bool,
        list: &mut FieldList,
        bounds: &FieldBounds,
    ) -> Result<Option<FieldBlockInfo>, Violation> {
        let Some(block) = &mut self.block else {
            return Err(Violation::protocol("CONTINUATION of nothing"));
        };
        block.push(fragment, bounds.block)?;
        if !is_last {
            return Ok(None);
        }
        let Some(block) = self.block.take() else { return Ok(None) };
        self.read(&block.bytes, list, bounds)?;
        Ok(Some(FieldBlockInfo { stream: block.stream, is_end: block.is_end }))
    }

    /// Returns whether there is an incomplete block.
    pub(crate) fn has_partial_block(&self) -> bool {
        self.block.is_some()
    }

    /// Returns the memory of the incomplete block, in bytes.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.bytes.capacity())
    }

    /// Limits the time for the frame of which `rest` has arrived: a head that arrives byte by byte
    /// within one frame is as slow as one in many frames. `is_new` says that earlier frames were
    /// taken from the input since the last call. DATA is left to the limits of bodies.
    #[inline]
    pub(crate) fn watch_frame(&mut self, rest: &[u8], is_new: bool, until: Time) {
        if rest.is_empty() || rest.get(FRAME_KIND_AT) == Some(&kind::DATA) {
            self.frame_until = Time::NEVER;
        } else if is_new || self.frame_until == Time::NEVER {
            self.frame_until = until;
        }
    }

    /// Postpones the deadline of the incomplete frame to `until`, if it has passed. The deadline of
    /// a block stays.
    pub(crate) fn postpone_frame(&mut self, now: Time, until: Time) {
        if self.frame_until <= now {
            self.frame_until = until;
        }
    }

    /// Drops the incomplete block, and stops watching the frame: the peer sends no more.
    pub(crate) fn input_ended(&mut self) {
        (self.block, self.frame_until) = (None, Time::NEVER);
    }

    /// Returns when the rest of the block, and of the [frame](FieldReader::watch_frame) that has
    /// begun, must have arrived; `NEVER` if neither is incomplete.
    pub(crate) fn until(&self) -> Time {
        self.block.as_ref().map_or(Time::NEVER, |block| block.until).min(self.frame_until)
    }
}

#[cold]
fn to_violation(error: HpackError) -> Violation {
    match error {
        HpackError::TooLarge => Violation::flood(error.why()),
        _ => Violation::Connection(ErrorCode::CompressionError, error.why()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::h2::error::tests::code;
    use crate::h2::frame_writer::frame_header;
    use crate::h2::hpack::HpackEncoder;

    const INFO: FieldBlockInfo = FieldBlockInfo { stream: 5, is_end: true };

    /// A head of 100 bytes, with 32 for each field.
    fn bounds() -> FieldBounds {
        FieldBounds::new(&Limits::new().head_bytes_max(100), 2)
    }

    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        encoder.start_block(&mut block);
        for (name, value) in fields {
            encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
        }
        block
    }

    #[test]
    fn a_block_decodes_the_same_from_one_frame_and_from_several() {
        let bytes = block(&[("a", "b"), ("c", "d")]);
        let (mut whole, bounds) = (FieldList::new(), bounds());
        assert_eq!(FieldReader::new().read(&bytes, &mut whole, &bounds), Ok(()));
        for cut in 0..=bytes.len() {
            let (mut reader, mut list) = (FieldReader::new(), FieldList::new());
            let until = Time::ZERO + Duration::from_secs(3);
            assert_eq!((reader.has_partial_block(), reader.until()), (false, Time::NEVER));
            reader.start_block(INFO, &bytes[..cut], until);
            assert_eq!((reader.has_partial_block(), reader.until()), (true, until));
            let mut continue_block = |fragment: &[u8], is_last| {
                reader.continue_block(fragment, is_last, &mut list, &bounds)
            };
            assert_eq!(continue_block(b"", false), Ok(None));
            assert_eq!(continue_block(&bytes[cut..], true), Ok(Some(INFO)));
            assert_eq!(list.fields().iter_bytes().count(), 2);
            assert!(list.fields().iter_bytes().eq(whole.fields().iter_bytes()), "cut at {cut}");
            assert_eq!((reader.has_partial_block(), reader.until()), (false, Time::NEVER));
        }
    }

    #[test]
    fn a_frame_that_interrupts_a_block_is_rejected() {
        let mut reader = FieldReader::new();
        let input = frame_header(0, kind::PING, 0, 0);
        assert_eq!(code(reader.whole_frame(&input)), None);
        reader.start_block(INFO, b"", Time::NEVER);
        assert_eq!(code(reader.whole_frame(&input)), Some(ErrorCode::ProtocolError));
    }

    #[test]
    fn an_incomplete_frame_has_one_deadline_unless_it_is_data() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let frame = |kind| frame_header(9, kind, 0, 1);
        let mut reader = FieldReader::new();
        for (rest, is_new, until, expected) in [
            (&frame(kind::HEADERS)[..1], true, at(1), at(1)),
            (&frame(kind::HEADERS)[..], false, at(2), at(1)),
            (&frame(kind::HEADERS)[..2], true, at(3), at(3)),
            (&frame(kind::DATA)[..4], false, at(4), Time::NEVER),
            (&frame(kind::DATA)[..3], false, at(5), at(5)),
            (b"", true, at(6), Time::NEVER),
            (&frame(kind::PING)[..8], false, at(7), at(7)),
        ] {
            reader.watch_frame(rest, is_new, until);
            assert_eq!(reader.until(), expected, "{rest:?} {is_new}");
        }
        for (now, expected) in [(at(6), at(7)), (at(7), at(9))] {
            reader.postpone_frame(now, at(9));
            assert_eq!(reader.until(), expected, "{now:?}");
        }
        reader.start_block(INFO, b"", at(8));
        reader.postpone_frame(at(9), at(10));
        assert_eq!(reader.until(), at(8), "that of the block");
    }

    #[test]
    fn an_invalid_block_is_a_compression_error_or_a_flood() {
        let value = "v".repeat(500);
        let large = block(&[("a", &value)]);
        for (bytes, continuations, expected) in [
            // An index that is in neither table.
            (&b"\xff\x00"[..], 1, Some(ErrorCode::CompressionError)),
            (&[0x80], 1, Some(ErrorCode::CompressionError)),
            // A truncated field.
            (&large[..10], 1, Some(ErrorCode::CompressionError)),
            (b"", 2, None),
            (b"", 3, Some(ErrorCode::EnhanceYourCalm)),
            (&[0x82; 100], 1, Some(ErrorCode::EnhanceYourCalm)),
            (&large, 1, Some(ErrorCode::EnhanceYourCalm)),
        ] {
            let (mut reader, mut list) = (FieldReader::new(), FieldList::new());
            reader.start_block(INFO, bytes, Time::NEVER);
            let mut taken = Ok(None);
            for left in (0..continuations).rev() {
                taken = taken.and(reader.continue_block(b"", left == 0, &mut list, &bounds()));
            }
            assert_eq!(code(taken), expected, "{} octets", bytes.len());
            let is_flood = taken.is_err_and(|violation| violation.is_flood());
            assert_eq!(is_flood, expected == Some(ErrorCode::EnhanceYourCalm));
        }
        let of_nothing =
            FieldReader::new().continue_block(b"", true, &mut FieldList::new(), &bounds());
        assert_eq!(code(of_nothing), Some(ErrorCode::ProtocolError));
    }

    #[test]
    fn decoded_bytes_count_as_steps_once() {
        let bounds = FieldBounds::new(&Limits::new(), 2);
        let mut reader = FieldReader::new();
        let mut decode = |lens: &[usize]| {
            for len in lens {
                let mut list = FieldList::new();
                let value = "v".repeat(*len);
                let read = reader.read(&block(&[("a", &value)]), &mut list, &bounds);
                assert_eq!(read, Ok(()), "{len}");
            }
            [reader.take_steps(), reader.take_steps()]
        };
        assert_eq!(decode(&[]), [0, 0]);
        assert_eq!(decode(&[1022]), [0, 0]);
        assert_eq!(decode(&[1023]), [1, 0]);
        assert_eq!(decode(&[4095, 4095, 100]), [8, 0]);
        // Not kept, but decoded.
        assert_eq!(decode(&[20_000]), [64, 0]);
        for (count, steps) in [(100, 0), (127, 0), (128, 1), (400, 9)] {
            let mut list = FieldList::new();
            let fields = block(&vec![("a", ""); count]);
            assert_eq!(reader.read(&fields, &mut list, &bounds), Ok(()));
            assert_eq!(reader.take_steps(), steps, "{count} fields");
        }
    }

    #[test]
    fn a_list_holds_its_bounds_and_decodes_four_times_as_much() {
        // Bytes with 32 for each field: 100 are stored and 400 decoded.
        for (len, is_truncated, expected) in [
            (67, false, None),
            (68, true, None),
            (367, true, None),
            (368, true, Some(ErrorCode::EnhanceYourCalm)),
        ] {
            let value = "v".repeat(len);
            let bytes = block(&[("a", &value)]);
            for frames in [1, 2] {
                let (mut reader, mut list) = (FieldReader::new(), FieldList::new());
                let read = if frames == 1 {
                    reader.read(&bytes, &mut list, &bounds())
                } else {
                    reader.start_block(INFO, &bytes[..9], Time::NEVER);
                    reader.continue_block(&bytes[9..], true, &mut list, &bounds()).map(|_| ())
                };
                assert_eq!(code(read), expected, "{len} in {frames}");
                let is_as_expected = expected.is_some() || list.is_truncated() == is_truncated;
                assert!(is_as_expected, "{len} in {frames}");
            }
        }
    }
}
