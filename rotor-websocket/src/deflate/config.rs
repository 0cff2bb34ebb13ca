//! `Deflate`: the settings of compression.

/// Compression of messages: `permessage-deflate` (RFC 7692).
///
/// By default, without context take-over, each message is compressed by itself, and **a connection
/// has no codec of its own: those of a thread serve all of its connections**. This matters because
/// a compressor takes 380 KB (250 with the smallest [window](Deflate::window_bits)) and a
/// decompressor 48 KB. A thread has a compressor for each window that its peers ask for, 7 at most
/// for one [level](Deflate::level). A connection has a decompressor only while a compressed message
/// that is taken [in pieces](crate::Next::pieces) has come in part. With context take-over, earlier
/// messages make later ones shorter, and each connection pays for its codecs as long as it lives.
///
/// If a compressed text holds both a secret and something that a stranger chose, its length may
/// reveal the secret (RFC 7692 §9 leads to BREACH): do not mix the two.
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
    pub(crate) takes_over: bool,
}

impl Deflate {
    /// Returns the defaults.
    pub fn new() -> Deflate {
        Deflate { compress_min: 256, level: 1, window_bits: 15, takes_over: false }
    }

    /// Sets from which length on messages are compressed, in bytes. Default 256: a shorter one
    /// gains little and costs as much CPU time to set up.
    pub fn compress_min(mut self, bytes: usize) -> Deflate {
        self.compress_min = bytes;
        self
    }

    /// Sets how hard the compressor tries, 1 to 9. Default 1: higher levels cost several times the
    /// CPU time for a few percent.
    pub fn level(mut self, level: u32) -> Deflate {
        self.level = level.clamp(1, 9);
        self
    }

    /// Sets the window, as a power of two of bytes, 9 to 15: the largest that this end compresses
    /// with, and the one that it asks of the peer. Default 15: the best compression, in memory that
    /// the thread's connections share.
    #[doc(alias = "server_max_window_bits")]
    #[doc(alias = "client_max_window_bits")]
    pub fn window_bits(mut self, bits: u8) -> Deflate {
        self.window_bits = bits.clamp(9, 15);
        self
    }

    /// Sets whether a message may refer to earlier ones, in both directions, if the peer agrees.
    /// Default: no; with it each connection has codecs of its own, some 430 KB.
    #[doc(alias = "server_no_context_takeover")]
    #[doc(alias = "client_no_context_takeover")]
    pub fn context_takeover(mut self, yes: bool) -> Deflate {
        self.takes_over = yes;
        self
    }
}

impl Default for Deflate {
    fn default() -> Deflate {
        Deflate::new()
    }
}
