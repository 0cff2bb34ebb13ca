//! `AcceptSeed`: what the machines of a listener, and the machines that they spawn, are made from.

use std::fmt;
use std::net::SocketAddr;

use rotor_core::Panicked;
use rotor_core::net::{Accepted, Listener};

use super::connections::ConnectionGuard;

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
        guard: ConnectionGuard,
    },
    /// An accepted connection, but cloning the shared value for its machine has panicked.
    ClonePanicked {
        socket: L::Socket,
        panicked: Panicked,
    },
    Spawned(M::Seed),
}

impl<M: Accepted<L::Socket>, L: Listener> AcceptSeed<M, L> {
    /// Makes the seed of a machine that does not serve an accepted connection.
    #[doc(alias = "of")]
    pub fn from_seed(seed: M::Seed) -> AcceptSeed<M, L> {
        AcceptSeed { origin: Origin::Spawned(seed) }
    }

    /// Returns the inner seed if the machine of a connection spawned it.
    pub(super) fn into_spawned(self) -> Option<M::Seed> {
        match self.origin {
            Origin::Spawned(seed) => Some(seed),
            Origin::Accepted { .. } | Origin::ClonePanicked { .. } => None,
        }
    }
}

impl<M: Accepted<L::Socket>, L: Listener> fmt::Debug for AcceptSeed<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.origin {
            Origin::Accepted { .. } | Origin::ClonePanicked { .. } => "AcceptSeed(accepted)",
            Origin::Spawned(_) => "AcceptSeed(spawned)",
        })
    }
}
