//! `Deflate`: the settings of compression.

/// Compression of messages: `permessage-deflate` (RFC 7692).
///
/// By default there is no context take-over: each message is compressed by itself, and **a
/// connection has no codec of its own: all connections of a thread share the thread's codecs**.
/// This matters because a compressor takes 380 KB (250 KB with the smallest
/// [window](Deflate::window_bits)) and a decompressor 48 KB. A thread has one compressor for each
/// window that its peers ask for, at most 7 for one [level](Deflate::level). A connection has its
/// own decompressor only while a compressed message that is taken [in pieces](crate::Next::pieces),
/// or decompressed in steps, is incomplete. With context take-over, earlier messages make later
/// ones shorter, but each connection has its own codecs until it ends.
///
/// If a compressed message contains both a secret and something that a stranger chose, its length
/// may reveal the secret (RFC 7692 §9; BREACH is such an attack). Do not mix the two.
///
/// ```
/// # mod rotor { pub use rotor_websocket as websocket; }
/// use rotor::websocket::{Deflate, WebSocketConfig};
///
/// let config = WebSocketConfig::new().deflate(Deflate::new().compress_min(1_000)).share();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Deflate {
    pub(crate) compress_min: usize,
    pub(crate) level: u32,
    pub(crate) window_bits: u8,
    pub(crate) has_takeover: bool,
}

impl Deflate {
    /// Returns the defaults.
    pub fn new() -> Deflate {
        Deflate { compress_min: 256, level: 1, window_bits: 15, has_takeover: false }
    }

    /// Sets from which length in bytes messages are compressed. Default 256, because a shorter one
    /// gains little and costs as much CPU time to set up.
    pub fn compress_min(mut self, bytes: usize) -> Deflate {
        self.compress_min = bytes;
        self
    }

    /// Sets the effort of the compressor, from 1 to 9. Default 1, because higher levels take
    /// several times the CPU time to save a few percent.
    pub fn level(mut self, level: u32) -> Deflate {
        self.level = level.clamp(1, 9);
        self
    }

    /// Sets the window: its size is two to the power of `bits`, in bytes; `bits` is 9 to 15. It is
    /// the largest window that this end compresses with, and the one that it asks the peer to use.
    /// Default 15, for the best compression; the thread's connections share the memory.
    #[doc(alias = "server_max_window_bits")]
    #[doc(alias = "client_max_window_bits")]
    pub fn window_bits(mut self, bits: u8) -> Deflate {
        self.window_bits = bits.clamp(9, 15);
        self
    }

    /// Sets whether a message may refer to earlier ones, in both directions, if the peer agrees.
    /// Default: no. If yes, each connection has its own codecs, which take some 430 KB, and
    /// [prepared](crate::Prepared) messages, as those of a [room](crate::Room), are not compressed.
    #[doc(alias = "server_no_context_takeover")]
    #[doc(alias = "client_no_context_takeover")]
    pub fn context_takeover(mut self, yes: bool) -> Deflate {
        self.has_takeover = yes;
        self
    }
}

impl Default for Deflate {
    fn default() -> Deflate {
        Deflate::new()
    }
}
