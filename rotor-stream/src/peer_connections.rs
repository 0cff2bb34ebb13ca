//! `PeerConnections`: how many connections each peer has, and how many it may have; `PeerPlace`:
//! one of them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, PoisonError};

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Mutex, MutexGuard};

/// How many connections each peer has, and how many it may have at a time.
///
/// A peer is an IPv4 address or an IPv6 network, because anyone with one IPv6 address usually has
/// 2⁶⁴ of them. All listeners and loops that count together share one value.
/// [`AcceptConfig::per_peer`](crate::AcceptConfig::per_peer) refuses further connections as soon as
/// they are accepted, and wrapping sockets that learn the real peer later can do the same. A lock
/// is held during a look-up, at the beginning and at the end of each connection.
///
/// Many people may share one address: in a company, or a mobile network. If ordinary use reaches
/// the limit, it is too low.
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
    // Ordered, so that a peer that chooses its addresses cannot make look-ups expensive.
    peers: Mutex<BTreeMap<IpAddr, u32>>,
    refused: AtomicU64,
}

impl PeerConnections {
    /// Allows each peer at most `max` connections, at least one. A peer is an IPv4 address (/32) or
    /// an IPv6 network of 64 bits (/64).
    pub fn new(max: u32) -> PeerConnections {
        PeerConnections {
            max: max.max(1),
            prefixes: (32, 64),
            peers: Mutex::new(BTreeMap::new()),
            refused: AtomicU64::new(0),
        }
    }

    /// Sets how many leading bits of an IPv4 and of an IPv6 address identify the peer. Default: 32
    /// and 64.
    pub fn prefixes(mut self, v4: u8, v6: u8) -> PeerConnections {
        self.prefixes = (v4.min(32), v6.min(128));
        self
    }

    /// Wraps the value in the `Arc` that listeners keep.
    #[must_use]
    pub fn share(self) -> Arc<PeerConnections> {
        Arc::new(self)
    }

    /// Counts one more connection from an address. Returns `None`, and counts the refusal, if the
    /// peer has the maximum number.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Option<PeerPlace> {
        let peer = self.peer_of(address);
        {
            let mut peers = self.lock_peers();
            let count = peers.entry(peer).or_insert(0);
            if *count < self.max {
                *count += 1;
                return Some(PeerPlace { connections: self.clone(), peer });
            }
        }
        self.refused.fetch_add(1, Relaxed);
        None
    }

    /// Returns how many connections the peer with this address has.
    pub fn of(&self, address: IpAddr) -> u32 {
        self.lock_peers().get(&self.peer_of(address)).copied().unwrap_or(0)
    }

    /// Returns how many peers have connections.
    pub fn peers_now(&self) -> usize {
        self.lock_peers().len()
    }

    /// Returns how many connections were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    fn lock_peers(&self) -> MutexGuard<'_, BTreeMap<IpAddr, u32>> {
        // A poisoned lock is fine: each change is complete.
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the peer with this address: its leading bits.
    fn peer_of(&self, address: IpAddr) -> IpAddr {
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

/// A connection that is counted for its peer until this is dropped.
#[must_use = "it is given back when it is dropped"]
pub struct PeerPlace {
    connections: Arc<PeerConnections>,
    peer: IpAddr,
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut peers = self.connections.lock_peers();
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
    fn a_peer_gets_its_maximum_of_connections_and_no_more() {
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
    fn peers_are_identified_by_their_address_prefix() {
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
    fn a_maximum_of_zero_allows_one_connection() {
        assert!(PeerConnections::new(0).share().enter(address("::1")).is_some());
    }
}
