//! `Layers`: where the headers of a packet are.

use std::ops::Range;

use smoltcp::wire::{
    IpAddress, IpProtocol, IpVersion, Ipv4Packet, Ipv6ExtHeader, Ipv6Packet, TcpPacket, UdpPacket,
    checksum,
};

use crate::device::{ETHERNET_HEADER, Medium};

/// The layers of an IP packet: their protocols, and where they begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layers {
    pub(super) version: IpVersion,
    /// Where the IP header begins.
    pub(super) ip: usize,
    pub(super) protocol: IpProtocol,
    /// Where the transport header begins.
    pub(super) transport: usize,
    /// Where the packet ends, according to its own length.
    pub(super) end: usize,
    ends: (IpAddress, IpAddress),
}

impl Layers {
    /// Finds the layers of a packet; `None` if it is not an IP packet.
    pub(super) fn parse(medium: Medium, packet: &[u8]) -> Option<Layers> {
        let ip = if medium == Medium::Ethernet { ETHERNET_HEADER } else { 0 };
        // smoltcp reads the first byte without a check.
        let inner = packet.get(ip..).filter(|inner| !inner.is_empty())?;
        let version = IpVersion::of_packet(inner).ok()?;
        match version {
            IpVersion::Ipv4 => {
                let inner = Ipv4Packet::new_checked(inner).ok()?;
                Some(Layers {
                    version,
                    ip,
                    protocol: inner.next_header(),
                    transport: ip + usize::from(inner.header_len()),
                    end: ip + usize::from(inner.total_len()),
                    ends: (inner.src_addr().into(), inner.dst_addr().into()),
                })
            }
            IpVersion::Ipv6 => {
                let inner = Ipv6Packet::new_checked(inner).ok()?;
                let (mut protocol, mut skipped) = (inner.next_header(), 0);
                // The only extension header that the stack skips.
                if protocol == IpProtocol::HopByHop {
                    let options = Ipv6ExtHeader::new_checked(inner.payload()).ok()?;
                    protocol = options.next_header();
                    skipped = 8 * (usize::from(options.header_len()) + 1);
                }
                if skipped > inner.payload().len() {
                    return None;
                }
                Some(Layers {
                    version,
                    ip,
                    protocol,
                    transport: ip + inner.header_len() + skipped,
                    end: ip + inner.total_len(),
                    ends: (inner.src_addr().into(), inner.dst_addr().into()),
                })
            }
        }
    }

    /// Returns the range of the transport header and its payload.
    pub(super) fn transport_range(&self) -> Range<usize> {
        self.transport..self.end
    }

    /// Returns where the transport header has its checksum, in bytes from its beginning.
    pub(super) fn checksum_offset(&self) -> Option<u16> {
        match self.protocol {
            IpProtocol::Tcp => Some(16),
            IpProtocol::Udp => Some(6),
            _ => None,
        }
    }

    /// Returns the sum of the pseudo-header (RFC 9293 §3.1; RFC 8200 §8.1), for `len` bytes of
    /// transport header and payload.
    pub(super) fn pseudo_sum(&self, len: usize) -> u16 {
        checksum::pseudo_header(&self.ends.0, &self.ends.1, self.protocol, len as u32)
    }

    /// Whether the checksum of a segment or datagram is right; true for other packets.
    pub(super) fn has_valid_checksum(&self, packet: &[u8]) -> bool {
        let Some(inner) = packet.get(self.transport_range()) else { return true };
        let (from, to) = &self.ends;
        match self.protocol {
            IpProtocol::Tcp => {
                TcpPacket::new_checked(inner).is_ok_and(|one| one.verify_checksum(from, to))
            }
            IpProtocol::Udp => {
                UdpPacket::new_checked(inner).is_ok_and(|one| one.verify_checksum(from, to))
            }
            _ => true,
        }
    }

    /// Returns a segment without its payload, with right checksums. `None` for other packets, and for
    /// one whose IP header is damaged.
    pub(super) fn without_payload(&self, packet: &[u8]) -> Option<Vec<u8>> {
        if self.protocol != IpProtocol::Tcp {
            return None;
        }
        let header = TcpPacket::new_checked(packet.get(self.transport_range())?).ok()?.header_len();
        let end = self.transport + usize::from(header);
        let mut short = packet.get(..end)?.to_vec();
        let len = u16::try_from(end - self.ip).ok()?;
        match self.version {
            IpVersion::Ipv4 => {
                let mut inner = Ipv4Packet::new_unchecked(&mut short[self.ip..]);
                if !inner.verify_checksum() {
                    return None;
                }
                inner.set_total_len(len);
                inner.fill_checksum();
            }
            IpVersion::Ipv6 => {
                let mut inner = Ipv6Packet::new_unchecked(&mut short[self.ip..]);
                let header = u16::try_from(inner.header_len()).ok()?;
                inner.set_payload_len(len - header);
            }
        }
        let (from, to) = &self.ends;
        TcpPacket::new_unchecked(&mut short[self.transport..]).fill_checksum(from, to);
        Some(short)
    }
}
