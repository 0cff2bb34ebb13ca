//! `WebSocketConfig`: every limit and time of a WebSocket.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rotor_stream::BytesHeld;

use crate::counters::Counters;
use crate::deflate::config::Deflate;
use crate::origins::Origins;

/// A peer that cannot be listened to is looked after again after `ping_after` and `pong_within`:
/// with no time at all, in every turn of the loop. A close frame is to be sent before its answer is
/// late.
const TIME_MIN: Duration = Duration::from_millis(1);

/// Every limit and time of a WebSocket, each with its unit, default and reason; and what its
/// handshake requires.
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

    /// Returns the configuration in the form in which connections keep it.
    #[must_use]
    pub fn share(self) -> Arc<WebSocketConfig> {
        Arc::new(self)
    }

    /// Sets the maximum length of a message, in bytes, decompressed. Default 1 MiB: the message is
    /// held whole.
    ///
    /// A longer one ends the connection with 1009, as soon as that is known: with the header of its
    /// frame, if that says so, and while it is decompressed. The limit does not apply to messages
    /// that are taken [in pieces](crate::Next::pieces), which need none for memory.
    #[doc(alias = "max_message_size")]
    #[doc(alias = "maxPayload")]
    pub fn message_max(mut self, bytes: usize) -> WebSocketConfig {
        self.message_max = bytes;
        self
    }

    /// Sets how many bytes of memory the messages may take together that have come in part, of all
    /// connections with this configuration, on all loops. Default 256 MiB: 128 of the longest, or
    /// twice as many; a message takes up to twice its bytes while it comes.
    ///
    /// A connection whose message finds no room is closed with 1013; the others go on. Frames of up
    /// to 32 KiB are waited for in the input, which
    /// [`held_bytes_max`](rotor_http::server::ServerConfig::held_bytes_max) bounds, and messages
    /// that are taken [in pieces](crate::Next::pieces) take no memory here.
    pub fn messages_bytes_max(mut self, bytes: usize) -> WebSocketConfig {
        self.messages = BytesHeld::new(bytes);
        self
    }

    /// Returns the counter of what such messages take now; any thread may read it.
    pub fn messages_held(&self) -> Arc<BytesHeld> {
        self.messages.clone()
    }

    /// Sets the maximum number of fragments of a message. Default 1,024: empty ones cost CPU time
    /// and add nothing to its length. More end the connection with 1008. A message in one frame has
    /// none, so that 0 refuses all others. For messages taken in pieces, only empty frames count.
    /// [`u32::MAX`] is no limit.
    pub fn fragments_max(mut self, fragments: u32) -> WebSocketConfig {
        self.fragments_max = fragments;
        self
    }

    /// Sets how many control frames may come at once: pings, and pongs that answer no ping of this
    /// end's. Default 100, more than anyone needs. More than that, and after that more than
    /// [`control_rate`](WebSocketConfig::control_rate), end the connection with 1008. 0 lets none
    /// come.
    pub fn control_max(mut self, frames: u32) -> WebSocketConfig {
        self.control_max = frames;
        self
    }

    /// Sets how many such control frames may come per second, once
    /// [`control_max`](WebSocketConfig::control_max) of them have come. Default 10; at least 1.
    pub fn control_rate(mut self, frames: u32) -> WebSocketConfig {
        self.control_rate = frames;
        self
    }

    /// Sets after how much silence the peer is sent a ping. Default 30 s: shorter than proxies and
    /// address translators wait. [`Duration::MAX`] sends none; at least 1 ms.
    #[doc(alias = "heartbeat")]
    pub fn ping_after(mut self, time: Duration) -> WebSocketConfig {
        self.ping_after = time.max(TIME_MIN);
        self
    }

    /// Sets how long the peer may take to answer a ping, with a pong or anything else. Default 20
    /// s; at least 1 ms. After that the peer counts as gone, and the connection ends.
    pub fn pong_within(mut self, time: Duration) -> WebSocketConfig {
        self.pong_within = time.max(TIME_MIN);
        self
    }

    /// Sets how long the peer may take to answer a close frame, and, if this end is the client, the
    /// server to end the connection after it. Default 5 s; at least 1 ms. What waits to be sent when
    /// that is over is thrown away.
    pub fn close_within(mut self, time: Duration) -> WebSocketConfig {
        self.close_within = time.max(TIME_MIN);
        self
    }

    /// Sets how many bytes may wait to be sent before [`Sender`](crate::Sender) refuses a further
    /// message, and before no more messages are taken from the peer until half of it is gone.
    /// Default 64 KiB: about what a socket takes at once. One message may exceed it.
    #[doc(alias = "high-water mark")]
    pub fn unsent_high_water(mut self, bytes: usize) -> WebSocketConfig {
        self.unsent_high_water = bytes.max(1);
        self
    }

    /// Sets how many bytes of messages a connection decompresses in a turn. Default 1 MiB, which takes
    /// a millisecond or two; the rest waits for the next turn, after the other machines. What counts is
    /// the decompressed length, or 64 times the compressed one if that is more, because compressed
    /// data that was made to be slow takes that long. A message of more than 16 KiB, compressed, is
    /// decompressed in steps.
    pub fn inflated_max(mut self, bytes: usize) -> WebSocketConfig {
        self.inflated_max = bytes;
        self
    }

    /// Sets compression, which is used if the peer agrees. Default: none, because it costs far more
    /// CPU time than everything else.
    #[doc(alias = "permessage-deflate")]
    #[doc(alias = "compression")]
    pub fn deflate(mut self, deflate: impl Into<Option<Deflate>>) -> WebSocketConfig {
        self.deflate = deflate.into();
        self
    }

    /// Sets the subprotocols that this end speaks, the best first. Default: none. A server chooses
    /// the first that the client offers too, and none if there is no such; a client offers them all,
    /// and takes a server that chooses none. Names are tokens (RFC 6455 §4.1), whose case matters.
    #[doc(alias = "Sec-WebSocket-Protocol")]
    pub fn subprotocols(mut self, names: &[&str]) -> WebSocketConfig {
        self.subprotocols = names.iter().map(|name| name.to_string()).collect();
        self
    }

    /// Sets the pages from which a server accepts connections. Default: those of its own host.
    #[doc(alias = "CORS")]
    #[doc(alias = "CSWSH")]
    pub fn origins(mut self, origins: Origins) -> WebSocketConfig {
        self.origins = origins;
        self
    }

    /// Sets the counters, which may be shared with others. Default: counters of its own.
    pub fn count_with(mut self, counters: Arc<Counters>) -> WebSocketConfig {
        self.counters = counters;
        self
    }

    /// Returns the counters of the connections.
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
