//! `Rejections`: how many unwanted packets are answered. Pure.
//!
//! A peer in good faith is owed a reset, or the message that a port is closed (ICMP). An attacker
//! gets a packet sent, to any address that it likes, for each one of its own (RFC 1812 §4.3.2.8;
//! RFC 4443 §2.4 (f)).

use fastrand::Rng;
use rotor_core::Time;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, Icmpv4Packet, IpProtocol, IpVersion, Ipv4Packet, Ipv6Packet,
    TcpPacket,
};

use crate::device::Medium;

/// One rejection, in the unit of the credit: a limit of one per second earns 1 in a nanosecond.
const REJECTION_COST: i64 = 1_000_000_000;

/// A limit per second, with as many at once if none were sent before.
///
/// Each rejection costs a random amount of 0, 1 or 2, and 1 on average. An exact limit that all
/// peers share would show a sender how many rejections this host gives to others, and so which of
/// its ports are open (CVE-2020-25705). Linux does the same (`icmp_global_allow`).
pub(super) struct Rejections {
    per_second: i64,
    /// Below zero if the last rejection has cost more than was left, so that the mean holds.
    credit: i64,
    updated_at: Time,
    random: Rng,
    /// How many were not sent.
    pub(super) withheld: u64,
}

impl Rejections {
    pub(super) fn new(per_second: u32, seed: u64, now: Time) -> Rejections {
        let per_second = i64::from(per_second);
        let random = Rng::with_seed(seed);
        let credit = per_second * REJECTION_COST;
        Rejections { per_second, credit, updated_at: now, random, withheld: 0 }
    }

    /// Returns whether one more rejection may be sent, and counts it.
    pub(super) fn allow(&mut self, now: Time) -> bool {
        let most = self.per_second * REJECTION_COST;
        // The credit is at most that of a second.
        let nanos = (now - self.updated_at).as_nanos().min(REJECTION_COST as u128) as i64;
        self.updated_at = self.updated_at.max(now);
        self.credit = (self.credit + nanos * self.per_second).min(most);
        if self.credit < REJECTION_COST {
            self.withheld += 1;
            return false;
        }
        self.credit -= REJECTION_COST * self.random.i64(0..=2);
        true
    }
}

/// Whether a packet to be sent rejects something: a reset or an ICMP error. Ping and ARP replies
/// are not rejections.
pub(super) fn is_rejection(medium: Medium, packet: &[u8]) -> bool {
    let inner = match medium {
        Medium::Ip => Some(packet),
        Medium::Ethernet => frame_payload(packet),
    };
    inner.and_then(is_rejection_of_ip).unwrap_or(false)
}

fn frame_payload(frame: &[u8]) -> Option<&[u8]> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    let is_ip = matches!(frame.ethertype(), EthernetProtocol::Ipv4 | EthernetProtocol::Ipv6);
    is_ip.then(|| frame.payload())
}

fn is_rejection_of_ip(packet: &[u8]) -> Option<bool> {
    // smoltcp reads the first byte without a check.
    packet.first()?;
    let (protocol, payload) = match IpVersion::of_packet(packet).ok()? {
        IpVersion::Ipv4 => {
            let packet = Ipv4Packet::new_checked(packet).ok()?;
            (packet.next_header(), packet.payload())
        }
        IpVersion::Ipv6 => {
            let packet = Ipv6Packet::new_checked(packet).ok()?;
            (packet.next_header(), packet.payload())
        }
    };
    Some(match protocol {
        IpProtocol::Tcp => TcpPacket::new_checked(payload).ok()?.rst(),
        IpProtocol::Icmp => {
            let kind = u8::from(Icmpv4Packet::new_checked(payload).ok()?.msg_type());
            // Destination unreachable, time exceeded, parameter problem (RFC 792).
            matches!(kind, 3 | 11 | 12)
        }
        // Error types are below 128 (RFC 4443 §2.1).
        IpProtocol::Icmpv6 => *payload.first()? < 128,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use smoltcp::wire::IpVersion;

    use super::super::packets::{ACK, MEDIUMS, RESET, SYN, VERSIONS, datagram, segment};
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// How many of `asked` rejections are allowed.
    fn allowed(rejections: &mut Rejections, asked: u64, now: Time) -> u64 {
        let before = rejections.withheld;
        let allowed = (0..asked).filter(|_| rejections.allow(now)).count() as u64;
        assert_eq!(allowed + rejections.withheld - before, asked, "each is counted");
        allowed
    }

    #[test]
    fn the_mean_rate_is_the_limit() {
        for seed in 0..20 {
            let mut rejections = Rejections::new(1_000, seed, at(500));
            let near = |count, expected: u64| {
                assert!(u64::abs_diff(count, expected) <= expected / 5, "{count}, seed {seed}");
            };
            near(allowed(&mut rejections, 10_000, at(500)), 1_000);
            // No time has passed, or the clock went backwards.
            for now in [500, 0, 500] {
                assert!(allowed(&mut rejections, 100, at(now)) <= 1);
            }
            near(allowed(&mut rejections, 10_000, at(900)), 400);
            // As many as in one second, however long the pause was.
            near(allowed(&mut rejections, 10_000, at(1_000_000)), 1_000);
            near(
                (1_000_001..1_010_001).map(|now| allowed(&mut rejections, 5, at(now))).sum(),
                10_000,
            );
        }
    }

    #[test]
    fn a_limit_of_zero_allows_none_and_a_limit_of_one_few() {
        let mut none = Rejections::new(0, 1, at(0));
        assert_eq!(
            (0..100).map(|second| allowed(&mut none, 3, at(second * 1_000))).sum::<u64>(),
            0
        );
        let mut one = Rejections::new(1, 1, at(0));
        let all: u64 = (0..1_000).map(|second| allowed(&mut one, 100, at(second * 1_000))).sum();
        assert!((800..1_200).contains(&all), "{all}");
        let mut most = Rejections::new(u32::MAX, 1, at(0));
        assert_eq!(allowed(&mut most, 1_000, at(u64::MAX / 1_000_000)), 1_000);
        assert_eq!(allowed(&mut most, 1_000, Time::NEVER), 1_000);
    }

    #[test]
    fn the_size_of_a_burst_varies_randomly() {
        let counts: std::collections::BTreeSet<u64> = (0..20)
            .map(|seed| allowed(&mut Rejections::new(100, seed, at(0)), 1_000, at(0)))
            .collect();
        assert!(counts.len() > 5, "{counts:?}");
    }

    /// An ICMP packet of this type.
    fn icmp(medium: Medium, version: IpVersion, kind: u8) -> Vec<u8> {
        let mut packet = datagram(medium, version, b"sixteen bytes, 16");
        let (ip, header) = (if medium == Medium::Ip { 0 } else { 14 }, packet.len() - 25);
        match version {
            IpVersion::Ipv4 => packet[ip + 9] = 1,
            IpVersion::Ipv6 => packet[ip + 6] = 58,
        }
        packet[header] = kind;
        packet
    }

    #[test]
    fn only_resets_and_icmp_errors_are_rejections() {
        for (medium, version) in MEDIUMS.iter().flat_map(|&on| VERSIONS.map(|of| (on, of))) {
            for (flags, expected) in
                [(RESET, true), (RESET | ACK, true), (ACK, false), (SYN | ACK, false)]
            {
                let packet = segment(medium, version, 1, flags, b"");
                assert_eq!(is_rejection(medium, &packet), expected, "{flags:x}");
            }
            assert!(!is_rejection(medium, &datagram(medium, version, b"x")));
            let errors: &[u8] = match version {
                IpVersion::Ipv4 => &[3, 11, 12],
                IpVersion::Ipv6 => &[1, 2, 3, 4],
            };
            // Echo requests and replies; for IPv6 also neighbor discovery.
            let others: &[u8] = match version {
                IpVersion::Ipv4 => &[0, 8],
                IpVersion::Ipv6 => &[128, 129, 135, 136],
            };
            for (kinds, expected) in [(errors, true), (others, false)] {
                for kind in kinds {
                    let packet = icmp(medium, version, *kind);
                    assert_eq!(is_rejection(medium, &packet), expected, "{version:?}, type {kind}");
                }
            }
        }
        for medium in MEDIUMS {
            for bytes in [&[][..], &[0x45], &[0; 60], &[0x45; 60], &[0x60; 60]] {
                assert!(!is_rejection(medium, bytes));
            }
        }
    }
}
