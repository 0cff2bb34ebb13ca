//! Segments that may not be from the peer are challenged instead of believed, and messages of ICMP
//! only if they know the number of a SYN.
//!
//! Resets count only if their number is exactly the next expected one (RFC 9293 §3.10.7.4; RFC 5961
//! §3.2).
//!
//! smoltcp accepts any number in the window. An attacker who knows the ports of a connection could
//! then end it with as many packets as there are windows in the number space: 65,536 for a window
//! of 64 KiB, 256 for one of 16 MiB.

use smoltcp::socket::tcp::State;

use super::acknowledgement::acknowledgement;
use super::connection::Phase;
use super::flow::{Flow, Segment};
use super::layers::Layers;
use super::unreachable::Unreachable;
use super::wire::Wire;
use super::{Stack, to_instant};
use crate::device::{ETHERNET_HEADER, Medium};
use crate::slots::Id;

impl Stack {
    /// Handles a reset. If its number is not the expected one, but in the window, the sender is
    /// challenged: a peer without such a connection then sends a reset with the number that the
    /// challenge acknowledges.
    pub(super) fn handle_reset(&mut self, segment: &Segment, packet: &[u8]) {
        let known = self.flows.get(&segment.flow).copied();
        let expected = known.and_then(|id| self.connections.get(id)?.expected_number());
        let (Some(id), Some(expected)) = (known, expected) else {
            return self.handle_segment(segment, packet);
        };
        if expected == segment.number {
            return self.handle_expected_reset(segment, packet);
        }
        let beyond = segment.number.0.wrapping_sub(expected.0);
        let window = self.config.receive_buffer_bytes;
        if usize::try_from(beyond).is_ok_and(|beyond| beyond < window) {
            self.challenge(id, packet);
        }
    }

    /// Gives smoltcp a reset whose number is the expected one, without its text (RFC 9293 §3.5.3):
    /// smoltcp would drop it with one while the window is shut.
    fn handle_expected_reset(&mut self, segment: &Segment, packet: &[u8]) {
        let Wire { medium, verifies_checksums, .. } = self.wire;
        let short = Layers::parse(medium, packet)
            .filter(|_| segment.len > 0)
            .filter(|layers| !verifies_checksums || layers.has_valid_checksum(packet))
            .and_then(|layers| layers.without_payload(packet));
        match short {
            Some(short) => self.handle_segment(&Segment { len: 0, ..*segment }, &short),
            // smoltcp drops it if its checksum is wrong.
            None => self.handle_segment(segment, packet),
        }
    }

    /// Handles that a segment was not delivered. An attempt to connect fails, as on Linux; an
    /// established connection goes on, since the network may recover (RFC 1122 §4.2.3.9). Only who
    /// has seen our SYN knows its number (RFC 5927 §4.1).
    pub(super) fn handle_unreachable(&mut self, unreachable: &Unreachable) {
        let Unreachable { remote, local, number, kind } = *unreachable;
        let Some(id) = self.flows.get(&Flow { remote, local }).copied() else { return };
        let Some(connection) = self.connections.get_mut(id) else { return };
        let is_attempt = connection.phase == Phase::Connecting
            && connection.state() == State::SynSent
            && connection.sequence.sent() == Some(number + 1);
        if is_attempt {
            connection.phase = Phase::Open;
            connection.fail(kind);
            connection.socket().abort();
            self.send(id);
            self.mark_changed(id);
        }
    }

    /// Whether a segment that asks for a new connection (SYN) is challenged, whatever its number
    /// (RFC 5961 §4.2): smoltcp drops it, and a peer that has lost its side would never get through.
    pub(super) fn is_synchronized(&self, id: Id) -> bool {
        let state = self.connections.get(id).map(|connection| connection.state());
        !matches!(state, None | Some(State::SynSent | State::SynReceived | State::Closed))
    }

    /// Sends a challenge ACK: has smoltcp acknowledge what has arrived, as it does for a probe, at
    /// most once per second (RFC 5961 §7).
    pub(super) fn challenge(&mut self, id: Id, packet: &[u8]) {
        let now = to_instant(self.now());
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.state() == State::TimeWait && !connection.holds_last_bytes() {
            // Nothing more can come, and smoltcp would restart its wait at each probe.
            return;
        }
        let (expected, sent) = (connection.expected_number(), connection.sequence.sent());
        let (Some(expected), Some(sent)) = (expected, sent) else { return };
        let link_header = match self.wire.medium {
            Medium::Ip => 0,
            Medium::Ethernet => ETHERNET_HEADER,
        };
        let link_header = &packet[..link_header.min(packet.len())];
        let ends = (connection.flow.remote, connection.flow.local);
        let probe = acknowledgement(link_header, ends, expected - 1, sent);
        let mut port = self.wire.with_packet(&probe).with_sequence(&mut connection.sequence);
        self.iface.poll_ingress_single(now, &mut port, &mut connection.set);
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::net::Shutdown;
    use std::time::Duration;

    use smoltcp::wire::IpVersion;

    use super::super::SocketKind;
    use super::super::packets::{ACK, FIN, RESET, SYN};
    use super::super::test_peer::for_each_case;

    #[test]
    fn a_reset_with_a_wrong_number_is_ignored_or_challenged() {
        for_each_case(|mut peer| {
            // In several states: with bytes that are unread, unacknowledged, or out of order.
            for step in 0..6 {
                match step {
                    1 => peer.send(ACK, b"0123456789"),
                    2 => drop(peer.received_acks()),
                    3 => assert_eq!(peer.read(), 10),
                    4 => peer.send_at_offset(5, ACK, b"behind a gap"),
                    5 => drop(peer.stack.write(peer.id, &[IoSlice::new(b"answer")])),
                    _ => {}
                }
                for offset in [1, 1_000, 65_535] {
                    peer.clock.advance(Duration::from_secs(1));
                    peer.received_acks();
                    peer.send_at_offset(offset, RESET, b"");
                    peer.send_at_offset(offset, RESET | ACK, b"payload");
                    assert!(peer.stack.is_connected(peer.id), "step {step}, offset {offset}");
                    // At most one challenge per second.
                    assert_eq!(peer.received_acks(), [peer.number], "step {step}, offset {offset}");
                }
                peer.clock.advance(Duration::from_secs(1));
                peer.received_acks();
                for offset in [-1, -1_000, 65_536, i32::MAX, i32::MIN] {
                    peer.send_at_offset(offset, RESET, b"");
                    assert!(peer.stack.is_connected(peer.id), "step {step}, offset {offset}");
                    assert_eq!(peer.received_acks(), [0; 0], "step {step}, offset {offset}");
                }
            }
            peer.send(RESET, b"");
            assert!(!peer.stack.is_connected(peer.id));
            assert_eq!(peer.stack.stats().reset, 1);
        });
    }

    #[test]
    fn a_peer_without_the_connection_resets_it_after_a_challenge() {
        for_each_case(|mut peer| {
            peer.send(ACK, b"0123456789");
            // The segments in between were lost.
            peer.send_at_offset(10, RESET | ACK, b"");
            let told = peer.received_acks();
            assert_eq!(told, [peer.number]);
            peer.number = told[0];
            peer.send(RESET, b"");
            assert!(!peer.stack.is_connected(peer.id));
        });
    }

    #[test]
    fn a_restarted_peer_is_challenged_and_can_connect_again() {
        for_each_case(|mut peer| {
            let (old, acknowledges) = (peer.number, peer.acknowledges);
            for offset in [12_345, 0, -1, -12_345] {
                peer.clock.advance(Duration::from_secs(1));
                for _ in 0..3 {
                    peer.send_at_offset(offset, SYN, b"");
                }
                assert_eq!(peer.received_acks(), [old], "at most one challenge per second");
                assert!(peer.stack.is_connected(peer.id), "anybody can send that");
            }
            // It knows nothing of the connection, so it resets what it is told of.
            peer.send_at_offset(0, RESET, b"");
            assert!(!peer.stack.is_connected(peer.id));
            if peer.listener.is_none() {
                return;
            }
            peer.number = old.wrapping_add(12_345);
            peer.send(SYN, b"");
            assert_eq!(peer.received_acks(), [peer.number]);
            assert_ne!(peer.acknowledges, acknowledges, "it is another connection");
            peer.send(ACK, b"");
            peer.id = peer.accept();
            assert!(peer.stack.is_connected(peer.id));
        });
    }

    #[test]
    fn a_peer_can_connect_again_while_its_last_bytes_are_unread() {
        for is_reset in [false, true] {
            for_each_case(|mut peer| {
                if peer.listener.is_none() {
                    return;
                }
                peer.stack.shutdown(peer.id, Shutdown::Write).expect("it is connected");
                peer.received_acks();
                peer.send(FIN | ACK, b"0123456789");
                peer.clock.advance(Duration::from_secs(1));
                peer.stack.end_wait(None, false, &mut Vec::new()).expect("the cable is in");
                assert_eq!(peer.received_acks(), [peer.number]);
                peer.clock.advance(Duration::from_secs(60));
                peer.send_at_offset(-1_000, SYN, b"");
                assert_eq!(peer.received_acks(), [peer.number], "it may be one of before");
                peer.number = peer.number.wrapping_add(1_000);
                peer.send(SYN, b"");
                assert_eq!(peer.received_acks(), [peer.number]);
                peer.send(ACK, b"");
                let old = peer.id;
                peer.id = peer.accept();
                let new = std::mem::replace(&mut peer.id, old);
                if is_reset {
                    peer.stack.reset(old).expect("it is there");
                } else {
                    assert_eq!(peer.read_up_to(4), 4);
                }
                peer.received_acks();
                peer.stack.drop_socket(SocketKind::Stream, old);
                assert_eq!(peer.received_acks(), [0; 0], "the peer would reset the new one");
                assert_eq!(peer.stack.stats().connections, 1);
                peer.id = new;
                peer.send(ACK, b"again");
                assert_eq!(peer.read(), 5);
            });
        }
    }

    #[test]
    fn the_end_of_a_peer_uses_one_sequence_number() {
        // A reset may have a text (RFC 9293 §3.5.3).
        for text in [&b""[..], b"the reason"] {
            for_each_case(|mut peer| {
                peer.send(ACK, b"0123456789");
                peer.send(FIN | ACK, b"");
                peer.received_acks();
                assert_eq!(peer.read(), 10);
                peer.clock.advance(Duration::from_secs(1));
                peer.send_at_offset(1, RESET, text);
                assert!(peer.stack.is_connected(peer.id));
                assert_eq!(peer.received_acks(), [peer.number]);
                peer.send(RESET, text);
                assert!(!peer.stack.is_connected(peer.id));
            });
        }
    }

    #[test]
    fn resets_with_wrong_numbers_do_not_prolong_time_wait() {
        for_each_case(|mut peer| {
            peer.stack.shutdown(peer.id, Shutdown::Write).expect("it is connected");
            peer.received_acks();
            peer.send(FIN | ACK, b"");
            assert_eq!(peer.received_acks(), [peer.number]);
            for second in 0..20 {
                let is_over = !peer.stack.is_connected(peer.id);
                assert_eq!(is_over, second >= 10, "{second}");
                peer.clock.advance(Duration::from_secs(1));
                peer.send_at_offset(1, RESET, b"");
                let turn = peer.stack.end_wait(None, false, &mut Vec::new());
                turn.expect("the cable is in");
            }
        });
    }

    #[test]
    fn a_reset_counts_at_a_shut_window() {
        for text in [&b""[..], b"the reason"] {
            for_each_case(|mut peer| {
                let mut left = peer.stack.config.receive_buffer_bytes;
                while left > 0 {
                    let len = left.min(1_000);
                    peer.send(ACK, &vec![7; len]);
                    left -= len;
                    peer.received_acks();
                }
                peer.clock.advance(Duration::from_secs(1));
                peer.received_acks();
                // Damaged: in its text, in its number of the acknowledged, in its IP header.
                let whole = peer.segment_at_offset(0, RESET | ACK, text);
                let mut damaged = vec![(whole.len() - 1, 1), (peer.segment_at() + 8, 1)];
                if peer.version == IpVersion::Ipv4 {
                    damaged.push((peer.segment_at() - 20 + 8, 1));
                }
                for (at, bit) in damaged {
                    let mut packet = whole.clone();
                    packet[at] ^= bit;
                    peer.stack.handle_packet(&packet);
                    assert!(peer.stack.is_connected(peer.id), "text {}, {at}", text.len());
                }
                peer.send(RESET | ACK, text);
                assert!(!peer.stack.is_connected(peer.id), "text {}", text.len());
                assert_eq!(peer.stack.stats().reset, 1);
            });
        }
    }
}
