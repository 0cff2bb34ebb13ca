//! `PoolConfig`: every limit of a pool.

use std::time::Duration;

/// How many connections and requests a pool holds, and for how long.
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
    /// At least 1; default 32: enough to keep a server busy over a slow path, and few enough not to
    /// be its heaviest client. Further requests wait.
    ///
    /// Connections that are restricted to HTTP/1.1 although the server supports HTTP/2 are counted
    /// separately ([`Connector::without_http2`](super::super::Connector::without_http2)), as are
    /// the requests that wait for one.
    pub fn connections_per_origin_max(mut self, connections: usize) -> PoolConfig {
        // With 0, every request would wait until its deadline.
        self.connections_per_origin_max = connections.max(1);
        self
    }

    /// Sets the maximum number of connections in total. At least 1; default 512, half of the
    /// descriptors that a process usually has.
    ///
    /// A connection that was upgraded to another protocol (101, or 2xx to CONNECT) has left the pool,
    /// and does not count here or above any more. A stream of HTTP/2 that was upgraded stays a
    /// request under way.
    ///
    /// If a request needs one more, the connection that has been idle longest is closed; if none is
    /// idle, the request waits. If its server has no connection at all, it gets the next place of a
    /// server that has several: one of that server's HTTP/1.1 connections is closed when it has
    /// received its response. The same happens if the loop has no free slot for another connection.
    pub fn connections_max(mut self, connections: usize) -> PoolConfig {
        self.connections_max = connections.max(1);
        self
    }

    /// Sets the maximum number of requests that wait for one server. At least 1; default 1,024: at
    /// a millisecond each on 32 connections, the last one waits for 32 ms. Any further request
    /// fails with [`ClientError::Full`](super::super::ClientError::Full).
    pub fn waiting_per_origin_max(mut self, requests: usize) -> PoolConfig {
        self.waiting_per_origin_max = requests.max(1);
        self
    }

    /// Sets the maximum number of requests that wait for all servers together. At least 1; default
    /// 4,096: enough for as many servers that do not respond, or for four whose queues are full. A
    /// pool remembers only servers for which requests wait, and those to which it has connections.
    /// Any further request fails with [`ClientError::Full`](super::super::ClientError::Full).
    pub fn waiting_max(mut self, requests: usize) -> PoolConfig {
        self.waiting_max = requests.max(1);
        self
    }

    /// Sets how many bytes the waiting requests may take in total. Each request counts as its
    /// handler and what the handler holds
    /// ([`Client::held_bytes`](super::super::Client::held_bytes)), usually a body. Default 64 MiB:
    /// sixty bodies of a megabyte, or 16 KiB for each of the requests that may wait; a server that
    /// does not respond for a minute costs no more memory.
    ///
    /// A request that would exceed the limit fails with
    /// [`ClientError::Full`](super::super::ClientError::Full). If no other request waits, a request
    /// is accepted whatever its size.
    ///
    /// The limit does not cover requests of this turn that the pool has not looked at yet, which
    /// are at most [`asks_max`](PoolConfig::asks_max).
    pub fn waiting_bytes_max(mut self, bytes: usize) -> PoolConfig {
        self.waiting_bytes_max = bytes;
        self
    }

    /// Sets the maximum number of requests that were passed to [`Pool::ask`](super::Pool::ask) and
    /// that the pool has not looked at yet. At least 1; default 1,024, the number of machines that
    /// one turn wakes. `ask` returns any further request as an error.
    pub fn asks_max(mut self, requests: usize) -> PoolConfig {
        self.asks_max = requests.max(1);
        self
    }

    /// Sets how many requests the pool looks at in one event; the rest wait for the next turn. At
    /// least 1; default 256, which takes some tens of microseconds.
    #[doc(alias = "asks_per_event_max")]
    pub fn asks_per_event(mut self, requests: usize) -> PoolConfig {
        self.asks_per_event = requests.max(1);
        self
    }

    /// Sets how long a request without a deadline of its own may take, from when the pool receives
    /// it: waiting, connecting, sending and receiving. Default 60 s. After that it fails with
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
