//! `Sequence`: how far a connection has sent, which its acknowledgements have to say.
//!
//! An acknowledgement has the number of what is sent next (RFC 9293, section 3.10.7.4: `SEQ=SND.NXT`).
//! When smoltcp sends again it counts from there, and so its acknowledgements have numbers that the
//! peer has received long ago. The peer throws such a segment away whole, the acknowledgement
//! included. Where both ends do so and both have something to send again, neither ever hears that
//! the other one has it.

use smoltcp::wire::{
    IpAddress, IpProtocol, IpVersion, Ipv4Packet, Ipv6Packet, TcpPacket, TcpSeqNumber,
};

use crate::device::{ETHERNET_HEADER, Medium};

/// How far a connection has sent.
#[derive(Default)]
pub(super) struct Sequence {
    /// The number behind the last byte that was sent, whether it was acknowledged or not.
    sent: Option<TcpSeqNumber>,
}

impl Sequence {
    /// Looks at a packet that is about to be sent; where it only acknowledges, it gets the number
    /// that it should have.
    pub(super) fn mend(&mut self, medium: Medium, packet: &mut [u8]) {
        let around = if medium == Medium::Ethernet { ETHERNET_HEADER } else { 0 };
        let Some(packet) = packet.get_mut(around..).filter(|packet| !packet.is_empty()) else {
            return;
        };
        match IpVersion::of_packet(packet) {
            Ok(IpVersion::Ipv4) => {
                let Ok(mut packet) = Ipv4Packet::new_checked(packet) else { return };
                let ends = (packet.src_addr().into(), packet.dst_addr().into());
                if packet.next_header() == IpProtocol::Tcp {
                    self.mend_segment(packet.payload_mut(), ends);
                }
            }
            Ok(IpVersion::Ipv6) => {
                let Ok(mut packet) = Ipv6Packet::new_checked(packet) else { return };
                let ends = (packet.src_addr().into(), packet.dst_addr().into());
                if packet.next_header() == IpProtocol::Tcp {
                    self.mend_segment(packet.payload_mut(), ends);
                }
            }
            // A question where the peer is.
            Err(_) => {}
        }
    }

    fn mend_segment(&mut self, segment: &mut [u8], ends: (IpAddress, IpAddress)) {
        let Ok(mut segment) = TcpPacket::new_checked(segment) else { return };
        let (number, len) = (segment.seq_number(), segment.segment_len());
        match self.sent {
            Some(sent) if len == 0 && !segment.rst() && number < sent => {
                segment.set_seq_number(sent);
                segment.fill_checksum(&ends.0, &ends.1);
            }
            Some(sent) if number + len <= sent => {}
            _ => self.sent = Some(number + len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{Ipv4Address, Ipv4Repr, TcpControl, TcpRepr};

    const FROM: Ipv4Address = Ipv4Address::new(10, 0, 0, 1);
    const TO: Ipv4Address = Ipv4Address::new(10, 0, 0, 2);

    fn packet(number: i32, control: TcpControl, payload: &[u8]) -> Vec<u8> {
        let segment = TcpRepr {
            src_port: 1,
            dst_port: 2,
            control,
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
        let header = Ipv4Repr {
            src_addr: FROM,
            dst_addr: TO,
            next_header: IpProtocol::Tcp,
            payload_len: segment.buffer_len(),
            hop_limit: 64,
        };
        let sums = ChecksumCapabilities::default();
        let mut packet = vec![0; header.buffer_len() + segment.buffer_len()];
        header.emit(&mut Ipv4Packet::new_unchecked(&mut packet), &sums);
        let payload = &mut packet[header.buffer_len()..];
        segment.emit(&mut TcpPacket::new_unchecked(payload), &FROM.into(), &TO.into(), &sums);
        packet
    }

    /// The number that a packet has when it leaves, and whether its sum is right.
    fn leaves(sequence: &mut Sequence, medium: Medium, packet: &[u8]) -> i32 {
        let mut frame = match medium {
            Medium::Ip => Vec::new(),
            Medium::Ethernet => vec![0; ETHERNET_HEADER],
        };
        let around = frame.len();
        frame.extend(packet);
        sequence.mend(medium, &mut frame);
        let ip = Ipv4Packet::new_checked(&frame[around..]).expect("it is one");
        let segment = TcpPacket::new_checked(ip.payload()).expect("it is one");
        assert!(segment.verify_checksum(&FROM.into(), &TO.into()));
        segment.seq_number().0
    }

    #[test]
    fn an_acknowledgement_has_the_number_behind_all_that_was_sent() {
        use TcpControl::{Fin, None, Rst, Syn};
        for medium in [Medium::Ip, Medium::Ethernet] {
            // Also where the numbers begin anew.
            for first in [100, i32::MAX - 20, -20] {
                let mut sequence = Sequence::default();
                let at = |number: i32| first.wrapping_add(number);
                for (number, control, payload, left) in [
                    (0, Syn, &b""[..], 0),
                    (1, None, b"0123456789", 1),
                    (11, None, b"0123456789", 11),
                    // Sent again.
                    (1, None, b"0123456789", 1),
                    (11, None, b"", 21),
                    (1, None, b"", 21),
                    // A probe, which has a number of before on purpose, and a reset.
                    (20, None, b"x", 20),
                    (11, Rst, b"", 11),
                    (21, Fin, b"", 21),
                    (21, None, b"", 22),
                    (22, None, b"", 22),
                ] {
                    let packet = packet(at(number), control, payload);
                    assert_eq!(leaves(&mut sequence, medium, &packet), at(left), "{number}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_segment_is_left_as_it_is() {
        for bytes in [&[][..], &[0x45], &[0; 60], &[0x45; 60], &[0x60; 60]] {
            for medium in [Medium::Ip, Medium::Ethernet] {
                let mut packet = bytes.to_vec();
                Sequence::default().mend(medium, &mut packet);
                assert_eq!(packet, bytes);
            }
        }
    }
}
