//! `AcceptConfig`: every limit of a listener.

use std::sync::Arc;
use std::time::Duration;

use rotor_core::TICK;

use crate::peer_connections::PeerConnections;

/// Every limit of a listener, each with its unit, default and reason.
#[derive(Clone, Debug)]
#[must_use]
pub struct AcceptConfig {
    pub(super) connections_max: usize,
    pub(super) accept_budget: u32,
    pub(super) pause: Duration,
    pub(super) idle_min: Duration,
    pub(super) per_peer: Option<Arc<PeerConnections>>,
}

impl AcceptConfig {
    /// Returns the defaults.
    pub fn new() -> AcceptConfig {
        AcceptConfig {
            connections_max: 60_000,
            accept_budget: 1_024,
            pause: Duration::from_millis(100),
            idle_min: Duration::from_secs(2),
            per_peer: None,
        }
    }

    /// Sets the maximum number of simultaneous connections of this listener. At least 1; default
    /// 60,000: below the default number of slots of a loop (65,536), so that timers, resolvers and
    /// clients still find one. Further connections wait in the system's queue.
    pub fn connections_max(mut self, connections: usize) -> AcceptConfig {
        self.connections_max = connections.max(1);
        self
    }

    /// Sets the maximum number of connections accepted in one event. At least 1; default 1,024: a
    /// full queue (4,096) is emptied in four turns, however much the existing connections write in
    /// them, and accepting takes no longer than the events of a turn.
    /// [`Config::spawns_per_event`](rotor_core::Config::spawns_per_event) limits it too.
    pub fn accept_budget(mut self, connections: u32) -> AcceptConfig {
        self.accept_budget = connections.max(1);
        self
    }

    /// Sets how long accepting pauses when the system has no descriptor or no memory left, or no
    /// descriptor for what a connection's machine opens while it is made; at least 1 ms.
    /// Default 100 ms: the end of a connection is not reported to the listener, and trying again at
    /// once would spin. If no connection was found to [make room](AcceptConfig::idle_min),
    /// the next search also waits this long.
    #[doc(alias = "EMFILE")]
    #[doc(alias = "ENFILE")]
    pub fn pause(mut self, time: Duration) -> AcceptConfig {
        self.pause = time.max(TICK);
        self
    }

    /// Sets how long a connection must have been idle before it may be closed to make room. Default
    /// 2 s: an active client usually sends its next request sooner, and an attacker who holds
    /// connections to keep others out succeeds no longer than this. With `Duration::MAX` none is
    /// closed.
    ///
    /// When a connection waits to be accepted and there is no slot or descriptor, or this listener
    /// has reached its [maximum](AcceptConfig::connections_max), the connections that have been
    /// [idle](rotor_core::Machine::idle) longest are closed. If a slot or a descriptor is missing,
    /// any idle machine of the loop may be closed, including a client's connection. If the listener
    /// is at its maximum, one of its own connections is closed.
    ///
    /// No system reports how many connections wait, so a few more may be closed than necessary: at
    /// most a quarter of the number that was accepted in this way. Listeners that share a queue
    /// (one socket, several loops) may each close a connection for the same client. The listener
    /// that did not get the client has a free slot for the next one, and closes no other connection
    /// before that slot is used.
    pub fn idle_min(mut self, time: Duration) -> AcceptConfig {
        self.idle_min = time;
        self
    }

    /// Sets how many connections each peer may have, on all listeners that share this value.
    /// Default: unlimited. A further connection is closed as soon as it is accepted, before a
    /// machine is made for it, and is counted there. Connections without an address are not
    /// limited.
    ///
    /// Behind a balancer, every connection comes from the balancer. Set the limit in the wrapper
    /// that knows the real peer instead.
    #[doc(alias = "limit_conn")]
    pub fn per_peer(mut self, connections: Option<Arc<PeerConnections>>) -> AcceptConfig {
        self.per_peer = connections;
        self
    }
}

impl Default for AcceptConfig {
    fn default() -> AcceptConfig {
        AcceptConfig::new()
    }
}
