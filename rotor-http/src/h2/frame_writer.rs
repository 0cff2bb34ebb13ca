//! Encodes frames.

use super::error::ErrorCode;
use super::frame::{FRAME_HEADER_BYTES, flag, kind};

/// Encodes the header of a frame, nine bytes before its payload.
#[inline]
pub fn frame_header(len: usize, kind: u8, flags: u8, stream: u32) -> [u8; FRAME_HEADER_BYTES] {
    // No payload of ours is longer than a peer's SETTINGS_MAX_FRAME_SIZE, which has 24 bits.
    let [_, l1, l2, l3] = (len as u32).to_be_bytes();
    let [s1, s2, s3, s4] = stream.to_be_bytes();
    [l1, l2, l3, kind, flags, s1, s2, s3, s4]
}

fn frame_with_u32(kind: u8, stream: u32, number: u32) -> [u8; 13] {
    let mut frame = [0; 13];
    frame[..9].copy_from_slice(&frame_header(4, kind, 0, stream));
    frame[9..].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Encodes RST_STREAM.
pub fn reset(stream: u32, code: ErrorCode) -> [u8; 13] {
    frame_with_u32(kind::RST_STREAM, stream, code.number())
}

/// Encodes WINDOW_UPDATE, by at least 1 byte.
pub fn window_update(stream: u32, more: u32) -> [u8; 13] {
    frame_with_u32(kind::WINDOW_UPDATE, stream, more)
}

/// Encodes PING, or its acknowledgement.
pub fn ping(data: [u8; 8], is_ack: bool) -> [u8; 17] {
    let mut frame = [0; 17];
    let flags = if is_ack { flag::ACK } else { 0 };
    frame[..9].copy_from_slice(&frame_header(8, kind::PING, flags, 0));
    frame[9..].copy_from_slice(&data);
    frame
}

/// Encodes GOAWAY: streams up to `last` have been or will be served.
pub fn go_away(last: u32, code: ErrorCode) -> [u8; 17] {
    let mut frame = [0; 17];
    frame[..9].copy_from_slice(&frame_header(8, kind::GOAWAY, 0, 0));
    frame[9..13].copy_from_slice(&last.to_be_bytes());
    frame[13..].copy_from_slice(&code.number().to_be_bytes());
    frame
}

/// Encodes the acknowledgement of the peer's SETTINGS.
pub fn settings_ack() -> [u8; 9] {
    frame_header(0, kind::SETTINGS, flag::ACK, 0)
}

/// Appends SETTINGS with these pairs of identifier and value.
pub fn settings(pairs: &[(u16, u32)], out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_header(pairs.len() * 6, kind::SETTINGS, 0, 0));
    for (name, value) in pairs {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::frame::{Frame, FrameHeader};

    #[test]
    fn written_frames_are_read_back() {
        let mut pairs = Vec::new();
        settings(&[(4, 65_536)], &mut pairs);
        let data = *b"01234567";
        for (bytes, stream, frame) in [
            (&reset(7, ErrorCode::Cancel)[..], 7, Frame::Reset { code: 8 }),
            (&window_update(0, 5), 0, Frame::WindowUpdate(5)),
            (&ping(data, false), 0, Frame::Ping(data)),
            (&ping(data, true), 0, Frame::PingAck(data)),
            (
                &go_away(9, ErrorCode::EnhanceYourCalm),
                0,
                Frame::GoAway { last: 9, code: 11, text: b"" },
            ),
            (&settings_ack(), 0, Frame::SettingsAck),
            (&pairs, 0, Frame::Settings { payload: &[0, 4, 0, 1, 0, 0] }),
        ] {
            let header = FrameHeader::read(bytes).expect("nine octets");
            assert_eq!((header.len + 9, header.stream), (bytes.len(), stream));
            assert_eq!(Frame::read(header, &bytes[9..]), Ok(frame));
        }
    }
}
