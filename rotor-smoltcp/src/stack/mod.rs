//! `Stack`: smoltcp's interface, and the sockets of a loop around it.

mod acknowledgement;
mod address_requests;
mod connection;
mod datagram_queue;
mod datagram_socket;
mod datagrams;
mod detached;
mod flow;
mod layers;
mod listener_socket;
mod listeners;
mod neighbours;
mod offload;
mod opening;
mod outlet;
#[cfg(test)]
mod packets;
mod random;
mod rejections;
mod resets;
mod sequence;
mod socket_pool;
mod streams;
#[cfg(test)]
mod test_peer;
mod time_wait;
mod turn;
mod unreachable;
mod window;
mod wire;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rotor_core::{Interest, OffloadPool, Time, Token};
use smoltcp::iface::{Interface, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::Ipv4Cidr;

use self::address_requests::AddressRequests;
use self::connection::Connection;
use self::datagram_socket::{DatagramSocket, Sender};
use self::flow::Flow;
use self::listener_socket::{BoundAddresses, ListenerSocket};
use self::random::Random;
use self::rejections::Rejections;
use self::socket_pool::SocketPool;
use self::time_wait::TimeWait;
pub(crate) use self::turn::Wait;
use self::wire::Wire;
use crate::clock::{Alarm, LoopClock};
use crate::config::StackConfig;
use crate::slots::{Id, Slots};
use crate::stats::StackStats;

/// A stack: packets on one side, sockets on the other.
pub(crate) struct Stack {
    config: StackConfig,
    iface: Interface,
    wire: Wire,
    /// An empty set, for what the interface answers by itself.
    no_sockets: SocketSet<'static>,
    rejections: Rejections,
    clock: LoopClock,
    /// In virtual time: tells the clock when there is something to do.
    alarm: Option<Alarm>,
    random: Random,
    connections: Slots<Box<Connection>>,
    socket_pool: SocketPool,
    flows: BTreeMap<Flow, Id>,
    listeners: Slots<ListenerSocket>,
    bound_listeners: BoundAddresses,
    datagrams: Slots<Box<DatagramSocket>>,
    bound_datagrams: BoundAddresses,
    sender: Sender,
    /// When each connection has to be looked at again.
    due: BTreeSet<(Time, Id)>,
    /// Connections that may have something to send.
    dirty: Vec<Id>,
    dirty_datagrams: Vec<Id>,
    /// Connections whose machines may have to be told something.
    changed: Vec<Id>,
    changed_datagrams: Vec<Id>,
    changed_listeners: Vec<Id>,
    /// Connections and sockets that wait for the hardware address of a target (ARP, neighbour
    /// discovery), and when they ask again. The lists may also have others, which costs little.
    unresolved: Vec<Id>,
    unresolved_datagrams: Vec<Id>,
    retry_resolution_at: Option<Time>,
    address_requests: AddressRequests,
    /// A packet has arrived that may tell the hardware address of a target.
    may_resolve: bool,
    /// Dropped connections that have not ended, the oldest first. The list may also have others.
    lingering: VecDeque<Id>,
    /// Connections that both sides have ended, without sockets.
    time_wait: TimeWait,
    stats: StackStats,
    has_more: bool,
}

/// How many packets may wait in a device. A device does not tell; the queue of a TUN device has 500
/// by default, that of a network card 1,000.
const DEVICE_PACKETS: usize = 1_024;

/// The kind of a socket, for code that handles all kinds alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SocketKind {
    Stream,
    Listener,
    Datagram,
}

const IPV4_BROADCAST: IpAddr = IpAddr::V4(Ipv4Addr::BROADCAST);

impl Stack {
    fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn pool(&self) -> Option<OffloadPool> {
        self.config.pool.clone()
    }

    pub(crate) fn may_have_more(&self) -> bool {
        self.has_more
    }

    /// Returns how many full waits take all packets that are in the device now.
    pub(crate) fn full_waits(&self) -> usize {
        DEVICE_PACKETS.div_ceil(self.config.packets_max)
    }

    /// Fills `bytes` from the seed; returns false if there is none.
    pub(crate) fn fill_seeded(&mut self, bytes: &mut [u8]) -> bool {
        self.random.fill_seeded(bytes)
    }

    pub(crate) fn stats(&self) -> StackStats {
        StackStats {
            sent: self.wire.outlet.sent,
            unsent: self.wire.outlet.unsent,
            went_down: self.wire.times_down,
            merged: self.wire.outlet.merged,
            rejections_withheld: self.rejections.withheld,
            connections: self.connections.len(),
            time_wait: self.time_wait.len(),
            ..self.stats
        }
    }

    pub(crate) fn register(
        &mut self,
        kind: SocketKind,
        id: Id,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        match kind {
            SocketKind::Stream => {
                let connection = self.connections.get_mut(id).ok_or_else(not_connected)?;
                connection.register(token, interest)?;
                self.mark_changed(id);
            }
            SocketKind::Listener => self.register_listener(id, token)?,
            SocketKind::Datagram => {
                let socket = self.datagrams.get_mut(id).ok_or_else(not_connected)?;
                socket.register(token)?;
                self.mark_datagram_changed(id);
            }
        }
        self.ring_alarm();
        Ok(())
    }

    pub(crate) fn deregister(&mut self, kind: SocketKind, id: Id) -> io::Result<()> {
        match kind {
            SocketKind::Stream => {
                self.connections.get_mut(id).ok_or_else(not_connected)?.deregister()
            }
            SocketKind::Listener => {
                let listener = self.listeners.get_mut(id).ok_or_else(not_connected)?;
                listener.token.take().map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
            }
            SocketKind::Datagram => {
                self.datagrams.get_mut(id).ok_or_else(not_connected)?.deregister()
            }
        }
    }

    /// Called when a socket is dropped.
    pub(crate) fn drop_socket(&mut self, kind: SocketKind, id: Id) {
        match kind {
            SocketKind::Stream => self.detach(id),
            SocketKind::Listener => self.drop_listener(id),
            SocketKind::Datagram => self.drop_datagrams(id),
        }
        self.ring_alarm();
    }

    /// In virtual time, says that there is something to do at once.
    fn ring_alarm(&self) {
        if let Some(alarm) = &self.alarm {
            alarm.ring();
        }
    }

    /// Notes that a connection may have something to send.
    fn mark_dirty(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !std::mem::replace(&mut connection.is_dirty, true) {
            self.dirty.push(id);
            self.ring_alarm();
        }
    }

    /// Notes that a connection's machine may have to be told something.
    fn mark_changed(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if !std::mem::replace(&mut connection.is_changed, true) {
            self.changed.push(id);
        }
    }

    /// Checks that a socket may be bound to an address.
    fn check_local(&self, address: SocketAddr) -> io::Result<()> {
        let ip = address.ip();
        if ip.is_unspecified() || self.has_address(ip) {
            return Ok(());
        }
        Err(io::ErrorKind::AddrNotAvailable.into())
    }

    fn has_address(&self, ip: IpAddr) -> bool {
        self.config.addresses.iter().any(|(own, _)| *own == ip)
    }

    /// Returns whether this is the address of all hosts, or of all in a network of the stack.
    fn is_broadcast(&self, ip: IpAddr) -> bool {
        let is_of_network = |(own, prefix): &(IpAddr, u8)| match *own {
            IpAddr::V4(own) => Ipv4Cidr::new(own, *prefix).broadcast().is_some_and(|all| ip == all),
            IpAddr::V6(_) => false,
        };
        ip == Ipv4Addr::BROADCAST || self.config.addresses.iter().any(is_of_network)
    }

    /// Returns the address from which the stack would send to a target.
    fn source_for(&self, target: IpAddr) -> io::Result<IpAddr> {
        let of_family = |(own, _): &(IpAddr, u8)| own.is_ipv4() == target.is_ipv4();
        if !self.config.addresses.iter().any(of_family) || !self.has_route(target) {
            return Err(io::ErrorKind::NetworkUnreachable.into());
        }
        let source = self.iface.get_source_address(&target.into()).map(IpAddr::from);
        // For a local target it may be an address that the stack does not have (IPv6's loopback).
        let source = source.filter(|source| self.has_address(*source));
        let first = self.config.addresses.iter().find(|own| of_family(own)).map(|(own, _)| *own);
        source.or(first).ok_or(io::ErrorKind::NetworkUnreachable.into())
    }
}

/// Sends what was written by sockets that outlive their [loop](crate::Smoltcp). Nothing is
/// retransmitted afterwards.
impl Drop for Stack {
    fn drop(&mut self) {
        self.send_last();
    }
}

fn not_connected() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

/// Converts a time to smoltcp's, in microseconds, rounding down.
fn to_instant(time: Time) -> Instant {
    Instant::from_micros(i64::try_from(time.as_nanos() / 1_000).unwrap_or(i64::MAX))
}

/// Converts a duration to smoltcp's, limited to a thousand years so that smoltcp can add it.
fn to_duration(time: std::time::Duration) -> smoltcp::time::Duration {
    const LONGEST: u64 = 1_000 * 365 * 24 * 3_600 * 1_000_000;
    let micros = u64::try_from(time.as_micros()).unwrap_or(LONGEST);
    smoltcp::time::Duration::from_micros(micros.min(LONGEST))
}

/// Returns the address without the flow label and the scope of IPv6, which no packet's address has.
fn normalize(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port())
}

#[cfg(test)]
mod tests;
