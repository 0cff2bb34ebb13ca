//! Packets for tests.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    Icmpv4Packet, Icmpv6Packet, IpAddress, IpProtocol, IpRepr, IpVersion, Ipv4Address, Ipv6Address,
    TcpControl, TcpPacket, TcpRepr, TcpSeqNumber, UdpPacket, UdpRepr,
};

use crate::device::Medium;

pub(super) const VERSIONS: [IpVersion; 2] = [IpVersion::Ipv4, IpVersion::Ipv6];
pub(super) const MEDIUMS: [Medium; 2] = [Medium::Ip, Medium::Ethernet];

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RESET: u8 = 0x04;
pub(super) const PUSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;

/// The sender and the receiver.
pub(super) fn ends(version: IpVersion) -> (IpAddress, IpAddress) {
    match version {
        IpVersion::Ipv4 => {
            (Ipv4Address::new(10, 0, 0, 1).into(), Ipv4Address::new(10, 0, 0, 2).into())
        }
        IpVersion::Ipv6 => {
            let six = |last| IpAddress::from(Ipv6Address::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
            (six(1), six(2))
        }
    }
}

/// Returns a packet of a protocol; `emit` writes what follows the IP header.
fn packet(
    medium: Medium,
    version: IpVersion,
    protocol: IpProtocol,
    len: usize,
    emit: impl FnOnce(&mut [u8], &IpAddress, &IpAddress),
) -> Vec<u8> {
    let (from, to) = ends(version);
    let header = IpRepr::new(from, to, protocol, len, 64);
    let mut packet = match (medium, version) {
        (Medium::Ip, _) => Vec::new(),
        (Medium::Ethernet, IpVersion::Ipv4) => [&[2; 12][..], &[0x08, 0x00]].concat(),
        (Medium::Ethernet, IpVersion::Ipv6) => [&[2; 12][..], &[0x86, 0xdd]].concat(),
    };
    let ip = packet.len();
    packet.resize(ip + header.buffer_len(), 0);
    header.emit(&mut packet[ip..], &ChecksumCapabilities::default());
    emit(&mut packet[ip + header.header_len()..], &from, &to);
    packet
}

/// Returns a segment with correct checksums.
pub(super) fn segment(
    medium: Medium,
    version: IpVersion,
    number: i32,
    flags: u8,
    payload: &[u8],
) -> Vec<u8> {
    let segment = TcpRepr {
        src_port: 80,
        dst_port: 4_096,
        control: TcpControl::None,
        seq_number: TcpSeqNumber(number),
        ack_number: Some(TcpSeqNumber(7)),
        window_len: 9,
        window_scale: (flags & SYN != 0).then_some(0),
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload,
    };
    packet(medium, version, IpProtocol::Tcp, segment.buffer_len(), |bytes, from, to| {
        let mut inner = TcpPacket::new_unchecked(&mut *bytes);
        segment.emit(&mut inner, from, to, &ChecksumCapabilities::ignored());
        bytes[13] = flags;
        TcpPacket::new_unchecked(bytes).fill_checksum(from, to);
    })
}

/// Returns a datagram with correct checksums.
pub(super) fn datagram(medium: Medium, version: IpVersion, payload: &[u8]) -> Vec<u8> {
    let datagram = UdpRepr { src_port: 53, dst_port: 4_096 };
    let len = datagram.header_len() + payload.len();
    packet(medium, version, IpProtocol::Udp, len, |bytes, from, to| {
        let mut inner = UdpPacket::new_unchecked(bytes);
        let sums = ChecksumCapabilities::default();
        datagram.emit(
            &mut inner,
            from,
            to,
            payload.len(),
            |room| room.copy_from_slice(payload),
            &sums,
        );
    })
}

/// Returns a message of ICMP with a correct checksum that says that a packet was not delivered, of
/// which it quotes `quoted`.
pub(super) fn unreachable(medium: Medium, version: IpVersion, code: u8, quoted: &[u8]) -> Vec<u8> {
    let (protocol, kind) = match version {
        IpVersion::Ipv4 => (IpProtocol::Icmp, 3),
        IpVersion::Ipv6 => (IpProtocol::Icmpv6, 1),
    };
    packet(medium, version, protocol, 8 + quoted.len(), |bytes, from, to| {
        bytes[..2].copy_from_slice(&[kind, code]);
        bytes[8..].copy_from_slice(quoted);
        match (from, to) {
            (IpAddress::Ipv6(from), IpAddress::Ipv6(to)) => {
                Icmpv6Packet::new_unchecked(bytes).fill_checksum(from, to);
            }
            _ => Icmpv4Packet::new_unchecked(bytes).fill_checksum(),
        }
    })
}

/// Returns an IPv6 packet with an unknown option that must be reported to its sender (RFC 8200
/// §4.2).
pub(super) fn with_unknown_option(packet: &[u8]) -> Vec<u8> {
    let (header, behind) = packet.split_at(40);
    let options = [header[6], 0, 0b1001_1110, 4, 0, 0, 0, 0];
    let mut packet = [header, &options, behind].concat();
    let len = (options.len() + behind.len()) as u16;
    packet[4..6].copy_from_slice(&len.to_be_bytes());
    packet[6] = 0;
    packet
}
