//! `TimeWait`: connections that both sides have ended, and their late segments (RFC 9293 §3.6.1).
//! Pure.
//!
//! The side that ends first does not know whether the other one has received the last
//! acknowledgement, so it goes on answering for some time. That needs two numbers, but no socket
//! with its buffers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rotor_core::Time;
use smoltcp::wire::{TcpPacket, TcpSeqNumber};

use super::flow::Flow;

/// How long a connection is kept: twice the maximum segment lifetime. RFC 9293 says four minutes,
/// Linux takes one, and smoltcp takes this.
const DURATION: Duration = Duration::from_secs(10);

/// How often a peer that uses another number is told the expected one (RFC 5961 §7).
const ANSWER_INTERVAL: Duration = Duration::from_secs(1);

/// The connections in TIME-WAIT.
#[derive(Default)]
pub(super) struct TimeWait {
    entries: BTreeMap<Flow, Entry>,
    /// When each connection is forgotten.
    due: BTreeSet<(Time, Flow)>,
}

/// The numbers of a connection that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Numbers {
    /// The number after everything that was sent, including the end.
    pub(super) sent: TcpSeqNumber,
    /// The number after everything that was received, including the end.
    pub(super) expected: TcpSeqNumber,
}

struct Entry {
    numbers: Numbers,
    until: Time,
    /// Until then no further answer is sent.
    quiet_until: Time,
}

/// What to do with a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The segment is old, or was answered recently.
    Ignore,
    /// Acknowledge it with these numbers.
    Acknowledge(Numbers),
    /// Its sender begins a new connection; the old one is forgotten.
    NewConnection,
}

impl TimeWait {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn contains(&self, flow: &Flow) -> bool {
        self.entries.contains_key(flow)
    }

    /// Returns when the next connection is forgotten.
    pub(super) fn next_expiry(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Keeps a connection. If there are more than `max` then, forgets the one whose time ends
    /// first, and returns true.
    pub(super) fn insert(&mut self, flow: Flow, numbers: Numbers, now: Time, max: usize) -> bool {
        self.remove(&flow);
        let until = now + DURATION;
        self.entries.insert(flow, Entry { numbers, until, quiet_until: Time::ZERO });
        self.due.insert((until, flow));
        let is_full = self.entries.len() > max;
        if is_full && let Some((_, flow)) = self.due.pop_first() {
            self.entries.remove(&flow);
        }
        is_full
    }

    /// Forgets the first matching connection, by the end of its time, and returns it.
    pub(super) fn remove_first(&mut self, matches: impl Fn(&Flow) -> bool) -> Option<Flow> {
        let flow = self.due.iter().map(|(_, flow)| *flow).find(matches)?;
        self.remove(&flow);
        Some(flow)
    }

    fn remove(&mut self, flow: &Flow) {
        if let Some(entry) = self.entries.remove(flow) {
            self.due.remove(&(entry.until, *flow));
        }
    }

    /// Forgets the connections whose time has passed.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some((at, flow)) = self.due.first().copied()
            && at <= now
        {
            self.remove(&flow);
        }
    }

    /// Handles a segment of a connection that is kept (RFC 9293 §3.10.7.4). `is_listened_to`: a
    /// listener would accept a new connection from its sender.
    pub(super) fn handle_segment(
        &mut self,
        flow: &Flow,
        segment: &TcpPacket<&[u8]>,
        is_listened_to: bool,
        now: Time,
    ) -> Verdict {
        let Some(entry) = self.entries.get_mut(flow) else { return Verdict::Ignore };
        let (number, len) = (segment.seq_number(), segment.segment_len());
        let Numbers { expected, .. } = entry.numbers;
        if segment.rst() {
            // A peer without such a connection uses the number that it was told.
            if number == expected {
                self.remove(flow);
            }
            return Verdict::Ignore;
        }
        if segment.syn() && !segment.ack() && number >= expected && is_listened_to {
            self.remove(flow);
            return Verdict::NewConnection;
        }
        if segment.fin() && number + len == expected {
            // The acknowledgement of its end was lost, and the next one may be lost, too.
            let numbers = entry.numbers;
            self.due.remove(&(entry.until, *flow));
            entry.until = now + DURATION;
            self.due.insert((entry.until, *flow));
            return Verdict::Acknowledge(numbers);
        }
        // A segment without payload and with the expected number says nothing new. Two ends in
        // TIME-WAIT must not answer each other.
        let is_acceptable = len == 0 && number == expected;
        if is_acceptable || now < entry.quiet_until {
            return Verdict::Ignore;
        }
        entry.quiet_until = now + ANSWER_INTERVAL;
        Verdict::Acknowledge(entry.numbers)
    }
}

#[cfg(test)]
mod tests {
    use smoltcp::wire::IpVersion;

    use super::super::packets::{ACK, FIN, RESET, SYN, segment};
    use super::*;
    use crate::device::Medium;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn flow(port: u16) -> Flow {
        Flow { remote: ([10, 0, 0, 1], port).into(), local: ([10, 0, 0, 2], 80).into() }
    }

    fn numbers(expected: i32) -> Numbers {
        Numbers { sent: TcpSeqNumber(500), expected: TcpSeqNumber(expected) }
    }

    /// A segment: the offset of its number from the expected one, its flags, its payload.
    type Sent<'a> = (i32, u8, &'a [u8]);

    /// The verdict on a segment.
    fn take(time_wait: &mut TimeWait, expected: i32, sent: Sent<'_>, now: Time) -> Verdict {
        take_where(time_wait, expected, sent, true, now)
    }

    fn take_where(
        time_wait: &mut TimeWait,
        expected: i32,
        sent: Sent<'_>,
        is_listened_to: bool,
        now: Time,
    ) -> Verdict {
        let (offset, flags, payload) = sent;
        let number = expected.wrapping_add(offset);
        let packet = segment(Medium::Ip, IpVersion::Ipv4, number, flags, payload);
        let segment = TcpPacket::new_checked(&packet[20..]).expect("it is one");
        time_wait.handle_segment(&flow(1), &segment, is_listened_to, now)
    }

    #[test]
    fn late_segments_are_answered_by_their_number() {
        use Verdict::{Acknowledge, Ignore, NewConnection};
        // Also where the numbers wrap around.
        for expected in [100, i32::MIN, i32::MAX, 0, -1] {
            let numbers = numbers(expected);
            let yes = Acknowledge(numbers);
            // The segment; the verdict; whether the entry is kept, and until when.
            let table: [(Sent<'_>, Verdict, bool, u64); 19] = [
                ((-1, FIN | ACK, b""), yes, true, 15),
                ((-4, FIN | ACK, b"end"), yes, true, 15),
                ((0, FIN | ACK, b""), yes, true, 10),
                ((-2, FIN | ACK, b""), yes, true, 10),
                ((0, ACK, b""), Ignore, true, 10),
                ((-1, ACK, b""), yes, true, 10),
                ((-1, ACK, b"x"), yes, true, 10),
                ((0, ACK, b"x"), yes, true, 10),
                ((1, ACK, b""), yes, true, 10),
                ((i32::MIN, ACK, b""), yes, true, 10),
                ((-100, SYN | ACK, b""), yes, true, 10),
                ((50, SYN | ACK, b""), yes, true, 10),
                ((-1, SYN, b""), yes, true, 10),
                ((-1_000_000, SYN, b""), yes, true, 10),
                ((0, SYN, b""), NewConnection, false, 0),
                ((1_000_000, SYN, b""), NewConnection, false, 0),
                ((0, RESET, b""), Ignore, false, 0),
                ((1, RESET | ACK, b""), Ignore, true, 10),
                ((-1, RESET, b""), Ignore, true, 10),
            ];
            for (what, verdict, is_kept, until) in table {
                let mut time_wait = TimeWait::default();
                time_wait.insert(flow(1), numbers, at(0), 9);
                assert_eq!(take(&mut time_wait, expected, what, at(5_000)), verdict, "{what:?}");
                assert_eq!(time_wait.contains(&flow(1)), is_kept, "{what:?}");
                let until = is_kept.then(|| at(until * 1_000));
                assert_eq!(time_wait.next_expiry(), until, "{what:?}");
                assert_eq!(time_wait.due.len(), time_wait.len(), "{what:?}");
            }
        }
    }

    #[test]
    fn a_first_packet_without_a_listener_does_not_end_time_wait() {
        for offset in [0, 1_000_000] {
            let mut time_wait = TimeWait::default();
            time_wait.insert(flow(1), numbers(100), at(0), 9);
            let verdict = take_where(&mut time_wait, 100, (offset, SYN, b""), false, at(5_000));
            assert_eq!(verdict, Verdict::Acknowledge(numbers(100)));
            assert_eq!(
                (time_wait.contains(&flow(1)), time_wait.next_expiry()),
                (true, Some(at(10_000)))
            );
        }
    }

    #[test]
    fn repeated_ends_are_always_answered_others_once_a_second() {
        let mut time_wait = TimeWait::default();
        time_wait.insert(flow(1), numbers(100), at(0), 9);
        let answered = |time_wait: &mut TimeWait, what: Sent<'_>, now| {
            let times = (0..100).map(|_| take(time_wait, 100, what, at(now)));
            times.filter(|verdict| matches!(verdict, Verdict::Acknowledge(_))).count()
        };
        assert_eq!(answered(&mut time_wait, (-1, FIN | ACK, b""), 1), 100);
        assert_eq!(answered(&mut time_wait, (7, ACK, b"x"), 1), 1);
        assert_eq!(answered(&mut time_wait, (-9, SYN, b""), 1_000), 0);
        assert_eq!(answered(&mut time_wait, (-9, SYN, b""), 1_001), 1);
        assert_eq!(answered(&mut time_wait, (-1, FIN | ACK, b""), 1_001), 100);
    }

    #[test]
    fn entries_expire_in_order_and_the_first_one_makes_room() {
        let mut time_wait = TimeWait::default();
        for port in 1..=3 {
            assert!(!time_wait.insert(flow(port), numbers(0), at(port.into()), 3));
        }
        // The flow has ended again; its new entry takes no more room.
        assert!(!time_wait.insert(flow(1), numbers(100), at(4), 3));
        assert!(time_wait.insert(flow(4), numbers(0), at(5), 3));
        let kept = |time_wait: &TimeWait| {
            (1..=5).filter(|port| time_wait.contains(&flow(*port))).collect::<Vec<_>>()
        };
        assert_eq!(kept(&time_wait), [1, 3, 4]);
        assert_eq!(time_wait.next_expiry(), Some(at(10_003)));
        // Its peer sends its end again.
        take(&mut time_wait, 100, (-1, FIN, b""), at(6));
        time_wait.expire(at(10_002));
        assert_eq!(kept(&time_wait), [1, 3, 4]);
        time_wait.expire(at(10_005));
        assert_eq!((kept(&time_wait), time_wait.next_expiry()), (vec![1], Some(at(10_006))));
        time_wait.expire(at(10_006));
        assert_eq!((time_wait.len(), time_wait.next_expiry()), (0, None));
        assert!(time_wait.insert(flow(1), numbers(0), at(0), 0), "none is to be kept");
        assert_eq!((time_wait.len(), time_wait.next_expiry()), (0, None));
    }

    #[test]
    fn the_first_to_go_that_matches_is_given_up() {
        let mut time_wait = TimeWait::default();
        for port in 1..=3 {
            time_wait.insert(flow(port), numbers(0), at(port.into()), 3);
        }
        let beyond = |least| move |flow: &Flow| flow.remote.port() >= least;
        assert_eq!(time_wait.remove_first(beyond(4)), None);
        assert_eq!(time_wait.remove_first(beyond(2)), Some(flow(2)));
        assert_eq!(time_wait.remove_first(beyond(1)), Some(flow(1)));
        assert_eq!((time_wait.len(), time_wait.next_expiry()), (1, Some(at(10_003))));
    }
}
