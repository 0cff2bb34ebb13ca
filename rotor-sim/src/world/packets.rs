//! What becomes of a packet on its way from the stack of one host to the stack of another.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use rotor_core::{EventSet, Token};

use super::ends::Packet;
use super::middle_box;
use super::{Due, World};
use crate::faults::Fault;
use crate::packet_port::PacketPort;
use crate::trace::What;

/// How long packets wait at most for a wire of low bandwidth. Further ones are lost, as in a router
/// whose queue is full.
const QUEUE_MAX: Duration = Duration::from_secs(2);

impl World {
    /// Makes the port of a host's stack. An older port is disconnected.
    pub(crate) fn make_port(&mut self, host: u32) -> PacketPort {
        let address = self.hosts[host as usize].address;
        let (mtu, seed) = (self.network.mtu, self.random.u64(..));
        let port = PacketPort::new([address, six_of(address)], mtu, seed);
        self.host(host).port = Some(port.clone());
        port
    }

    /// Called before the stack of a host has its wait.
    pub(crate) fn stack_begins(&mut self, host: u32) {
        let now = self.local(host);
        if let Some(port) = &self.hosts[host as usize].port {
            port.set_now(now);
        }
    }

    /// Called after the stack of a host has had its wait: its packets leave, and the loop gets its
    /// edges.
    pub(crate) fn stack_ends(&mut self, host: u32, ready: impl Iterator<Item = (Token, EventSet)>) {
        self.send_packets(host);
        for (token, events) in ready {
            self.progress += 1;
            self.token_is_used(host, token);
            self.push_edge(host, token, events);
        }
    }

    /// Sends the packets that the stack of a host has put into its port.
    fn send_packets(&mut self, host: u32) {
        let Some(port) = &self.hosts[host as usize].port else { return };
        for bytes in port.take_sent() {
            self.send_packet(host, bytes);
        }
    }

    fn send_packet(&mut self, host: u32, bytes: Box<[u8]>) {
        self.progress += 1;
        self.record(host, What::PacketSent(bytes.len(), sum(&bytes)));
        let target = target(&bytes).and_then(|address| self.host_with(address));
        let Some(target) = target.filter(|_| bytes.len() <= self.network.mtu) else {
            return self.record(host, What::PacketGone(bytes.len()));
        };
        let hosts = (host, target);
        if self.may_strike(Fault::MiddleBoxResets)
            && let Some([forth, back]) = middle_box::resets(&bytes)
        {
            self.struck(Fault::MiddleBoxResets);
            self.record(host, What::Fault(Fault::MiddleBoxResets));
            self.carry(Packet { bytes: forth, hosts }, Duration::ZERO);
            return self.carry(Packet { bytes: back, hosts: (target, host) }, Duration::ZERO);
        }
        if self.hits(Fault::PacketLost, host) {
            return;
        }
        let copies = if self.hits(Fault::PacketTwice, host) { 2 } else { 1 };
        for _ in 0..copies {
            let mut bytes = bytes.clone();
            if self.hits(Fault::PacketChanged, host) {
                let bit = self.random.usize(0..bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let late = match self.hits(Fault::PacketLate, host) {
                true => self.random_duration(Duration::from_millis(50)),
                false => Duration::ZERO,
            };
            self.carry(Packet { bytes, hosts }, late);
        }
    }

    /// Sends a packet. It arrives after the packets that were sent before, unless it or they are
    /// late.
    fn carry(&mut self, packet: Packet, late: Duration) {
        let (from, to) = packet.hosts;
        let now = self.local(from);
        let begins = self.hosts[from as usize].wire_is_free.max(now);
        if begins - now > QUEUE_MAX {
            return self.record(from, What::PacketGone(packet.bytes.len()));
        }
        let leaves = begins + self.network.transmission(packet.bytes.len());
        self.host(from).wire_is_free = leaves;
        let mut at = leaves + self.latency(from, to);
        if late.is_zero() {
            // Events of the same time happen in any order.
            let behind = self.last_arrivals.get(&packet.hosts).map(|last| *last + STEP);
            at = at.max(behind.unwrap_or(at));
            self.last_arrivals.insert(packet.hosts, at);
        }
        self.schedule(at + late, Due::Packet(Box::new(packet)));
    }

    pub(super) fn packet_arrives(&mut self, packet: Packet) {
        let Packet { bytes, hosts: (from, to) } = packet;
        let len = bytes.len();
        let is_taken = !self.is_blocked(from, to)
            && self.hosts[to as usize].port.as_ref().is_some_and(|port| port.arrive(bytes));
        self.progress += u64::from(is_taken);
        self.record(to, if is_taken { What::PacketArrived(len) } else { What::PacketGone(len) });
    }

    fn host_with(&self, address: IpAddr) -> Option<u32> {
        let is_one_of = |port: &PacketPort| port.addresses().contains(&address);
        let mut hosts = self.hosts.iter().zip(0..);
        let has = |port: &Option<PacketPort>| port.as_ref().is_some_and(is_one_of);
        hosts.find(|(host, _)| has(&host.port)).map(|(_, number)| number)
    }
}

/// The shortest time.
const STEP: Duration = Duration::from_nanos(1);

/// Returns the IPv6 address that a host has besides its own.
fn six_of(address: IpAddr) -> IpAddr {
    let IpAddr::V4(four) = address else { return address };
    let [a, b, c, d] = four.octets().map(u16::from);
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, a << 8 | b, c << 8 | d).into()
}

/// Returns the destination of a packet.
fn target(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(IpAddr::from(*packet.get(16..)?.first_chunk::<4>()?)),
        6 => Some(IpAddr::from(*packet.get(24..)?.first_chunk::<16>()?)),
        _ => None,
    }
}

/// Returns a hash of the bytes, for the trace.
fn sum(bytes: &[u8]) -> u32 {
    let mix = |sum: u64, part: &[u8]| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        (sum.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    };
    (bytes.chunks(8).fold(0, mix) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_says_where_it_goes_to_or_gets_nowhere() {
        let mut four = vec![0; 20];
        four[0] = 0x45;
        four[16..].copy_from_slice(&[10, 0, 0, 7]);
        let mut six = vec![0; 40];
        six[0] = 0x60;
        six[24..26].copy_from_slice(&[0xfd, 0]);
        six[36..].copy_from_slice(&[10, 0, 1, 7]);
        assert_eq!(target(&four), Some(IpAddr::from([10, 0, 0, 7])));
        assert_eq!(target(&six), Some(six_of(IpAddr::from([10, 0, 1, 7]))));
        for nonsense in [&[][..], &[0x45], &four[..19], &six[..39], &[0x50; 60]] {
            assert_eq!(target(nonsense), None, "{nonsense:x?}");
        }
    }

    #[test]
    fn each_bit_of_a_packet_is_in_its_sum() {
        let packet = [7; 21];
        for bit in 0..21 * 8 {
            let mut other = packet;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(sum(&packet), sum(&other), "{bit}");
        }
    }
}
