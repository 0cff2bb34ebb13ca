//! What all connections of a client share.

use std::sync::Arc;

use rotor_stream::{BytesHeld, StreamConfig};

use super::counters::Counters;
use crate::h1::Limits;
use crate::recv_mode::INPUT_BYTES_MAX;

/// What the connections of a client share: every limit, how to connect, the counters.
///
/// ```
/// use rotor_http::client::ClientConfig;
/// use rotor_http::Limits;
/// use std::time::Duration;
///
/// let config = ClientConfig::new().limits(Limits::new().answer_timeout(Duration::from_secs(5)));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientConfig {
    pub(super) limits: Limits,
    stream: Arc<StreamConfig>,
    counters: Arc<Counters>,
    bodies: Arc<BytesHeld>,
}

impl ClientConfig {
    /// The defaults.
    pub fn new() -> ClientConfig {
        let limits = Limits::new();
        ClientConfig {
            stream: stream_config(&limits, &StreamConfig::new()),
            limits,
            counters: Arc::default(),
            bodies: BytesHeld::new(BODIES_BYTES_MAX),
        }
    }

    /// Every limit of a connection; those that name 4xx statuses make a client fail the request
    /// instead. Default: [`Limits::new`].
    pub fn limits(mut self, limits: Limits) -> ClientConfig {
        self.stream = stream_config(&limits, &self.stream);
        self.limits = limits;
        self
    }

    /// How to connect: the time for that, keep-alive probes, and the stream's budgets. What follows
    /// from the limits is set from them. Default: [`StreamConfig::new`].
    pub fn stream(mut self, config: &StreamConfig) -> ClientConfig {
        self.stream = stream_config(&self.limits, config);
        self
    }

    /// Counts with these counters, together with whoever else uses them. Default: counters of its
    /// own.
    pub fn count_with(mut self, counters: Arc<Counters>) -> ClientConfig {
        self.counters = counters;
        self
    }

    /// Octets that bodies of answers may hold of memory at a time, those of all connections
    /// together, while they are collected for their handlers: whole
    /// ([`RecvMode::Buffered`](super::RecvMode), as [`Fetch`](super::Fetch) does) or up to the
    /// least size of a piece. What counts is the memory, which may be twice what has come. Default
    /// 256 MiB: 256 bodies of the most that
    /// [`buffered_body_bytes_max`](Limits::buffered_body_bytes_max) allows one of them.
    ///
    /// An answer that finds no room fails its request with
    /// [`ClientError::BodiesFull`](super::ClientError::BodiesFull), and its connection is closed.
    /// Those that are under way keep what they have.
    pub fn bodies_bytes_max(mut self, bytes: usize) -> ClientConfig {
        self.bodies = BytesHeld::new(bytes);
        self
    }

    /// What bodies of answers hold now, to be read from any thread.
    pub fn bodies_held(&self) -> Arc<BytesHeld> {
        self.bodies.clone()
    }

    /// What these connections count, to be read from any thread.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    pub(super) fn bodies(&self) -> &Arc<BytesHeld> {
        &self.bodies
    }

    pub(super) fn count(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn stream_config(&self) -> Arc<StreamConfig> {
        self.stream.clone()
    }
}

impl Default for ClientConfig {
    fn default() -> ClientConfig {
        ClientConfig::new()
    }
}

/// Octets that the bodies of all answers hold together.
const BODIES_BYTES_MAX: usize = 256 << 20;

fn stream_config(limits: &Limits, base: &StreamConfig) -> Arc<StreamConfig> {
    base.clone()
        .input_max(INPUT_BYTES_MAX.max(limits.head_bytes_max))
        // What has come is always read: a server may refuse a body while it is being sent, and then
        // takes no more of it.
        .output_high_water(usize::MAX)
        .flush_timeout(limits.answer_grace)
        .flush_step(limits.answer_step())
        .close_timeout(limits.shutdown_timeout)
        .linger_timeout(limits.linger_timeout)
        .linger_bytes(limits.linger_bytes_max)
        .share()
}
