//! Frames of HTTP/2 on their way out, of a server as of a client.

use rotor_stream::Output;

use crate::h2::frame::{FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX, flag, kind};
use crate::h2::frame_writer::frame_header;

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
