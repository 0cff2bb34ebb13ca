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
    pub(super) fn detach(&mut self, id: Id) {
        let until = self.now() + self.config.linger;
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.socket().recv_queue() > 0 {
            // What was written in this turn goes ahead of the reset, as from a kernel.
            self.send(id);
        }
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.detach();
        if connection.socket().recv_queue() > 0 {
            connection.socket().abort();
        } else {
            connection.socket().close();
        }
        connection.give_up_at = Some(until);
        if connection.is_over() {
            self.remove_connection(id);
        } else {
            self.mark_dirty(id);
            self.add_lingering(id);
        }
    }

    /// Adds a dropped connection that has not ended to the lingering ones. Their number is limited
    /// because each has its buffers, and no limit of a server counts them.
    pub(super) fn add_lingering(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.is_lingering = true;
        self.stats.lingering += 1;
        self.lingering.push_back(id);
        while self.stats.lingering > self.config.lingering_max && self.reset_oldest_lingering() {}
        // Ended connections stay in the list. So it is kept at about twice the number of lingering
        // ones.
        if self.lingering.len() > 2 * (self.stats.lingering + 8) {
            let connections = &self.connections;
            self.lingering.retain(|id| connections.get(*id).is_some_and(|one| one.is_lingering));
        }
    }

    /// Returns whether a peer has not acknowledged all that was written before its connection was
    /// dropped. After [`StackConfig::linger`](crate::StackConfig::linger) this is over.
    pub(crate) fn has_unsent(&self) -> bool {
        let mut lingering = self.lingering.iter().filter_map(|id| self.connections.get(*id));
        lingering.any(|one| {
            let is_unsent =
                matches!(one.state(), State::FinWait1 | State::Closing | State::LastAck);
            one.is_lingering && is_unsent
        })
    }

    /// Resets the connection that was dropped first; returns false if there is none.
    fn reset_oldest_lingering(&mut self) -> bool {
        while let Some(oldest) = self.lingering.pop_front() {
            let Some(connection) = self.connections.get_mut(oldest) else { continue };
            if connection.is_lingering {
                self.stats.lingering_overflowed += 1;
                connection.socket().abort();
                self.send(oldest);
                self.remove_connection(oldest);
                return true;
            }
        }
        false
    }

    /// Handles a change of a dropped connection: further bytes of its peer cause a reset.
    pub(super) fn update_detached(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.is_over() {
            return self.remove_connection(id);
        }
        if connection.socket().recv_queue() > 0 && connection.state() != State::Closed {
            connection.socket().abort();
            return self.mark_dirty(id);
        }
        if connection.state() == State::TimeWait {
            // If the peer's end was not acknowledged yet, smoltcp ends the wait by itself.
            connection.give_up_at = None;
            if let Some(numbers) = connection.time_wait_numbers() {
                self.enter_time_wait(id, numbers);
            }
        }
    }

    /// Keeps a connection that both sides have ended, without its buffers.
    fn enter_time_wait(&mut self, id: Id, numbers: Numbers) {
        let Some(flow) = self.connections.get(id).map(|connection| connection.flow) else { return };
        self.remove_connection(id);
        let (now, max) = (self.now(), self.config.time_wait_max);
        let is_full = self.time_wait.insert(flow, numbers, now, max);
        self.stats.time_wait_overflowed += u64::from(is_full);
    }

    /// Handles a segment of a connection in TIME-WAIT. Returns true if its sender begins a new
    /// connection.
    pub(super) fn handle_late_segment(&mut self, flow: Flow, packet: &[u8]) -> bool {
        let now = self.now();
        let Wire { medium, verifies_checksums, .. } = self.wire;
        let layers = Layers::parse(medium, packet)
            .filter(|layers| !verifies_checksums || layers.has_valid_checksum(packet));
        let segment = layers.and_then(|layers| packet.get(layers.transport_range()));
        let Some(Ok(segment)) = segment.map(TcpPacket::new_checked) else { return false };
        let link_header = match medium {
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
        match self.time_wait.handle_segment(&flow, &segment, is_listened_to, now) {
            Verdict::Ignore => false,
            Verdict::NewConnection => true,
            Verdict::Acknowledge(Numbers { sent, expected }) => {
                let ends = (flow.local, flow.remote);
                self.wire.send(&acknowledgement(&link_header, ends, sent, expected));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::time::Duration;

    use super::super::SocketKind;
    use super::super::packets::{ACK, FIN, RESET, SYN};
    use smoltcp::wire::TcpSeqNumber;

    use super::super::listener_socket::FIRST_PORT;
    use super::super::test_peer::{TestPeer, for_each_case};
    use super::super::tests::stack_with_cable;
    use super::*;
    use crate::config::StackConfig;

    /// The machine drops its socket, and then the peer ends as well.
    fn end(peer: &mut TestPeer) {
        peer.stack.drop_socket(SocketKind::Stream, peer.id);
        assert_eq!(peer.received_acks(), [peer.number]);
        peer.send(FIN | ACK, b"");
        assert_eq!(peer.received_acks(), [peer.number]);
        assert_eq!(counts(peer), (0, 1));
    }

    /// The numbers of connections and of entries in TIME-WAIT.
    fn counts(peer: &TestPeer) -> (usize, usize) {
        (peer.stack.stats().connections, peer.stack.stats().time_wait)
    }

    fn turn(peer: &mut TestPeer) {
        peer.stack.end_wait(None, false, &mut Vec::new()).expect("the cable is in");
    }

    #[test]
    fn a_repeated_end_is_acknowledged_without_a_socket() {
        for_each_case(|mut peer| {
            end(&mut peer);
            let acknowledges = peer.acknowledges;
            for _ in 0..3 {
                peer.clock.advance(Duration::from_secs(9));
                turn(&mut peer);
                peer.send_at_offset(-1, FIN | ACK, b"");
                assert_eq!(peer.received_acks(), [peer.number]);
                assert_eq!(peer.acknowledges, acknowledges, "it has the number behind our end");
            }
            peer.clock.advance(Duration::from_secs(10));
            assert_eq!(peer.stack.next_deadline(None), Some(peer.stack.now()));
            turn(&mut peer);
            assert_eq!(counts(&peer), (0, 0));
            assert_eq!(peer.stack.next_deadline(None), None);
        });
    }

    #[test]
    fn corrupted_or_misdirected_packets_get_no_answer() {
        for_each_case(|mut peer| {
            end(&mut peer);
            let packet = peer.segment_at_offset(-1, FIN | ACK, b"");
            let (number, last) = (peer.segment_at() + 4, packet.len() - 1);
            let card = (peer.medium == Medium::Ethernet).then_some(5);
            for at in [Some(number), Some(last), card].into_iter().flatten() {
                let mut packet = packet.clone();
                packet[at] ^= 0x40;
                peer.stack.handle_packet(&packet);
                assert_eq!(peer.received_acks(), [0; 0], "byte {at}");
            }
            peer.stack.handle_packet(&packet);
            assert_eq!(peer.received_acks(), [peer.number]);
        });
    }

    #[test]
    fn a_peer_can_reconnect_during_time_wait() {
        for_each_case(|mut peer| {
            end(&mut peer);
            if peer.listener.is_none() {
                // Nobody listens on the port from which the stack has connected.
                peer.send_at_offset(1_000, SYN, b"");
                assert_eq!((peer.received_acks(), counts(&peer)), (vec![peer.number], (0, 1)));
                peer.send(RESET, b"");
                assert_eq!(counts(&peer), (0, 0));
                return;
            }
            peer.send_at_offset(-1_000, SYN, b"");
            assert_eq!(peer.received_acks(), [peer.number], "it may be one of before");
            assert_eq!(counts(&peer), (0, 1));
            peer.send(RESET, b"");
            assert_eq!(counts(&peer), (0, 0));
            peer.number = peer.number.wrapping_sub(1_000);
            peer.send(SYN, b"");
            assert_eq!(peer.received_acks(), [peer.number]);
            peer.send(ACK, b"");
            peer.id = peer.accept();
            end(&mut peer);
            peer.number = peer.number.wrapping_add(1_000);
            peer.send(SYN, b"");
            assert_eq!(peer.received_acks(), [peer.number]);
            assert_eq!((counts(&peer), peer.stack.stats().half_open), ((1, 0), 1));
        });
    }

    /// Sends the same acknowledgement `times` times.
    fn repeat(peer: &mut TestPeer, acknowledges: i32, times: usize) {
        let ahead = std::mem::replace(&mut peer.acknowledges, acknowledges);
        (0..times).for_each(|_| peer.send(ACK, b""));
        peer.acknowledges = ahead;
    }

    #[test]
    fn a_pending_retransmission_does_not_affect_the_next_connection() {
        for is_reset in [true, false] {
            for_each_case(|mut peer| {
                if peer.listener.is_none() {
                    return;
                }
                let acknowledged = peer.acknowledges;
                if is_reset {
                    let _taken = peer.stack.write(peer.id, &[IoSlice::new(b"answer")]);
                    peer.received_acks();
                    repeat(&mut peer, acknowledged, 3);
                    peer.stack.reset(peer.id).expect("it is connected");
                    peer.received_acks();
                    peer.stack.drop_socket(SocketKind::Stream, peer.id);
                } else {
                    peer.stack.drop_socket(SocketKind::Stream, peer.id);
                    peer.received_acks();
                    repeat(&mut peer, acknowledged, 3);
                    peer.received_acks();
                    peer.send(FIN | ACK, b"");
                    peer.received_acks();
                }
                assert_eq!(counts(&peer).0, 0);
                peer.send(SYN, b"");
                peer.received_acks();
                peer.send(ACK, b"");
                peer.id = peer.accept();
                let before = peer.acknowledges;
                // One byte more than the window has room for.
                let _taken = peer.stack.write(peer.id, &[IoSlice::new(b"0123456789")]);
                peer.received_acks();
                assert_eq!(peer.acknowledges.wrapping_sub(before), 9, "{is_reset}");
            });
        }
    }

    #[test]
    fn connect_reuses_the_oldest_port_in_time_wait() {
        let (mut stack, clock, _cable) = stack_with_cable(Medium::Ip, StackConfig::new());
        let targets = [([10, 0, 0, 1], 80).into(), ([10, 0, 0, 1], 81).into()];
        let flow = |remote, port| Flow { remote, local: ([10, 0, 0, 2], port).into() };
        let numbers = Numbers { sent: TcpSeqNumber(0), expected: TcpSeqNumber(0) };
        let ports = FIRST_PORT..=u16::MAX;
        let keep = |stack: &mut Stack, remote, port| {
            clock.advance(Duration::from_micros(1));
            let now = stack.now();
            stack.time_wait.insert(flow(remote, port), numbers, now, usize::MAX);
        };
        // A port towards another target, and a port outside of the range for connecting, are older.
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
