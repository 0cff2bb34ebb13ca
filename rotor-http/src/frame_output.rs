//! Frames of HTTP/2 on their way out, of a server as of a client.

use rotor_stream::Output;

use crate::h2::SendWindow;
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

/// A frame of fewer octets is not made only because there is no room for more.
pub(crate) const CUT_MIN: usize = 1024;

/// What is sent of a body.
pub(crate) struct Data<'a> {
    pub(crate) stream: u32,
    /// Where it waits, at the front.
    pub(crate) body: &'a mut Output,
    /// How much of it does; not 0.
    pub(crate) left: usize,
    /// The stream ends with that: no trailers follow, and nothing more will be written.
    pub(crate) is_all: bool,
    pub(crate) window: &'a mut SendWindow,
    /// That of the connection, from which all streams take.
    pub(crate) shared: &'a mut SendWindow,
}

/// What became of it.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum PutData {
    Sent(SentData),
    /// Another stream has taken the rest of the connection's window: the schedule gets this one
    /// back once there is more.
    NoWindow,
    NoRoom,
}

/// A frame of DATA that was written.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct SentData {
    pub(crate) octets: usize,
    /// It has ended the stream.
    pub(crate) is_end: bool,
    /// The peer gets an allowance of frames for it: not for small pieces, into which its windows
    /// cut a body.
    pub(crate) is_credited: bool,
}

impl Data<'_> {
    /// Writes one frame, as large as windows and room allow.
    #[inline(always)]
    pub(crate) fn put(self, room: usize, output: &mut Output) -> PutData {
        let Data { stream, body, left, is_all, window, shared } = self;
        let allowed = left.min(PAYLOAD_BYTES_MAX).min(window.octets()).min(shared.octets());
        if allowed == 0 {
            return PutData::NoWindow;
        }
        let octets = allowed.min(room.saturating_sub(FRAME_HEADER_BYTES));
        if octets < allowed.min(CUT_MIN) {
            return PutData::NoRoom;
        }
        let is_end = is_all && octets == left;
        let flags = if is_end { flag::END_STREAM } else { 0 };
        put(output, &frame_header(octets, kind::DATA, flags, stream));
        let moved = body.move_to(output, octets);
        debug_assert!(moved.is_ok_and(|moved| moved == octets), "as many as there are");
        window.take(octets);
        shared.take(octets);
        PutData::Sent(SentData { octets, is_end, is_credited: octets == left || octets >= CUT_MIN })
    }
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

    /// Puts a frame of a body of `len` octets. Returns what became of it, what is left of both
    /// windows, and what was written.
    fn data(
        len: usize,
        windows: (u32, u32),
        room: usize,
        is_all: bool,
    ) -> (PutData, usize, usize, Vec<u8>) {
        let (mut body, mut output) = (Output::new(), Output::new());
        body.write_all(&vec![b'x'; len]).expect("it is open");
        let (mut window, mut shared) = (SendWindow::new(windows.0), SendWindow::new(windows.1));
        let (window, shared) = (&mut window, &mut shared);
        let data = Data { stream: 7, body: &mut body, left: len, is_all, window, shared };
        let put = data.put(room, &mut output);
        let octets = if let PutData::Sent(sent) = &put { sent.octets } else { 0 };
        assert_eq!(body.len(), len - octets);
        (put, window.octets(), shared.octets(), output.front().to_vec())
    }

    #[test]
    fn data_is_as_large_as_what_is_there_both_windows_and_the_room_allow() {
        let sent =
            |octets, is_end, is_credited| PutData::Sent(SentData { octets, is_end, is_credited });
        let most = 1 << 16;
        let payload = PAYLOAD_BYTES_MAX;
        let header = FRAME_HEADER_BYTES;
        for (len, windows, room, is_all, expected) in [
            (10, (100, 100), 100, true, sent(10, true, true)),
            // Trailers follow, or more of the body.
            (10, (100, 100), 100, false, sent(10, false, true)),
            (10, (9, 100), 100, true, sent(9, false, false)),
            (10, (100, 9), 100, true, sent(9, false, false)),
            (2000, (1023, most), 5000, true, sent(1023, false, false)),
            (2000, (1024, most), 5000, true, sent(1024, false, true)),
            (payload, (most, most), payload + header, true, sent(payload, true, true)),
            (payload + 1, (most, most), 2 * payload, true, sent(payload, false, true)),
            (10, (0, 100), 100, true, PutData::NoWindow),
            (10, (100, 0), 100, true, PutData::NoWindow),
            (10, (0, 0), 0, true, PutData::NoWindow),
            (10, (100, 100), 10 + header, true, sent(10, true, true)),
            (10, (100, 100), 9 + header, true, PutData::NoRoom),
            (10, (100, 100), 0, true, PutData::NoRoom),
            (2000, (most, most), CUT_MIN + header, true, sent(CUT_MIN, false, true)),
            (2000, (most, most), CUT_MIN - 1 + header, true, PutData::NoRoom),
        ] {
            let case = (len, windows, room, is_all);
            let (put, window, shared, frame) = data(len, windows, room, is_all);
            assert_eq!(put, expected, "{case:?}");
            let PutData::Sent(SentData { octets, is_end, .. }) = put else {
                assert!(frame.is_empty(), "{case:?}");
                assert_eq!((window, shared), (windows.0 as usize, windows.1 as usize), "{case:?}");
                continue;
            };
            let left = (windows.0 as usize - octets, windows.1 as usize - octets);
            assert_eq!((window, shared), left, "{case:?}");
            let ends = if is_end { flag::END_STREAM } else { 0 };
            assert_eq!(frame.len(), header + octets, "{case:?}");
            assert_eq!(frame[..header], frame_header(octets, kind::DATA, ends, 7), "{case:?}");
        }
    }
}
