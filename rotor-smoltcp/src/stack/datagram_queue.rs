//! `DatagramQueue`: datagrams that wait to be sent, by target, so that one with an unknown hardware
//! address holds up no others.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rotor_core::Time;

/// How long datagrams wait for the hardware address of a target: for three requests.
pub(super) const UNRESOLVED_MAX: Duration = Duration::from_secs(3);

/// The datagrams that wait to be sent.
#[derive(Default)]
pub(super) struct DatagramQueue {
    targets: VecDeque<Target>,
    count: usize,
}

struct Target {
    ip: IpAddr,
    /// Since when its hardware address has been missing.
    unresolved_since: Option<Time>,
    datagrams: VecDeque<(SocketAddr, Box<[u8]>)>,
}

impl DatagramQueue {
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
                unresolved_since: None,
                datagrams: VecDeque::from([entry]),
            }),
        }
    }

    /// Drops the first datagram of the target that has not answered for longest, to make room for
    /// one to `ip`, which may be known. Returns whether there was one. Datagrams to `ip` itself are
    /// not dropped: their sender is told that there is no room.
    pub(super) fn evict_for(&mut self, ip: IpAddr) -> bool {
        let stuck = self.targets.iter_mut().filter(|target| target.is_evictable_for(ip));
        let longest = stuck.min_by_key(|target| target.unresolved_since);
        let is_evicted = longest.is_some_and(|target| target.datagrams.pop_front().is_some());
        self.count -= usize::from(is_evicted);
        is_evicted
    }

    /// Whether [`evict_for`](DatagramQueue::evict_for) would find room.
    pub(super) fn can_evict_for(&self, ip: IpAddr) -> bool {
        self.targets.iter().any(|target| target.is_evictable_for(ip))
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
                    target.unresolved_since = None;
                    target.datagrams.pop_front();
                    self.count -= 1;
                } else if now - *target.unresolved_since.get_or_insert(now) < UNRESOLVED_MAX {
                    break;
                } else {
                    lost += target.datagrams.len();
                    self.count -= target.datagrams.len();
                    target.datagrams.clear();
                }
            }
        }
        self.targets.retain(|target| !target.datagrams.is_empty());
        lost as u64
    }
}

impl Target {
    fn is_evictable_for(&self, ip: IpAddr) -> bool {
        self.ip != ip && self.unresolved_since.is_some() && !self.datagrams.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 53))
    }

    /// Sends at a time when the addresses of the `known` targets are resolved. Returns the
    /// attempts, and the number of lost datagrams.
    fn send(queue: &mut DatagramQueue, seconds: u64, known: &[u8]) -> (Vec<(u8, Vec<u8>)>, u64) {
        let mut tried = Vec::new();
        let now = Time::ZERO + Duration::from_secs(seconds);
        let lost = queue.send(now, |target, datagram| {
            let IpAddr::V4(ip) = target.ip() else { return false };
            tried.push((ip.octets()[3], datagram.to_vec()));
            known.contains(&ip.octets()[3])
        });
        (tried, lost)
    }

    #[test]
    fn an_unresolved_target_delays_no_other_and_expires() {
        let mut queue = DatagramQueue::default();
        for (last, text) in [(7, "in vain"), (8, "in vain"), (1, "a"), (7, "x"), (1, "b")] {
            queue.push(to(last), text.as_bytes());
        }
        assert_eq!(queue.len(), 5);
        let (tried, lost) = send(&mut queue, 10, &[1]);
        let tried: Vec<_> = tried.iter().map(|(last, _)| *last).collect();
        assert_eq!((tried, lost, queue.len()), (vec![7, 8, 1, 1], 0, 3));
        // A target that has been resolved gets its datagrams from then on.
        let (tried, lost) = send(&mut queue, 12, &[8]);
        assert_eq!((tried.len(), lost, queue.len()), (2, 0, 2));
        assert_eq!(send(&mut queue, 13, &[1]).1, 2);
        assert_eq!((queue.len(), send(&mut queue, 14, &[1])), (0, (Vec::new(), 0)));
    }

    #[test]
    fn the_target_unresolved_for_longest_makes_room() {
        let mut queue = DatagramQueue::default();
        let ip = |last| to(last).ip();
        queue.push(to(7), b"a");
        assert!(!queue.evict_for(ip(1)), "it may be known");
        send(&mut queue, 10, &[]);
        queue.push(to(7), b"b");
        queue.push(to(8), b"c");
        send(&mut queue, 11, &[]);
        assert!(!DatagramQueue::default().evict_for(ip(1)));
        let waits = |queue: &DatagramQueue| -> Vec<_> {
            let targets = queue.targets.iter();
            let all = targets.flat_map(|target| &target.datagrams);
            all.map(|(_, datagram)| datagram.to_vec()).collect()
        };
        for (asked, left) in [(7, &[b"a", b"b"][..]), (1, &[b"b"]), (8, &[]), (8, &[])] {
            let before = queue.len();
            let can = queue.can_evict_for(ip(asked));
            let is_evicted = queue.evict_for(ip(asked));
            assert_eq!(can, is_evicted, "{asked}");
            assert_eq!((queue.len(), is_evicted), (left.len(), left.len() < before), "{asked}");
            assert_eq!(waits(&queue), left, "{asked}");
        }
        assert_eq!(send(&mut queue, 12, &[7, 8]).1, 0);
    }
}
