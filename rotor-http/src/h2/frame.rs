//! Reads frames (RFC 9113 §4, §6) from bytes.

use super::error::{ErrorCode, Violation};

/// The size of the header of each frame, in bytes.
pub const FRAME_HEADER_BYTES: usize = 9;

/// The position of the [`kind`] in the header, after the length.
pub(crate) const FRAME_KIND_AT: usize = 3;

/// The longest payload that we accept, in bytes: the minimum that every peer may rely on (RFC 9113
/// §4.2).
pub const PAYLOAD_BYTES_MAX: usize = 16 << 10;

/// The maximum of a window, and of the number of a stream.
pub const U31_MAX: u32 = (1 << 31) - 1;

/// The bytes with which a client starts every connection (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
pub mod kind {
    #![allow(missing_docs)]
    pub const DATA: u8 = 0x0;
    pub const HEADERS: u8 = 0x1;
    pub const PRIORITY: u8 = 0x2;
    pub const RST_STREAM: u8 = 0x3;
    pub const SETTINGS: u8 = 0x4;
    pub const PUSH_PROMISE: u8 = 0x5;
    pub const PING: u8 = 0x6;
    pub const GOAWAY: u8 = 0x7;
    pub const WINDOW_UPDATE: u8 = 0x8;
    pub const CONTINUATION: u8 = 0x9;
    pub const PRIORITY_UPDATE: u8 = 0x10;
}

/// Flags of frames.
pub mod flag {
    #![allow(missing_docs)]
    pub const ACK: u8 = 0x1;
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// The header of a frame, nine bytes before its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// The length of the payload, in bytes.
    pub len: usize,
    /// The type: one of [`kind`], or another one, which must be ignored.
    pub kind: u8,
    /// The flags, including those that have no meaning for the type.
    pub flags: u8,
    /// The stream; 0 is the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Reads a header from the beginning of the input; `None` until it is complete.
    #[inline]
    pub fn read(input: &[u8]) -> Option<FrameHeader> {
        let [l1, l2, l3, kind, flags, s1, s2, s3, s4] = *input.first_chunk()?;
        Some(FrameHeader {
            len: u32::from_be_bytes([0, l1, l2, l3]) as usize,
            kind,
            flags,
            // The highest bit is reserved, and ignored (RFC 9113 §4.1).
            stream: u32::from_be_bytes([s1, s2, s3, s4]) & U31_MAX,
        })
    }

    /// Returns whether the payload is longer than what we accept (RFC 9113 §4.2).
    pub(crate) fn is_too_long(&self) -> bool {
        self.len > PAYLOAD_BYTES_MAX
    }

    /// Returns the length of the frame with its header, in bytes.
    pub(crate) fn frame_len(&self) -> usize {
        FRAME_HEADER_BYTES + self.len
    }

    /// Returns how many bytes are needed before the first frame of the input can be handled. A
    /// frame that is too long is refused as soon as its length is known.
    pub(crate) fn needed(input: &[u8]) -> usize {
        match FrameHeader::read(input) {
            Some(header) if !header.is_too_long() => header.frame_len(),
            _ => FRAME_HEADER_BYTES,
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A frame. Its content is borrowed from its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// A part of a body.
    Data {
        /// The data without padding.
        data: &'a [u8],
        /// Whether the stream ends with this frame.
        is_end: bool,
    },
    /// The beginning of a block of fields, or the whole block.
    Headers {
        /// The fragment of the block.
        fragment: &'a [u8],
        /// Whether this is the whole block.
        is_whole: bool,
        /// Whether the stream ends with the block.
        is_end: bool,
    },
    /// The priority of RFC 7540, which is obsolete.
    Priority,
    /// The stream is reset.
    Reset {
        /// The error code.
        code: u32,
    },
    /// Settings, for [`PeerSettings::apply`](super::PeerSettings::apply).
    Settings {
        /// Pairs of identifier and value, six bytes each.
        payload: &'a [u8],
    },
    /// The acknowledgement of our settings.
    SettingsAck,
    /// A push, which a client never sends, and which our client does not allow.
    PushPromise,
    /// A ping, which must be acknowledged.
    Ping([u8; 8]),
    /// The acknowledgement of our ping.
    PingAck([u8; 8]),
    /// The peer accepts no more streams.
    GoAway {
        /// The last stream that the peer has processed, or may still process.
        last: u32,
        /// The error code.
        code: u32,
        /// Text for people (RFC 9113 §6.8), if there is any.
        text: &'a [u8],
    },
    /// This many more bytes may be sent, at least 1.
    WindowUpdate(u32),
    /// The continuation of a block of fields.
    Continuation {
        /// The fragment of the block.
        fragment: &'a [u8],
        /// Whether the block ends with this fragment.
        is_last: bool,
    },
    /// The priority of a stream (RFC 9218 §7.1).
    PriorityUpdate {
        /// The stream.
        stream: u32,
        /// The value, as in the field `Priority`.
        value: &'a [u8],
    },
    /// A frame of an unknown type, which must be ignored.
    Unknown,
}

impl<'a> Frame<'a> {
    /// Reads the payload of a frame that has arrived whole.
    ///
    /// # Errors
    ///
    /// The peer's fault: a size, stream or padding that the type does not allow.
    pub fn read(header: FrameHeader, payload: &'a [u8]) -> Result<Frame<'a>, Violation> {
        let stream = header.stream;
        Ok(match header.kind {
            kind::DATA => {
                require_stream(stream, "DATA on stream 0")?;
                let data = strip_padding(&header, payload)?;
                Frame::Data { data, is_end: header.has(flag::END_STREAM) }
            }
            kind::HEADERS => {
                require_stream(stream, "HEADERS on stream 0")?;
                let fragment = strip_priority(&header, strip_padding(&header, payload)?)?;
                Frame::Headers {
                    fragment,
                    is_whole: header.has(flag::END_HEADERS),
                    is_end: header.has(flag::END_STREAM),
                }
            }
            kind::PRIORITY => {
                require_stream(stream, "PRIORITY on stream 0")?;
                let Some(on) = payload.first_chunk().filter(|_| payload.len() == 5) else {
                    return Err(Violation::Stream(stream, ErrorCode::FrameSizeError));
                };
                // The only rule that is left of the scheme: a stream cannot depend on itself.
                if u32::from_be_bytes(*on) & U31_MAX == stream {
                    return Err(Violation::Stream(stream, ErrorCode::ProtocolError));
                }
                Frame::Priority
            }
            kind::RST_STREAM => {
                require_stream(stream, "RST_STREAM on stream 0")?;
                Frame::Reset { code: read_u32(payload, "RST_STREAM of other than 4 octets")? }
            }
            kind::SETTINGS => {
                require_connection(stream, "SETTINGS on a stream")?;
                match header.has(flag::ACK) {
                    true if payload.is_empty() => Frame::SettingsAck,
                    true => return Err(Violation::size("SETTINGS that acknowledge and say more")),
                    false if !payload.len().is_multiple_of(6) => {
                        return Err(Violation::size(
                            "SETTINGS of a length that is no multiple of 6",
                        ));
                    }
                    false => Frame::Settings { payload },
                }
            }
            kind::PUSH_PROMISE => Frame::PushPromise,
            kind::PING => {
                require_connection(stream, "PING on a stream")?;
                let data = payload
                    .try_into()
                    .map_err(|_| Violation::size("PING of other than 8 octets"))?;
                if header.has(flag::ACK) { Frame::PingAck(data) } else { Frame::Ping(data) }
            }
            kind::GOAWAY => {
                require_connection(stream, "GOAWAY on a stream")?;
                let (&[l1, l2, l3, l4, ref code @ ..], text) = payload
                    .split_first_chunk::<8>()
                    .ok_or(Violation::size("GOAWAY of less than 8 octets"))?;
                let last = u32::from_be_bytes([l1, l2, l3, l4]) & U31_MAX;
                Frame::GoAway { last, code: u32::from_be_bytes(*code), text }
            }
            kind::WINDOW_UPDATE => {
                let more = read_u32(payload, "WINDOW_UPDATE of other than 4 octets")? & U31_MAX;
                match (more, stream) {
                    (0, 0) => return Err(Violation::protocol("WINDOW_UPDATE of 0 octets")),
                    (0, stream) => return Err(Violation::Stream(stream, ErrorCode::ProtocolError)),
                    (more, _) => Frame::WindowUpdate(more),
                }
            }
            kind::CONTINUATION => {
                require_stream(stream, "CONTINUATION on stream 0")?;
                Frame::Continuation { fragment: payload, is_last: header.has(flag::END_HEADERS) }
            }
            kind::PRIORITY_UPDATE => {
                require_connection(stream, "PRIORITY_UPDATE on a stream")?;
                let (stream, value) = payload
                    .split_first_chunk()
                    .ok_or(Violation::size("PRIORITY_UPDATE of less than 4 octets"))?;
                let stream = u32::from_be_bytes(*stream) & U31_MAX;
                require_stream(stream, "PRIORITY_UPDATE of stream 0")?;
                Frame::PriorityUpdate { stream, value }
            }
            _ => Frame::Unknown,
        })
    }
}

fn require_stream(stream: u32, why: &'static str) -> Result<(), Violation> {
    if stream == 0 { Err(Violation::protocol(why)) } else { Ok(()) }
}

fn require_connection(stream: u32, why: &'static str) -> Result<(), Violation> {
    if stream == 0 { Ok(()) } else { Err(Violation::protocol(why)) }
}

fn read_u32(payload: &[u8], why: &'static str) -> Result<u32, Violation> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| Violation::size(why))
}

/// Returns the payload without its padding (RFC 9113 §6.1).
fn strip_padding<'a>(header: &FrameHeader, payload: &'a [u8]) -> Result<&'a [u8], Violation> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) =
        payload.split_first().ok_or(Violation::size("no room for the padding"))?;
    let len = rest.len().checked_sub(usize::from(padding));
    Ok(&rest[..len.ok_or(Violation::protocol("padding is longer than its frame"))?])
}

/// Returns the fragment after the priority of RFC 7540.
fn strip_priority<'a>(header: &FrameHeader, payload: &'a [u8]) -> Result<&'a [u8], Violation> {
    if !header.has(flag::PRIORITY) {
        return Ok(payload);
    }
    let (priority, fragment) =
        payload.split_first_chunk::<5>().ok_or(Violation::size("no room for the priority"))?;
    let [on @ .., _weight] = *priority;
    if u32::from_be_bytes(on) & U31_MAX == header.stream {
        // By RFC 7540 §5.3.1, an error of the stream; but the block was not decoded, so the tables
        // of the two sides are out of step.
        return Err(Violation::protocol("a stream that waits for itself"));
    }
    Ok(fragment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorCode::{FrameSizeError, ProtocolError};

    fn read(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<Frame<'_>, Violation> {
        Frame::read(FrameHeader { len: payload.len(), kind, flags, stream }, payload)
    }

    #[test]
    fn a_header_is_read_once_complete_and_its_reserved_bit_is_ignored() {
        let bytes = [1, 2, 3, 4, 5, 0x80, 0, 0, 7, 8];
        for len in 0..9 {
            assert_eq!(FrameHeader::read(&bytes[..len]), None);
        }
        let header = FrameHeader { len: 0x010203, kind: 4, flags: 5, stream: 7 };
        assert_eq!(FrameHeader::read(&bytes), Some(header));
    }

    #[test]
    fn well_formed_frames_are_read() {
        let (data, ping) = ([0, 0, 0, 9, 1, 2, 3, 4, b't'], *b"12345678");
        for (kind, flags, stream, payload, frame) in [
            (0, 0, 1, &b"ab"[..], Frame::Data { data: b"ab", is_end: false }),
            (0, 1, 1, b"", Frame::Data { data: b"", is_end: true }),
            (0, 8, 1, &[1, b'a', 0], Frame::Data { data: b"a", is_end: false }),
            (0, 8, 1, &[2, 0, 0], Frame::Data { data: b"", is_end: false }),
            (1, 5, 1, b"f", Frame::Headers { fragment: b"f", is_whole: true, is_end: true }),
            (
                1,
                0x20,
                1,
                &[0x80, 0, 0, 0, 9, b'f'],
                Frame::Headers { fragment: b"f", is_whole: false, is_end: false },
            ),
            (
                1,
                0x28,
                1,
                &[1, 0, 0, 0, 0, 9, b'f', 0],
                Frame::Headers { fragment: b"f", is_whole: false, is_end: false },
            ),
            (2, 0, 1, &[0, 0, 0, 0, 9], Frame::Priority),
            (3, 0, 1, &[0, 0, 0, 8], Frame::Reset { code: 8 }),
            (4, 0, 0, b"", Frame::Settings { payload: b"" }),
            (4, 1, 0, b"", Frame::SettingsAck),
            (5, 0, 0, b"", Frame::PushPromise),
            (6, 0, 0, &ping, Frame::Ping(ping)),
            (6, 1, 0, &ping, Frame::PingAck(ping)),
            (7, 0, 0, &data, Frame::GoAway { last: 9, code: 0x01020304, text: b"t" }),
            (8, 0, 0, &[0x80, 0, 0, 1], Frame::WindowUpdate(1)),
            (9, 4, 1, b"f", Frame::Continuation { fragment: b"f", is_last: true }),
            (16, 0, 0, &[0, 0, 0, 3, b'u'], Frame::PriorityUpdate { stream: 3, value: b"u" }),
            (11, 0xff, 3, b"x", Frame::Unknown),
        ] {
            assert_eq!(read(kind, flags, stream, payload), Ok(frame));
        }
    }

    #[test]
    fn malformed_frames_are_rejected() {
        for (kind, flags, stream, payload, code, costs_stream) in [
            (0, 0, 0, &b""[..], ProtocolError, false),
            (0, 8, 1, b"", FrameSizeError, false),
            (0, 8, 1, &[1], ProtocolError, false),
            (0, 8, 1, &[3, 0, 0], ProtocolError, false),
            (1, 0, 0, b"", ProtocolError, false),
            (1, 0x20, 1, &[0, 0, 0, 0], FrameSizeError, false),
            (1, 0x28, 1, &[3, 0, 0, 0, 0, 0, 0], FrameSizeError, false),
            (1, 0x20, 1, &[0, 0, 0, 1, 0], ProtocolError, false),
            (2, 0, 0, &[0; 5], ProtocolError, false),
            (2, 0, 1, &[0; 4], FrameSizeError, true),
            (2, 0, 1, &[0, 0, 0, 1, 0], ProtocolError, true),
            (3, 0, 0, &[0; 4], ProtocolError, false),
            (3, 0, 1, &[0; 3], FrameSizeError, false),
            (4, 0, 1, b"", ProtocolError, false),
            (4, 0, 0, &[0; 5], FrameSizeError, false),
            (4, 1, 0, &[0; 6], FrameSizeError, false),
            (6, 0, 1, &[0; 8], ProtocolError, false),
            (6, 0, 0, &[0; 9], FrameSizeError, false),
            (7, 0, 1, &[0; 8], ProtocolError, false),
            (7, 0, 0, &[0; 7], FrameSizeError, false),
            (8, 0, 0, &[0; 3], FrameSizeError, false),
            (8, 0, 0, &[0x80, 0, 0, 0], ProtocolError, false),
            (8, 0, 1, &[0; 4], ProtocolError, true),
            (9, 0, 0, b"", ProtocolError, false),
            (16, 0, 1, &[0, 0, 0, 1], ProtocolError, false),
            (16, 0, 0, &[0, 0, 1], FrameSizeError, false),
            (16, 0, 0, &[0, 0, 0, 0], ProtocolError, false),
        ] {
            let violation = read(kind, flags, stream, payload).expect_err("it is malformed");
            match violation {
                Violation::Connection(own, _) => {
                    assert!(own == code && !costs_stream, "{violation}")
                }
                Violation::Stream(on, own) => {
                    assert!(own == code && costs_stream && on == stream, "{violation}");
                }
            }
        }
    }
}
