//! Resets count only if their number is exactly the next expected one (RFC 9293 §3.10.7.4; RFC 5961
//! §3.2).
//!
//! smoltcp accepts any number in the window. An attacker who knows the ports of a connection could
//! then end it with as many packets as there are windows in the number space: 65,536 for a window
//! of 64 KiB, 256 for one of 16 MiB.

use smoltcp::socket::tcp::State;
use smoltcp::wire::TcpSeqNumber;

use super::acknowledgement::acknowledgement;
use super::flow::Flow;
use super::{Stack, instant};
use crate::device::{ETHERNET_HEADER, Medium};

impl Stack {
    /// Handles a reset. If its number is not the expected one, but in the window, the sender is
    /// challenged: a peer without such a connection then sends a reset with the number that the
    /// challenge acknowledges.
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

    /// Sends a challenge ACK: has smoltcp acknowledge what has arrived, as it does for a probe, at
    /// most once per second (RFC 5961 §7).
    fn challenge(&mut self, flow: Flow, expected: TcpSeqNumber, packet: &[u8]) {
        let now = instant(self.now());
        let known = self.flows.get(&flow).and_then(|id| self.connections.get_mut(*id));
        let Some(connection) = known else { return };
        if connection.state() == State::TimeWait {
            // Nothing more can come, and smoltcp would restart its wait at each probe.
            return;
        }
        let Some(sent) = connection.sequence.sent() else { return };
        let around = match self.wire.medium {
            Medium::Ip => 0,
            Medium::Ethernet => ETHERNET_HEADER,
        };
        let around = &packet[..around.min(packet.len())];
        let ends = (flow.remote, flow.local);
        let probe = acknowledgement(around, ends, expected - 1, sent);
        let mut port = self.wire.with(&probe).of(&mut connection.sequence);
        self.iface.poll_ingress_single(now, &mut port, &mut connection.set);
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::time::Duration;

    use super::super::packets::{ACK, FIN, RESET};
    use super::super::talk::each;

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
