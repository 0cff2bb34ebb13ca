//! `ClientConfig`: the settings that all connections of a client share.

use std::sync::Arc;

use rotor_stream::{BytesHeld, StreamConfig};

use super::counters::Counters;
#[cfg(feature = "http2")]
use super::http2_config::Http2Config;
use crate::limits::Limits;
use crate::recv_mode::INPUT_BYTES_MAX;

/// The settings that the connections of a client share: every limit, how to connect, and the
/// counters.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::client::ClientConfig;
/// use rotor::http::Limits;
/// use std::time::Duration;
///
/// let config = ClientConfig::new().limits(Limits::new().response_timeout(Duration::from_secs(5)));
/// ```
#[doc(alias = "Settings")]
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientConfig {
    pub(super) limits: Limits,
    stream: Arc<StreamConfig>,
    counters: Arc<Counters>,
    bodies: Arc<BytesHeld>,
    held: Arc<BytesHeld>,
    #[cfg(feature = "http2")]
    http2: Http2Config,
    #[cfg(feature = "body")]
    spool: Option<rotor_body::Spool>,
}

impl ClientConfig {
    /// Returns the defaults.
    pub fn new() -> ClientConfig {
        let limits = Limits::new();
        let held = BytesHeld::new(HELD_BYTES_MAX);
        ClientConfig {
            stream: stream_config(&limits, &StreamConfig::new(), &held),
            limits,
            counters: Arc::default(),
            bodies: BytesHeld::new(BODIES_BYTES_MAX),
            held,
            #[cfg(feature = "http2")]
            http2: Http2Config::new(),
            #[cfg(feature = "body")]
            spool: None,
        }
    }

    /// Sets every limit of a connection. If the documentation of a limit names a 4xx status, a
    /// client fails the request instead. Default: [`Limits::new`].
    pub fn limits(mut self, limits: Limits) -> ClientConfig {
        self.stream = stream_config(&limits, &self.stream, &self.held);
        self.limits = limits;
        self
    }

    /// Sets how to connect: the time allowed for that, keep-alive probes, and the stream's budgets.
    /// Settings of a stream that follow from the limits are overwritten by them, and its total of
    /// held bytes by [`held_with`](ClientConfig::held_with). Default: [`StreamConfig::new`].
    pub fn stream(mut self, config: &StreamConfig) -> ClientConfig {
        self.stream = stream_config(&self.limits, config, &self.held);
        self
    }

    /// Sets the limits of HTTP/2 connections, and whether HTTP/2 is used on plain connections.
    /// Default: [`Http2Config::new`]. With the feature `http2`.
    #[cfg(feature = "http2")]
    pub fn http2(mut self, config: Http2Config) -> ClientConfig {
        self.http2 = config;
        self
    }

    /// Sets the counters, which other clients may share. Default: counters of its own.
    pub fn count_with(mut self, counters: Arc<Counters>) -> ClientConfig {
        self.counters = counters;
        self
    }

    /// Sets how many bytes of memory the bodies of responses may hold in total while they are
    /// collected for their handlers. Default 256 MiB: 256 bodies of the size that
    /// [`buffered_body_bytes_max`](Limits::buffered_body_bytes_max) allows for one.
    ///
    /// The total covers the bodies of all connections, whether they are collected whole
    /// ([`RecvMode::Buffered`](super::RecvMode), as [`Fetch`](super::Fetch) does) or up to the
    /// minimum size of a piece. Allocated memory is counted, which may be twice the bytes received
    /// so far.
    ///
    /// A body of known length, at most 64 KiB, that arrived together with its head is not counted.
    /// If there is no room for a response, its request fails with
    /// [`ClientError::BodiesFull`](super::ClientError::BodiesFull), and its connection is closed.
    /// Bodies under way keep what they have.
    pub fn bodies_bytes_max(mut self, bytes: usize) -> ClientConfig {
        self.bodies = BytesHeld::new(bytes);
        self
    }

    /// Counts the bytes of response bodies in a counter that is shared with others, for example the
    /// other loops of a group. The limit of `held` then applies to all of them together.
    pub fn bodies_with(mut self, held: Arc<BytesHeld>) -> ClientConfig {
        self.bodies = held;
        self
    }

    /// Returns the counter of the bytes that bodies of responses hold now. Any thread may read it.
    pub fn bodies_held(&self) -> Arc<BytesHeld> {
        self.bodies.clone()
    }

    /// Sets how many bytes of memory the connections may hold in total in their inputs and outputs
    /// while they wait. Default 512 MiB, as for a server: 8,000 connections that hold 64 KiB each.
    ///
    /// The total covers connections that wait for the rest of a response, or for a server to take
    /// their request (parts of the output that are files hold no memory).
    ///
    /// A connection that would exceed the total ends. Its request fails with
    /// [`ClientError::Lost`](super::ClientError::Lost) of
    /// [`Fatal::NoRoom`](rotor_stream::Fatal::NoRoom), and is not made again; the connection is
    /// counted in [`without_room`](Counters::without_room). Bodies that are collected have [a total
    /// of their own](ClientConfig::bodies_bytes_max).
    pub fn held_bytes_max(self, bytes: usize) -> ClientConfig {
        self.held_with(BytesHeld::new(bytes))
    }

    /// Counts the bytes that wait in inputs and outputs in a counter that is shared with others,
    /// for example the other loops of a group, or the servers beside this client.
    pub fn held_with(mut self, held: Arc<BytesHeld>) -> ClientConfig {
        self.stream = stream_config(&self.limits, &self.stream, &held);
        self.held = held;
        self
    }

    /// Returns the counter of the bytes that inputs and outputs hold now. Any thread may read it.
    pub fn held(&self) -> Arc<BytesHeld> {
        self.held.clone()
    }

    /// Sets where the bodies of responses go that are too long for memory, if their handlers ask
    /// for [`RecvMode::Stored`](super::RecvMode). Others may share the spool. By default there is
    /// none, and such a body is too large. With the feature `body`.
    #[cfg(feature = "body")]
    pub fn spool(mut self, spool: rotor_body::Spool) -> ClientConfig {
        self.spool = Some(spool);
        self
    }

    /// Returns the counters of these connections. Any thread may read them.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    #[cfg(feature = "http2")]
    pub(super) fn held_ref(&self) -> &Arc<BytesHeld> {
        &self.held
    }

    pub(super) fn bodies(&self) -> &Arc<BytesHeld> {
        &self.bodies
    }

    #[cfg(feature = "body")]
    pub(super) fn spool_ref(&self) -> Option<&rotor_body::Spool> {
        self.spool.as_ref()
    }

    #[cfg(feature = "http2")]
    pub(super) fn http2_ref(&self) -> &Http2Config {
        &self.http2
    }

    /// Returns whether HTTP/2 is used if no protocol was negotiated.
    pub(super) fn has_prior_knowledge(&self) -> bool {
        #[cfg(feature = "http2")]
        return self.http2.prior_knowledge;
        #[cfg(not(feature = "http2"))]
        false
    }

    pub(super) fn counters_ref(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn stream_config(&self) -> Arc<StreamConfig> {
        self.stream.clone()
    }

    /// Returns the configuration for a connection or a stream that was upgraded to another protocol,
    /// which sets for itself what it reads.
    pub(super) fn upgraded_stream_config(&self) -> Arc<StreamConfig> {
        let config = StreamConfig::clone(&self.stream);
        config
            .output_high_water(self.limits.output_high_water)
            .linger_bytes(self.limits.linger_bytes_max)
            .share()
    }
}

impl Default for ClientConfig {
    fn default() -> ClientConfig {
        ClientConfig::new()
    }
}

/// The default limit of bytes that the bodies of all responses hold together.
const BODIES_BYTES_MAX: usize = 256 << 20;

/// The default limit of bytes that a client's connections hold together in their inputs and
/// outputs.
const HELD_BYTES_MAX: usize = 512 << 20;

/// How many bytes a closed connection reads and discards at most. The rest of a response that nobody
/// wants is not worth more.
const LINGER_BYTES_MAX: u64 = 32 << 10;

fn stream_config(limits: &Limits, base: &StreamConfig, held: &Arc<BytesHeld>) -> Arc<StreamConfig> {
    base.clone()
        // The whole head must fit, because its handler gets it as a slice of the input.
        .input_max(INPUT_BYTES_MAX.max(limits.head_bytes_max))
        // Output never stops the reading of input: a server may refuse a body while it is being
        // sent, and then take no more of it.
        .output_high_water(usize::MAX)
        .flush_timeout(limits.response_grace)
        .flush_step(limits.response_step())
        .close_timeout(limits.shutdown_timeout)
        .linger_timeout(limits.linger_timeout)
        .linger_bytes(limits.linger_bytes_max.min(LINGER_BYTES_MAX))
        .held(Some(held.clone()))
        .share()
}
