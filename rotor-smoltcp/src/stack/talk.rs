//! `Talk`: a connection for tests, packet by packet.

use rotor_core::net::ReadBuf;
use smoltcp::wire::{IpProtocol, IpVersion, Ipv4Packet, Ipv6Packet, TcpPacket};

use super::Stack;
use super::packets::{ACK, FIN, SYN, ends, segment};
use super::tests::{question, receiving};
use crate::clock::ManualClock;
use crate::config::StackConfig;
use crate::device::{Device, ETHERNET_HEADER, Medium, MemoryDevice};
use crate::slots::Id;

/// A connection of a stack, with the test as the peer.
pub(super) struct Talk {
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
}

impl Talk {
    /// Returns a connection that the peer has begun, or the stack.
    pub(super) fn new(
        medium: Medium,
        version: IpVersion,
        number: i32,
        is_begun_by_peer: bool,
    ) -> Talk {
        let (mut stack, clock, cable) = receiving(medium, StackConfig::new());
        if medium == Medium::Ethernet {
            stack.take(&question());
        }
        let (from, to) = ends(version);
        let local = (std::net::IpAddr::from(to), 4_096);
        // The ports are those of `segment`, unless the stack chooses one.
        let id = if is_begun_by_peer {
            stack.listen(local.into(), 8).expect("it is free")
        } else {
            stack.connect((std::net::IpAddr::from(from), 80).into()).expect("there is room")
        };
        let (acknowledges, port, listener) = (0, 4_096, is_begun_by_peer.then_some(id));
        let mut talk =
            Talk { stack, clock, cable, medium, version, id, listener, port, number, acknowledges };
        talk.port = talk.stack.addresses(id).map_or(port, |(local, _)| local.port());
        if is_begun_by_peer {
            talk.say(SYN, b"");
            talk.heard();
            talk.say(ACK, b"");
            talk.id = talk.accept();
        } else {
            talk.heard();
            talk.say(SYN | ACK, b"");
            talk.heard();
        }
        assert!(talk.stack.is_connected(talk.id));
        talk
    }

    /// Accepts the connection that the peer has begun.
    pub(super) fn accept(&mut self) -> Id {
        let listener = self.listener.expect("it was the peer");
        self.stack.accept(listener).expect("the handshake is complete").0
    }

    /// Sends a segment whose number is off by `beside` from the next one, without counting it as
    /// sent.
    pub(super) fn say_beside(&mut self, beside: i32, flags: u8, payload: &[u8]) {
        let packet = self.beside(beside, flags, payload);
        self.stack.take(&packet);
    }

    /// Returns a segment of the peer with correct checksums.
    pub(super) fn beside(&self, beside: i32, flags: u8, payload: &[u8]) -> Vec<u8> {
        let number = self.number.wrapping_add(beside);
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
        segment.fill_checksum(&from, &to);
        packet
    }

    pub(super) fn say(&mut self, flags: u8, payload: &[u8]) {
        self.say_beside(0, flags, payload);
        let len = payload.len() as i32 + i32::from(flags & (SYN | FIN) != 0);
        self.number = self.number.wrapping_add(len);
    }

    pub(super) fn segment_at(&self) -> usize {
        let around = if self.medium == Medium::Ethernet { ETHERNET_HEADER } else { 0 };
        around + if self.version == IpVersion::Ipv4 { 20 } else { 40 }
    }

    /// Lets the stack send, and returns the number that each of its segments acknowledges. The peer
    /// will acknowledge all that was sent.
    pub(super) fn heard(&mut self) -> Vec<i32> {
        self.stack.send_all();
        let (mut frame, mut heard) = ([0; 2_000], Vec::new());
        while let Ok(len) = self.cable.receive(&mut frame) {
            let around = if self.medium == Medium::Ethernet { ETHERNET_HEADER } else { 0 };
            let inner = &frame[around..len];
            let is_tcp = match self.version {
                IpVersion::Ipv4 => Ipv4Packet::new_unchecked(inner).next_header(),
                IpVersion::Ipv6 => Ipv6Packet::new_unchecked(inner).next_header(),
            } == IpProtocol::Tcp;
            if !is_tcp || around > 0 && frame[12..14] == [0x08, 0x06] {
                continue;
            }
            let segment = TcpPacket::new_checked(&frame[self.segment_at()..len]);
            let segment = segment.expect("it sends whole segments");
            let (peer, own) = ends(self.version);
            assert!(segment.verify_checksum(&own, &peer), "its sum is wrong");
            if around > 0 {
                assert_eq!(frame[..12], [2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 1], "to the peer's card");
            }
            self.acknowledges = (segment.seq_number() + segment.segment_len()).0;
            heard.push(segment.ack_number().0);
        }
        heard
    }

    pub(super) fn read(&mut self) -> usize {
        let (mut buffer, mut count) = ([0; 100], 0);
        let mut buf = ReadBuf::new(&mut buffer, &mut count);
        let _nothing_more = self.stack.read(self.id, &mut buf);
        count
    }
}

/// Calls `test` with each kind of packet, with connections that either side has begun, and with
/// numbers that wrap around.
pub(super) fn each(mut test: impl FnMut(Talk)) {
    for (medium, version) in [
        (Medium::Ip, IpVersion::Ipv4),
        (Medium::Ip, IpVersion::Ipv6),
        (Medium::Ethernet, IpVersion::Ipv4),
    ] {
        for number in [100, i32::MAX - 20, -20] {
            test(Talk::new(medium, version, number, true));
            test(Talk::new(medium, version, number, false));
        }
    }
}
