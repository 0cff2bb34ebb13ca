//! A device that splits merged segments restores the original ones.

use std::iter;
use std::num::NonZeroU16;

use smoltcp::wire::IpVersion;

use super::super::batch::Batch;
use super::super::header::Header;
use super::{ACK, FIN, MEDIUMS, PUSH, VERSIONS, cut, datagram, segment};
use crate::device::Medium;

/// A segment: its sequence number, its flags, and the length of its payload.
type Numbered = (i32, u8, usize);

/// What is sent when these packets leave in one turn: each sent packet with its number of segments.
fn sent(medium: Medium, packets: &[Vec<u8>]) -> Vec<(usize, Vec<u8>)> {
    let mut sent = Vec::new();
    let mut batch = Batch::default();
    for packet in packets {
        batch.next_slot(packet.len()).copy_from_slice(packet);
        batch.push(medium, packet.len(), None, |bytes, segments| {
            sent.push((segments, bytes.to_vec()))
        });
    }
    batch.flush(|bytes, segments| sent.push((segments, bytes.to_vec())));
    batch.flush(|_, _| panic!("there is nothing any more"));
    sent
}

/// The number of segments in each sent packet. Asserts that splitting restores the packets.
fn counts(medium: Medium, packets: &[Vec<u8>]) -> Vec<usize> {
    let sent = sent(medium, packets);
    let pieces: Vec<_> = sent.iter().flat_map(|(_, bytes)| cut(medium, bytes)).collect();
    assert!(pieces == packets, "{:x?} is not {:x?}", pieces, packets);
    for (segments, bytes) in &sent {
        let (header, packet) = Header::parse(bytes).expect("it is ours");
        assert_eq!(header.segments.is_some(), *segments > 1);
        assert!(packet.len() <= 14 + 65_535);
    }
    sent.iter().map(|(segments, _)| *segments).collect()
}

#[test]
fn consecutive_segments_become_one_packet() {
    const OTHER: u8 = 0x40;
    let (reset, first) = (ACK | 0x04, ACK | 0x02);
    let table: [(&str, &[Numbered], &[usize]); 16] = [
        ("nothing", &[], &[]),
        ("one", &[(0, ACK, 100)], &[1]),
        ("as long as the first", &[(0, ACK, 100), (100, ACK, 100), (200, ACK, 100)], &[3]),
        ("the last is shorter", &[(0, ACK, 100), (100, ACK, 99), (199, ACK, 99)], &[2, 1]),
        ("the second is longer", &[(0, ACK, 100), (100, ACK, 101)], &[1, 1]),
        ("a gap", &[(0, ACK, 100), (101, ACK, 100)], &[1, 1]),
        ("sent again", &[(0, ACK, 100), (0, ACK, 100), (100, ACK, 100)], &[1, 2]),
        ("across the last number", &[(-50, ACK, 100), (50, ACK, 100)], &[2]),
        ("a push ends it", &[(0, ACK, 9), (9, ACK | PUSH, 9), (18, ACK, 9)], &[2, 1]),
        ("as the first, too", &[(0, ACK | PUSH, 9), (9, ACK, 9), (18, ACK, 9)], &[1, 2]),
        ("so does an end", &[(0, ACK, 9), (9, ACK | FIN, 9), (19, ACK, 0)], &[2, 1]),
        ("an end without bytes", &[(0, ACK, 9), (9, ACK | FIN, 0)], &[1, 1]),
        ("acknowledgements", &[(0, ACK, 0), (0, ACK, 0)], &[1, 1]),
        ("a reset", &[(0, ACK, 9), (9, reset, 9)], &[1, 1]),
        ("a beginning", &[(0, first, 9), (9, ACK, 9)], &[1, 1]),
        ("congestion is told", &[(0, ACK, 9), (9, ACK | OTHER, 9)], &[1, 1]),
    ];
    for medium in MEDIUMS {
        for version in VERSIONS {
            for (what, segments, expected) in table {
                let of = |&(number, flags, len)| {
                    segment(medium, version, number, flags, &vec![number as u8; len])
                };
                let packets: Vec<_> = segments.iter().map(of).collect();
                assert_eq!(counts(medium, &packets), expected, "{what}, {version}");
            }
        }
    }
}

#[test]
fn a_packet_that_is_already_large_is_sent_by_itself() {
    for medium in MEDIUMS {
        for (len, segments) in [(5_000, 5), (5_001, 6), (5_999, 6), (6_000, 6)] {
            let number = |number, len| {
                segment(medium, IpVersion::Ipv4, number, ACK, &vec![number as u8; len as usize])
            };
            let mut sent = Vec::new();
            let mut batch = Batch::default();
            let large = NonZeroU16::new(1_000);
            for (packet, cut) in [
                (number(0, 1_000), None),
                (number(1_000, len), large),
                (number(1_000 + len, 1_000), None),
            ] {
                batch.next_slot(packet.len()).copy_from_slice(&packet);
                batch.push(medium, packet.len(), cut, |bytes, segments| {
                    sent.push((segments, bytes.to_vec()));
                });
            }
            let counts: Vec<_> = sent.iter().map(|(segments, _)| *segments).collect();
            assert_eq!(counts, [1, segments]);
            let pieces = cut(medium, &sent[1].1);
            let expected = (0..len).step_by(1_000).map(|start| {
                let one = number(1_000, len);
                let headers = one.len() - len as usize;
                let payload = &one[headers..][start as usize..];
                let payload = &payload[..payload.len().min(1_000)];
                segment(medium, IpVersion::Ipv4, 1_000 + start, ACK, payload)
            });
            assert!(pieces == expected.collect::<Vec<_>>());
        }
    }
}

#[test]
fn segments_with_different_headers_are_not_merged() {
    for medium in MEDIUMS {
        for version in VERSIONS {
            let first = segment(medium, version, 0, ACK, &[1; 50]);
            let headers = first.len() - 50;
            let ip = if medium == Medium::Ethernet { 14 } else { 0 };
            let tcp = headers - 20;
            for at in 0..headers {
                let mut next = segment(medium, version, 50, ACK, &[2; 50]);
                next[at] ^= 0x20;
                // The checksums, which are recomputed, and the IPv4 identification.
                let is_of_no_matter = match version {
                    IpVersion::Ipv4 => vec![ip + 4, ip + 5, ip + 10, ip + 11, tcp + 16, tcp + 17],
                    IpVersion::Ipv6 => vec![tcp + 16, tcp + 17],
                };
                let sent = sent(medium, &[first.clone(), next]);
                let expected = if is_of_no_matter.contains(&at) { 1 } else { 2 };
                assert_eq!(sent.len(), expected, "byte {at} of {version}, {medium:?}");
            }
        }
    }
}

#[test]
fn tcp_options_are_compared() {
    let with_option = |number, option: u8| {
        let mut packet =
            segment(Medium::Ip, IpVersion::Ipv4, number, ACK, &[option, 0, 0, 0, 9, 9]);
        // The first four bytes of the payload become options.
        packet[20 + 12] = 0x60;
        packet
    };
    for (option, expected) in [(1, 1), (0, 2)] {
        let packets = [with_option(0, 1), with_option(2, option)];
        assert_eq!(sent(Medium::Ip, &packets).len(), expected);
    }
}

#[test]
fn a_packet_grows_to_the_ip_maximum() {
    for medium in MEDIUMS {
        for (version, headers) in [(IpVersion::Ipv4, 40), (IpVersion::Ipv6, 60)] {
            let room = 65_535 - headers;
            let (full, rest) = (room / 1_000, room % 1_000);
            for (last, expected) in
                [(rest - 1, vec![full + 1]), (rest, vec![full + 1]), (rest + 1, vec![full, 1])]
            {
                let sizes = iter::repeat_n(1_000, full).chain([last]);
                let mut number = 0;
                let packets = sizes.map(|len| {
                    let packet = segment(medium, version, number, ACK, &vec![7; len]);
                    number += len as i32;
                    packet
                });
                let packets: Vec<_> = packets.collect();
                assert_eq!(counts(medium, &packets), expected, "{version}, {last}");
            }
        }
    }
}

#[test]
fn other_packets_are_sent_unchanged_except_for_the_checksum() {
    for medium in MEDIUMS {
        for version in VERSIONS {
            let packets = [
                segment(medium, version, 0, ACK, b"one"),
                datagram(medium, version, b"two"),
                datagram(medium, version, b"and three"),
                vec![0; 42],
                vec![7],
                segment(medium, version, 3, ACK, b"six"),
            ];
            assert_eq!(counts(medium, &packets), [1; 6], "{version}");
        }
    }
}

#[test]
fn merged_segments_are_restored_by_splitting() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (medium, version) = (MEDIUMS[seed as usize % 2], VERSIONS[seed as usize / 2 % 2]);
        let (mut number, size) = (random.i32(..), random.usize(1..2_000));
        let packets = iter::repeat_with(|| {
            let len = if random.u8(..8) == 0 { random.usize(..2_000) } else { size };
            let flags = if random.u8(..9) == 0 { ACK | random.u8(..32) } else { ACK };
            let payload: Vec<u8> = iter::repeat_with(|| random.u8(..)).take(len).collect();
            let packet = match random.u8(..20) {
                0 => datagram(medium, version, &payload),
                1 => segment(medium, version, number.wrapping_sub(9), flags, &payload),
                _ => segment(medium, version, number, flags, &payload),
            };
            number = number.wrapping_add(len as i32);
            packet
        });
        let packets: Vec<_> = packets.take(100).collect();
        let count: usize = counts(medium, &packets).iter().sum();
        assert_eq!(count, packets.len(), "seed {seed}");
    }
}

#[test]
fn random_packets_are_sent_without_a_panic() {
    for seed in 0..1_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let medium = MEDIUMS[seed as usize % 2];
        let packets = iter::repeat_with(|| {
            let version = VERSIONS[random.usize(..2)];
            let mut packet = segment(medium, version, random.i32(..3), ACK, &[1; 3]);
            for _ in 0..random.usize(..4) {
                let at = random.usize(..packet.len());
                packet[at] = random.u8(..);
            }
            packet.truncate(random.usize(1..=packet.len() + 20));
            packet
        });
        let packets: Vec<_> = packets.take(10).collect();
        let sent = sent(medium, &packets);
        assert_eq!(sent.iter().map(|(segments, _)| segments).sum::<usize>(), packets.len());
    }
}
