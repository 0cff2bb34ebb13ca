//! `PacketPort`: where the stack of a host sends packets, and finds those that came.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rotor_core::Time;

/// How many packets a host keeps that its stack has not taken; what comes beyond is lost.
const WAITING_MAX: usize = 1_024;

/// Where the TCP/IP stack of a host sends IP packets, and finds those that came: the cable of its
/// card, made by [`Boot::packet_port`](crate::Boot::packet_port).
///
/// The network carries what is sent to an address of another host, or of the same one: IPv4 and
/// IPv6, one after the other unless [`Fault::PacketLate`](crate::Fault::PacketLate) says otherwise,
/// after the [latency](crate::Network::latency) and at the [bandwidth](crate::Network::bandwidth)
/// of the network. What comes for a host that is cut off, down, or without a stack, is lost, as is
/// what is longer than the [MTU](crate::Network::mtu).
///
/// It is `Send`, since stacks may be; a simulation is not, and leaves here what it has for the
/// stack.
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

    /// The addresses of the host: that of [`Boot::address`](crate::Boot::address), and one of IPv6.
    /// The networks that they are in, with all other hosts, are `10.0.0.0/8` and `fd00::/64`.
    pub fn addresses(&self) -> [IpAddr; 2] {
        self.addresses
    }

    /// How long a packet may be, in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// A seed for the stack: another one at each start of each host.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The host's time, when its loop began to wait the last time.
    pub fn now(&self) -> Time {
        self.queues().now
    }

    /// Takes the packet that came first, and returns its length; `None` where there is none. What
    /// does not fit into `packet` is lost.
    pub fn receive(&self, packet: &mut [u8]) -> Option<usize> {
        let bytes = self.queues().arrived.pop_front()?;
        let len = bytes.len().min(packet.len());
        packet[..len].copy_from_slice(&bytes[..len]);
        Some(len)
    }

    /// Sends a packet. It leaves when the wait is over in which it is sent, or that follows.
    pub fn send(&self, packet: &[u8]) {
        self.queues().sent.push(packet.into());
    }

    pub(crate) fn set_now(&self, now: Time) {
        self.queues().now = now;
    }

    /// Hands over a packet that came, and returns whether there was room.
    pub(crate) fn arrive(&self, packet: Box<[u8]>) -> bool {
        let mut queues = self.queues();
        let has_room = queues.arrived.len() < WAITING_MAX;
        if has_room {
            queues.arrived.push_back(packet);
        }
        has_room
    }

    pub(crate) fn take_sent(&self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.queues().sent)
    }

    /// Whether there is something for the stack to take, or for the network.
    pub(crate) fn has_some(&self) -> bool {
        let queues = self.queues();
        !queues.arrived.is_empty() || !queues.sent.is_empty()
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        // A packet is in it or not; there is nothing in between.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PacketPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketPort({}, packets of {} bytes)", self.addresses[0], self.mtu)
    }
}
