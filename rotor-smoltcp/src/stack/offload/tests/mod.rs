//! Packets, and what a device does with them that makes segments and sums.

mod arriving;
mod merging;
mod on_a_stack;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpAddress, IpProtocol, IpRepr, IpVersion, Ipv4Address, Ipv4Packet, Ipv6Address, Ipv6Packet,
    TcpControl, TcpPacket, TcpRepr, TcpSeqNumber, UdpPacket, UdpRepr, checksum,
};

use super::header::Header;
use super::layers::Layers;
use crate::device::Medium;

const VERSIONS: [IpVersion; 2] = [IpVersion::Ipv4, IpVersion::Ipv6];
const MEDIUMS: [Medium; 2] = [Medium::Ip, Medium::Ethernet];

const FIN: u8 = 0x01;
const PUSH: u8 = 0x08;
const ACK: u8 = 0x10;

fn ends(version: IpVersion) -> (IpAddress, IpAddress) {
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

/// A packet of a protocol, with what `emit` writes behind the header.
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

/// A segment whose sums are right.
fn segment(medium: Medium, version: IpVersion, number: i32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let segment = TcpRepr {
        src_port: 80,
        dst_port: 4_096,
        control: TcpControl::None,
        seq_number: TcpSeqNumber(number),
        ack_number: Some(TcpSeqNumber(7)),
        window_len: 9,
        window_scale: None,
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

/// A datagram whose sums are right.
fn datagram(medium: Medium, version: IpVersion, payload: &[u8]) -> Vec<u8> {
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

/// What a device makes of a packet with a header: segments, with sums. Panics where it could not.
fn cut(medium: Medium, bytes: &[u8]) -> Vec<Vec<u8>> {
    let (header, packet) = Header::read(bytes).expect("it is a header");
    let Some(sum) = header.needs_sum else { return vec![packet.to_vec()] };
    let layers = Layers::of(medium, packet).expect("what has a sum is a packet");
    let (start, at) = (usize::from(sum.start), usize::from(sum.start + sum.offset));
    assert_eq!((start, Some(sum.offset)), (layers.transport, layers.sum_offset()));
    let of_headers = layers.pseudo_sum(packet.len() - start);
    assert_eq!(packet[at..at + 2], of_headers.to_be_bytes(), "that of the pseudo-header");
    let Some(segments) = header.segments else { return vec![summed(packet, start, at)] };
    let (headers, payload) = packet.split_at(segments.headers.into());
    let size = usize::from(segments.payload);
    assert!(payload.len() > size, "there is something to be cut");
    let pieces = payload.chunks(size).enumerate().map(|(index, piece)| {
        let is_last = (index + 1) * size >= payload.len();
        let mut one = [headers, piece].concat();
        set_length(&layers, &mut one);
        let mut tcp = TcpPacket::new_unchecked(&mut one[start..]);
        tcp.set_seq_number(tcp.seq_number() + index * size);
        one[start + 13] &= if is_last { 0xff } else { !(FIN | PUSH) };
        let of_headers = layers.pseudo_sum(one.len() - start);
        one[at..at + 2].copy_from_slice(&of_headers.to_be_bytes());
        summed(&one, start, at)
    });
    pieces.collect()
}

fn set_length(layers: &Layers, packet: &mut [u8]) {
    let inner = &mut packet[layers.ip..];
    let len = inner.len() as u16;
    match layers.version {
        IpVersion::Ipv4 => {
            let mut inner = Ipv4Packet::new_unchecked(inner);
            inner.set_total_len(len);
            inner.fill_checksum();
        }
        IpVersion::Ipv6 => Ipv6Packet::new_unchecked(inner).set_payload_len(len - 40),
    }
}

/// Makes the sum, of which that of the pseudo-header is in its place.
fn summed(packet: &[u8], start: usize, at: usize) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let sum = !checksum::data(&packet[start..]);
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    packet
}
