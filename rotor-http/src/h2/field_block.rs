//! A block of fields in several frames (RFC 9113 §4.3): HEADERS, then CONTINUATION up to the one
//! that is marked as the last. No other frame may come in between.

use rotor_core::Time;

use super::error::Violation;
use super::frame::{FrameHeader, kind};

/// How much of a block is accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockBounds {
    /// Bytes, compressed.
    pub(crate) bytes_max: usize,
    /// CONTINUATION frames: empty ones have no bytes that could be counted.
    pub(crate) continuations_max: u32,
}

/// A block that is incomplete.
#[derive(Debug)]
pub(crate) struct FieldBlock {
    pub(crate) stream: u32,
    /// Whether the stream ends with the block.
    pub(crate) is_end: bool,
    pub(crate) bytes: Vec<u8>,
    /// When the whole block must have arrived.
    pub(crate) until: Time,
    continuations: u32,
}

impl FieldBlock {
    /// Starts a block with the fragment of a HEADERS frame.
    pub(crate) fn new(stream: u32, is_end: bool, fragment: &[u8], until: Time) -> FieldBlock {
        FieldBlock { stream, is_end, bytes: fragment.to_vec(), until, continuations: 0 }
    }

    /// Adds the fragment of a CONTINUATION frame.
    ///
    /// # Errors
    ///
    /// The peer's fault, which ends the connection: the block exceeds its limits.
    pub(crate) fn push(&mut self, fragment: &[u8], bounds: BlockBounds) -> Result<(), Violation> {
        self.continuations += 1;
        let is_beyond = self.bytes.len() + fragment.len() > bounds.bytes_max
            || self.continuations > bounds.continuations_max;
        if is_beyond {
            return Err(Violation::flood("a block of fields without end"));
        }
        self.bytes.extend_from_slice(fragment);
        Ok(())
    }

    fn is_continued_by(&self, header: FrameHeader) -> bool {
        (header.kind, header.stream) == (kind::CONTINUATION, self.stream)
    }
}

/// Returns the header of the first frame of the input once the whole frame has arrived.
///
/// # Errors
///
/// The peer's fault, which ends the connection: a frame that is too long, which is refused as soon
/// as its length has arrived; or one that interrupts an incomplete block.
pub(crate) fn whole_frame(
    input: &[u8],
    block: Option<&FieldBlock>,
) -> Result<Option<FrameHeader>, Violation> {
    let Some(header) = FrameHeader::read(input) else { return Ok(None) };
    if header.is_too_long() {
        return Err(Violation::size("a frame that is longer than allowed"));
    }
    if input.len() < header.frame_len() {
        return Ok(None);
    }
    // Checked before the content: after an interrupted block, the tables of the two sides are out
    // of step.
    if block.is_some_and(|block| !block.is_continued_by(header)) {
        return Err(Violation::protocol("a block of fields is broken off"));
    }
    Ok(Some(header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::error::ErrorCode;
    use crate::h2::error::tests::code;
    use crate::h2::frame::{FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX, flag};
    use crate::h2::frame_writer::frame_header;

    const BOUNDS: BlockBounds = BlockBounds { bytes_max: 10, continuations_max: 3 };

    fn block(bytes: usize) -> FieldBlock {
        FieldBlock::new(5, true, &vec![b'x'; bytes], Time::NEVER)
    }

    #[test]
    fn a_block_is_limited_in_bytes() {
        for (more, refused) in [(3, None), (4, None), (5, Some(ErrorCode::EnhanceYourCalm))] {
            let mut block = block(6);
            assert_eq!(code(block.push(&vec![b'y'; more], BOUNDS)), refused, "6 and {more}");
            assert_eq!(block.bytes.len(), if refused.is_some() { 6 } else { 6 + more });
        }
    }

    #[test]
    fn a_block_is_limited_in_continuations_however_short() {
        let mut block = block(0);
        for _ in 0..BOUNDS.continuations_max {
            assert_eq!(code(block.push(b"", BOUNDS)), None);
        }
        assert_eq!(code(block.push(b"", BOUNDS)), Some(ErrorCode::EnhanceYourCalm));
    }

    #[test]
    fn a_frame_is_returned_once_it_is_complete() {
        let mut input = frame_header(4, kind::PING, flag::ACK, 0).to_vec();
        input.extend_from_slice(b"pingmore");
        for len in 0..FRAME_HEADER_BYTES + 4 {
            assert_eq!(whole_frame(&input[..len], None), Ok(None), "{len}");
        }
        for len in FRAME_HEADER_BYTES + 4..=input.len() {
            let header = whole_frame(&input[..len], None).unwrap().expect("it is there");
            assert_eq!((header.kind, header.len), (kind::PING, 4));
        }
    }

    #[test]
    fn an_oversized_frame_is_rejected_by_its_header() {
        let allowed = frame_header(PAYLOAD_BYTES_MAX, kind::DATA, 0, 1);
        assert_eq!(whole_frame(&allowed, None), Ok(None));
        let longer = frame_header(PAYLOAD_BYTES_MAX + 1, kind::DATA, 0, 1);
        assert_eq!(code(whole_frame(&longer, None)), Some(ErrorCode::FrameSizeError));
    }

    #[test]
    fn only_a_continuation_may_follow_an_incomplete_block() {
        let block = block(1);
        for (kind, stream, may_come) in [
            (kind::CONTINUATION, 5, true),
            (kind::CONTINUATION, 7, false),
            (kind::CONTINUATION, 0, false),
            (kind::HEADERS, 5, false),
            (kind::DATA, 5, false),
            (kind::PING, 0, false),
            (0x7f, 5, false),
        ] {
            let input = frame_header(0, kind, 0, stream);
            let refused = (!may_come).then_some(ErrorCode::ProtocolError);
            assert_eq!(code(whole_frame(&input, Some(&block))), refused, "{kind} on {stream}");
            assert_eq!(code(whole_frame(&input, None)), None);
        }
    }
}
