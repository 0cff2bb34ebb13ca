//! `Arrival`: a received packet with a virtio header.

use smoltcp::wire::{IpProtocol, IpVersion, Ipv4Packet, Ipv6Packet, UdpPacket};

use super::super::layers::Layers;
use super::header::{Header, SegmentKind, Segments};
use crate::device::Medium;

/// How many datagrams one packet may hold: as many as Linux sends at once (`UDP_MAX_SEGMENTS`).
const DATAGRAMS_MAX: usize = 128;

/// The length of UDP's header, in bytes.
const UDP_HEADER: usize = 8;

/// What a received packet contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::stack) enum Arrival<'a> {
    /// A packet whose checksums need no more verification.
    Packet(&'a [u8]),
    /// A packet of several segments. TCP handles it as one.
    Large(&'a [u8]),
    /// A packet of several datagrams.
    Datagrams(Datagrams<'a>),
}

/// Why a received packet is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::stack) enum Refusal {
    /// The virtio header is invalid, or does not match the packet.
    Header,
    /// A checksum is wrong.
    Checksum,
}

/// Several datagrams with one set of headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::stack) struct Datagrams<'a> {
    layers: Layers,
    headers: &'a [u8],
    rest: &'a [u8],
    payload: usize,
}

/// Reads a received packet. `verifies_checksums`: a checksum that was not verified yet is verified.
pub(in crate::stack) fn parse(
    medium: Medium,
    bytes: &[u8],
    verifies_checksums: bool,
) -> Result<Arrival<'_>, Refusal> {
    let (header, packet) = Header::parse(bytes).ok_or(Refusal::Header)?;
    let layers = Layers::parse(medium, packet);
    if let Some(segments) = header.segments {
        return parse_large(layers.ok_or(Refusal::Header)?, segments, packet);
    }
    // A packet without a checksum comes from this machine, so nothing could have changed it.
    let is_unknown = verifies_checksums && !header.is_verified && header.needs_checksum.is_none();
    if is_unknown && layers.is_some_and(|layers| !layers.has_valid_checksum(packet)) {
        return Err(Refusal::Checksum);
    }
    Ok(Arrival::Packet(packet))
}

fn parse_large(layers: Layers, segments: Segments, packet: &[u8]) -> Result<Arrival<'_>, Refusal> {
    let matches_header = match segments.kind {
        SegmentKind::TcpV4 => {
            (layers.protocol, layers.version) == (IpProtocol::Tcp, IpVersion::Ipv4)
        }
        SegmentKind::TcpV6 => {
            (layers.protocol, layers.version) == (IpProtocol::Tcp, IpVersion::Ipv6)
        }
        SegmentKind::Udp => layers.protocol == IpProtocol::Udp,
    };
    if !matches_header {
        return Err(Refusal::Header);
    }
    if segments.kind != SegmentKind::Udp {
        return Ok(Arrival::Large(packet));
    }
    let split = packet
        .get(..layers.end)
        .and_then(|packet| packet.split_at_checked(layers.transport + UDP_HEADER));
    let Some((headers, rest)) = split else { return Err(Refusal::Header) };
    let payload = usize::from(segments.payload);
    if rest.is_empty() || rest.len().div_ceil(payload) > DATAGRAMS_MAX {
        return Err(Refusal::Header);
    }
    Ok(Arrival::Datagrams(Datagrams { layers, headers, rest, payload }))
}

impl Datagrams<'_> {
    /// Writes the next datagram into `packet`, replacing what was there; returns false if there is
    /// none.
    pub(in crate::stack) fn next(&mut self, packet: &mut Vec<u8>) -> bool {
        let (payload, rest) = self.rest.split_at(self.payload.min(self.rest.len()));
        self.rest = rest;
        if payload.is_empty() {
            return false;
        }
        packet.clear();
        packet.extend_from_slice(self.headers);
        packet.extend_from_slice(payload);
        let Layers { version, ip, transport, .. } = self.layers;
        // Each is shorter than the whole packet, whose length had 16 bits.
        let len = (packet.len() - ip) as u16;
        match version {
            IpVersion::Ipv4 => {
                let mut header = Ipv4Packet::new_unchecked(&mut packet[ip..]);
                header.set_total_len(len);
                header.fill_checksum();
            }
            IpVersion::Ipv6 => {
                let mut header = Ipv6Packet::new_unchecked(&mut packet[ip..]);
                header.set_payload_len(len - header.header_len() as u16);
            }
        }
        let mut header = UdpPacket::new_unchecked(&mut packet[transport..]);
        header.set_len((UDP_HEADER + payload.len()) as u16);
        true
    }
}
