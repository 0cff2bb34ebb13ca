//! `Layers`: where in a packet what is.

use std::ops::Range;

use smoltcp::wire::{
    IpAddress, IpProtocol, IpVersion, Ipv4Packet, Ipv6ExtHeader, Ipv6Packet, TcpPacket, UdpPacket,
    checksum,
};

use crate::device::{ETHERNET_HEADER, Medium};

/// The layers of an IP packet: what they are, and where they begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layers {
    pub(super) version: IpVersion,
    /// Where IP's header begins.
    pub(super) ip: usize,
    pub(super) protocol: IpProtocol,
    /// Where that of the protocol begins.
    pub(super) transport: usize,
    /// Where the packet ends, by its own length.
    pub(super) end: usize,
    ends: (IpAddress, IpAddress),
}

impl Layers {
    /// Finds them; nothing in what is no packet of IP.
    pub(super) fn of(medium: Medium, packet: &[u8]) -> Option<Layers> {
        let ip = if medium == Medium::Ethernet { ETHERNET_HEADER } else { 0 };
        // smoltcp looks at the first byte, whether there is one or not.
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
                // The one extension header that the stack reads past.
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

    /// What the protocol has of the packet.
    pub(super) fn of_transport(&self) -> Range<usize> {
        self.transport..self.end
    }

    /// Where the protocol has its sum, in bytes from its beginning.
    pub(super) fn sum_offset(&self) -> Option<u16> {
        match self.protocol {
            IpProtocol::Tcp => Some(16),
            IpProtocol::Udp => Some(6),
            _ => None,
        }
    }

    /// The sum of what of IP's header is in that of the protocol (RFC 9293, section 3.1; RFC 8200,
    /// section 8.1), for `len` bytes of the protocol.
    pub(super) fn pseudo_sum(&self, len: usize) -> u16 {
        checksum::pseudo_header(&self.ends.0, &self.ends.1, self.protocol, len as u32)
    }

    /// Whether the sum of a segment or datagram is right; of what has none, yes.
    pub(super) fn is_sound(&self, packet: &[u8]) -> bool {
        let Some(inner) = packet.get(self.of_transport()) else { return true };
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
}
