//! `Outgoing`: datagrams that wait to be sent, by target, so that one with an unknown hardware
//! address holds up no others.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rotor_core::Time;

/// How long datagrams wait for the hardware address of a target: for three requests.
pub(super) const STUCK_MAX: Duration = Duration::from_secs(3);

/// The datagrams that wait to be sent.
#[derive(Default)]
pub(super) struct Outgoing {
    /// The target at the front is asked for first.
    targets: VecDeque<Target>,
    count: usize,
}

struct Target {
    ip: IpAddr,
    /// Since when its hardware address has been missing.
    stuck_since: Option<Time>,
    datagrams: VecDeque<(SocketAddr, Box<[u8]>)>,
}

impl Outgoing {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn push(&mut self, target: SocketAddr, datagram: &[u8]) {
        self.count += 1;
        let entry = (target, datagram.into());
        match self.targets.iter_mut().find(|other| other.ip == target.ip()) {
            Some(known) => known.datagrams.push_back(entry),
            None => self.targets.push_back(Target {
                ip: target.ip(),
                stuck_since: None,
                datagrams: VecDeque::from([entry]),
            }),
        }
    }

    /// Drops the first datagram of the target that has not answered for longest, to make room for
    /// one to `ip`, which may be known. Returns whether there was one. Datagrams to `ip` itself are
    /// not dropped: their sender is told that there is no room.
    pub(super) fn make_room_for(&mut self, ip: IpAddr) -> bool {
        let stuck = self.targets.iter_mut().filter(|target| target.makes_room_for(ip));
        let longest = stuck.min_by_key(|target| target.stuck_since);
        let is_one = longest.is_some_and(|target| target.datagrams.pop_front().is_some());
        self.count -= usize::from(is_one);
        is_one
    }

    /// Whether [`make_room_for`](Outgoing::make_room_for) would find room.
    pub(super) fn can_make_room_for(&self, ip: IpAddr) -> bool {
        self.targets.iter().any(|target| target.makes_room_for(ip))
    }

    /// Sends what can be sent. `send` returns whether it has sent a datagram; if not, the other
    /// datagrams to the same target are not tried. Returns how many datagrams were dropped because
    /// their target has not answered for too long.
    pub(super) fn send(
        &mut self,
        now: Time,
        mut send: impl FnMut(SocketAddr, &[u8]) -> bool,
    ) -> u64 {
        let mut lost = 0;
        for target in &mut self.targets {
            while let Some((to, datagram)) = target.datagrams.front() {
                if send(*to, datagram) {
                    target.stuck_since = None;
                    target.datagrams.pop_front();
                    self.count -= 1;
                } else if now - *target.stuck_since.get_or_insert(now) < STUCK_MAX {
                    break;
                } else {
                    lost += target.datagrams.len();
                    self.count -= target.datagrams.len();
                    target.datagrams.clear();
                }
            }
        }
        self.targets.retain(|target| !target.datagrams.is_empty());
        // The stack sends one request per second, for whichever target. The next one is for another
        // target.
        if self.targets.len() > 1 {
            self.targets.rotate_left(1);
        }
        lost as u64
    }
}

impl Target {
    fn makes_room_for(&self, ip: IpAddr) -> bool {
        self.ip != ip && self.stuck_since.is_some() && !self.datagrams.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 53))
    }

    /// Sends at a time to those that are known, and returns to whom it was tried, and what was lost.
    fn send(outgoing: &mut Outgoing, seconds: u64, known: &[u8]) -> (Vec<(u8, Vec<u8>)>, u64) {
        let mut tried = Vec::new();
        let now = Time::ZERO + Duration::from_secs(seconds);
        let lost = outgoing.send(now, |target, datagram| {
            let IpAddr::V4(ip) = target.ip() else { return false };
            tried.push((ip.octets()[3], datagram.to_vec()));
            known.contains(&ip.octets()[3])
        });
        (tried, lost)
    }

    #[test]
    fn who_is_nowhere_holds_up_nobody_else_and_is_given_up_after_three_seconds() {
        let mut outgoing = Outgoing::default();
        for (last, text) in [(7, "in vain"), (8, "in vain"), (1, "a"), (7, "x"), (1, "b")] {
            outgoing.push(to(last), text.as_bytes());
        }
        assert_eq!(outgoing.len(), 5);
        let (tried, lost) = send(&mut outgoing, 10, &[1]);
        let tried: Vec<_> = tried.iter().map(|(last, _)| *last).collect();
        assert_eq!((tried, lost, outgoing.len()), (vec![7, 8, 1, 1], 0, 3));
        // The next question is another's.
        let asked_for = |tried: Vec<(u8, Vec<u8>)>| tried[0].0;
        assert_eq!(asked_for(send(&mut outgoing, 11, &[1]).0), 8);
        assert_eq!(asked_for(send(&mut outgoing, 12, &[1]).0), 7);
        // One that was found out goes on, from then.
        let (tried, lost) = send(&mut outgoing, 12, &[8]);
        assert_eq!((tried.len(), lost, outgoing.len()), (2, 0, 2));
        assert_eq!(send(&mut outgoing, 13, &[1]).1, 2);
        assert_eq!((outgoing.len(), send(&mut outgoing, 14, &[1])), (0, (Vec::new(), 0)));
    }

    #[test]
    fn who_has_been_asked_for_longest_makes_room_and_who_was_not_asked_for_does_not() {
        let mut outgoing = Outgoing::default();
        let ip = |last| to(last).ip();
        outgoing.push(to(7), b"a");
        assert!(!outgoing.make_room_for(ip(1)), "it may be known");
        send(&mut outgoing, 10, &[]);
        outgoing.push(to(7), b"b");
        outgoing.push(to(8), b"c");
        send(&mut outgoing, 11, &[]);
        assert!(!Outgoing::default().make_room_for(ip(1)));
        let waits = |outgoing: &Outgoing| -> Vec<_> {
            let targets = outgoing.targets.iter();
            let all = targets.flat_map(|target| &target.datagrams);
            all.map(|(_, datagram)| datagram.to_vec()).collect()
        };
        for (asked, left) in [(7, &[b"a", b"b"][..]), (1, &[b"b"]), (8, &[]), (8, &[])] {
            let before = outgoing.len();
            let can = outgoing.can_make_room_for(ip(asked));
            let is_one = outgoing.make_room_for(ip(asked));
            assert_eq!(can, is_one, "{asked}");
            assert_eq!((outgoing.len(), is_one), (left.len(), left.len() < before), "{asked}");
            assert_eq!(waits(&outgoing), left, "{asked}");
        }
        assert_eq!(send(&mut outgoing, 12, &[7, 8]).1, 0);
    }
}
