//! Packets that arrive behind a header: delivered whole, split, or dropped.

use std::iter;

use smoltcp::wire::IpVersion;

use super::super::super::layers::Layers;
use super::super::arrival::{Arrival, Refusal, parse};
use super::super::header::{ChecksumPlace, Header, SegmentKind, Segments};
use super::{ACK, MEDIUMS, VERSIONS, datagram, segment};
use crate::device::Medium;

/// A packet behind a header. If the header asks for a checksum, it names the place in this packet.
fn with(medium: Medium, header: Header, packet: &[u8]) -> Vec<u8> {
    let layers = Layers::parse(medium, packet).expect("it is a packet");
    let start = layers.transport as u16;
    let place = layers.checksum_offset().map(|offset| ChecksumPlace { start, offset });
    let needs_checksum = header.needs_checksum.and(place);
    [&Header { needs_checksum, ..header }.bytes()[..], packet].concat()
}

/// A placeholder, which `with` replaces by the place in the packet.
const SOME: Option<ChecksumPlace> = Some(ChecksumPlace { start: 0, offset: 0 });

fn large(kind: SegmentKind, payload: u16) -> Header {
    let segments = Some(Segments { kind, headers: 40, payload });
    Header { needs_checksum: SOME, is_verified: false, segments }
}

#[test]
fn a_checksum_is_verified_unless_missing_or_already_verified() {
    let plain = Header::default();
    let partial = Header { needs_checksum: SOME, ..plain };
    let verified = Header { is_verified: true, ..plain };
    for medium in MEDIUMS {
        for version in VERSIONS {
            for right in
                [segment(medium, version, 0, ACK, b"bytes"), datagram(medium, version, b"bytes")]
            {
                let mut wrong = right.clone();
                *wrong.last_mut().expect("it has bytes") ^= 1;
                let taken = |packet| Ok(Arrival::Packet(packet));
                for (header, packet, verifies_checksums, is_taken) in [
                    (plain, &right, true, true),
                    (plain, &wrong, true, false),
                    (plain, &wrong, false, true),
                    (partial, &wrong, true, true),
                    (verified, &wrong, true, true),
                ] {
                    let bytes = with(medium, header, packet);
                    let expected =
                        if is_taken { taken(&packet[..]) } else { Err(Refusal::Checksum) };
                    assert_eq!(
                        parse(medium, &bytes, verifies_checksums),
                        expected,
                        "{header:?}, {version}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_checksum_after_an_extension_header_is_verified() {
    let mut packet = segment(Medium::Ip, IpVersion::Ipv6, 0, ACK, b"bytes");
    let options = [6, 0, 1, 4, 0, 0, 0, 0];
    packet.splice(40..40, options);
    (packet[5], packet[6]) = (packet[5] + 8, 0);
    let bytes = |packet: &[u8]| [&Header::default().bytes()[..], packet].concat();
    assert_eq!(parse(Medium::Ip, &bytes(&packet), true), Ok(Arrival::Packet(&packet[..])));
    packet[50] ^= 1;
    assert_eq!(parse(Medium::Ip, &bytes(&packet), true), Err(Refusal::Checksum));
}

#[test]
fn other_packets_are_accepted_unchanged() {
    for packet in [&[][..], &[0], &[0x45], &[0x60; 60], &[0; 60]] {
        for medium in MEDIUMS {
            let bytes = [&Header::default().bytes()[..], packet].concat();
            assert_eq!(parse(medium, &bytes, true), Ok(Arrival::Packet(packet)));
        }
    }
}

#[test]
fn large_packets_that_contradict_their_header_are_refused() {
    for medium in MEDIUMS {
        let of = |version| segment(medium, version, 0, ACK, &[7; 5_000]);
        let [four, six] = [of(IpVersion::Ipv4), of(IpVersion::Ipv6)];
        let udp = datagram(medium, IpVersion::Ipv4, &[7; 5_000]);
        for (kind, packet, is_large) in [
            (SegmentKind::TcpV4, &four, true),
            (SegmentKind::TcpV6, &six, true),
            (SegmentKind::TcpV6, &four, false),
            (SegmentKind::TcpV4, &six, false),
            (SegmentKind::TcpV4, &udp, false),
            (SegmentKind::Udp, &four, false),
        ] {
            let bytes = with(medium, large(kind, 1_000), packet);
            let expected = if is_large { Ok(Arrival::Large(packet)) } else { Err(Refusal::Header) };
            assert_eq!(parse(medium, &bytes, true), expected, "{kind:?}");
        }
    }
    let mut bytes = with(
        Medium::Ip,
        large(SegmentKind::TcpV4, 9),
        &segment(Medium::Ip, IpVersion::Ipv4, 0, ACK, &[7; 50]),
    );
    bytes.truncate(30);
    assert_eq!(parse(Medium::Ip, &bytes, true), Err(Refusal::Header));
}

#[test]
fn a_large_packet_of_datagrams_is_split() {
    for medium in MEDIUMS {
        for version in VERSIONS {
            for (len, size, count) in [
                (3_000, 1_000, Some(3)),
                (3_001, 1_000, Some(4)),
                (7, 1_000, Some(1)),
                (128, 1, Some(128)),
                (129, 1, None),
                (0, 1, None),
            ] {
                let payload: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
                let bytes = with(
                    medium,
                    large(SegmentKind::Udp, size),
                    &datagram(medium, version, &payload),
                );
                let read = parse(medium, &bytes, true);
                let Some(count) = count else {
                    assert_eq!(read, Err(Refusal::Header));
                    continue;
                };
                let Ok(Arrival::Datagrams(mut datagrams)) = read else { panic!("{read:?}") };
                let (mut packet, mut got) = (Vec::new(), 0);
                for piece in payload.chunks(size.into()) {
                    assert!(datagrams.next(&mut packet));
                    got += 1;
                    let expected = datagram(medium, version, piece);
                    let sum = expected.len() - piece.len() - 2;
                    // The checksum is still the one of the whole packet; it is no longer verified.
                    packet[sum..sum + 2].copy_from_slice(&expected[sum..sum + 2]);
                    assert_eq!(packet, expected, "{version}");
                }
                assert_eq!((got, datagrams.next(&mut packet)), (count, false));
            }
        }
    }
}

#[test]
fn random_packets_cause_no_panic() {
    for seed in 0..5_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let medium = MEDIUMS[seed as usize % 2];
        let version = VERSIONS[random.usize(..2)];
        let packet = match random.u8(..3) {
            0 => segment(medium, version, 0, ACK, &[1; 50]),
            1 => datagram(medium, version, &[1; 50]),
            _ => iter::repeat_with(|| random.u8(..)).take(60).collect(),
        };
        let mut bytes = vec![random.u8(..4), [0, 1, 3, 4, 5, random.u8(..)][random.usize(..6)]];
        bytes.extend(iter::repeat_with(|| [0, random.u8(..)][random.usize(..2)]).take(8));
        bytes.extend(packet);
        for _ in 0..random.usize(..4) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        bytes.truncate(random.usize(..=bytes.len() + 20));
        if let Ok(Arrival::Datagrams(mut datagrams)) = parse(medium, &bytes, random.bool()) {
            let (mut packet, mut count) = (Vec::new(), 0);
            while datagrams.next(&mut packet) {
                count += 1;
                assert!(packet.len() <= bytes.len());
            }
            assert!((1..=128).contains(&count));
        }
    }
}
