//! `Destination`: which socket a packet is for, determined before smoltcp gets it.
//!
//! smoltcp searches the socket of a packet among all sockets of a set, one by one. Here each
//! connection is a set of its own, and the packet is read far enough to find the right one.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpProtocol, IpVersion, Ipv4Packet, Ipv6ExtHeader, Ipv6Packet,
    TcpOption, TcpPacket, TcpSeqNumber, UdpPacket,
};

use super::unreachable::{self, Unreachable};
use crate::device::Medium;

/// The two ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Flow {
    pub(super) remote: SocketAddr,
    pub(super) local: SocketAddr,
}

/// What is known of a segment before smoltcp gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) flow: Flow,
    pub(super) number: TcpSeqNumber,
    /// The length of its payload, in bytes.
    pub(super) len: usize,
    /// What it acknowledges.
    pub(super) acknowledged: Option<TcpSeqNumber>,
    /// The window that it offers, without scale.
    pub(super) window: u16,
    pub(super) control: Control,
}

/// What a segment does besides carrying bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Control {
    None,
    /// It asks for a new connection (SYN without ACK).
    First,
    /// It ends its direction (FIN).
    End,
    Reset,
}

/// What a packet is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Destination {
    /// A segment of a connection.
    Tcp(Segment),
    /// A datagram.
    Udp { flow: Flow },
    /// It may tell the hardware address of a neighbour: ARP, neighbour discovery.
    Neighbour,
    /// It says that a segment of this stack was not delivered (ICMP).
    Unreachable(Unreachable),
    /// For the stack to answer by itself: other ICMP, and unknown protocols.
    Other,
    /// Not an IP packet, a fragment, or a first segment that asks for tiny segments.
    Refused,
}

/// Determines what a packet is for.
pub(super) fn classify(medium: Medium, packet: &[u8]) -> Destination {
    let destination = match medium {
        Medium::Ip => classify_ip(packet),
        Medium::Ethernet => classify_frame(packet),
    };
    destination.unwrap_or(Destination::Refused)
}

fn classify_frame(frame: &[u8]) -> Option<Destination> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    match frame.ethertype() {
        EthernetProtocol::Ipv4 | EthernetProtocol::Ipv6 => classify_ip(frame.payload()),
        EthernetProtocol::Arp => Some(Destination::Neighbour),
        EthernetProtocol::Unknown(_) => None,
    }
}

fn classify_ip(packet: &[u8]) -> Option<Destination> {
    // smoltcp reads the first byte without a check.
    packet.first()?;
    match IpVersion::of_packet(packet).ok()? {
        IpVersion::Ipv4 => {
            let packet = Ipv4Packet::new_checked(packet).ok()?;
            if packet.more_frags() || packet.frag_offset() != 0 {
                return None;
            }
            let ends = (packet.src_addr().into(), packet.dst_addr().into());
            classify_transport(packet.next_header(), ends, packet.payload())
        }
        IpVersion::Ipv6 => {
            let packet = Ipv6Packet::new_checked(packet).ok()?;
            let ends = (packet.src_addr().into(), packet.dst_addr().into());
            // The only extension header that the stack skips.
            if packet.next_header() == IpProtocol::HopByHop {
                let options = Ipv6ExtHeader::new_checked(packet.payload()).ok()?;
                let beyond = packet.payload().get(8 * (usize::from(options.header_len()) + 1)..)?;
                return classify_transport(options.next_header(), ends, beyond);
            }
            classify_transport(packet.next_header(), ends, packet.payload())
        }
    }
}

fn classify_transport(
    protocol: IpProtocol,
    ends: (IpAddr, IpAddr),
    payload: &[u8],
) -> Option<Destination> {
    let flow = |source, target| Flow {
        remote: SocketAddr::new(ends.0, source),
        local: SocketAddr::new(ends.1, target),
    };
    match protocol {
        IpProtocol::Tcp => {
            let packet = TcpPacket::new_checked(payload).ok()?;
            if packet.syn() && requests_tiny_segments(&packet) {
                return None;
            }
            Some(Destination::Tcp(Segment {
                flow: flow(packet.src_port(), packet.dst_port()),
                number: packet.seq_number(),
                len: packet.payload().len(),
                acknowledged: packet.ack().then(|| packet.ack_number()),
                window: packet.window_len(),
                control: control(&packet),
            }))
        }
        IpProtocol::Udp => {
            let packet = UdpPacket::new_checked(payload).ok()?;
            Some(Destination::Udp { flow: flow(packet.src_port(), packet.dst_port()) })
        }
        IpProtocol::Icmpv6
            if payload.first().is_some_and(|kind| NEIGHBOUR_KINDS.contains(kind)) =>
        {
            Some(Destination::Neighbour)
        }
        _ => {
            let unreachable = unreachable::read(protocol, ends, payload);
            Some(unreachable.map_or(Destination::Other, Destination::Unreachable))
        }
    }
}

/// The ICMPv6 types of neighbour discovery (RFC 4861 §4).
const NEIGHBOUR_KINDS: RangeInclusive<u8> = 133..=137;

/// smoltcp refuses segments with more than one of these flags.
fn control(packet: &TcpPacket<&[u8]>) -> Control {
    match (packet.rst(), packet.syn(), packet.fin()) {
        (true, ..) => Control::Reset,
        (_, true, _) if !packet.ack() => Control::First,
        (.., true) => Control::End,
        _ => Control::None,
    }
}

/// The smallest segments that a peer may ask for, in bytes. A peer that asks for one byte per
/// packet would make the stack send forty bytes of headers for each. Linux has the same limit
/// (`net.ipv4.tcp_min_snd_mss`).
const SEGMENT_BYTES_MIN: u16 = 48;

/// Whether the sender of a first segment accepts no larger ones. Each size option is checked,
/// because smoltcp uses the last one.
fn requests_tiny_segments(packet: &TcpPacket<&[u8]>) -> bool {
    let mut options = packet.options();
    while let Ok((rest, option)) = TcpOption::parse(options) {
        match option {
            TcpOption::MaxSegmentSize(size) if size < SEGMENT_BYTES_MIN => return true,
            TcpOption::EndOfList => return false,
            _ => options = rest,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet from 10.0.0.1 to 10.0.0.2 with this protocol and payload.
    fn v4(protocol: u8, fragment: [u8; 2], payload: &[u8]) -> Vec<u8> {
        let len = (20 + payload.len()) as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(len.to_be_bytes());
        packet.extend([0, 0, fragment[0], fragment[1], 64, protocol, 0, 0]);
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(payload);
        packet
    }

    fn v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((payload.len() as u16).to_be_bytes());
        packet.extend([protocol, 64]);
        for last in [1, 2] {
            packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        packet.extend(payload);
        packet
    }

    fn tcp(flags: u8) -> Vec<u8> {
        let mut segment = vec![0x10, 0x00, 0x00, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, flags];
        segment.extend([0; 6]);
        segment
    }

    /// A SYN with an option before the maximum segment size, and padding behind it.
    fn first_with(size: u16) -> Vec<u8> {
        let mut segment = tcp(0x02);
        segment[12] = 0x70;
        segment.extend([1, 2, 4]);
        segment.extend(size.to_be_bytes());
        segment.extend([0; 3]);
        segment
    }

    /// A SYN with two maximum segment sizes: smoltcp uses the last one.
    fn first_with_both(sizes: [u16; 2]) -> Vec<u8> {
        let mut segment = tcp(0x02);
        segment[12] = 0x70;
        segment.extend(sizes.map(|size| [[2, 4], size.to_be_bytes()].concat()).concat());
        segment
    }

    const UDP: [u8; 9] = [0x10, 0x00, 0, 53, 0, 9, 0, 0, b'x'];

    fn between(left: &str, right: &str) -> Flow {
        let parse = |text: &str| text.parse().expect("an address");
        Flow { remote: parse(left), local: parse(right) }
    }

    fn segment(flow: Flow, control: Control, acknowledged: Option<i32>) -> Destination {
        let acknowledged = acknowledged.map(TcpSeqNumber);
        let number = TcpSeqNumber(0x0102_0304);
        Destination::Tcp(Segment { flow, number, len: 0, acknowledged, window: 0, control })
    }

    #[test]
    fn packets_are_classified_by_destination() {
        let web = between("10.0.0.1:4096", "10.0.0.2:80");
        let web6 = between("[fd00::1]:4096", "[fd00::2]:80");
        let dns = between("10.0.0.1:4096", "10.0.0.2:53");
        let mut behind_options = vec![6, 0, 1, 4, 0, 0, 0, 0];
        behind_options.extend(tcp(0x10));
        let table = [
            (v4(6, [0, 0], &tcp(0x02)), segment(web, Control::First, None)),
            (v4(6, [0x40, 0], &tcp(0x10)), segment(web, Control::None, Some(0))),
            (v4(6, [0, 0], &tcp(0x12)), segment(web, Control::None, Some(0))),
            (v4(6, [0, 0], &tcp(0x06)), segment(web, Control::Reset, None)),
            (v6(6, &tcp(0x14)), segment(web6, Control::Reset, Some(0))),
            (v6(6, &tcp(0x02)), segment(web6, Control::First, None)),
            (v6(0, &behind_options), segment(web6, Control::None, Some(0))),
            (v4(17, [0, 0], &UDP), Destination::Udp { flow: dns }),
            (v4(1, [0, 0], &[8, 0, 0, 0]), Destination::Other),
            (v4(132, [0, 0], &[]), Destination::Other),
            (v6(58, &[128, 0, 0, 0]), Destination::Other),
            (v6(58, &[]), Destination::Other),
            (v6(58, &[136, 0, 0, 0]), Destination::Neighbour),
            (v4(58, [0, 0], &[8, 0, 0, 0]), Destination::Other),
            (v4(6, [0, 0], &first_with(48)), segment(web, Control::First, None)),
            (v4(6, [0, 0], &first_with(47)), Destination::Refused),
            (v6(6, &first_with(0)), Destination::Refused),
            (v4(6, [0, 0], &first_with_both([1_460, 1])), Destination::Refused),
            // Fragments: the first, a later one, the last.
            (v4(6, [0x20, 0], &tcp(0x02)), Destination::Refused),
            (v4(6, [0x20, 1], &tcp(0x02)), Destination::Refused),
            (v4(6, [0, 1], &tcp(0x02)), Destination::Refused),
            // Truncated packets, and input that is not a packet.
            (v4(6, [0, 0], &tcp(0x02)[..19]), Destination::Refused),
            (v4(17, [0, 0], &UDP[..7]), Destination::Refused),
            (v6(0, &[6, 9, 0, 0, 0, 0, 0, 0]), Destination::Refused),
            (Vec::new(), Destination::Refused),
            (vec![0x50; 40], Destination::Refused),
        ];
        for (packet, destination) in table {
            assert_eq!(classify(Medium::Ip, &packet), destination, "{packet:x?}");
            let mut frame = vec![2; 12];
            let is_six = packet.first().is_some_and(|first| first >> 4 == 6);
            frame.extend(if is_six { [0x86, 0xdd] } else { [0x08, 0x00] });
            frame.extend(&packet);
            assert_eq!(classify(Medium::Ethernet, &frame), destination, "{frame:x?}");
        }
    }

    #[test]
    fn frames_of_unknown_protocols_are_refused_and_arp_is_not() {
        for (ethertype, destination) in
            [([0x08, 0x06], Destination::Neighbour), ([0x88, 0xcc], Destination::Refused)]
        {
            let mut frame = vec![2; 12];
            frame.extend(ethertype);
            frame.extend([0; 28]);
            assert_eq!(classify(Medium::Ethernet, &frame), destination);
        }
        assert_eq!(classify(Medium::Ethernet, &[0; 13]), Destination::Refused);
    }

    #[test]
    fn truncated_packets_are_refused_without_a_panic() {
        for packet in [v4(6, [0, 0], &tcp(0x02)), v6(6, &tcp(0x02)), v4(17, [0, 0], &UDP)] {
            for len in 0..packet.len() {
                assert_eq!(classify(Medium::Ip, &packet[..len]), Destination::Refused, "{len}");
            }
        }
    }
}
