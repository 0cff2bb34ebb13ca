//! `TestPeer`: a connection for tests, whose peer sends packet by packet.

use rotor_core::net::ReadBuf;
use smoltcp::wire::{IpProtocol, IpVersion, Ipv4Packet, Ipv6Packet, TcpPacket};

use super::packets::{ACK, FIN, SYN, ends, segment};
use super::tests::{arp_request, stack_with_cable};
use super::{SocketKind, Stack};
use crate::clock::ManualClock;
use crate::config::StackConfig;
use crate::device::{Device, ETHERNET_HEADER, Medium, MemoryDevice};
use crate::slots::Id;

/// A connection of a stack, with the test as the peer.
pub(super) struct TestPeer {
    pub(super) stack: Stack,
    pub(super) clock: ManualClock,
    cable: MemoryDevice,
    pub(super) medium: Medium,
    pub(super) version: IpVersion,
    pub(super) id: Id,
    /// The listener to which the peer has connected.
    pub(super) listener: Option<Id>,
    /// The stack's port.
    port: u16,
    /// The peer's next sequence number, and what it acknowledges.
    pub(super) number: i32,
    pub(super) acknowledges: i32,
    /// The window that it offers.
    pub(super) window: u16,
}

impl TestPeer {
    /// Returns a connection that the peer has begun, or the stack.
    pub(super) fn new(
        medium: Medium,
        version: IpVersion,
        number: i32,
        peer_connects: bool,
    ) -> TestPeer {
        let (mut stack, clock, cable) = stack_with_cable(medium, StackConfig::new());
        if medium == Medium::Ethernet {
            stack.handle_packet(&arp_request());
        }
        let local = (std::net::IpAddr::from(ends(version).1), 4_096);
        // The ports are those of `segment`, unless the stack chooses one.
        let id = stack.listen(local.into(), 8).expect("it is free");
        let (acknowledges, port, listener) = (0, 4_096, peer_connects.then_some(id));
        let mut peer = TestPeer {
            stack,
            clock,
            cable,
            medium,
            version,
            id,
            listener,
            port,
            number,
            acknowledges,
            window: 9,
        };
        if peer_connects {
            peer.send(SYN, b"");
            peer.received_acks();
            peer.send(ACK, b"");
            peer.id = peer.accept();
        } else {
            peer.stack.drop_socket(SocketKind::Listener, id);
            peer.connect();
            peer.received_acks();
        }
        assert!(peer.stack.is_connected(peer.id));
        peer
    }

    /// Lets the stack connect to the peer, which accepts that. The stack has not acknowledged it.
    pub(super) fn connect(&mut self) {
        let from = std::net::IpAddr::from(ends(self.version).0);
        self.id = self.stack.connect((from, 80).into()).expect("there is room");
        self.port = self.stack.addresses(self.id).map_or(0, |(local, _)| local.port());
        self.received_acks();
        self.send(SYN | ACK, b"");
    }

    /// Accepts the connection that the peer has begun.
    pub(super) fn accept(&mut self) -> Id {
        let listener = self.listener.expect("it was the peer");
        self.stack.accept(listener).expect("the handshake is complete").0
    }

    /// Sends a segment whose number is off by `offset` from the next one, without counting it as
    /// sent.
    pub(super) fn send_at_offset(&mut self, offset: i32, flags: u8, payload: &[u8]) {
        let packet = self.segment_at_offset(offset, flags, payload);
        self.stack.handle_packet(&packet);
    }

    /// Returns a segment of the peer with correct checksums.
    pub(super) fn segment_at_offset(&self, offset: i32, flags: u8, payload: &[u8]) -> Vec<u8> {
        let number = self.number.wrapping_add(offset);
        let mut packet = segment(self.medium, self.version, number, flags, payload);
        if self.medium == Medium::Ethernet {
            packet[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        }
        let (from, to) = ends(self.version);
        let at = self.segment_at();
        let bytes = &mut packet[at..];
        if flags & ACK == 0 {
            bytes[8..12].fill(0);
        } else {
            bytes[8..12].copy_from_slice(&self.acknowledges.to_be_bytes());
        }
        let mut segment = TcpPacket::new_unchecked(bytes);
        segment.set_dst_port(self.port);
        segment.set_window_len(self.window);
        segment.fill_checksum(&from, &to);
        packet
    }

    pub(super) fn send(&mut self, flags: u8, payload: &[u8]) {
        self.send_at_offset(0, flags, payload);
        let len = payload.len() as i32 + i32::from(flags & (SYN | FIN) != 0);
        self.number = self.number.wrapping_add(len);
    }

    pub(super) fn segment_at(&self) -> usize {
        let link_header = if self.medium == Medium::Ethernet { ETHERNET_HEADER } else { 0 };
        link_header + if self.version == IpVersion::Ipv4 { 20 } else { 40 }
    }

    /// Lets the stack send, and returns the number that each of its segments acknowledges. The peer
    /// will acknowledge all that was sent.
    pub(super) fn received_acks(&mut self) -> Vec<i32> {
        self.stack.send_all();
        let (mut frame, mut received_acks) = ([0; 2_000], Vec::new());
        while let Ok(len) = self.cable.receive(&mut frame) {
            let link_header = if self.medium == Medium::Ethernet { ETHERNET_HEADER } else { 0 };
            let inner = &frame[link_header..len];
            let is_tcp = match self.version {
                IpVersion::Ipv4 => Ipv4Packet::new_unchecked(inner).next_header(),
                IpVersion::Ipv6 => Ipv6Packet::new_unchecked(inner).next_header(),
            } == IpProtocol::Tcp;
            if !is_tcp || link_header > 0 && frame[12..14] == [0x08, 0x06] {
                continue;
            }
            let segment = TcpPacket::new_checked(&frame[self.segment_at()..len]);
            let segment = segment.expect("it sends whole segments");
            let (peer, own) = ends(self.version);
            assert!(segment.verify_checksum(&own, &peer), "its sum is wrong");
            if link_header > 0 {
                assert_eq!(frame[..12], [2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 1], "to the peer's card");
            }
            self.acknowledges = (segment.seq_number() + segment.segment_len()).0;
            received_acks.push(segment.ack_number().0);
        }
        received_acks
    }

    pub(super) fn read(&mut self) -> usize {
        self.read_up_to(100)
    }

    pub(super) fn read_up_to(&mut self, max: usize) -> usize {
        let (mut buffer, mut count) = (vec![0; max], 0);
        let mut buf = ReadBuf::new(&mut buffer, &mut count);
        let _nothing_more = self.stack.read(self.id, &mut buf);
        count
    }
}

/// Calls `test` with each kind of packet, with connections that either side has begun, and with
/// numbers that wrap around.
pub(super) fn for_each_case(mut test: impl FnMut(TestPeer)) {
    for (medium, version) in [
        (Medium::Ip, IpVersion::Ipv4),
        (Medium::Ip, IpVersion::Ipv6),
        (Medium::Ethernet, IpVersion::Ipv4),
    ] {
        for number in [100, i32::MAX - 20, -20] {
            test(TestPeer::new(medium, version, number, true));
            test(TestPeer::new(medium, version, number, false));
        }
    }
}
