//! `AcceptSeed`: what the machines of a listener are made from, and those that they spawn.

use std::fmt;
use std::net::SocketAddr;

use rotor_core::Panicked;
use rotor_core::net::{Accepted, Listener};

use super::connections::Counted;

/// What a machine is made from that is a listener's connection, or was spawned by one.
pub struct AcceptSeed<M: Accepted<L::Socket>, L: Listener> {
    pub(super) origin: Origin<M, L>,
}

/// Where a machine comes from.
pub(super) enum Origin<M: Accepted<L::Socket>, L: Listener> {
    Accepted {
        socket: L::Socket,
        peer: Option<SocketAddr>,
        shared: M::Shared,
        counted: Counted,
    },
    /// Accepted, and the clone of what its machine is made with panicked.
    Broken {
        socket: L::Socket,
        panicked: Panicked,
    },
    Spawned(M::Seed),
}

impl<M: Accepted<L::Socket>, L: Listener> AcceptSeed<M, L> {
    /// The seed of a machine that no listener accepted.
    #[doc(alias = "of")]
    pub fn from_seed(seed: M::Seed) -> AcceptSeed<M, L> {
        AcceptSeed { origin: Origin::Spawned(seed) }
    }

    /// What the machine of a connection gave, if it is that.
    pub(super) fn spawned(self) -> Option<M::Seed> {
        match self.origin {
            Origin::Spawned(seed) => Some(seed),
            Origin::Accepted { .. } | Origin::Broken { .. } => None,
        }
    }
}

impl<M: Accepted<L::Socket>, L: Listener> fmt::Debug for AcceptSeed<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.origin {
            Origin::Accepted { .. } | Origin::Broken { .. } => "AcceptSeed(accepted)",
            Origin::Spawned(_) => "AcceptSeed(spawned)",
        })
    }
}
