//! Segments beyond what a peer may send, which smoltcp cannot be given as they are.
//!
//! * The window of a SYN has no scale (RFC 7323 §2.2), but smoltcp scales what it remembers of it.
//!   Until it has offered another one, it takes more than its buffer can hold, and panics.
//! * smoltcp takes as much of a segment as the window allows, but its end (FIN) in any case, so the
//!   bytes beyond the window are lost. An honest peer may send such a segment, because a window in
//!   large units is rounded down: its end can move back a little.
//! * smoltcp takes bytes behind the end of a peer, too, and would deliver them after the end.

use super::Stack;
use super::connection::{Connection, has_peer_ended};
use super::flow::{Control, Segment};
use crate::slots::Id;

/// The largest window that a SYN can offer, in bytes.
const FIRST_WINDOW_MAX: usize = u16::MAX as usize;

impl Stack {
    /// Whether smoltcp can be given a segment of a connection. If the segment is beyond the window
    /// that was offered, offers the present one, and looks again. If it still is, the peer has to
    /// send it again. Bytes behind the end of the peer never fit (RFC 9293 §3.10.7.4).
    pub(super) fn fits_window(&mut self, id: Id, segment: &Segment, packet: &[u8]) -> bool {
        let shift = window_shift(self.config.receive_buffer_bytes);
        let fits = |stack: &Stack| {
            let connection = stack.connections.get(id);
            connection.is_none_or(|connection| connection.fits_window(segment, shift))
        };
        if fits(self) {
            return true;
        }
        self.challenge(id, packet);
        fits(self)
    }
}

impl Connection {
    fn fits_window(&self, segment: &Segment, shift: u8) -> bool {
        // Of a reset, nothing is taken but that it is one.
        if segment.len == 0 || segment.control == Control::Reset {
            return true;
        }
        let end = segment.number + segment.len;
        if has_peer_ended(self.state())
            && self.expected_number().is_some_and(|expected| end > expected)
        {
            return false;
        }
        let window_ends = self.sequence.window_ends(shift);
        let is_within = |window_end| segment.number >= window_end || end <= window_end;
        if segment.control == Control::End && !window_ends.into_iter().flatten().all(is_within) {
            return false;
        }
        let [last, _] = window_ends;
        last.is_some() || self.first.is_none_or(|first| end <= first + FIRST_WINDOW_MAX)
    }
}

/// Returns the scale of the windows that smoltcp offers, unless the peer does not support scales.
/// Then windows are not rounded, and nothing is to be done here.
fn window_shift(buffer_bytes: usize) -> u8 {
    // As many bits as the length has beyond 16.
    (usize::BITS - buffer_bytes.leading_zeros()).saturating_sub(u16::BITS) as u8
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::time::Duration;

    use rotor_core::net::ReadBuf;

    use super::super::packets::{ACK, FIN};
    use super::super::test_peer::{TestPeer, for_each_case};

    /// The bytes of the stream at an offset.
    fn bytes_at(offset: usize, len: usize) -> Vec<u8> {
        (offset..offset + len).map(|at| (at % 251) as u8).collect()
    }

    /// Reads everything that has arrived, and asserts that it continues the stream.
    fn read_all(peer: &mut TestPeer, offset: usize) -> usize {
        let mut buffer = vec![0; 200_000];
        let mut count = 0;
        let mut buf = ReadBuf::new(&mut buffer, &mut count);
        peer.stack.read(peer.id, &mut buf).expect("there is something");
        assert_eq!(buffer[..count], bytes_at(offset, count));
        count
    }

    #[test]
    fn no_more_is_taken_than_the_first_window_and_the_buffer_hold() {
        for_each_case(|mut peer| {
            if peer.listener.is_none() {
                peer.connect();
            }
            let first = peer.number;
            for offset in [66_000, 130_000, 131_000] {
                peer.send_at_offset(offset, ACK, b"behind a gap");
            }
            for number in 0..140 {
                peer.send(ACK, &bytes_at(number * 1_000, 1_000));
            }
            let taken = read_all(&mut peer, 0);
            assert!((65_000..=65_536).contains(&taken), "{taken}");
            // The peer sends the rest again.
            peer.received_acks();
            peer.number = first.wrapping_add(taken as i32);
            peer.send(ACK, &bytes_at(taken, 1_000));
            assert_eq!(read_all(&mut peer, taken), 1_000);
        });
    }

    #[test]
    fn an_end_is_not_taken_before_the_bytes_that_it_is_behind() {
        for_each_case(|mut peer| {
            // An odd number of bytes: the window has units of two.
            let mut sent = 1_001;
            peer.send(ACK, &bytes_at(0, sent));
            peer.received_acks();
            while sent < 65_001 {
                peer.send(ACK, &bytes_at(sent, 1_000));
                peer.received_acks();
                sent += 1_000;
            }
            let rest = bytes_at(sent, 65_536 - sent);
            let at = peer.number;
            for _ in 0..3 {
                peer.number = at;
                peer.send(FIN | ACK, &rest);
                peer.received_acks();
                peer.clock.advance(Duration::from_secs(1));
            }
            let taken = read_all(&mut peer, 0);
            peer.received_acks();
            peer.number = at;
            peer.send(FIN | ACK, &rest);
            assert_eq!(taken + read_all(&mut peer, taken), 65_536);
            assert_eq!(read_all(&mut peer, 0), 0, "the end");
        });
    }

    /// A window in large units ends earlier after an odd number of bytes, also if it is offered with
    /// an answer.
    #[test]
    fn an_end_behind_a_window_that_an_answer_of_one_byte_has_offered_waits() {
        for answer in [&b"1"[..], b"two"] {
            for_each_case(|mut peer| {
                peer.send(ACK, &bytes_at(0, 2));
                peer.received_acks();
                peer.send(ACK, &bytes_at(2, 1));
                peer.stack.write(peer.id, &[IoSlice::new(answer)]).expect("it is connected");
                assert_eq!(peer.received_acks(), [peer.number]);
                for number in 0..65 {
                    peer.send(ACK, &bytes_at(3 + number * 1_000, 1_000));
                }
                let (sent, at) = (65_003, peer.number);
                let rest = bytes_at(sent, 65_536 - sent);
                peer.send(FIN | ACK, &rest);
                let taken = read_all(&mut peer, 0);
                peer.received_acks();
                peer.number = at;
                peer.send(FIN | ACK, &rest);
                assert_eq!(taken + read_all(&mut peer, taken), 65_536);
                assert_eq!(read_all(&mut peer, 0), 0, "the end");
            });
        }
    }
}
