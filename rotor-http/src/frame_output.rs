//! `FrameOutput`: writes frames of HTTP/2, for servers and clients.

use rotor_stream::Output;

use crate::h2::field_text::encode_trailers;
use crate::h2::frame::{FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX, flag, kind};
use crate::h2::frame_writer::frame_header;
use crate::h2::hpack::HpackEncoder;
use crate::h2::settings::WINDOW_DEFAULT;
use crate::h2::{PeerSettings, SPLIT_MIN, SendWindow, Violation};

/// The sending state of a connection: the settings of its peer, the window, and the encoder of
/// field blocks. The encoder is in step with the peer's decoder as long as each encoded block is
/// also written.
#[derive(Debug)]
pub(crate) struct FrameOutput {
    peer: PeerSettings,
    encoder: HpackEncoder,
    /// The window of the connection, which all streams share.
    window: SendWindow,
}

impl FrameOutput {
    /// Creates the state before the peer has sent its settings.
    pub(crate) fn new() -> FrameOutput {
        FrameOutput {
            peer: PeerSettings::default(),
            encoder: HpackEncoder::new(),
            window: SendWindow::new(WINDOW_DEFAULT),
        }
    }

    /// Returns the settings of the peer.
    #[inline]
    pub(crate) fn peer(&self) -> &PeerSettings {
        &self.peer
    }

    /// Returns the window of the connection.
    #[inline]
    pub(crate) fn window(&self) -> SendWindow {
        self.window
    }

    /// Returns the initial window of a stream.
    pub(crate) fn stream_window(&self) -> SendWindow {
        SendWindow::new(self.peer.initial_window)
    }

    /// Applies SETTINGS of the peer. Returns the change of each stream's window.
    ///
    /// # Errors
    ///
    /// A value that the setting cannot have: the peer's fault, which ends the connection.
    pub(crate) fn apply_settings(&mut self, settings: &[u8]) -> Result<i64, Violation> {
        let mut change = 0;
        // One by one: of several table sizes, the smallest must be signalled, not the last
        // (RFC 7541 §4.2).
        for pair in settings.chunks(6) {
            change += self.peer.apply(pair)?;
            self.encoder.set_table_max(self.peer.header_table_size as usize);
        }
        Ok(change)
    }

    /// Opens the window of the connection. Returns whether it was empty, so that streams may
    /// continue.
    ///
    /// # Errors
    ///
    /// The window is too large: the peer's fault, which ends the connection.
    pub(crate) fn grow_window(&mut self, bytes: u32) -> Result<bool, Violation> {
        let was_shut = self.window.credit() == 0;
        self.window.change_or_fail_connection(i64::from(bytes))?;
        Ok(was_shut)
    }

    /// Takes bytes of DATA that were written from the window, which must allow them.
    #[inline]
    pub(crate) fn consume_window(&mut self, bytes: usize) {
        self.window.take(bytes);
    }

    /// Returns the encoder for the next block. A block that is not written must be [taken
    /// back](HpackEncoder::discard_block).
    #[inline]
    pub(crate) fn encoder(&mut self) -> &mut HpackEncoder {
        &mut self.encoder
    }

    /// Returns whether the block that was just encoded may be written now. If not, it has been
    /// taken back.
    pub(crate) fn fits_or_discard(&mut self, block: &[u8], room: usize, output: &Output) -> bool {
        let fits = output.is_empty() || block.len() + FRAME_HEADER_BYTES <= room;
        if !fits {
            self.encoder.discard_block();
        }
        fits
    }

    /// Writes a block of fields, split into frames of the peer's maximum size.
    pub(crate) fn put_block(&self, block: &[u8], stream: u32, is_end: bool, output: &mut Output) {
        let payload_max = self.peer.frame_bytes_max as usize;
        let end_stream = if is_end { flag::END_STREAM } else { 0 };
        let (first, rest) = block.split_at(block.len().min(payload_max));
        let end_headers = if rest.is_empty() { flag::END_HEADERS } else { 0 };
        put(output, &frame_header(first.len(), kind::HEADERS, end_stream | end_headers, stream));
        put(output, first);
        let mut rest = rest.chunks(payload_max).peekable();
        while let Some(part) = rest.next() {
            let end_headers = if rest.peek().is_none() { flag::END_HEADERS } else { 0 };
            put(output, &frame_header(part.len(), kind::CONTINUATION, end_headers, stream));
            put(output, part);
        }
    }

    /// Writes the end of a stream after its body: the trailers, which are the first bytes of
    /// `waiting`, or an empty DATA frame if there are none. Returns false and does nothing if there
    /// is no room for the trailers.
    pub(crate) fn put_end(
        &mut self,
        TrailerOutput { waiting, trailers, block }: TrailerOutput<'_>,
        stream: u32,
        room: usize,
        output: &mut Output,
    ) -> bool {
        if trailers == 0 {
            put(output, &frame_header(0, kind::DATA, flag::END_STREAM, stream));
            return true;
        }
        encode_trailers(waiting.front(), &mut self.encoder, block);
        if !self.fits_or_discard(block, room, output) {
            return false;
        }
        waiting.discard(trailers);
        self.put_block(block, stream, true, output);
        true
    }

    /// Writes one DATA frame, as large as the windows and the room allow.
    #[inline(always)]
    pub(crate) fn put_data(
        &mut self,
        data: Data<'_>,
        room: usize,
        output: &mut Output,
    ) -> DataOutcome {
        let Data { stream, body, left, is_all, most, window } = data;
        let own = left.min(most).min(window.credit());
        let allowed = own.min(self.window.credit());
        if allowed == 0 {
            return DataOutcome::NoWindow;
        }
        let bytes = allowed.min(room.saturating_sub(FRAME_HEADER_BYTES));
        if bytes < allowed.min(SPLIT_MIN) {
            return DataOutcome::NoRoom;
        }
        let is_end = is_all && bytes == left;
        let flags = if is_end { flag::END_STREAM } else { 0 };
        put(output, &frame_header(bytes, kind::DATA, flags, stream));
        let moved = body.move_to(output, bytes);
        debug_assert!(moved.is_ok_and(|moved| moved == bytes), "as many as there are");
        window.take(bytes);
        self.window.take(bytes);
        DataOutcome::Sent(SentData {
            bytes,
            is_end,
            is_cut: bytes < own,
            is_credited: bytes == left || bytes >= SPLIT_MIN,
        })
    }
}

/// What is sent after a body.
pub(crate) struct TrailerOutput<'a> {
    /// The output in which the trailers wait, at the front.
    pub(crate) waiting: &'a mut Output,
    /// The number of their bytes.
    pub(crate) trailers: usize,
    /// A buffer for their block.
    pub(crate) block: &'a mut Vec<u8>,
}

/// The part of a body to send.
pub(crate) struct Data<'a> {
    pub(crate) stream: u32,
    /// The output in which it waits, at the front.
    pub(crate) body: &'a mut Output,
    /// The number of bytes that wait; not 0.
    pub(crate) left: usize,
    /// Whether the stream ends with them: no trailers follow, and nothing more will be written.
    pub(crate) is_all: bool,
    /// How many bytes may be sent in this turn: at most the maximum length of a frame.
    pub(crate) most: usize,
    pub(crate) window: &'a mut SendWindow,
}

/// The outcome of [`FrameOutput::put_data`].
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum DataOutcome {
    Sent(SentData),
    /// Another stream has used the rest of the connection's window. This stream returns to the
    /// schedule once there is more.
    NoWindow,
    NoRoom,
}

/// A DATA frame that was written.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct SentData {
    pub(crate) bytes: usize,
    /// Whether it has ended the stream.
    pub(crate) is_end: bool,
    /// Whether it is shorter than it could be because of the room or the window of the connection.
    pub(crate) is_cut: bool,
    /// Whether the peer gets an allowance of control frames for it. It does not for small pieces
    /// that are small only because of its windows.
    pub(crate) is_credited: bool,
}

/// Writes a frame, or a part of one.
pub(crate) fn put(output: &mut Output, frame: &[u8]) {
    let written = output.write_pieces(&[frame]);
    debug_assert!(written.is_ok(), "a frame was written after the end of the output");
}

/// Returns how many bytes may be written now. An empty output accepts one frame of any size, since
/// a smaller high-water mark must not stop everything.
pub(crate) fn room(output: &Output, mark: usize) -> usize {
    if output.is_empty() { mark.max(PAYLOAD_BYTES_MAX) } else { mark.saturating_sub(output.len()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::h2::ErrorCode;

    #[test]
    fn trailers_are_written_whole_or_not_at_all() {
        let (mut frames, mut block) = (FrameOutput::new(), Vec::new());
        let (mut waiting, mut output) = (Output::new(), Output::new());
        waiting.write_all(b"X: y\r\nZ: w\r\n").expect("it is open");
        put(&mut output, b"before");
        let mut end = |waiting: &mut Output, trailers, room, output: &mut Output| {
            frames.put_end(TrailerOutput { waiting, trailers, block: &mut block }, 5, room, output)
        };
        // For each field a type byte, a literal name and a literal value with their lengths; and
        // the frame header.
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
    fn a_temporarily_smaller_table_is_acknowledged() {
        // RFC 7541 §4.2: the smallest of several sizes must be signalled, although the last one
        // applies.
        let size = |bytes: u32| [&[0, 1][..], &bytes.to_be_bytes()].concat();
        for (sizes, expected) in [
            (vec![size(4096)], &b""[..]),
            (vec![size(100)], &[0x20]),
            (vec![size(0), size(4096)], &[0x20]),
            (vec![size(8192), size(4096)], b""),
        ] {
            let (mut frames, mut block) = (FrameOutput::new(), Vec::new());
            frames.apply_settings(&sizes.concat()).expect("all are allowed");
            frames.encoder().start_block(&mut block);
            assert_eq!(block, expected, "{sizes:?}");
            assert_eq!(frames.peer().header_table_size.to_be_bytes(), sizes[sizes.len() - 1][2..]);
        }
    }

    #[test]
    fn a_stream_without_trailers_ends_with_an_empty_data_frame_in_any_room() {
        let (mut waiting, mut output, mut block) = (Output::new(), Output::new(), Vec::new());
        let trailing = TrailerOutput { waiting: &mut waiting, trailers: 0, block: &mut block };
        assert!(FrameOutput::new().put_end(trailing, 5, 0, &mut output));
        assert_eq!(output.front(), frame_header(0, kind::DATA, flag::END_STREAM, 5));
    }

    #[test]
    fn a_block_is_split_into_frames_of_the_peers_maximum_size() {
        let mut frames = FrameOutput::new();
        let (size, ends, whole) = (1 << 14, flag::END_STREAM, flag::END_HEADERS);
        for (len, cut) in [
            (0, &[(0, kind::HEADERS, ends | whole)][..]),
            (size, &[(size, kind::HEADERS, ends | whole)]),
            (size + 1, &[(size, kind::HEADERS, ends), (1, kind::CONTINUATION, whole)]),
            (
                2 * size + 2,
                &[
                    (size, kind::HEADERS, ends),
                    (size, kind::CONTINUATION, 0),
                    (2, kind::CONTINUATION, whole),
                ],
            ),
        ] {
            let (block, mut output) = (vec![b'x'; len], Output::new());
            frames.put_block(&block, 5, true, &mut output);
            let frame = |(len, kind, flags): &(usize, u8, u8)| {
                [&frame_header(*len, *kind, *flags, 5)[..], &block[..*len]].concat()
            };
            let expected: Vec<u8> = cut.iter().flat_map(frame).collect();
            let mut sent = Vec::new();
            while !output.is_empty() {
                let len = output.front().len();
                sent.extend_from_slice(output.front());
                output.discard(len);
            }
            assert!(sent == expected, "{len}");
        }
        assert_eq!(frames.apply_settings(&[0, 5, 0, 1, 0, 0]), Ok(0));
        let mut output = Output::new();
        frames.put_block(&vec![b'x'; size + 1], 5, false, &mut output);
        assert_eq!(
            output.front()[..9],
            frame_header(size + 1, kind::HEADERS, flag::END_HEADERS, 5)
        );
    }

    #[test]
    fn a_block_that_does_not_fit_is_discarded_unless_the_output_is_empty() {
        let (mut frames, mut output) = (FrameOutput::new(), Output::new());
        // A smaller table, which the next block must acknowledge.
        assert_eq!(frames.apply_settings(&[0, 1, 0, 0, 0, 0]), Ok(0));
        for (is_empty, room, fits) in [(true, 0, true), (false, 9, false), (false, 10, true)] {
            if !is_empty {
                put(&mut output, b"before");
            }
            let mut block = Vec::new();
            frames.encoder().start_block(&mut block);
            assert_eq!(block, [0x20], "it was taken back before, or not written");
            assert_eq!(frames.fits_or_discard(&block, room, &output), fits, "{room}");
            if is_empty {
                frames.encoder().discard_block();
            }
        }
    }

    #[test]
    fn growing_the_connection_window_reports_whether_it_was_empty() {
        let mut frames = FrameOutput::new();
        assert_eq!(frames.grow_window(1), Ok(false));
        frames.consume_window(65_536);
        assert_eq!(frames.grow_window(5), Ok(true));
        assert_eq!(frames.window().credit(), 5);
        assert_eq!(frames.grow_window((1 << 31) - 6), Ok(false));
        assert!(matches!(
            frames.grow_window(1),
            Err(Violation::Connection(ErrorCode::FlowControlError, _))
        ));
        // Each stream has its own window, with the initial size that the peer has sent last.
        assert_eq!(frames.apply_settings(&[0, 4, 0, 0, 0, 7]), Ok(7 - 65_535));
        assert_eq!(frames.stream_window().credit(), 7);
    }

    /// Puts a frame of a body of `len` bytes. Returns the outcome, the rest of both windows, and
    /// the output.
    fn data(
        len: usize,
        windows: (u32, u32),
        room: usize,
        is_all: bool,
    ) -> (DataOutcome, usize, usize, Vec<u8>) {
        let (mut body, mut output) = (Output::new(), Output::new());
        body.write_all(&vec![b'x'; len]).expect("it is open");
        let mut window = SendWindow::new(windows.0);
        let mut frames = FrameOutput { window: SendWindow::new(windows.1), ..FrameOutput::new() };
        let most = PAYLOAD_BYTES_MAX;
        let data =
            Data { stream: 7, body: &mut body, left: len, is_all, most, window: &mut window };
        let put = frames.put_data(data, room, &mut output);
        let bytes = if let DataOutcome::Sent(sent) = &put { sent.bytes } else { 0 };
        assert_eq!(body.len(), len - bytes);
        (put, window.credit(), frames.window.credit(), output.front().to_vec())
    }

    #[test]
    fn a_data_frame_is_limited_by_the_body_both_windows_and_the_room() {
        let sent = |bytes, is_end, is_cut, is_credited| {
            DataOutcome::Sent(SentData { bytes, is_end, is_cut, is_credited })
        };
        let most = 1 << 16;
        let payload = PAYLOAD_BYTES_MAX;
        let header = FRAME_HEADER_BYTES;
        for (len, windows, room, is_all, expected) in [
            (10, (100, 100), 100, true, sent(10, true, false, true)),
            // Trailers or more of the body follow.
            (10, (100, 100), 100, false, sent(10, false, false, true)),
            (10, (9, 100), 100, true, sent(9, false, false, false)),
            (10, (100, 9), 100, true, sent(9, false, true, false)),
            (2000, (1023, most), 5000, true, sent(1023, false, false, false)),
            (2000, (1024, most), 5000, true, sent(1024, false, false, true)),
            (payload, (most, most), payload + header, true, sent(payload, true, false, true)),
            (payload + 1, (most, most), 2 * payload, true, sent(payload, false, false, true)),
            (10, (0, 100), 100, true, DataOutcome::NoWindow),
            (10, (100, 0), 100, true, DataOutcome::NoWindow),
            (10, (0, 0), 0, true, DataOutcome::NoWindow),
            (10, (100, 100), 10 + header, true, sent(10, true, false, true)),
            (10, (100, 100), 9 + header, true, DataOutcome::NoRoom),
            (10, (100, 100), 0, true, DataOutcome::NoRoom),
            (2000, (most, most), SPLIT_MIN + header, true, sent(SPLIT_MIN, false, true, true)),
            (2000, (most, most), SPLIT_MIN - 1 + header, true, DataOutcome::NoRoom),
        ] {
            let case = (len, windows, room, is_all);
            let (put, window, shared, frame) = data(len, windows, room, is_all);
            assert_eq!(put, expected, "{case:?}");
            let DataOutcome::Sent(SentData { bytes, is_end, .. }) = put else {
                assert!(frame.is_empty(), "{case:?}");
                assert_eq!((window, shared), (windows.0 as usize, windows.1 as usize), "{case:?}");
                continue;
            };
            let left = (windows.0 as usize - bytes, windows.1 as usize - bytes);
            assert_eq!((window, shared), left, "{case:?}");
            let ends = if is_end { flag::END_STREAM } else { 0 };
            assert_eq!(frame.len(), header + bytes, "{case:?}");
            assert_eq!(frame[..header], frame_header(bytes, kind::DATA, ends, 7), "{case:?}");
        }
    }

    #[test]
    fn a_data_frame_is_limited_by_the_rest_of_its_turn() {
        for (len, most, expected) in [(3000, 2000, (2000, false)), (2000, 2000, (2000, true))] {
            let (mut body, mut output) = (Output::new(), Output::new());
            body.write_all(&vec![b'x'; len]).expect("it is open");
            let mut window = SendWindow::new(1 << 16);
            let data = Data {
                stream: 7,
                body: &mut body,
                left: len,
                is_all: true,
                most,
                window: &mut window,
            };
            let put = FrameOutput::new().put_data(data, 1 << 16, &mut output);
            let DataOutcome::Sent(SentData { bytes, is_end, is_cut, .. }) = put else {
                panic!("{put:?}");
            };
            assert_eq!(((bytes, is_end), is_cut), (expected, false));
        }
    }
}
