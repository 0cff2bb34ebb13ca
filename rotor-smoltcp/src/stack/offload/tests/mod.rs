//! Packets, and what a device with segmentation and checksum offload does with them.

mod arriving;
mod merging;
mod on_a_stack;

use smoltcp::wire::{IpVersion, Ipv4Packet, Ipv6Packet, TcpPacket, checksum};

use super::super::layers::Layers;
use super::header::Header;
use crate::device::Medium;
use crate::stack::packets::{ACK, FIN, MEDIUMS, PUSH, VERSIONS, datagram, segment};

/// The packets that a device makes of a packet behind a header: segments with checksums. Panics if
/// a device could not do it.
fn cut(medium: Medium, bytes: &[u8]) -> Vec<Vec<u8>> {
    let (header, packet) = Header::parse(bytes).expect("it is a header");
    let Some(sum) = header.needs_checksum else { return vec![packet.to_vec()] };
    let layers = Layers::parse(medium, packet).expect("what has a sum is a packet");
    let (start, at) = (usize::from(sum.start), usize::from(sum.start + sum.offset));
    assert_eq!((start, Some(sum.offset)), (layers.transport, layers.checksum_offset()));
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

/// Completes the checksum, whose place holds the sum of the pseudo-header.
fn summed(packet: &[u8], start: usize, at: usize) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let sum = !checksum::data(&packet[start..]);
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    packet
}
