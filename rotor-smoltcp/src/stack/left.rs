//! Connections whose sockets were dropped: they send what they have buffered, and end.

use smoltcp::socket::tcp::State;
use smoltcp::wire::TcpPacket;

use super::Stack;
use super::acknowledgement::acknowledgement;
use super::flow::Flow;
use super::layers::Layers;
use super::time_wait::{Numbers, Verdict};
use super::wire::Wire;
use crate::device::{ETHERNET_HEADER, Medium};
use crate::slots::Id;

impl Stack {
    /// Handles a connection whose socket was dropped. It goes on sending what it has buffered, for
    /// a while. If bytes were not read, or if sending takes too long, it is reset (RFC 9293 §3.6).
    pub(super) fn leave(&mut self, id: Id) {
        let until = self.now() + self.config.linger;
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.leave();
        if connection.socket().recv_queue() > 0 {
            connection.socket().abort();
        } else {
            connection.socket().close();
        }
        connection.give_up_at = Some(until);
        if connection.is_over() {
            self.forget(id);
        } else {
            self.mark(id);
            self.note_lingering(id);
        }
    }

    /// Adds a dropped connection that has not ended to the lingering ones. Their number is limited
    /// because each has its buffers, and no limit of a server counts them.
    pub(super) fn note_lingering(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.lingers = true;
        self.stats.lingering += 1;
        self.lingering.push_back(id);
        while self.stats.lingering > self.config.lingering_max && self.reset_oldest() {}
        // Ended connections stay in the list. So it is kept at about twice the number of lingering
        // ones.
        if self.lingering.len() > 2 * (self.stats.lingering + 8) {
            let connections = &self.connections;
            self.lingering.retain(|id| connections.get(*id).is_some_and(|one| one.lingers));
        }
    }

    /// Resets the connection that was dropped first; returns false if there is none.
    fn reset_oldest(&mut self) -> bool {
        while let Some(oldest) = self.lingering.pop_front() {
            let Some(connection) = self.connections.get_mut(oldest) else { continue };
            if connection.lingers {
                self.stats.lingering_overflowed += 1;
                connection.socket().abort();
                self.send(oldest);
                self.forget(oldest);
                return true;
            }
        }
        false
    }

    /// Handles a change of a dropped connection: further bytes of its peer cause a reset.
    pub(super) fn settle_left(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.is_over() {
            return self.forget(id);
        }
        if connection.socket().recv_queue() > 0 && connection.state() != State::Closed {
            connection.socket().abort();
            return self.mark(id);
        }
        if connection.state() == State::TimeWait {
            // If the peer's end was not acknowledged yet, smoltcp ends the wait by itself.
            connection.give_up_at = None;
            if let Some(numbers) = connection.last_numbers() {
                self.wait_without_socket(id, numbers);
            }
        }
    }

    /// Keeps a connection that both sides have ended, without its buffers.
    fn wait_without_socket(&mut self, id: Id, numbers: Numbers) {
        let Some(flow) = self.connections.get(id).map(|connection| connection.flow) else { return };
        self.forget(id);
        let (now, max) = (self.now(), self.config.time_wait_max);
        let is_full = self.time_wait.keep(flow, numbers, now, max);
        self.stats.time_wait_overflowed += u64::from(is_full);
    }

    /// Handles a segment of a connection in TIME-WAIT. Returns true if its sender begins a new
    /// connection.
    pub(super) fn take_late(&mut self, flow: Flow, packet: &[u8]) -> bool {
        let now = self.now();
        let Wire { medium, verifies, .. } = self.wire;
        let layers =
            Layers::of(medium, packet).filter(|layers| !verifies || layers.is_sound(packet));
        let segment = layers.and_then(|layers| packet.get(layers.of_transport()));
        let Some(Ok(segment)) = segment.map(TcpPacket::new_checked) else { return false };
        let around = match medium {
            Medium::Ip => Vec::new(),
            // Back to the sender.
            Medium::Ethernet => {
                let [to, from] = [0..6, 6..12].map(|range| &packet[range]);
                if to != self.config.hardware_address {
                    return false;
                }
                [from, to, &packet[12..ETHERNET_HEADER]].concat()
            }
        };
        // Without a listener, a new connection would only end the wait, and anybody who guesses
        // ports could do that.
        let is_listened_to = self.bound_listeners.find(flow.local).is_some();
        match self.time_wait.take(&flow, &segment, is_listened_to, now) {
            Verdict::Ignore => false,
            Verdict::Anew => true,
            Verdict::Acknowledge(Numbers { sent, expected }) => {
                let ends = (flow.local, flow.remote);
                self.wire.send(&acknowledgement(&around, ends, sent, expected));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::time::Duration;

    use super::super::Kind;
    use super::super::packets::{ACK, FIN, RESET, SYN};
    use smoltcp::wire::TcpSeqNumber;

    use super::super::listening::FIRST_PORT;
    use super::super::talk::{Talk, each};
    use super::super::tests::receiving;
    use super::*;
    use crate::config::StackConfig;

    /// The machine drops it, and then the peer ends as well.
    fn end(talk: &mut Talk) {
        talk.stack.drop_socket(Kind::Stream, talk.id);
        assert_eq!(talk.heard(), [talk.number]);
        talk.say(FIN | ACK, b"");
        assert_eq!(talk.heard(), [talk.number]);
        assert_eq!(counts(talk), (0, 1));
    }

    /// How many connections there are, and how many that have ended on both sides.
    fn counts(talk: &Talk) -> (usize, usize) {
        (talk.stack.stats().connections, talk.stack.stats().time_wait)
    }

    fn turn(talk: &mut Talk) {
        talk.stack.end_wait(None, false, &mut Vec::new()).expect("the cable is in");
    }

    #[test]
    fn an_end_that_comes_again_is_acknowledged_though_the_socket_is_gone() {
        each(|mut talk| {
            end(&mut talk);
            let acknowledges = talk.acknowledges;
            for _ in 0..3 {
                talk.clock.advance(Duration::from_secs(9));
                turn(&mut talk);
                talk.say_beside(-1, FIN | ACK, b"");
                assert_eq!(talk.heard(), [talk.number]);
                assert_eq!(talk.acknowledges, acknowledges, "it has the number behind our end");
            }
            talk.clock.advance(Duration::from_secs(10));
            assert_eq!(talk.stack.next_look(None), Some(talk.stack.now()));
            turn(&mut talk);
            assert_eq!(counts(&talk), (0, 0));
            assert_eq!(talk.stack.next_look(None), None);
        });
    }

    #[test]
    fn what_was_changed_on_its_way_or_is_for_another_card_is_not_answered() {
        each(|mut talk| {
            end(&mut talk);
            let packet = talk.beside(-1, FIN | ACK, b"");
            let (number, last) = (talk.segment_at() + 4, packet.len() - 1);
            let card = (talk.medium == Medium::Ethernet).then_some(5);
            for at in [Some(number), Some(last), card].into_iter().flatten() {
                let mut packet = packet.clone();
                packet[at] ^= 0x40;
                talk.stack.take(&packet);
                assert_eq!(talk.heard(), [0; 0], "octet {at}");
            }
            talk.stack.take(&packet);
            assert_eq!(talk.heard(), [talk.number]);
        });
    }

    #[test]
    fn a_peer_begins_anew_by_a_later_number_and_by_another_once_it_has_said_that_it_does() {
        each(|mut talk| {
            end(&mut talk);
            if talk.listener.is_none() {
                // Nobody listens at the port from which the stack has connected.
                talk.say_beside(1_000, SYN, b"");
                assert_eq!((talk.heard(), counts(&talk)), (vec![talk.number], (0, 1)));
                talk.say(RESET, b"");
                assert_eq!(counts(&talk), (0, 0));
                return;
            }
            talk.say_beside(-1_000, SYN, b"");
            assert_eq!(talk.heard(), [talk.number], "it may be one of before");
            assert_eq!(counts(&talk), (0, 1));
            talk.say(RESET, b"");
            assert_eq!(counts(&talk), (0, 0));
            talk.number = talk.number.wrapping_sub(1_000);
            talk.say(SYN, b"");
            assert_eq!(talk.heard(), [talk.number]);
            talk.say(ACK, b"");
            talk.id = talk.accept();
            end(&mut talk);
            talk.number = talk.number.wrapping_add(1_000);
            talk.say(SYN, b"");
            assert_eq!(talk.heard(), [talk.number]);
            assert_eq!((counts(&talk), talk.stack.stats().half_open), ((1, 0), 1));
        });
    }

    /// Says so often that nothing new has come.
    fn repeat(talk: &mut Talk, acknowledges: i32, times: usize) {
        let ahead = std::mem::replace(&mut talk.acknowledges, acknowledges);
        (0..times).for_each(|_| talk.say(ACK, b""));
        talk.acknowledges = ahead;
    }

    #[test]
    fn what_one_was_to_send_again_at_once_does_not_open_the_window_of_the_next() {
        for is_reset in [true, false] {
            each(|mut talk| {
                if talk.listener.is_none() {
                    return;
                }
                let acknowledged = talk.acknowledges;
                if is_reset {
                    let _taken = talk.stack.write(talk.id, &[IoSlice::new(b"answer")]);
                    talk.heard();
                    repeat(&mut talk, acknowledged, 3);
                    talk.stack.reset(talk.id).expect("it is connected");
                    talk.heard();
                    talk.stack.drop_socket(Kind::Stream, talk.id);
                } else {
                    talk.stack.drop_socket(Kind::Stream, talk.id);
                    talk.heard();
                    repeat(&mut talk, acknowledged, 3);
                    talk.heard();
                    talk.say(FIN | ACK, b"");
                    talk.heard();
                }
                assert_eq!(counts(&talk).0, 0);
                talk.say(SYN, b"");
                talk.heard();
                talk.say(ACK, b"");
                talk.id = talk.accept();
                let before = talk.acknowledges;
                // One more than there is room for.
                let _taken = talk.stack.write(talk.id, &[IoSlice::new(b"0123456789")]);
                talk.heard();
                assert_eq!(talk.acknowledges.wrapping_sub(before), 9, "{is_reset}");
            });
        }
    }

    #[test]
    fn where_all_ports_wait_that_which_has_waited_longest_is_connected_from() {
        let (mut stack, clock, _cable) = receiving(Medium::Ip, StackConfig::new());
        let targets = [([10, 0, 0, 1], 80).into(), ([10, 0, 0, 1], 81).into()];
        let flow = |remote, port| Flow { remote, local: ([10, 0, 0, 2], port).into() };
        let numbers = Numbers { sent: TcpSeqNumber(0), expected: TcpSeqNumber(0) };
        let ports = FIRST_PORT..=u16::MAX;
        let keep = |stack: &mut Stack, remote, port| {
            clock.advance(Duration::from_micros(1));
            let now = stack.now();
            stack.time_wait.keep(flow(remote, port), numbers, now, usize::MAX);
        };
        // One of another target, and one that is none of ours to choose, are older.
        keep(&mut stack, targets[1], FIRST_PORT);
        keep(&mut stack, targets[0], FIRST_PORT - 1);
        ports.rev().for_each(|port| keep(&mut stack, targets[0], port));
        let listener = stack.listen(([10, 0, 0, 2], u16::MAX).into(), 8).expect("it is free");
        for expected in [u16::MAX - 1, u16::MAX - 2] {
            let id = stack.connect(targets[0]).expect("who waits makes room");
            assert_eq!(stack.addresses(id).map(|(local, _)| local.port()), Some(expected));
        }
        assert!(stack.listeners.get(listener).is_some());
        let stats = stack.stats();
        assert_eq!((stats.time_wait, stats.time_wait_overflowed), (16_384, 2));
    }
}
