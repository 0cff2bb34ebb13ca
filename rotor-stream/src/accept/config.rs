//! `AcceptConfig`: every limit of a listener.

use std::time::Duration;

use rotor_core::TICK;

/// Every limit of a listener, each with its unit, default and reason.
#[derive(Clone, Debug)]
#[must_use]
pub struct AcceptConfig {
    pub(super) connections_max: usize,
    pub(super) accept_budget: u32,
    pub(super) pause: Duration,
}

impl AcceptConfig {
    /// The defaults.
    pub fn new() -> AcceptConfig {
        AcceptConfig { connections_max: 60_000, accept_budget: 1_024, pause: Duration::from_millis(100) }
    }

    /// The most connections of this listener at a time. Default 60,000: below the default number of slots of a loop
    /// (65,536), so that timers, resolvers and clients still find one. Further ones wait in the system's queue.
    pub fn connections_max(mut self, connections: usize) -> AcceptConfig {
        self.connections_max = connections.max(1);
        self
    }

    /// The most connections accepted in one event. Default 1,024: a full queue (4,096) is empty after four turns, however
    /// much the connections that are there have to write in them, and accepting takes no longer than the events of a turn.
    /// [`Config::spawns_per_event`](rotor_core::Config::spawns_per_event) bounds it, too.
    pub fn accept_budget(mut self, connections: u32) -> AcceptConfig {
        self.accept_budget = connections.max(1);
        self
    }

    /// How long accepting rests when the system has no descriptor or no memory left; at least 1 ms. Default 100 ms: a
    /// connection that ends meanwhile does not tell, and asking again at once would spin.
    pub fn pause(mut self, time: Duration) -> AcceptConfig {
        self.pause = time.max(TICK);
        self
    }
}

impl Default for AcceptConfig {
    fn default() -> AcceptConfig {
        AcceptConfig::new()
    }
}
