//! `PoolConfig`: every limit of a pool.

use std::time::Duration;

/// How many connections and requests a pool holds, and how long.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::client::PoolConfig;
/// use std::time::Duration;
///
/// let config =
///     PoolConfig::new().connections_per_origin_max(4).request_timeout(Duration::from_secs(10));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct PoolConfig {
    pub(super) connections_per_origin_max: usize,
    pub(super) connections_max: usize,
    pub(super) waiting_per_origin_max: usize,
    pub(super) waiting_max: usize,
    pub(super) waiting_bytes_max: usize,
    pub(super) asks_max: usize,
    pub(super) asks_per_event: usize,
    pub(super) request_timeout: Duration,
}

impl PoolConfig {
    /// The defaults.
    pub fn new() -> PoolConfig {
        PoolConfig {
            connections_per_origin_max: 32,
            connections_max: 512,
            waiting_per_origin_max: 1_024,
            waiting_max: 4_096,
            waiting_bytes_max: 64 << 20,
            asks_max: 1_024,
            asks_per_event: 256,
            request_timeout: Duration::from_secs(60),
        }
    }

    /// Connections to one server, those that are being made included. Default 32: enough to keep a
    /// server busy over a slow path, and few enough not to be its heaviest client. Further requests
    /// wait. Those over HTTP/1.1 alone, beside HTTP/2, are counted by themselves
    /// ([`Connector::without_http2`](super::super::Connector::without_http2)), as are
    /// requests that wait for one.
    pub fn connections_per_origin_max(mut self, connections: usize) -> PoolConfig {
        // With none, every request would wait for its deadline.
        self.connections_per_origin_max = connections.max(1);
        self
    }

    /// Connections in all. Default 512, half of the descriptors that a process has as a rule. When
    /// a request needs one more, the one is closed that has had nothing to do for longest; if there
    /// is none, the request waits. The same happens where the loop has no free slot for another
    /// connection.
    pub fn connections_max(mut self, connections: usize) -> PoolConfig {
        self.connections_max = connections.max(1);
        self
    }

    /// Requests that wait for one server. Default 1,024: at a millisecond each on 32 connections,
    /// the last one waits for 32 ms. A further one fails with
    /// [`ClientError::Full`](super::super::ClientError::Full).
    pub fn waiting_per_origin_max(mut self, requests: usize) -> PoolConfig {
        self.waiting_per_origin_max = requests.max(1);
        self
    }

    /// Requests that wait, for whatever servers. Default 4,096: so many servers that do not answer,
    /// or four that have all their queues full, and the pool knows no more servers than these and
    /// those that it has connections to. A further one fails with
    /// [`ClientError::Full`](super::super::ClientError::Full).
    pub fn waiting_max(mut self, requests: usize) -> PoolConfig {
        self.waiting_max = requests.max(1);
        self
    }

    /// What the requests that wait may take, in bytes: each its handler and what that says to hold
    /// ([`Client::held_bytes`](super::super::Client::held_bytes)), a body as a rule. Default 64
    /// MiB: sixty bodies of a megabyte, or 16 KiB for each of as many requests as may wait; a
    /// server that stands still for a minute costs no more memory. Where it would be exceeded, the
    /// request fails with [`ClientError::Full`](super::super::ClientError::Full); one that would be
    /// the only one to wait is taken, however large.
    ///
    /// It does not count what was asked within this turn and has not been looked at, which is
    /// [`asks_max`](PoolConfig::asks_max) requests.
    pub fn waiting_bytes_max(mut self, bytes: usize) -> PoolConfig {
        self.waiting_bytes_max = bytes;
        self
    }

    /// Requests that have been asked and not been looked at. Default 1,024, as many as one turn
    /// wakes machines. A further one is handed back by [`Pool::ask`](super::Pool::ask).
    pub fn asks_max(mut self, requests: usize) -> PoolConfig {
        self.asks_max = requests.max(1);
        self
    }

    /// Requests that are looked at in one event; the rest wait for the next turn. Default 256: some
    /// tens of microseconds.
    #[doc(alias = "asks_per_event_max")]
    pub fn asks_per_event(mut self, requests: usize) -> PoolConfig {
        self.asks_per_event = requests.max(1);
        self
    }

    /// How long a request without a deadline of its own may take, from when the pool hears of it:
    /// waiting, connecting, sending and answering. Default 60 s. After it:
    /// [`ClientError::Deadline`](super::super::ClientError::Deadline).
    pub fn request_timeout(mut self, time: Duration) -> PoolConfig {
        self.request_timeout = time;
        self
    }
}

impl Default for PoolConfig {
    fn default() -> PoolConfig {
        PoolConfig::new()
    }
}
