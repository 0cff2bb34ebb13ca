//! `WebSocketConfig`: every limit and time of a WebSocket.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rotor_stream::BytesHeld;

use crate::counters::Counters;
use crate::deflate::config::Deflate;
use crate::origins::Origins;

/// The shortest time that can be set. With zero, a connection that does not take input would check
/// its peer in every turn of the loop, and a close frame could not be sent before its answer is
/// late.
const TIME_MIN: Duration = Duration::from_millis(1);

/// Every limit and time of a WebSocket, each with its unit, default and reason, and the
/// requirements of its handshake.
///
/// ```
/// # mod rotor { pub use rotor_websocket as websocket; }
/// use rotor::websocket::WebSocketConfig;
///
/// let config = WebSocketConfig::new().message_max(64 << 10).subprotocols(&["chat.v1"]).share();
/// ```
#[derive(Clone)]
#[must_use]
pub struct WebSocketConfig {
    pub(crate) message_max: usize,
    pub(crate) messages: Arc<BytesHeld>,
    pub(crate) fragments_max: u32,
    pub(crate) control_max: u32,
    pub(crate) control_rate: u32,
    pub(crate) ping_after: Duration,
    pub(crate) pong_within: Duration,
    pub(crate) close_within: Duration,
    pub(crate) unsent_high_water: usize,
    pub(crate) inflated_max: usize,
    pub(crate) deflate: Option<Deflate>,
    pub(crate) subprotocols: Vec<String>,
    pub(crate) origins: Origins,
    pub(crate) counters: Arc<Counters>,
}

impl WebSocketConfig {
    /// Returns the defaults.
    pub fn new() -> WebSocketConfig {
        WebSocketConfig {
            message_max: 1 << 20,
            messages: BytesHeld::new(256 << 20),
            fragments_max: 1024,
            control_max: 100,
            control_rate: 10,
            ping_after: Duration::from_secs(30),
            pong_within: Duration::from_secs(20),
            close_within: Duration::from_secs(5),
            unsent_high_water: 64 << 10,
            inflated_max: 1 << 20,
            deflate: None,
            subprotocols: Vec::new(),
            origins: Origins::SameHost,
            counters: Arc::default(),
        }
    }

    /// Returns the configuration in the form that connections share.
    #[must_use]
    pub fn share(self) -> Arc<WebSocketConfig> {
        Arc::new(self)
    }

    /// Sets the maximum length of a message, in bytes, after decompression. Default 1 MiB, because
    /// the whole message is held in memory.
    ///
    /// A longer message ends the connection with 1009 as soon as the excess is known: from the
    /// header of its frame, or during decompression. The limit does not apply to messages that are
    /// taken [in pieces](crate::Next::pieces), which are never held whole.
    #[doc(alias = "max_message_size")]
    #[doc(alias = "maxPayload")]
    pub fn message_max(mut self, bytes: usize) -> WebSocketConfig {
        self.message_max = bytes;
        self
    }

    /// Sets how many bytes of memory incomplete messages may take in total, for all connections
    /// with this configuration, on all loops. Default 256 MiB, which is enough for 128 to 256
    /// messages of the maximum length: while a message arrives, it takes up to twice its length.
    ///
    /// If there is no room for a message, its connection is closed with 1013; other connections are
    /// not affected. An incomplete frame of up to 32 KiB is not counted, because it waits in the
    /// input, which [`held_bytes_max`](rotor_http::server::ServerConfig::held_bytes_max) limits.
    /// Messages that are taken [in pieces](crate::Next::pieces) are not counted either.
    pub fn messages_bytes_max(mut self, bytes: usize) -> WebSocketConfig {
        self.messages = BytesHeld::new(bytes);
        self
    }

    /// Returns the counter of the memory that incomplete messages take now. Any thread may read it.
    pub fn messages_held(&self) -> Arc<BytesHeld> {
        self.messages.clone()
    }

    /// Sets the maximum number of fragments of a message. Default 1,024. The limit is needed
    /// because empty fragments cost CPU time but do not add to the message's length. A message with
    /// more ends the connection with 1008. A message in a single frame has no fragments, so 0
    /// refuses all others. For messages taken in pieces, only empty frames count. [`u32::MAX`]
    /// means no limit.
    pub fn fragments_max(mut self, fragments: u32) -> WebSocketConfig {
        self.fragments_max = fragments;
        self
    }

    /// Sets how many control frames may arrive in a burst. Pings count, and pongs that answer no
    /// ping of this end. Default 100, more than any peer needs. If there are more, beyond the
    /// [`control_rate`](WebSocketConfig::control_rate), the connection ends with 1008. 0 allows
    /// none.
    pub fn control_max(mut self, frames: u32) -> WebSocketConfig {
        self.control_max = frames;
        self
    }

    /// Sets how many such control frames may arrive per second after a burst of
    /// [`control_max`](WebSocketConfig::control_max). Default 10; at least 1.
    pub fn control_rate(mut self, frames: u32) -> WebSocketConfig {
        self.control_rate = frames;
        self
    }

    /// Sets after how much silence the peer is sent a ping. Default 30 s, which is shorter than the
    /// timeouts of proxies and address translators. At least 1 ms; [`Duration::MAX`] sends no
    /// pings.
    #[doc(alias = "heartbeat")]
    pub fn ping_after(mut self, time: Duration) -> WebSocketConfig {
        self.ping_after = time.max(TIME_MIN);
        self
    }

    /// Sets how long the peer may take to answer a ping, with a pong or any other bytes. Default 20
    /// s; at least 1 ms. If it does not, it is considered gone, and the connection ends.
    ///
    /// As long as output before the ping is unsent, the peer cannot answer, so it only has to take
    /// some of that in each such time, and as much as the connection always requires
    /// ([`response_rate_min`](rotor_http::Limits::response_rate_min)). The time begins when the
    /// connection notices that this output was taken. What the system has taken, or over HTTP/2 the
    /// output of the HTTP connection, counts as taken, wherever it is: set a longer time for a path
    /// on which that may take longer to arrive.
    pub fn pong_within(mut self, time: Duration) -> WebSocketConfig {
        self.pong_within = time.max(TIME_MIN);
        self
    }

    /// Sets how long the peer may take to answer a close frame and, at a client, how long the
    /// server may take to end the connection after that. Default 5 s; at least 1 ms. The time begins
    /// when the close frame has been sent. Until then, the peer has to take some of the output before
    /// it in each such time, and as much as the connection always requires
    /// ([`response_rate_min`](rotor_http::Limits::response_rate_min)). Otherwise the connection ends,
    /// and the rest of the output is discarded.
    ///
    /// Over HTTP/2, a frame counts as sent once it is in the output of the HTTP connection, which the
    /// streams share.
    ///
    /// On a closing connection the peer's messages are read and discarded, but not while more is
    /// unsent than the output of the stream may hold
    /// ([`output_high_water`](rotor_http::Limits::output_high_water)): a peer that then reads nothing
    /// before all that it sends is taken is late.
    pub fn close_within(mut self, time: Duration) -> WebSocketConfig {
        self.close_within = time.max(TIME_MIN);
        self
    }

    /// Sets the high-water mark of unsent output, in bytes; at least 1. While that much is unsent,
    /// [`Sender`](crate::Sender) refuses further messages, and no messages are read from the peer
    /// until half of it has been sent. Default 64 KiB: about what a socket takes at once. A single
    /// message may exceed it.
    #[doc(alias = "high-water mark")]
    pub fn unsent_high_water(mut self, bytes: usize) -> WebSocketConfig {
        self.unsent_high_water = bytes.max(1);
        self
    }

    /// Sets how many bytes of messages a connection decompresses in a turn. At least one byte;
    /// default 1 MiB, which takes a millisecond or two. The rest is left for the next turn, after
    /// the other machines. The decompressed length counts, or 64 times the compressed length if
    /// that is more, because compressed data can be crafted to be that slow. A message is
    /// decompressed in steps if its compressed length is over 16 KiB, or if it could become longer
    /// than this: a compressed byte can stand for 1,032 bytes, up to
    /// [`message_max`](WebSocketConfig::message_max).
    pub fn inflated_max(mut self, bytes: usize) -> WebSocketConfig {
        self.inflated_max = bytes;
        self
    }

    /// Sets compression, which is used if the peer agrees. Default: none, because compression takes
    /// far more CPU time than everything else.
    #[doc(alias = "permessage-deflate")]
    #[doc(alias = "compression")]
    pub fn deflate(mut self, deflate: impl Into<Option<Deflate>>) -> WebSocketConfig {
        self.deflate = deflate.into();
        self
    }

    /// Sets the subprotocols that this end supports, best first. Default: none. A server chooses
    /// the first one that the client also offers, or none. A client offers all of them, and accepts
    /// a server that chooses none. Names are tokens (RFC 6455 §4.1), and case-sensitive.
    #[doc(alias = "Sec-WebSocket-Protocol")]
    pub fn subprotocols(mut self, names: &[&str]) -> WebSocketConfig {
        self.subprotocols = names.iter().map(|name| name.to_string()).collect();
        self
    }

    /// Sets from which pages a server accepts connections. Default: pages of its own host.
    #[doc(alias = "CORS")]
    #[doc(alias = "CSWSH")]
    pub fn origins(mut self, origins: Origins) -> WebSocketConfig {
        self.origins = origins;
        self
    }

    /// Sets the counters, which several configurations may share. Default: separate counters.
    pub fn count_with(mut self, counters: Arc<Counters>) -> WebSocketConfig {
        self.counters = counters;
        self
    }

    /// Returns the counters of the connections with this configuration.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}

impl Default for WebSocketConfig {
    fn default() -> WebSocketConfig {
        WebSocketConfig::new()
    }
}

impl fmt::Debug for WebSocketConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketConfig")
            .field("message_max", &self.message_max)
            .field("messages_bytes_max", &self.messages.bytes_max())
            .field("fragments_max", &self.fragments_max)
            .field("control_max", &self.control_max)
            .field("control_rate", &self.control_rate)
            .field("ping_after", &self.ping_after)
            .field("pong_within", &self.pong_within)
            .field("close_within", &self.close_within)
            .field("unsent_high_water", &self.unsent_high_water)
            .field("inflated_max", &self.inflated_max)
            .field("deflate", &self.deflate)
            .field("subprotocols", &self.subprotocols)
            .field("origins", &self.origins)
            .finish()
    }
}
