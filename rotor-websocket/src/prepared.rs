//! `Prepared`: a message for many peers, framed once.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rotor_stream::Block;

use crate::deflate::codec;
use crate::frame::header::{self, Header};
use crate::message::{Kind, Message};
use crate::outgoing::{Outgoing, opcode_of};

/// A message for many peers. It is framed once, and compressed once for each
/// [window](crate::Deflate::window_bits) that a peer uses, when the first such peer needs it. All
/// forms are kept as long as the message. So it can take up to 8 times its length, but usually
/// takes little more than its length. The [level](crate::Deflate::level) is that of the first peer.
///
/// A peer with [context take-over](crate::Deflate::context_takeover) gets it uncompressed:
/// compressing it for each such peer would cost what preparing it saves.
///
/// A server's messages are not masked, so all peers share one block of memory. A client's messages
/// are masked, and therefore copied. Clones share the message, also between threads.
///
/// ```
/// # mod rotor { pub use rotor_websocket as websocket; }
/// use rotor::websocket::{Prepared, SendError, Sender};
///
/// fn tell_all(peers: &mut [Sender<'_>], text: &str) {
///     let message = Prepared::text(text);
///     for peer in peers {
///         let _too_slow_or_closing: Result<(), SendError> = peer.prepared(&message);
///     }
/// }
/// ```
#[derive(Clone)]
#[doc(alias = "broadcast")]
pub struct Prepared(Arc<PreparedFrames>);

struct PreparedFrames {
    kind: Kind,
    /// The header and the payload.
    plain: Block,
    header_len: usize,
    /// Indexed by the window, 9 to 15; `None` if compression does not shorten the message.
    compressed: [OnceLock<Option<Block>>; 7],
}

impl Prepared {
    /// Makes a text message.
    pub fn text(text: &str) -> Prepared {
        Prepared::new(Kind::Text, text.as_bytes())
    }

    /// Makes a binary message.
    pub fn binary(bytes: &[u8]) -> Prepared {
        Prepared::new(Kind::Binary, bytes)
    }

    /// Makes a message with the kind and the bytes of a received one.
    pub fn message(message: Message<'_>) -> Prepared {
        Prepared::new(message.kind(), message.as_bytes())
    }

    fn new(kind: Kind, payload: &[u8]) -> Prepared {
        let (plain, header_len) = encode_frame(kind, false, payload);
        Prepared(Arc::new(PreparedFrames {
            kind,
            plain,
            header_len,
            compressed: Default::default(),
        }))
    }

    /// Returns the kind of the message.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the bytes of the message.
    pub fn payload(&self) -> &[u8] {
        &self.0.plain[self.0.header_len..]
    }

    /// Returns the frame for a peer; `None` if each peer's frame is different.
    pub(crate) fn frame_for(&self, outgoing: &Outgoing) -> Option<Block> {
        if outgoing.is_client() {
            return None;
        }
        let frames = &*self.0;
        if let Some((deflate, bits)) = outgoing.per_message_compression()
            && self.payload().len() >= deflate.compress_min
        {
            let slot = &frames.compressed[usize::from(bits) - 9];
            let compressed = slot.get_or_init(|| self.compress(deflate.level, bits));
            if let Some(block) = compressed {
                return Some(block.clone());
            }
        }
        // A peer with context take-over gets the uncompressed message, which every peer accepts.
        // Compressing it for each peer would cost what preparing it is meant to save.
        Some(frames.plain.clone())
    }

    fn compress(&self, level: u32, bits: u8) -> Option<Block> {
        codec::with_scratch(|scratch| {
            codec::compress_message(level, bits, self.payload(), scratch);
            let is_shorter = scratch.len() < self.payload().len();
            is_shorter.then(|| encode_frame(self.0.kind, true, scratch).0)
        })
    }
}

/// Frames a whole message as a server does. Returns the frame, and the length of its header.
fn encode_frame(kind: Kind, is_compressed: bool, payload: &[u8]) -> (Block, usize) {
    let len = payload.len() as u64;
    let header = Header { opcode: opcode_of(kind), is_final: true, is_compressed, mask: None, len };
    let header = header::write(&header);
    let bytes: Arc<[u8]> = [header.as_bytes(), payload].concat().into();
    (Block::from(bytes), header.as_bytes().len())
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({:?}, {} bytes)", self.kind(), self.payload().len())
    }
}
