//! `Unreachable`: a message of ICMP about a segment that was not delivered.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use smoltcp::wire::{
    Icmpv4DstUnreachable, Icmpv4Message, Icmpv4Packet, Icmpv6DstUnreachable, Icmpv6Message,
    Icmpv6Packet, IpProtocol, TcpSeqNumber,
};

/// A segment of this stack that was not delivered, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unreachable {
    pub(super) remote: SocketAddr,
    pub(super) local: SocketAddr,
    /// The segment's number.
    pub(super) number: TcpSeqNumber,
    pub(super) kind: ErrorKind,
}

/// The length of the header of such a message, in bytes; the packet behind it follows.
const HEADER: usize = 8;

/// What is quoted of a TCP header at least (RFC 792): the ports and the number.
const QUOTED_TCP: usize = 8;

/// Reads a message of ICMP (RFC 792, RFC 4443). `ends` are its sender and its receiver.
pub(super) fn read(
    protocol: IpProtocol,
    ends: (IpAddr, IpAddr),
    message: &[u8],
) -> Option<Unreachable> {
    match (protocol, ends) {
        (IpProtocol::Icmp, (_, IpAddr::V4(receiver))) => read_v4(message, receiver),
        (IpProtocol::Icmpv6, (IpAddr::V6(sender), IpAddr::V6(receiver))) => {
            read_v6(message, sender, receiver)
        }
        _ => None,
    }
}

fn read_v4(message: &[u8], receiver: Ipv4Addr) -> Option<Unreachable> {
    let packet = Icmpv4Packet::new_checked(message).ok()?;
    if packet.msg_type() != Icmpv4Message::DstUnreachable || !packet.verify_checksum() {
        return None;
    }
    use Icmpv4DstUnreachable as Code;
    let kind = match Code::from(packet.msg_code()) {
        // It is about the size of a packet; a first segment has none to spare.
        Code::FragRequired => return None,
        Code::PortUnreachable | Code::ProtoUnreachable => ErrorKind::ConnectionRefused,
        Code::NetUnreachable | Code::DstNetUnknown | Code::NetProhibited | Code::NetUnreachToS => {
            ErrorKind::NetworkUnreachable
        }
        _ => ErrorKind::HostUnreachable,
    };
    let quoted = message.get(HEADER..)?;
    let header = quoted.first_chunk::<20>()?;
    let is_first_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
    if header[0] >> 4 != 4 || header[9] != u8::from(IpProtocol::Tcp) || !is_first_fragment {
        return None;
    }
    let [.., a, b, c, d, e, f, g, h] = *header;
    let (source, target) = (Ipv4Addr::from([a, b, c, d]), Ipv4Addr::from([e, f, g, h]));
    if source != receiver {
        return None;
    }
    let segment = quoted.get(4 * usize::from(header[0] & 0xf)..)?;
    segment_in(segment, source.into(), target.into(), kind)
}

fn read_v6(message: &[u8], sender: Ipv6Addr, receiver: Ipv6Addr) -> Option<Unreachable> {
    let packet = Icmpv6Packet::new_checked(message).ok()?;
    let is_whole = packet.verify_checksum(&sender, &receiver);
    if packet.msg_type() != Icmpv6Message::DstUnreachable || !is_whole {
        return None;
    }
    let kind = match Icmpv6DstUnreachable::from(packet.msg_code()) {
        Icmpv6DstUnreachable::PortUnreachable => ErrorKind::ConnectionRefused,
        Icmpv6DstUnreachable::NoRoute => ErrorKind::NetworkUnreachable,
        _ => ErrorKind::HostUnreachable,
    };
    let quoted = message.get(HEADER..)?;
    let (header, segment) = quoted.split_first_chunk::<40>()?;
    let address = |at: usize| header[at..].first_chunk::<16>().map(|one| Ipv6Addr::from(*one));
    let (source, target) = (address(8)?, address(24)?);
    // This stack puts nothing between the header and a segment.
    let is_tcp = header[0] >> 4 == 6 && header[6] == u8::from(IpProtocol::Tcp);
    if !is_tcp || source != receiver {
        return None;
    }
    segment_in(segment, source.into(), target.into(), kind)
}

fn segment_in(
    segment: &[u8],
    source: IpAddr,
    target: IpAddr,
    kind: ErrorKind,
) -> Option<Unreachable> {
    let [a, b, c, d, number @ ..] = *segment.first_chunk::<QUOTED_TCP>()?;
    Some(Unreachable {
        local: SocketAddr::new(source, u16::from_be_bytes([a, b])),
        remote: SocketAddr::new(target, u16::from_be_bytes([c, d])),
        number: TcpSeqNumber(i32::from_be_bytes(number)),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use smoltcp::wire::{IpVersion, TcpPacket};

    use super::super::flow::{Destination, classify};
    use super::super::packets::{ACK, MEDIUMS, SYN, VERSIONS, ends, segment, unreachable};
    use super::super::tests::stack_with_cable;
    use super::super::{SocketKind, Stack};
    use crate::clock::ManualClock;
    use crate::config::StackConfig;
    use crate::device::{Device, Medium};

    /// An attempt of a stack to connect, with its first packet.
    struct Attempt {
        stack: Stack,
        _clock: ManualClock,
        id: crate::slots::Id,
        first: Vec<u8>,
        version: IpVersion,
    }

    impl Attempt {
        fn begin(version: IpVersion) -> Attempt {
            let (mut stack, clock, mut cable) = stack_with_cable(Medium::Ip, StackConfig::new());
            let peer = std::net::IpAddr::from(ends(version).0);
            let id = stack.connect((peer, 80).into()).expect("there is room");
            stack.send_all();
            let mut first = vec![0; 2_000];
            let len = cable.receive(&mut first).expect("it sends a SYN");
            first.truncate(len);
            Attempt { stack, _clock: clock, id, first, version }
        }

        fn header_len(&self) -> usize {
            if self.version == IpVersion::Ipv4 { 20 } else { 40 }
        }

        /// Says that a packet was not delivered. Returns how the attempt has failed, if it has.
        fn hear(&mut self, code: u8, quoted: &[u8]) -> Option<io::ErrorKind> {
            self.stack.handle_packet(&unreachable(Medium::Ip, self.version, code, quoted));
            self.stack.take_error(self.id).map(|error| error.kind())
        }
    }

    #[test]
    fn an_attempt_to_connect_fails_when_its_first_packet_is_not_delivered() {
        use io::ErrorKind::*;
        for (version, code, kind) in [
            (IpVersion::Ipv4, 0, Some(NetworkUnreachable)),
            (IpVersion::Ipv4, 1, Some(HostUnreachable)),
            (IpVersion::Ipv4, 2, Some(ConnectionRefused)),
            (IpVersion::Ipv4, 3, Some(ConnectionRefused)),
            (IpVersion::Ipv4, 4, None),
            (IpVersion::Ipv4, 13, Some(HostUnreachable)),
            (IpVersion::Ipv4, 200, Some(HostUnreachable)),
            (IpVersion::Ipv6, 0, Some(NetworkUnreachable)),
            (IpVersion::Ipv6, 1, Some(HostUnreachable)),
            (IpVersion::Ipv6, 3, Some(HostUnreachable)),
            (IpVersion::Ipv6, 4, Some(ConnectionRefused)),
        ] {
            let mut attempt = Attempt::begin(version);
            let first = attempt.first.clone();
            assert_eq!(attempt.hear(code, &first), kind, "{version}, code {code}");
            attempt.stack.drop_socket(SocketKind::Stream, attempt.id);
            attempt.stack.send_all();
            assert_eq!(attempt.stack.stats().connections, 0, "{version}, code {code}");
        }
    }

    #[test]
    fn a_message_about_another_packet_changes_nothing() {
        for version in VERSIONS {
            let mut attempt = Attempt::begin(version);
            let (first, ip) = (attempt.first.clone(), attempt.header_len());
            // The protocol, and a byte of each address.
            let [protocol, source, target] =
                if version == IpVersion::Ipv4 { [9, 15, 19] } else { [6, 23, 39] };
            // And the ports and the number.
            for at in [protocol, source, target, ip, ip + 2, ip + 4, ip + 7] {
                let mut other = first.clone();
                other[at] ^= 1;
                assert_eq!(attempt.hear(3, &other), None, "{version}, byte {at}");
            }
            for len in 0..ip + 8 {
                assert_eq!(attempt.hear(3, &first[..len]), None, "{version}, {len} bytes");
            }
            // With a wrong checksum.
            let mut message = unreachable(Medium::Ip, version, 3, &first);
            message[ip + 5] ^= 1;
            attempt.stack.handle_packet(&message);
            assert!(attempt.stack.take_error(attempt.id).is_none());
            // As much as a router has to quote.
            assert!(attempt.hear(3, &first[..ip + 8]).is_some(), "{version}");
        }
    }

    #[test]
    fn an_established_connection_goes_on() {
        for version in VERSIONS {
            let mut attempt = Attempt::begin(version);
            let mut first = attempt.first.clone();
            let (peer, own) = ends(version);
            let ip = attempt.header_len();
            let mut answer = segment(Medium::Ip, version, 100, SYN | ACK, b"");
            let (first_segment, mut segment) = (
                TcpPacket::new_unchecked(&mut first[ip..]),
                TcpPacket::new_unchecked(&mut answer[ip..]),
            );
            segment.set_dst_port(first_segment.src_port());
            segment.set_ack_number(first_segment.seq_number() + 1);
            segment.fill_checksum(&peer, &own);
            attempt.stack.handle_packet(&answer);
            assert!(attempt.stack.is_connected(attempt.id));
            assert_eq!(attempt.hear(3, &first), None);
            assert!(attempt.stack.is_connected(attempt.id));
        }
    }

    #[test]
    fn messages_are_recognized_on_every_medium() {
        for version in VERSIONS {
            let attempt = Attempt::begin(version);
            for medium in MEDIUMS {
                let message = unreachable(medium, version, 3, &attempt.first);
                let destination = classify(medium, &message);
                assert!(matches!(destination, Destination::Unreachable(_)), "{destination:?}");
            }
        }
    }
}
