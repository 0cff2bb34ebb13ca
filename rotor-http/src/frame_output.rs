//! Frames of HTTP/2 on their way out, of a server as of a client.

use rotor_stream::Output;

use crate::h2::field_text::encode_trailers;
use crate::h2::frame::{FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX, flag, kind};
use crate::h2::frame_writer::frame_header;
use crate::h2::hpack::HpackEncoder;

/// Writes a frame, or a part of one.
pub(crate) fn put(output: &mut Output, frame: &[u8]) {
    let written = output.write_pieces(&[frame]);
    debug_assert!(written.is_ok(), "a frame was written after the end of the output");
}

/// Octets that may be written now. An empty output takes one frame of any size: a mark below that
/// must not stop everything.
pub(crate) fn room(output: &Output, mark: usize) -> usize {
    if output.is_empty() { mark.max(PAYLOAD_BYTES_MAX) } else { mark.saturating_sub(output.len()) }
}

/// Whether a block of fields may be written now.
pub(crate) fn fits(block: &[u8], room: usize, output: &Output) -> bool {
    output.is_empty() || block.len() + FRAME_HEADER_BYTES <= room
}

/// Writes a block of fields, in as many frames as the peer's largest makes it.
pub(crate) fn put_block(
    block: &[u8],
    stream: u32,
    is_end: bool,
    frame_bytes_max: u32,
    output: &mut Output,
) {
    let most = frame_bytes_max as usize;
    let ends = if is_end { flag::END_STREAM } else { 0 };
    let (first, rest) = block.split_at(block.len().min(most));
    let whole = if rest.is_empty() { flag::END_HEADERS } else { 0 };
    put(output, &frame_header(first.len(), kind::HEADERS, ends | whole, stream));
    put(output, first);
    let mut rest = rest.chunks(most).peekable();
    while let Some(part) = rest.next() {
        let whole = if rest.peek().is_none() { flag::END_HEADERS } else { 0 };
        put(output, &frame_header(part.len(), kind::CONTINUATION, whole, stream));
        put(output, part);
    }
}

/// What blocks of fields are made with.
pub(crate) struct Blocks<'a> {
    pub(crate) encoder: &'a mut HpackEncoder,
    /// The block that is being sent.
    pub(crate) block: &'a mut Vec<u8>,
    pub(crate) frame_bytes_max: u32,
}

/// Writes what ends a stream behind its body: the trailers, which are the first so many octets of
/// what waits, or where there are none a DATA without octets. False, with nothing done, where there
/// is no room for the trailers.
pub(crate) fn put_end(
    waiting: &mut Output,
    trailers: usize,
    stream: u32,
    blocks: Blocks<'_>,
    room: usize,
    output: &mut Output,
) -> bool {
    if trailers == 0 {
        put(output, &frame_header(0, kind::DATA, flag::END_STREAM, stream));
        return true;
    }
    let Blocks { encoder, block, frame_bytes_max } = blocks;
    encode_trailers(waiting.front(), encoder, block);
    if !fits(block, room, output) {
        encoder.take_back();
        return false;
    }
    waiting.discard(trailers);
    put_block(block, stream, true, frame_bytes_max, output);
    true
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn trailers_are_written_whole_or_not_at_all() {
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        let (mut waiting, mut output) = (Output::new(), Output::new());
        waiting.write_all(b"X: y\r\nZ: w\r\n").expect("it is open");
        put(&mut output, b"before");
        let mut end = |waiting: &mut Output, trailers, room, output: &mut Output| {
            let blocks =
                Blocks { encoder: &mut encoder, block: &mut block, frame_bytes_max: 16 << 10 };
            put_end(waiting, trailers, 5, blocks, room, output)
        };
        // A literal name, a literal value, and what each begins with; the header of the frame.
        let needed = 2 * 5 + FRAME_HEADER_BYTES;
        assert!(!end(&mut waiting, 12, needed - 1, &mut output));
        assert_eq!((waiting.front(), output.front()), (&b"X: y\r\nZ: w\r\n"[..], &b"before"[..]));
        assert!(end(&mut waiting, 12, needed, &mut output));
        assert!(waiting.is_empty());
        let sent = &output.front()[b"before".len()..];
        let ends = flag::END_HEADERS | flag::END_STREAM;
        assert_eq!(
            (sent.len(), &sent[..9]),
            (needed, &frame_header(10, kind::HEADERS, ends, 5)[..])
        );
    }

    #[test]
    fn a_stream_without_trailers_ends_by_an_empty_data_whatever_the_room() {
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        let (mut waiting, mut output) = (Output::new(), Output::new());
        let blocks = Blocks { encoder: &mut encoder, block: &mut block, frame_bytes_max: 16 << 10 };
        assert!(put_end(&mut waiting, 0, 5, blocks, 0, &mut output));
        assert_eq!(output.front(), frame_header(0, kind::DATA, flag::END_STREAM, 5));
    }
}
