//! A second reader and writer of frames, simple enough to be obviously correct.

use flate2::{Decompress, FlushDecompress, Status};

/// A client's frame with the shortest encoding of its length.
pub(super) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0xa5, 0, 0x5a, 0xff];
    let mut bytes = vec![first];
    match payload.len() {
        len @ 0..126 => bytes.push(0x80 | len as u8),
        len => {
            bytes.push(0x80 | 126);
            bytes.extend((len as u16).to_be_bytes());
        }
    }
    bytes.extend(MASK);
    bytes.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ MASK[at % 4]));
    bytes
}

/// Frames that the input chooses, by two bytes each and the payload behind them, and the messages
/// in these frames, up to the first error.
pub(super) fn build(mut data: &[u8]) -> (Vec<u8>, Vec<(bool, Vec<u8>)>) {
    let (mut input, mut messages) = (Vec::new(), Vec::new());
    let mut begun: Option<(bool, Vec<u8>)> = None;
    let mut controls = 0;
    while let Some(([kind, len], rest)) = data.split_first_chunk::<2>() {
        let (payload, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        data = rest;
        let is_final = kind & 0x80 != 0;
        let opcode = [0, 1, 2, 9, 10][usize::from(*kind & 0x7f) % 5];
        if opcode >= 9 {
            controls += 1;
            let payload = &payload[..payload.len().min(125)];
            input.extend(frame(0x80 | opcode, payload));
            if controls > 100 {
                break;
            }
            continue;
        }
        input.extend(frame(if is_final { 0x80 } else { 0 } | opcode, payload));
        let message = match (opcode, begun.take()) {
            (0, Some((is_text, bytes))) => (is_text, [&bytes, payload].concat()),
            (1 | 2, None) => (opcode == 1, payload.to_vec()),
            // A frame out of order ends the connection.
            _ => break,
        };
        let is_so_far = !message.0
            || match std::str::from_utf8(&message.1) {
                Ok(_) => true,
                Err(error) => error.error_len().is_none() && !is_final,
            };
        if !is_so_far || message.1.len() > super::echo::MESSAGE_MAX {
            break;
        }
        if is_final { messages.push(message) } else { begun = Some(message) }
    }
    (input, messages)
}

/// Asserts that a server has sent valid frames, and nothing behind a close frame.
pub(super) fn assert_well_formed(mut bytes: &[u8]) {
    let mut has_closed = false;
    while !bytes.is_empty() {
        assert!(!has_closed, "nothing follows a close frame");
        let (size, len) = match bytes[1] {
            126 => (4, usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))),
            127 => panic!("no message is as long"),
            len => (2, usize::from(len)),
        };
        assert!(matches!(bytes[0], 0x81 | 0x82 | 0x88 | 0x8a | 0xc1 | 0xc2), "{:#x}", bytes[0]);
        has_closed = bytes[0] == 0x88;
        bytes = &bytes[size + len..];
    }
}

/// What a server sent, without the reason of a final close frame.
pub(super) fn without_reason(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while at + 4 <= bytes.len() && bytes[at] != 0x88 {
        at += match bytes[at + 1] {
            126 => 4 + usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]])),
            len => 2 + usize::from(len),
        };
    }
    if at + 4 <= bytes.len() {
        bytes.truncate(at + 4);
        bytes[at + 1] = 2;
    }
    bytes
}

/// Decompresses a message. Returns `None` if it is invalid, ends within a block, or is longer than
/// `max` bytes.
pub(super) fn decompress(payload: &[u8], max: usize) -> Option<Vec<u8>> {
    let mut codec = Decompress::new(false);
    let (mut all, has_ended) = inflate(&mut codec, payload, max)?;
    if payload.is_empty() || has_ended {
        return Some(all);
    }
    // What senders leave out, and a last block without content.
    let (more, has_ended) = inflate(&mut codec, &[0, 0, 0xff, 0xff, 0x03, 0], max)?;
    all.extend(&more);
    (more.is_empty() && has_ended).then_some(all)
}

/// Returns all output, and whether the input ends with a block that is marked as the last one.
fn inflate(codec: &mut Decompress, bytes: &[u8], max: usize) -> Option<(Vec<u8>, bool)> {
    let (mut all, mut used) = (Vec::new(), 0);
    loop {
        let mut piece = Vec::with_capacity(1 << 16);
        let before = codec.total_in();
        let status =
            codec.decompress_vec(&bytes[used..], &mut piece, FlushDecompress::Sync).ok()?;
        let read = (codec.total_in() - before) as usize;
        used += read;
        all.extend_from_slice(&piece);
        if all.len() > max {
            return None;
        }
        if status == Status::StreamEnd {
            codec.reset(false);
            if used == bytes.len() {
                return Some((all, true));
            }
        } else if piece.len() < piece.capacity() && used == bytes.len() {
            return Some((all, false));
        } else if read == 0 && piece.is_empty() {
            return None;
        }
    }
}
