//! `Outgoing`: the sending half of a connection: frames, masks, compression.

use std::io::Write;

use flate2::Compress;
use rotor_stream::{Buf, Output};
use siphasher::sip::SipHasher24;

use crate::deflate::codec;
use crate::deflate::config::Deflate;
use crate::frame::header::{self, Header, Opcode};
use crate::frame::mask;
use crate::frame::utf8::Utf8Validator;
use crate::frame::{close, code::Code};
use crate::message::Kind;

/// How many bytes of a payload are masked at once, on the stack; a multiple of the mask's length.
const MASK_CHUNK: usize = 4096;

/// The sending half of a connection.
pub(crate) struct Outgoing {
    /// `Some` at a client: a client masks, a server does not.
    masks: Option<Box<MaskGenerator>>,
    compression: Compression,
    /// The message that was begun and not ended.
    pub(crate) open_message: Option<OpenMessage>,
    /// A close frame was sent, so nothing may follow.
    pub(crate) is_closing: bool,
    /// How many pings have not been answered.
    pub(crate) pings: u32,
}

/// A message that is sent in pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenMessage {
    pub(crate) kind: Kind,
    pub(crate) utf8: Utf8Validator,
    /// No frame of it was sent yet.
    pub(crate) is_first: bool,
}

/// How messages are compressed.
pub(crate) enum Compression {
    None,
    /// Each by itself, with a codec of the thread.
    PerMessage {
        deflate: Deflate,
        bits: u8,
    },
    /// Each with a codec that knows the earlier ones.
    WithTakeover {
        compress_min: usize,
        bits: u8,
        codec: Box<Compress>,
    },
}

/// The masks of a client. They are a keyed hash of their number, so that nobody can predict one
/// from others (RFC 6455 §5.3).
struct MaskGenerator {
    hasher: SipHasher24,
    count: u64,
}

impl MaskGenerator {
    fn next(&mut self) -> mask::Mask {
        self.count += 1;
        let [a, b, c, d, ..] = self.hasher.hash(&self.count.to_le_bytes()).to_le_bytes();
        [a, b, c, d]
    }
}

impl Compression {
    pub(crate) fn of(deflate: Deflate, bits: Option<u8>, has_takeover: bool) -> Compression {
        match bits {
            None => Compression::None,
            Some(bits) if has_takeover => Compression::WithTakeover {
                compress_min: deflate.compress_min,
                bits,
                codec: Box::new(codec::compressor(deflate.level, bits)),
            },
            Some(bits) => Compression::PerMessage { deflate, bits },
        }
    }
}

impl Outgoing {
    /// Makes the sending half. A client has a key for its masks.
    pub(crate) fn new(mask_key: Option<[u8; 16]>, compression: Compression) -> Outgoing {
        let masks = mask_key.map(|key| {
            Box::new(MaskGenerator { hasher: SipHasher24::new_with_key(&key), count: 0 })
        });
        Outgoing { masks, compression, open_message: None, is_closing: false, pings: 0 }
    }

    pub(crate) fn is_client(&self) -> bool {
        self.masks.is_some()
    }

    /// Returns how many bytes it holds beside its own size.
    pub(crate) fn held_bytes(&self) -> usize {
        match self.compression {
            Compression::WithTakeover { bits, .. } => codec::compressor_bytes(bits),
            Compression::None | Compression::PerMessage { .. } => 0,
        }
    }

    /// Returns the settings and the window if each message is compressed by itself. At a server,
    /// messages that were prepared for several peers can then be sent compressed.
    pub(crate) fn per_message_compression(&self) -> Option<(Deflate, u8)> {
        match self.compression {
            Compression::PerMessage { deflate, bits } => Some((deflate, bits)),
            _ => None,
        }
    }

    /// Sends a whole message, compressed if that is worthwhile.
    pub(crate) fn message(&mut self, kind: Kind, payload: &[u8], output: &mut Output) {
        let opcode = opcode_of(kind);
        match &mut self.compression {
            Compression::PerMessage { deflate, bits } if payload.len() >= deflate.compress_min => {
                let (level, bits) = (deflate.level, *bits);
                codec::with_scratch(|scratch| {
                    codec::compress_message(level, bits, payload, scratch);
                    if scratch.len() < payload.len() {
                        self.frame(opcode, true, true, scratch, output);
                    } else {
                        self.frame(opcode, true, false, payload, output);
                    }
                });
            }
            Compression::WithTakeover { compress_min, codec, .. }
                if payload.len() >= *compress_min =>
            {
                let mut compressed = Vec::new();
                codec::compress(codec, payload, &mut compressed);
                // Sent whatever its length: the codec has recorded the message, so the peer must
                // see it.
                self.frame(opcode, true, true, &compressed, output);
            }
            _ => self.frame(opcode, true, false, payload, output),
        }
    }

    /// Returns whether a message of this length is sent unchanged, neither masked nor compressed.
    pub(crate) fn sends_unmodified(&self, len: usize) -> bool {
        let compress_min = match &self.compression {
            Compression::None => usize::MAX,
            Compression::PerMessage { deflate, .. } => deflate.compress_min,
            Compression::WithTakeover { compress_min, .. } => *compress_min,
        };
        !self.is_client() && len < compress_min
    }

    /// Sends the first `count` bytes of the input as a message that [is
    /// plain](Outgoing::sends_plain), and removes them from the input. They are not copied if that
    /// can be avoided.
    pub(crate) fn forward_from_input(
        &mut self,
        kind: Kind,
        input: &mut Buf,
        count: usize,
        output: &mut Output,
    ) {
        let (opcode, len) = (opcode_of(kind), count as u64);
        let header = Header { opcode, is_final: true, is_compressed: false, mask: None, len };
        let written = output.write_from(header::write(&header).as_bytes(), input, count);
        debug_assert!(written.is_ok(), "the output was ended under a WebSocket");
    }

    /// Sends a close frame, unless one was sent already.
    pub(crate) fn close(&mut self, code: Code, reason: &str, output: &mut Output) {
        if !std::mem::replace(&mut self.is_closing, true) {
            self.frame(Opcode::Close, true, false, &close::write(code, reason), output);
        }
    }

    /// Sends a ping, and expects a pong.
    pub(crate) fn ping(&mut self, payload: &[u8], output: &mut Output) {
        self.pings = self.pings.saturating_add(1);
        self.frame(Opcode::Ping, true, false, payload, output);
    }

    /// Sends one frame.
    pub(crate) fn frame(
        &mut self,
        opcode: Opcode,
        is_final: bool,
        is_compressed: bool,
        payload: &[u8],
        output: &mut Output,
    ) {
        let mask = self.masks.as_mut().map(|masks| masks.next());
        let len = payload.len() as u64;
        let header = header::write(&Header { opcode, is_final, is_compressed, mask, len });
        // An output fails only after its end, and only HTTP can have ended it before.
        let written = match mask {
            None => output.write_pieces(&[header.as_bytes(), payload]),
            Some(mask) => {
                let written = output.write_all(header.as_bytes());
                written.and_then(|()| write_masked(payload, mask, output))
            }
        };
        debug_assert!(written.is_ok(), "the output was ended under a WebSocket");
    }
}

fn write_masked(payload: &[u8], mask: mask::Mask, output: &mut Output) -> std::io::Result<()> {
    let mut masked = [0; MASK_CHUNK];
    for part in payload.chunks(MASK_CHUNK) {
        let masked = &mut masked[..part.len()];
        masked.copy_from_slice(part);
        mask::apply(masked, mask);
        output.write_all(masked)?;
    }
    Ok(())
}

pub(crate) fn opcode_of(kind: Kind) -> Opcode {
    match kind {
        Kind::Text => Opcode::Text,
        Kind::Binary => Opcode::Binary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_differ_between_frames_and_between_keys() {
        let of = |key: u8| {
            let hasher = SipHasher24::new_with_key(&[key; 16]);
            let mut masks = MaskGenerator { hasher, count: 0 };
            (0..1000).map(|_| masks.next()).collect::<Vec<_>>()
        };
        let (mut first, second) = (of(1), of(2));
        assert!(first.iter().zip(&second).all(|(a, b)| a != b));
        first.sort();
        first.dedup();
        assert_eq!(first.len(), 1000);
    }
}
