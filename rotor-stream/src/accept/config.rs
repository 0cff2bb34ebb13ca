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
    /// The defaults.
    pub fn new() -> AcceptConfig {
        AcceptConfig {
            connections_max: 60_000,
            accept_budget: 1_024,
            pause: Duration::from_millis(100),
            idle_min: Duration::from_secs(2),
            per_peer: None,
        }
    }

    /// The most connections of this listener at a time. Default 60,000: below the default number of
    /// slots of a loop (65,536), so that timers, resolvers and clients still find one. Further ones
    /// wait in the system's queue.
    pub fn connections_max(mut self, connections: usize) -> AcceptConfig {
        self.connections_max = connections.max(1);
        self
    }

    /// The most connections accepted in one event. Default 1,024: a full queue (4,096) is empty
    /// after four turns, however much the connections that are there have to write in them, and
    /// accepting takes no longer than the events of a turn.
    /// [`Config::spawns_per_event`](rotor_core::Config::spawns_per_event) bounds it, too.
    pub fn accept_budget(mut self, connections: u32) -> AcceptConfig {
        self.accept_budget = connections.max(1);
        self
    }

    /// How long accepting rests when the system has no descriptor or no memory left; at least 1 ms.
    /// Default 100 ms: a connection that ends meanwhile does not tell, and asking again at once
    /// would spin. The next look for a connection that [makes room](AcceptConfig::idle_min) comes
    /// as late, where the last one found none.
    #[doc(alias = "EMFILE")]
    #[doc(alias = "ENFILE")]
    pub fn pause(mut self, time: Duration) -> AcceptConfig {
        self.pause = time.max(TICK);
        self
    }

    /// How long a connection must have been idle to make room: where one waits to be accepted, and
    /// there is no slot, no descriptor, or this listener has reached its
    /// [most](AcceptConfig::connections_max), those are closed that have been
    /// [idle](rotor_core::Machine::idle) longest. Default 2 s: whoever is at it sends its next
    /// request sooner, as a rule; and who holds connections to lock others out does not keep them
    /// out for longer. `Duration::MAX` closes none.
    ///
    /// For want of a slot or a descriptor any machine of the loop may be the one, a client's idle
    /// connection too; for want of a place at this listener one of its connections.
    ///
    /// No system says how many wait, so a few more may be closed: at most a quarter of those that
    /// were let in. Listeners that share a queue (one socket, several loops) may each close one for
    /// the same client; whoever did not get it has a free slot for the next one, and closes none
    /// before that is taken.
    pub fn idle_min(mut self, time: Duration) -> AcceptConfig {
        self.idle_min = time;
        self
    }

    /// How many connections each peer may have, on all listeners that are given the same value.
    /// Default: any number. What is beyond it is closed as soon as it is accepted, before there is
    /// a machine for it, and counted there; connections without an address are not limited.
    ///
    /// Behind a balancer every connection is the balancer's: there the limit is for the wrapper
    /// that knows the real peer.
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
