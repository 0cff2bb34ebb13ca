//! `Sequence`: how far a connection has sent, which its acknowledgements have to say.
//!
//! An acknowledgement carries the number of the next byte to be sent (RFC 9293 §3.10.7.4:
//! `SEQ=SND.NXT`). When smoltcp retransmits, it counts from the retransmitted byte, so its
//! acknowledgements have numbers that the peer has received long ago. The peer drops such a segment
//! altogether, with its acknowledgement. If both ends do so and both have something to retransmit,
//! neither ever learns that the other one has received it. Likewise, a peer drops a reset with such a
//! number, and goes on waiting.

use smoltcp::wire::{
    IpAddress, IpProtocol, IpVersion, Ipv4Packet, Ipv6Packet, TcpPacket, TcpSeqNumber,
};

use super::flow::Segment;
use crate::device::{ETHERNET_HEADER, Medium};

/// How far a connection has sent.
#[derive(Default)]
pub(super) struct Sequence {
    /// The number after the last byte that was sent, acknowledged or not.
    sent: Option<TcpSeqNumber>,
    /// The last acknowledged number.
    last_acknowledged: Option<TcpSeqNumber>,
    /// The last acknowledged number, and the window that was offered with it, in the scale of the
    /// connection. `None` before the first one: the window of a SYN has no scale.
    window: Option<(TcpSeqNumber, u16)>,
    /// The same of a later segment with one byte. It may be a probe, whose window smoltcp does not
    /// remember.
    window_of_byte: Option<(TcpSeqNumber, u16)>,
    /// What the peer has acknowledged, and whether it has offered a window of zero with that.
    acknowledged_by_peer: Option<TcpSeqNumber>,
    is_peer_shut: bool,
    /// A reset that is sent now is that of the connection itself, and does not answer a segment.
    pub(super) is_resetting: bool,
}

impl Sequence {
    /// Returns the number after the last byte that was sent.
    pub(super) fn sent(&self) -> Option<TcpSeqNumber> {
        self.sent
    }

    /// Returns the last number that was acknowledged.
    pub(super) fn last_acknowledged(&self) -> Option<TcpSeqNumber> {
        self.last_acknowledged
    }

    /// Returns the ends of the windows that were last offered, of which smoltcp remembers one: the
    /// second one is that of a later segment with one byte. The first one is `None` if only a SYN
    /// has offered a window, apart from that.
    pub(super) fn window_ends(&self, shift: u8) -> [Option<TcpSeqNumber>; 2] {
        let end = |(acknowledged, len)| acknowledged + (usize::from(len) << shift);
        [self.window, self.window_of_byte].map(|window| window.map(end))
    }

    /// Called after a segment of the peer was handled. An old one says nothing of its window now.
    pub(super) fn record_window(&mut self, segment: &Segment) {
        let Some(acknowledged) = segment.acknowledged else { return };
        let is_new = self.acknowledged_by_peer.is_none_or(|before| acknowledged >= before);
        if is_new && self.sent.is_some_and(|sent| acknowledged <= sent) {
            self.acknowledged_by_peer = Some(acknowledged);
            self.is_peer_shut = segment.window == 0;
        }
    }

    /// Returns the number of an acknowledgement. smoltcp sends probes and our end beyond a window
    /// that is shut. The peer drops them, and would drop whatever has the number behind them.
    fn acknowledgement_number(&self, sent: TcpSeqNumber) -> TcpSeqNumber {
        let window_end = self.acknowledged_by_peer.filter(|_| self.is_peer_shut);
        window_end.map_or(sent, |end| end.min(sent))
    }

    /// Inspects a packet to be sent. If it only acknowledges, or is the connection's own reset,
    /// corrects its number.
    pub(super) fn correct_number(&mut self, medium: Medium, packet: &mut [u8]) {
        let link_header = if medium == Medium::Ethernet { ETHERNET_HEADER } else { 0 };
        let Some(packet) = packet.get_mut(link_header..).filter(|packet| !packet.is_empty()) else {
            return;
        };
        match IpVersion::of_packet(packet) {
            Ok(IpVersion::Ipv4) => {
                let Ok(mut packet) = Ipv4Packet::new_checked(packet) else { return };
                let ends = (packet.src_addr().into(), packet.dst_addr().into());
                if packet.next_header() == IpProtocol::Tcp {
                    self.correct_segment(packet.payload_mut(), ends);
                }
            }
            Ok(IpVersion::Ipv6) => {
                let Ok(mut packet) = Ipv6Packet::new_checked(packet) else { return };
                let ends = (packet.src_addr().into(), packet.dst_addr().into());
                if packet.next_header() == IpProtocol::Tcp {
                    self.correct_segment(packet.payload_mut(), ends);
                }
            }
            // A request for the peer's hardware address.
            Err(_) => {}
        }
    }

    fn correct_segment(&mut self, segment: &mut [u8], ends: (IpAddress, IpAddress)) {
        let Ok(mut segment) = TcpPacket::new_checked(segment) else { return };
        if segment.rst() {
            // One that answers a segment has the number that the peer expects: that of an older
            // connection, if our SYN has met one there (RFC 9293 §3.5.1, figure 9).
            if let Some(sent) = self.sent.filter(|_| self.is_resetting) {
                set_number(&mut segment, self.acknowledgement_number(sent), ends);
            }
            return;
        }
        let (number, len) = (segment.seq_number(), segment.segment_len());
        if segment.ack() {
            self.last_acknowledged = Some(segment.ack_number());
            let window = (segment.ack_number(), segment.window_len());
            let window = (!segment.syn()).then_some(window);
            // A probe has one byte, and maybe our end.
            if segment.payload_mut().len() == 1 {
                self.window_of_byte = window;
            } else {
                (self.window, self.window_of_byte) = (window, None);
            }
        }
        match self.sent {
            Some(sent) if len == 0 && number <= sent => {
                set_number(&mut segment, self.acknowledgement_number(sent), ends);
            }
            Some(sent) if number + len <= sent => {}
            _ => self.sent = Some(number + len),
        }
    }
}

fn set_number(
    segment: &mut TcpPacket<&mut [u8]>,
    number: TcpSeqNumber,
    ends: (IpAddress, IpAddress),
) {
    if segment.seq_number() != number {
        segment.set_seq_number(number);
        segment.fill_checksum(&ends.0, &ends.1);
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::net::Shutdown;
    use std::time::Duration;

    use smoltcp::wire::IpVersion;

    use super::super::packets::{ACK, FIN, MEDIUMS, RESET, SYN, VERSIONS, ends, segment};
    use super::super::test_peer::{TestPeer, for_each_case};
    use super::*;

    /// The sequence number of a packet when it is sent. Asserts that its checksum is right.
    fn sent_number(
        sequence: &mut Sequence,
        medium: Medium,
        version: IpVersion,
        packet: &[u8],
    ) -> i32 {
        let mut frame = packet.to_vec();
        sequence.correct_number(medium, &mut frame);
        let link_header = if medium == Medium::Ethernet { ETHERNET_HEADER } else { 0 };
        let ip_header = if version == IpVersion::Ipv4 { 20 } else { 40 };
        let segment = TcpPacket::new_checked(&frame[link_header + ip_header..]).expect("it is one");
        let (from, to) = ends(version);
        assert!(segment.verify_checksum(&from, &to));
        segment.seq_number().0
    }

    #[test]
    fn an_acknowledgement_has_the_number_after_all_sent_bytes() {
        // Also where the numbers wrap around.
        for first in [100, i32::MAX - 20, -20] {
            for (medium, version) in MEDIUMS.iter().flat_map(|&on| VERSIONS.map(|of| (on, of))) {
                let mut sequence = Sequence::default();
                let at = |number: i32| first.wrapping_add(number);
                for (number, flags, payload, left) in [
                    (0, SYN | ACK, &b""[..], 0),
                    (1, ACK, b"0123456789", 1),
                    (11, ACK, b"0123456789", 11),
                    // Retransmitted.
                    (1, ACK, b"0123456789", 1),
                    (11, ACK, b"", 21),
                    (1, ACK, b"", 21),
                    // A probe, which has an old number on purpose, and a reset.
                    (20, ACK, b"x", 20),
                    (11, RESET | ACK, b"", 11),
                    (21, FIN | ACK, b"", 21),
                    (21, ACK, b"", 22),
                    (22, ACK, b"", 22),
                ] {
                    let packet = segment(medium, version, at(number), flags, payload);
                    let number_sent = sent_number(&mut sequence, medium, version, &packet);
                    assert_eq!(number_sent, at(left), "{number}");
                }
            }
        }
    }

    fn turn(peer: &mut TestPeer, time: Duration) -> Vec<i32> {
        peer.clock.advance(time);
        peer.stack.end_wait(None, false, &mut Vec::new()).expect("the cable is in");
        peer.received_acks()
    }

    #[test]
    fn an_acknowledgement_has_no_number_beyond_a_shut_window() {
        // The window has room for nine bytes. How many are written, whether our end follows, and
        // how many numbers are sent beyond the window.
        for (len, has_end, beyond) in [(10, false, 1), (10, true, 2), (9, true, 1)] {
            for_each_case(|mut peer| {
                let bytes = vec![7; len];
                peer.stack.write(peer.id, &[IoSlice::new(&bytes)]).expect("it is connected");
                peer.received_acks();
                let sent = peer.acknowledges;
                peer.window = 0;
                peer.send(ACK, b"");
                if has_end {
                    peer.stack.shutdown(peer.id, Shutdown::Write).expect("it is connected");
                }
                for _ in 0..3 {
                    turn(&mut peer, Duration::from_secs(10));
                    assert_eq!(peer.acknowledges.wrapping_sub(sent), beyond);
                    (peer.acknowledges, peer.window) = (sent, 0);
                    peer.send(ACK, b"the other direction");
                    // A segment that was overtaken says nothing of the window now.
                    (peer.acknowledges, peer.window) = (sent.wrapping_sub(1), 9);
                    peer.send(ACK, b"");
                    assert_eq!(turn(&mut peer, Duration::from_millis(20)), [peer.number]);
                    assert_eq!(peer.acknowledges, sent);
                }
            });
        }
    }

    #[test]
    fn challenges_go_on_after_a_probe_was_taken() {
        for_each_case(|mut peer| {
            peer.stack.write(peer.id, &[IoSlice::new(b"0123456789")]).expect("it is connected");
            peer.received_acks();
            let sent = peer.acknowledges;
            peer.window = 0;
            peer.send(ACK, b"");
            turn(&mut peer, Duration::from_secs(10));
            assert_eq!(peer.acknowledges, sent.wrapping_add(1), "the probe");
            peer.window = 9;
            peer.send(ACK, b"");
            for _ in 0..5 {
                assert_eq!(turn(&mut peer, Duration::from_secs(2)), [0; 0]);
                peer.send_at_offset(12_345, SYN, b"");
                assert_eq!(peer.received_acks(), [peer.number]);
                assert_eq!(peer.acknowledges, sent.wrapping_add(1));
            }
        });
    }

    /// A peer that has received all of it takes no reset with another number (RFC 9293 §3.10.7.4).
    #[test]
    fn a_reset_after_a_retransmission_has_the_number_after_all_sent_bytes() {
        for_each_case(|mut peer| {
            peer.window = 60_000;
            peer.send(ACK, b"");
            peer.received_acks();
            peer.stack.write(peer.id, &[IoSlice::new(&[7; 2_000])]).expect("it is connected");
            peer.received_acks();
            let sent = peer.acknowledges;
            // The acknowledgements of the peer are lost.
            for _ in 0..3 {
                turn(&mut peer, Duration::from_secs(2));
                assert_ne!(peer.acknowledges, sent, "only a part is sent again");
            }
            peer.stack.reset(peer.id).expect("it is there");
            assert_eq!(peer.received_acks(), [peer.number]);
            assert_eq!(peer.acknowledges, sent);
        });
    }

    /// A client whose first packet meets an older connection at the peer gets an acknowledgement of
    /// that one, and resets it (RFC 9293 §3.5.1, figure 9).
    #[test]
    fn a_reset_of_an_older_connection_does_not_count_as_sent() {
        for (medium, version) in MEDIUMS.iter().flat_map(|&on| VERSIONS.map(|of| (on, of))) {
            for older in [101, 5_000, -5_000, i32::MIN] {
                let mut sequence = Sequence::default();
                let numbers = [(100, SYN), (older, RESET), (100, SYN), (101, ACK)];
                let sent = numbers.map(|(number, flags)| {
                    let packet = segment(medium, version, number, flags, b"");
                    sent_number(&mut sequence, medium, version, &packet)
                });
                assert_eq!(sent, [100, older, 100, 101]);
                assert_eq!(sequence.sent(), Some(TcpSeqNumber(101)));
            }
        }
    }

    #[test]
    fn other_packets_are_not_changed() {
        for bytes in [&[][..], &[0x45], &[0; 60], &[0x45; 60], &[0x60; 60]] {
            for medium in MEDIUMS {
                let mut packet = bytes.to_vec();
                Sequence::default().correct_number(medium, &mut packet);
                assert_eq!(packet, bytes);
            }
        }
    }
}
