//! What becomes of a packet on its way from the stack of one host to the stack of another.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use rotor_core::{EventSet, Token};

use super::ends::Packet;
use super::middle_box;
use super::{SimEvent, World};
use crate::faults::Fault;
use crate::packet_port::PacketPort;
use crate::trace::TraceEvent;

/// How long packets wait at most for a wire of low bandwidth. Further ones are lost, as in a router
/// whose queue is full.
const QUEUE_MAX: Duration = Duration::from_secs(2);

impl World {
    /// Makes the port of a host's stack. An older port is disconnected.
    pub(crate) fn make_port(&mut self, host: u32) -> PacketPort {
        let address = self.hosts[host as usize].address;
        let (mtu, seed) = (self.network.mtu, self.random.u64(..));
        let port = PacketPort::new([address, ipv6_of(address)], mtu, seed);
        self.host(host).port = Some(port.clone());
        port
    }

    /// Called before the stack of a host has its wait.
    pub(crate) fn before_stack_wait(&mut self, host: u32) {
        let now = self.local_time(host);
        if let Some(port) = &self.hosts[host as usize].port {
            port.set_now(now);
        }
    }

    /// Called after the stack of a host has had its wait: its packets leave, and the loop gets its
    /// edges.
    pub(crate) fn after_stack_wait(
        &mut self,
        host: u32,
        ready: impl Iterator<Item = (Token, EventSet)>,
    ) {
        self.send_packets(host);
        for (token, events) in ready {
            self.progress += 1;
            self.remember_registered_token(host, token);
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
        self.record(host, TraceEvent::PacketSent(bytes.len(), hash_bytes(&bytes)));
        let target = destination(&bytes).and_then(|address| self.host_at_address(address));
        let Some(target) = target.filter(|_| bytes.len() <= self.network.mtu) else {
            return self.record(host, TraceEvent::PacketLost(bytes.len()));
        };
        let hosts = (host, target);
        if self.roll_uncounted(Fault::MiddleBoxResets)
            && let Some([forth, back]) = middle_box::resets_for(&bytes)
        {
            self.count_fault(Fault::MiddleBoxResets);
            self.record(host, TraceEvent::Fault(Fault::MiddleBoxResets));
            self.schedule_packet(Packet { bytes: forth, hosts }, Duration::ZERO);
            return self
                .schedule_packet(Packet { bytes: back, hosts: (target, host) }, Duration::ZERO);
        }
        if self.roll_fault_at(Fault::PacketLost, host) {
            return;
        }
        let copies = if self.roll_fault_at(Fault::PacketTwice, host) { 2 } else { 1 };
        for _ in 0..copies {
            let mut bytes = bytes.clone();
            if self.roll_fault_at(Fault::PacketChanged, host) {
                let bit = self.random.usize(0..bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let late = match self.roll_fault_at(Fault::PacketLate, host) {
                true => self.random_duration(Duration::from_millis(50)),
                false => Duration::ZERO,
            };
            self.schedule_packet(Packet { bytes, hosts }, late);
        }
    }

    /// Sends a packet. It arrives after the packets that were sent before, unless it or they are
    /// late.
    fn schedule_packet(&mut self, packet: Packet, late: Duration) {
        let (from, to) = packet.hosts;
        let now = self.local_time(from);
        let begins = self.hosts[from as usize].wire_is_free.max(now);
        if begins - now > QUEUE_MAX {
            return self.record(from, TraceEvent::PacketLost(packet.bytes.len()));
        }
        let leaves = begins + self.network.transmission(packet.bytes.len());
        self.host(from).wire_is_free = leaves;
        let mut at = leaves + self.latency(from, to);
        if late.is_zero() {
            // Events of the same time happen in any order.
            let behind = self.last_arrivals.get(&packet.hosts).map(|last| *last + TIME_STEP);
            at = at.max(behind.unwrap_or(at));
            self.last_arrivals.insert(packet.hosts, at);
        }
        self.schedule(at + late, SimEvent::Packet(Box::new(packet)));
    }

    pub(super) fn deliver_packet(&mut self, packet: Packet) {
        let Packet { bytes, hosts: (from, to) } = packet;
        let len = bytes.len();
        let is_taken = !self.is_blocked(from, to)
            && self.hosts[to as usize].port.as_ref().is_some_and(|port| port.push_arrived(bytes));
        self.progress += u64::from(is_taken);
        self.record(
            to,
            if is_taken { TraceEvent::PacketArrived(len) } else { TraceEvent::PacketLost(len) },
        );
    }

    fn host_at_address(&self, address: IpAddr) -> Option<u32> {
        let is_one_of = |port: &PacketPort| port.addresses().contains(&address);
        let mut hosts = self.hosts.iter().zip(0..);
        let has = |port: &Option<PacketPort>| port.as_ref().is_some_and(is_one_of);
        hosts.find(|(host, _)| has(&host.port)).map(|(_, number)| number)
    }
}

/// The shortest time.
const TIME_STEP: Duration = Duration::from_nanos(1);

/// Returns the IPv6 address that a host has besides its own.
fn ipv6_of(address: IpAddr) -> IpAddr {
    let IpAddr::V4(four) = address else { return address };
    let [a, b, c, d] = four.octets().map(u16::from);
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, a << 8 | b, c << 8 | d).into()
}

/// Returns the destination of a packet.
fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(IpAddr::from(*packet.get(16..)?.first_chunk::<4>()?)),
        6 => Some(IpAddr::from(*packet.get(24..)?.first_chunk::<16>()?)),
        _ => None,
    }
}

/// Returns a hash of the bytes, for the trace.
fn hash_bytes(bytes: &[u8]) -> u32 {
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
    fn a_destination_is_read_from_ip_headers_and_malformed_ones_have_none() {
        let mut four = vec![0; 20];
        four[0] = 0x45;
        four[16..].copy_from_slice(&[10, 0, 0, 7]);
        let mut six = vec![0; 40];
        six[0] = 0x60;
        six[24..26].copy_from_slice(&[0xfd, 0]);
        six[36..].copy_from_slice(&[10, 0, 1, 7]);
        assert_eq!(destination(&four), Some(IpAddr::from([10, 0, 0, 7])));
        assert_eq!(destination(&six), Some(ipv6_of(IpAddr::from([10, 0, 1, 7]))));
        for nonsense in [&[][..], &[0x45], &four[..19], &six[..39], &[0x50; 60]] {
            assert_eq!(destination(nonsense), None, "{nonsense:x?}");
        }
    }

    #[test]
    fn every_bit_of_a_packet_changes_its_hash() {
        let packet = [7; 21];
        for bit in 0..21 * 8 {
            let mut other = packet;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(hash_bytes(&packet), hash_bytes(&other), "{bit}");
        }
    }
}
