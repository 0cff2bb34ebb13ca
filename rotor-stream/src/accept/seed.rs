//! `AcceptSeed`: what the machines of a listener are made from, and those that they spawn.

use std::fmt;
use std::net::SocketAddr;

use rotor_core::Panicked;
use rotor_core::net::{Accepted, Listener};

use super::connections::Counted;

/// The seed of a machine that serves a listener's connection, or was spawned by such a machine.
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
    /// Accepted, but cloning what its machine is made with has panicked.
    Broken {
        socket: L::Socket,
        panicked: Panicked,
    },
    Spawned(M::Seed),
}

impl<M: Accepted<L::Socket>, L: Listener> AcceptSeed<M, L> {
    /// Makes the seed of a machine that does not come from the listener.
    #[doc(alias = "of")]
    pub fn from_seed(seed: M::Seed) -> AcceptSeed<M, L> {
        AcceptSeed { origin: Origin::Spawned(seed) }
    }

    /// Returns the seed that the machine of a connection spawned, if it is one.
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
