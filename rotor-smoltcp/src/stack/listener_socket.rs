//! `ListenerSocket`: a listener of the stack. And `BoundAddresses`: which socket has which address.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rotor_core::Token;

use super::random::Random;
use crate::slots::Id;

/// A listener, with its half-open and its waiting connections.
pub(super) struct ListenerSocket {
    pub(super) address: SocketAddr,
    pub(super) token: Option<Token>,
    /// Connections that wait to be accepted, the oldest first.
    pub(super) queue: VecDeque<Id>,
    /// Half-open connections, the oldest first. The list may also have others.
    pub(super) attempts: VecDeque<Id>,
    pub(super) half_open: usize,
    pub(super) backlog: usize,
    /// There is something to accept of which the machine was not told.
    pub(super) is_changed: bool,
}

impl ListenerSocket {
    pub(super) fn new(address: SocketAddr, backlog: usize) -> ListenerSocket {
        ListenerSocket {
            address,
            token: None,
            queue: VecDeque::new(),
            attempts: VecDeque::new(),
            half_open: 0,
            backlog,
            is_changed: false,
        }
    }

    /// Whether one more connection may come.
    pub(super) fn has_room(&self) -> bool {
        self.half_open + self.queue.len() < self.backlog
    }
}

/// The addresses of the listeners, or of the datagram sockets.
#[derive(Default)]
pub(super) struct BoundAddresses(BTreeMap<SocketAddr, Id>);

impl BoundAddresses {
    /// Returns the socket that is bound to this address, or to all addresses.
    pub(super) fn find(&self, local: SocketAddr) -> Option<Id> {
        let any = SocketAddr::new(any_of(local.ip()), local.port());
        self.0.get(&local).or_else(|| self.0.get(&any)).copied()
    }

    /// Whether a socket is bound to the address, or to one that overlaps it.
    pub(super) fn is_taken(&self, address: SocketAddr) -> bool {
        let any = any_of(address.ip());
        self.0.keys().any(|taken| {
            let is_one_all = taken.ip() == any || address.ip() == any;
            taken.port() == address.port()
                && (taken.ip() == address.ip() || (is_one_all && any_of(taken.ip()) == any))
        })
    }

    pub(super) fn insert(&mut self, address: SocketAddr, id: Id) {
        self.0.insert(address, id);
    }

    pub(super) fn remove(&mut self, address: SocketAddr) {
        self.0.remove(&address);
    }
}

/// Returns the unspecified address of the same family.
fn any_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// The first of the dynamic ports (RFC 6335 §6).
pub(super) const FIRST_PORT: u16 = 49_152;

/// How many dynamic ports there are.
const PORTS: u16 = u16::MAX - FIRST_PORT + 1;

/// Returns a random port: an attacker who can guess the port can send forged packets.
///
/// # Errors
///
/// The system has no random bytes.
pub(super) fn random_port(random: &mut Random) -> io::Result<u16> {
    // The number of ports is 2¹⁴, so each is equally likely.
    Ok(FIRST_PORT + (random.next_number()? % u64::from(PORTS)) as u16)
}

/// Finds a free port, starting at a random one.
///
/// # Errors
///
/// `AddrNotAvailable` if all ports are taken. Otherwise, the system has no random bytes.
pub(super) fn free_port(random: &mut Random, is_taken: impl Fn(u16) -> bool) -> io::Result<u16> {
    let first = random_port(random)? - FIRST_PORT;
    let mut ports = (0..PORTS).map(|step| FIRST_PORT + (first + step) % PORTS);
    ports.find(|port| !is_taken(*port)).ok_or(io::ErrorKind::AddrNotAvailable.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::Slots;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_conflicts_with_itself_and_its_wildcard() {
        let id = Slots::new().insert(());
        let table = [
            ("10.0.0.1:80", "10.0.0.1:80", true),
            ("10.0.0.1:80", "10.0.0.1:81", false),
            ("10.0.0.1:80", "10.0.0.2:80", false),
            ("10.0.0.1:80", "0.0.0.0:80", true),
            ("0.0.0.0:80", "10.0.0.1:80", true),
            ("0.0.0.0:80", "[::]:80", false),
            ("[::]:80", "[fd00::1]:80", true),
            ("[::]:80", "10.0.0.1:80", false),
        ];
        for (first, second, is_taken) in table {
            let mut bound = BoundAddresses::default();
            bound.insert(address(first), id);
            assert_eq!(bound.is_taken(address(second)), is_taken, "{first} and {second}");
            bound.remove(address(first));
            assert!(!bound.is_taken(address(second)));
        }
    }

    #[test]
    fn a_specific_address_is_found_before_the_wildcard() {
        let mut slots = Slots::new();
        let (all, one, six) = (slots.insert(()), slots.insert(()), slots.insert(()));
        let mut bound = BoundAddresses::default();
        bound.insert(address("0.0.0.0:80"), all);
        bound.insert(address("10.0.0.1:80"), one);
        bound.insert(address("[::]:80"), six);
        assert_eq!(bound.find(address("10.0.0.1:80")), Some(one));
        assert_eq!(bound.find(address("10.0.0.2:80")), Some(all));
        assert_eq!(bound.find(address("[fd00::1]:80")), Some(six));
        assert_eq!(bound.find(address("10.0.0.1:81")), None);
    }

    #[test]
    fn every_free_port_is_found_before_an_error() {
        let mut random = Random::new(Some(1));
        let last = |port| port != 50_000;
        assert_eq!(free_port(&mut random, last).expect("one is left"), 50_000);
        let port = free_port(&mut random, |_| false).expect("all are left");
        assert!(port >= FIRST_PORT);
        let none = free_port(&mut random, |_| true).expect_err("all are taken");
        assert_eq!(none.kind(), io::ErrorKind::AddrNotAvailable);
    }
}
