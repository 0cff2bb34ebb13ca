//! Resets: one counts where its number is the very next that is expected (RFC 9293, section 3.10.7.4;
//! RFC 5961, section 3.2).
//!
//! smoltcp takes any whose number is in the window. Who knows the ports of a connection then ends it with
//! as many packets as there are windows among all numbers: 65,536 where one has 64 KiB, 256 where it has
//! 16 MiB.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::tcp::State;
use smoltcp::wire::{IpAddress, IpProtocol, IpRepr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber};

use super::flow::Flow;
use super::{Stack, instant};
use crate::device::{ETHERNET_HEADER, Medium};

impl Stack {
    /// Takes a reset. Where its number is another than the one that is expected, and may have been
    /// right, its sender is asked: who has no such connection resets it by the number that it is told.
    pub(super) fn take_reset(&mut self, flow: Flow, number: TcpSeqNumber, packet: &[u8]) {
        let known = self.flows.get(&flow).and_then(|id| self.connections.get(*id));
        let expected = known.and_then(|connection| connection.expected());
        match expected.filter(|expected| *expected != number) {
            None => self.take_segment(flow, false, packet),
            Some(expected) => {
                let beyond = number.0.wrapping_sub(expected.0);
                let window = self.config.receive_buffer_bytes;
                if usize::try_from(beyond).is_ok_and(|beyond| beyond < window) {
                    self.challenge(flow, expected, packet);
                }
            }
        }
    }

    /// Acknowledges what has come of a connection. smoltcp does that for a probe, once a second at most
    /// (RFC 5961, section 7).
    fn challenge(&mut self, flow: Flow, expected: TcpSeqNumber, packet: &[u8]) {
        let now = instant(self.now());
        let known = self.flows.get(&flow).and_then(|id| self.connections.get_mut(*id));
        let Some(connection) = known else { return };
        if connection.state() == State::TimeWait {
            // Nothing is to come of it, and smoltcp waits anew at each probe.
            return;
        }
        let Some(sent) = connection.sequence.sent() else { return };
        let around = match self.wire.medium {
            Medium::Ip => 0,
            Medium::Ethernet => ETHERNET_HEADER,
        };
        let probe = probe(&packet[..around.min(packet.len())], flow, expected - 1, sent);
        let mut port = self.wire.with(&probe).of(&mut connection.sequence);
        self.iface.poll_ingress_single(now, &mut port, &mut connection.set);
    }
}

/// A segment without bytes, as the peer of a connection would send it, behind the header of a frame.
fn probe(frame: &[u8], flow: Flow, number: TcpSeqNumber, acknowledges: TcpSeqNumber) -> Vec<u8> {
    let segment = TcpRepr {
        src_port: flow.remote.port(),
        dst_port: flow.local.port(),
        control: TcpControl::None,
        seq_number: number,
        ack_number: Some(acknowledges),
        window_len: 0,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    };
    let (from, to): (IpAddress, IpAddress) = (flow.remote.ip().into(), flow.local.ip().into());
    let header = IpRepr::new(from, to, IpProtocol::Tcp, segment.buffer_len(), 64);
    let sums = ChecksumCapabilities::default();
    let mut packet = frame.to_vec();
    packet.resize(frame.len() + header.buffer_len(), 0);
    let inner = &mut packet[frame.len()..];
    header.emit(&mut *inner, &sums);
    let inner = &mut inner[header.header_len()..];
    segment.emit(&mut TcpPacket::new_unchecked(inner), &from, &to, &sums);
    packet
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::time::Duration;

    use rotor_core::net::ReadBuf;
    use smoltcp::wire::{IpVersion, Ipv4Packet, Ipv6Packet};

    use super::super::packets::{ACK, FIN, RESET, SYN, ends, segment};
    use super::super::tests::{question, receiving};
    use super::*;
    use crate::clock::ManualClock;
    use crate::config::StackConfig;
    use crate::device::{Device, MemoryDevice};
    use crate::slots::Id;

    /// A connection of a stack, of which the test is the peer.
    struct Talk {
        stack: Stack,
        clock: ManualClock,
        cable: MemoryDevice,
        medium: Medium,
        version: IpVersion,
        id: Id,
        /// What the peer says next, and what it acknowledges.
        number: i32,
        acknowledges: i32,
    }

    impl Talk {
        /// One that the peer has begun, or the stack.
        fn new(medium: Medium, version: IpVersion, number: i32, is_begun_by_peer: bool) -> Talk {
            let (mut stack, clock, cable) = receiving(medium, StackConfig::new());
            if medium == Medium::Ethernet {
                stack.take(&question());
            }
            let (from, to) = ends(version);
            let local = (std::net::IpAddr::from(to), 4_096);
            // Ports are those of `segment`, unless the stack chooses one.
            let id = if is_begun_by_peer {
                stack.listen(local.into(), 8).expect("it is free")
            } else {
                stack.connect((std::net::IpAddr::from(from), 80).into()).expect("there is room")
            };
            let mut talk =
                Talk { stack, clock, cable, medium, version, id, number, acknowledges: 0 };
            if is_begun_by_peer {
                talk.say(SYN, b"");
                talk.heard();
                talk.say(ACK, b"");
                talk.id = talk.stack.accept(talk.id).expect("the handshake is complete").0;
            } else {
                talk.heard();
                talk.say(SYN | ACK, b"");
                talk.heard();
            }
            assert!(talk.stack.is_connected(talk.id));
            talk
        }

        /// Says a segment whose number is the next but for that, and nothing else.
        fn say_beside(&mut self, beside: i32, flags: u8, payload: &[u8]) {
            let number = self.number.wrapping_add(beside);
            let mut packet = segment(self.medium, self.version, number, flags, payload);
            if self.medium == Medium::Ethernet {
                packet[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
            }
            let (from, to) = ends(self.version);
            let port = self.stack.addresses(self.id).map(|(local, _)| local.port());
            let at = self.segment_at();
            let bytes = &mut packet[at..];
            if flags & ACK == 0 {
                bytes[8..12].fill(0);
            } else {
                bytes[8..12].copy_from_slice(&self.acknowledges.to_be_bytes());
            }
            let mut segment = TcpPacket::new_unchecked(bytes);
            segment.set_dst_port(port.unwrap_or(4_096));
            segment.fill_checksum(&from, &to);
            self.stack.take(&packet);
        }

        fn say(&mut self, flags: u8, payload: &[u8]) {
            self.say_beside(0, flags, payload);
            let len = payload.len() as i32 + i32::from(flags & (SYN | FIN) != 0);
            self.number = self.number.wrapping_add(len);
        }

        fn segment_at(&self) -> usize {
            let around = if self.medium == Medium::Ethernet { ETHERNET_HEADER } else { 0 };
            around + if self.version == IpVersion::Ipv4 { 20 } else { 40 }
        }

        /// Has the stack send, and returns the numbers that it acknowledges, one for each segment; how
        /// far it has sent is what is acknowledged next.
        fn heard(&mut self) -> Vec<i32> {
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
                self.acknowledges = (segment.seq_number() + segment.segment_len()).0;
                heard.push(segment.ack_number().0);
            }
            heard
        }

        fn read(&mut self) -> usize {
            let (mut buffer, mut count) = ([0; 100], 0);
            let mut buf = ReadBuf::new(&mut buffer, &mut count);
            let _nothing_more = self.stack.read(self.id, &mut buf);
            count
        }
    }

    fn each(mut test: impl FnMut(Talk)) {
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

    #[test]
    fn a_reset_counts_by_its_number_and_one_that_is_beside_it_is_asked_about() {
        each(|mut talk| {
            // As things go on: some is unread, not acknowledged yet, or out of order.
            for step in 0..6 {
                match step {
                    1 => talk.say(ACK, b"0123456789"),
                    2 => drop(talk.heard()),
                    3 => assert_eq!(talk.read(), 10),
                    4 => talk.say_beside(5, ACK, b"behind a gap"),
                    5 => drop(talk.stack.write(talk.id, &[IoSlice::new(b"answer")])),
                    _ => {}
                }
                for beside in [1, 1_000, 65_535] {
                    talk.clock.advance(Duration::from_secs(1));
                    talk.heard();
                    talk.say_beside(beside, RESET, b"");
                    talk.say_beside(beside, RESET | ACK, b"payload");
                    assert!(talk.stack.is_connected(talk.id), "step {step}, {beside} beside it");
                    // Once a second.
                    assert_eq!(talk.heard(), [talk.number], "step {step}, {beside} beside it");
                }
                talk.clock.advance(Duration::from_secs(1));
                talk.heard();
                for beside in [-1, -1_000, 65_536, i32::MAX, i32::MIN] {
                    talk.say_beside(beside, RESET, b"");
                    assert!(talk.stack.is_connected(talk.id), "step {step}, {beside} beside it");
                    assert_eq!(talk.heard(), [0; 0], "step {step}, {beside} beside it");
                }
            }
            talk.say(RESET, b"");
            assert!(!talk.stack.is_connected(talk.id));
            assert_eq!(talk.stack.stats().reset, 1);
        });
    }

    #[test]
    fn whoever_has_no_such_connection_resets_it_by_the_number_that_it_is_told() {
        each(|mut talk| {
            talk.say(ACK, b"0123456789");
            // What was between is lost.
            talk.say_beside(10, RESET | ACK, b"");
            let told = talk.heard();
            assert_eq!(told, [talk.number]);
            talk.number = told[0];
            talk.say(RESET, b"");
            assert!(!talk.stack.is_connected(talk.id));
        });
    }

    #[test]
    fn the_end_of_a_peer_counts_as_a_number() {
        each(|mut talk| {
            talk.say(ACK, b"0123456789");
            talk.say(FIN | ACK, b"");
            talk.heard();
            assert_eq!(talk.read(), 10);
            talk.clock.advance(Duration::from_secs(1));
            talk.say_beside(1, RESET, b"");
            assert!(talk.stack.is_connected(talk.id));
            assert_eq!(talk.heard(), [talk.number]);
            talk.say(RESET, b"");
            assert!(!talk.stack.is_connected(talk.id));
        });
    }

    #[test]
    fn resets_beside_the_number_prolong_no_wait_after_the_end() {
        each(|mut talk| {
            talk.stack.shutdown(talk.id, std::net::Shutdown::Write).expect("it is connected");
            talk.heard();
            talk.say(FIN | ACK, b"");
            assert_eq!(talk.heard(), [talk.number]);
            for second in 0..20 {
                let is_over = !talk.stack.is_connected(talk.id);
                assert_eq!(is_over, second >= 10, "{second}");
                talk.clock.advance(Duration::from_secs(1));
                talk.say_beside(1, RESET, b"");
                let turn = talk.stack.end_wait(None, false, &mut Vec::new());
                turn.expect("the cable is in");
            }
        });
    }
}
