//! `PeerConnections`: how many connections each peer has, and how many it may; `PeerPlace`: one of
//! them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, PoisonError};

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Mutex, MutexGuard};

/// How many connections each peer has, and how many it may have at a time.
///
/// A peer is an address of IPv4, or a network of IPv6: whoever has one address of those has 2⁶⁴, as
/// a rule. One value is shared by all listeners and loops that are to count together:
/// [`AcceptConfig::per_peer`](crate::AcceptConfig::per_peer) refuses what is beyond it, as soon as
/// it is accepted, and wrapping sockets that learn of the real peer later can do the same. It takes
/// a lock for the length of a look-up, at the beginning and at the end of a connection.
///
/// Many people may come from one address: a company, a mobile network. A limit that is no attack's
/// doing when it is met is too low.
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; }
/// use rotor::stream::PeerConnections;
///
/// # fn main() -> Result<(), std::net::AddrParseError> {
/// let connections = PeerConnections::new(1).share();
/// let first = connections.enter("192.0.2.1".parse()?);
/// assert!(first.is_some());
/// assert!(connections.enter("192.0.2.1".parse()?).is_none());
/// assert!(connections.enter("192.0.2.2".parse()?).is_some());
/// drop(first);
/// assert!(connections.enter("192.0.2.1".parse()?).is_some());
/// assert_eq!(connections.refused(), 1);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "limit_conn")]
#[doc(alias = "connlimit")]
pub struct PeerConnections {
    max: u32,
    prefixes: (u8, u8),
    // Ordered: whoever chooses its addresses cannot choose what a look-up costs.
    peers: Mutex<BTreeMap<IpAddr, u32>>,
    refused: AtomicU64,
}

impl PeerConnections {
    /// At most so many of each peer, at least one. A peer is an address of IPv4 (/32), or a network
    /// of IPv6 of 64 bits (/64).
    pub fn new(max: u32) -> PeerConnections {
        PeerConnections {
            max: max.max(1),
            prefixes: (32, 64),
            peers: Mutex::new(BTreeMap::new()),
            refused: AtomicU64::new(0),
        }
    }

    /// How many bits of an address say who the peer is, of IPv4 and of IPv6: those of its first
    /// bits. Default: 32 and 64.
    pub fn prefixes(mut self, v4: u8, v6: u8) -> PeerConnections {
        self.prefixes = (v4.min(32), v6.min(128));
        self
    }

    /// As listeners keep it.
    #[must_use]
    pub fn share(self) -> Arc<PeerConnections> {
        Arc::new(self)
    }

    /// Counts one more connection from an address; `None` where its peer has as many as it may, and
    /// that is counted.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Option<PeerPlace> {
        let peer = self.peer(address);
        {
            let mut peers = self.peers();
            let count = peers.entry(peer).or_insert(0);
            if *count < self.max {
                *count += 1;
                return Some(PeerPlace { connections: self.clone(), peer });
            }
        }
        self.refused.fetch_add(1, Relaxed);
        None
    }

    /// How many connections the peer at an address has.
    pub fn of(&self, address: IpAddr) -> u32 {
        self.peers().get(&self.peer(address)).copied().unwrap_or(0)
    }

    /// How many peers have connections.
    pub fn peers_now(&self) -> usize {
        self.peers().len()
    }

    /// How many connections were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    fn peers(&self) -> MutexGuard<'_, BTreeMap<IpAddr, u32>> {
        // Each change is a whole one.
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who has an address: its first bits.
    fn peer(&self, address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefixes.0)).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefixes.1)).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        }
    }
}

impl fmt::Debug for PeerConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerConnections({} each, {} peers)", self.max, self.peers_now())
    }
}

/// A connection that counts as one of its peer's, as long as this lives.
#[must_use = "it is given back when it is dropped"]
pub struct PeerPlace {
    connections: Arc<PeerConnections>,
    peer: IpAddr,
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut peers = self.connections.peers();
        if let Some(count) = peers.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                peers.remove(&self.peer);
            }
        }
    }
}

impl fmt::Debug for PeerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerPlace({})", self.peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("it is one")
    }

    #[test]
    fn a_peer_has_as_many_as_it_may_and_not_one_more() {
        let connections = PeerConnections::new(2).share();
        let peer = address("192.0.2.1");
        let one = connections.enter(peer).expect("the first");
        let other = connections.enter(peer).expect("the second");
        assert!(connections.enter(peer).is_none() && connections.enter(peer).is_none());
        assert_eq!((connections.of(peer), connections.refused()), (2, 2));
        drop(one);
        let again = connections.enter(peer).expect("there is a place again");
        assert!(connections.enter(peer).is_none());
        drop((other, again));
        assert_eq!((connections.of(peer), connections.peers_now()), (0, 0), "nothing is kept");
    }

    #[test]
    fn what_peers_have_in_common_is_the_beginning_of_their_addresses() {
        for (v4, v6, one, other, are_one) in [
            (32, 64, "192.0.2.1", "192.0.2.2", false),
            (24, 64, "192.0.2.1", "192.0.2.254", true),
            (24, 64, "192.0.2.1", "192.0.3.1", false),
            (0, 64, "1.2.3.4", "200.0.0.1", true),
            (0, 0, "1.2.3.4", "::1", false),
            (32, 64, "192.0.2.1", "::ffff:192.0.2.1", true),
            (32, 64, "::ffff:192.0.2.2", "::ffff:192.0.2.1", false),
            (32, 64, "2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true),
            (32, 64, "2001:db8::1", "2001:db8:0:1::1", false),
            (32, 128, "2001:db8::1", "2001:db8::2", false),
            (32, 0, "2001:db8::1", "fe80::1", true),
            (99, 200, "2001:db8::1", "2001:db8::1", true),
        ] {
            let connections = PeerConnections::new(1).prefixes(v4, v6).share();
            let _first = connections.enter(address(one)).expect("the first");
            assert_eq!(connections.enter(address(other)).is_none(), are_one, "{one} and {other}");
        }
    }

    #[test]
    fn none_is_one() {
        assert!(PeerConnections::new(0).share().enter(address("::1")).is_some());
    }
}
