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
    /// Returns the defaults.
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

    /// Sets the maximum number of connections to one server, including those that are being made.
    /// Default 32: enough to keep a server busy over a slow path, and few enough not to be its
    /// heaviest client. Further requests wait.
    ///
    /// Connections restricted to HTTP/1.1, beside HTTP/2, are counted separately
    /// ([`Connector::without_http2`](super::super::Connector::without_http2)), as are requests that
    /// wait for one.
    pub fn connections_per_origin_max(mut self, connections: usize) -> PoolConfig {
        // With none, every request would wait for its deadline.
        self.connections_per_origin_max = connections.max(1);
        self
    }

    /// Sets the maximum number of connections in total. Default 512, half of the descriptors that a
    /// process usually has. When a request needs one more, the connection is closed that has been
    /// idle longest; if none is idle, the request waits. A server that has no connection at all is
    /// then given the place of the next one of HTTP/1.1 that has had its response, of a server that
    /// has several. The same happens when the loop has no free slot for another connection.
    pub fn connections_max(mut self, connections: usize) -> PoolConfig {
        self.connections_max = connections.max(1);
        self
    }

    /// Sets the maximum number of requests that wait for one server. Default 1,024: at a
    /// millisecond each on 32 connections, the last one waits for 32 ms. A further one fails with
    /// [`ClientError::Full`](super::super::ClientError::Full).
    pub fn waiting_per_origin_max(mut self, requests: usize) -> PoolConfig {
        self.waiting_per_origin_max = requests.max(1);
        self
    }

    /// Sets the maximum number of requests that wait, for whatever servers. Default 4,096: that
    /// many servers that do not answer, or four that have their queues full. The pool knows no more
    /// servers than these and those that it has connections to. A further request fails with
    /// [`ClientError::Full`](super::super::ClientError::Full).
    pub fn waiting_max(mut self, requests: usize) -> PoolConfig {
        self.waiting_max = requests.max(1);
        self
    }

    /// Sets how many bytes the waiting requests may take: each counts its handler and what that
    /// says it holds ([`Client::held_bytes`](super::super::Client::held_bytes)), usually a body.
    /// Default 64 MiB: sixty bodies of a megabyte, or 16 KiB for each of as many requests as may
    /// wait; a server that stands still for a minute costs no more memory.
    ///
    /// A request that would exceed it fails with
    /// [`ClientError::Full`](super::super::ClientError::Full). A request that would be the only one
    /// to wait is taken, however large.
    ///
    /// It does not count what was asked within this turn and has not been looked at, which is at
    /// most [`asks_max`](PoolConfig::asks_max) requests.
    pub fn waiting_bytes_max(mut self, bytes: usize) -> PoolConfig {
        self.waiting_bytes_max = bytes;
        self
    }

    /// Sets the maximum number of requests that have been asked and not been looked at. Default
    /// 1,024, as many as one turn wakes machines. A further one is returned by
    /// [`Pool::ask`](super::Pool::ask).
    pub fn asks_max(mut self, requests: usize) -> PoolConfig {
        self.asks_max = requests.max(1);
        self
    }

    /// Sets how many requests are looked at in one event; the rest wait for the next turn. Default
    /// 256: some tens of microseconds.
    #[doc(alias = "asks_per_event_max")]
    pub fn asks_per_event(mut self, requests: usize) -> PoolConfig {
        self.asks_per_event = requests.max(1);
        self
    }

    /// Sets how long a request without a deadline of its own may take, from when the pool gets it:
    /// waiting, connecting, sending and answering. Default 60 s. After that it fails with
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
