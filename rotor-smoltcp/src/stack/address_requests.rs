//! `AddressRequests`: which hardware addresses are asked for (ARP, neighbour discovery) besides
//! those that smoltcp asks for. Pure.
//!
//! smoltcp asks for one address per second, whichever is the first to be missing. A target that
//! does not answer is asked for again exactly when the second is over, so no other one would ever
//! be asked for: not even the router, whose address smoltcp forgets after a minute.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use rotor_core::Time;

/// How long a target has to answer before it is asked for again (RFC 1122 §2.3.2.1).
const INTERVAL: Duration = Duration::from_secs(1);

/// How many targets are asked for in that time: as many as smoltcp remembers.
const TARGETS_MAX: usize = 256;

/// The neighbours that were asked for in the last second, the first one first.
#[derive(Default)]
pub(super) struct AddressRequests(VecDeque<(Time, IpAddr)>);

impl AddressRequests {
    /// Returns whether a neighbour may be asked for, and records that.
    ///
    /// `is_doubtful`: for a target whose address may be forged. A flood of these leaves room for
    /// others.
    pub(super) fn allow(&mut self, neighbour: IpAddr, is_doubtful: bool, now: Time) -> bool {
        while self.0.front().is_some_and(|(at, _)| *at + INTERVAL <= now) {
            self.0.pop_front();
        }
        let max = if is_doubtful { TARGETS_MAX / 2 } else { TARGETS_MAX };
        let is_allowed = self.0.len() < max && self.0.iter().all(|(_, other)| *other != neighbour);
        if is_allowed {
            self.0.push_back((now, neighbour));
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn host(number: u16) -> IpAddr {
        let [high, low] = number.to_be_bytes();
        IpAddr::from([10, 0, high, low])
    }

    #[test]
    fn a_neighbour_is_asked_for_once_a_second_and_doubtful_ones_leave_room() {
        let mut requests = AddressRequests::default();
        assert!(requests.allow(host(1), false, at(0)));
        assert!(!requests.allow(host(1), false, at(999)));
        assert!(requests.allow(host(1), false, at(1_000)));
        let forged = (2..1_000).filter(|last| requests.allow(host(*last), true, at(1_500)));
        assert_eq!(forged.count(), 127);
        let others = (1_000..2_000).filter(|last| requests.allow(host(*last), false, at(1_999)));
        assert_eq!(others.count(), 128);
        assert!(requests.allow(host(1), false, at(2_000)), "its second is over");
        assert!(!requests.allow(host(9_999), false, at(2_000)));
        assert!(requests.allow(host(9_999), true, at(10_000)));
        assert_eq!(requests.0.len(), 1);
    }
}
