//! `PacketPort`: where the stack of a host sends and receives packets.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rotor_core::Time;

/// How many packets a host keeps for its stack. Further ones are lost.
const ARRIVED_MAX: usize = 1_024;

/// Where the TCP/IP stack of a host sends and receives IP packets: the cable of its network card,
/// so to speak. [`Boot::packet_port`](crate::Boot::packet_port) makes it.
///
/// The network carries IPv4 and IPv6 packets to addresses of other hosts and of the same one. It
/// delivers them in order unless [`Fault::PacketLate`](crate::Fault::PacketLate) strikes, with the
/// [latency](crate::Network::latency) and the [bandwidth](crate::Network::bandwidth) of the
/// network. Packets are lost if their target is cut off, down or without a stack, or if they are
/// longer than the [MTU](crate::Network::mtu).
///
/// A port is `Send` because stacks may be; a simulation is not. So the simulation puts into the
/// port what it has for the stack.
#[derive(Clone)]
pub struct PacketPort {
    queues: Arc<Mutex<Queues>>,
    addresses: [IpAddr; 2],
    mtu: usize,
    seed: u64,
}

struct Queues {
    now: Time,
    arrived: VecDeque<Box<[u8]>>,
    sent: Vec<Box<[u8]>>,
}

impl PacketPort {
    pub(crate) fn new(addresses: [IpAddr; 2], mtu: usize, seed: u64) -> PacketPort {
        let queues = Queues { now: Time::ZERO, arrived: VecDeque::new(), sent: Vec::new() };
        PacketPort { queues: Arc::new(Mutex::new(queues)), addresses, mtu, seed }
    }

    /// Returns the two addresses of the host: that of [`Boot::address`](crate::Boot::address), and
    /// an IPv6 address. All hosts are in the networks `10.0.0.0/8` and `fd00::/64`.
    pub fn addresses(&self) -> [IpAddr; 2] {
        self.addresses
    }

    /// Returns the length of the longest packet, in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Returns a seed for the stack, a different one at each start of each host.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the time of the host when its loop last began to wait.
    pub fn now(&self) -> Time {
        self.queues().now
    }

    /// Takes the oldest packet that has arrived, and returns its length; `None` if there is none.
    /// Bytes that do not fit into `packet` are lost.
    pub fn receive(&self, packet: &mut [u8]) -> Option<usize> {
        let bytes = self.queues().arrived.pop_front()?;
        let len = bytes.len().min(packet.len());
        packet[..len].copy_from_slice(&bytes[..len]);
        Some(len)
    }

    /// Sends a packet. It leaves at the end of the loop's current wait, or of the next one.
    pub fn send(&self, packet: &[u8]) {
        self.queues().sent.push(packet.into());
    }

    pub(crate) fn set_now(&self, now: Time) {
        self.queues().now = now;
    }

    /// Adds a packet that has arrived; returns false if there is no room.
    pub(crate) fn push_arrived(&self, packet: Box<[u8]>) -> bool {
        let mut queues = self.queues();
        let has_room = queues.arrived.len() < ARRIVED_MAX;
        if has_room {
            queues.arrived.push_back(packet);
        }
        has_room
    }

    pub(crate) fn take_sent(&self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.queues().sent)
    }

    /// Whether there are packets for the stack or for the network.
    pub(crate) fn has_packets(&self) -> bool {
        let queues = self.queues();
        !queues.arrived.is_empty() || !queues.sent.is_empty()
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        // The lock protects no invariant: after a panic, a packet is in the queue or not.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PacketPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketPort({}, packets of {} bytes)", self.addresses[0], self.mtu)
    }
}
