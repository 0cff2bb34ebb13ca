//! How fast a peer takes what its windows hold up.

use rotor_core::Time;
use rotor_stream::{LeastRate, RateWatch};

use crate::limits::Limits;

/// Times a peer whose windows hold up what waits for it on a stream. What the socket does not take
/// is timed elsewhere, and that is all of it that a stream of HTTP/1.1 would see.
#[derive(Debug)]
pub(crate) struct WindowWatch(RateWatch);

impl WindowWatch {
    /// Nothing waits.
    pub(crate) const NONE: WindowWatch = WindowWatch(RateWatch::NONE);

    /// So many octets wait, of which the windows allow so many to be sent. Fewer than a step that
    /// is to be taken: then the peer is timed, and from now on if it was not before.
    pub(crate) fn look(&mut self, waiting: usize, allowed: usize, limits: &Limits, now: Time) {
        let is_held_up = waiting > 0 && allowed < waiting.min(limits.response_step().max(1));
        if !is_held_up {
            self.0 = RateWatch::NONE;
        } else if self.0 == RateWatch::NONE {
            self.0 = RateWatch::new(rate(limits), now);
        }
    }

    /// So many octets were sent.
    pub(crate) fn pass(&mut self, octets: usize, limits: &Limits, now: Time) {
        self.0.pass(octets as u64, rate(limits), now);
    }

    /// Until when the peer must have taken more; `NEVER` if it is not timed.
    #[inline]
    pub(crate) fn until(&self) -> Time {
        self.0.until()
    }
}

fn rate(limits: &Limits) -> LeastRate {
    LeastRate::new(limits.response_step() as u64, limits.response_grace)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn second(number: u64) -> Time {
        Time::ZERO + Duration::from_secs(number)
    }

    /// A step of 100 octets in ten seconds.
    fn limits() -> Limits {
        Limits::new().response_grace(Duration::from_secs(10)).response_rate_min(10)
    }

    #[test]
    fn a_peer_is_timed_while_its_windows_allow_less_than_a_step_of_what_waits() {
        for (waiting, allowed, is_timed) in [
            (0, 0, false),
            (1, 0, true),
            (1, 1, false),
            (99, 98, true),
            (99, 99, false),
            (1000, 99, true),
            (1000, 100, false),
        ] {
            let mut watch = WindowWatch::NONE;
            watch.look(waiting, allowed, &limits(), second(1));
            let until = if is_timed { second(11) } else { Time::NEVER };
            assert_eq!(watch.until(), until, "{allowed} of {waiting}");
        }
    }

    #[test]
    fn time_runs_on_for_who_is_held_up_and_anew_for_who_was_not() {
        let mut watch = WindowWatch::NONE;
        watch.look(1000, 0, &limits(), second(1));
        watch.look(1000, 50, &limits(), second(5));
        assert_eq!(watch.until(), second(11));
        watch.pass(99, &limits(), second(6));
        assert_eq!(watch.until(), second(11), "not a step");
        watch.pass(1, &limits(), second(6));
        assert_eq!(watch.until(), second(16), "one more");
        watch.look(1000, 100, &limits(), second(7));
        assert_eq!(watch.until(), Time::NEVER);
        watch.look(1000, 0, &limits(), second(8));
        assert_eq!(watch.until(), second(18));
    }

    #[test]
    fn without_a_rate_nobody_is_timed() {
        let mut watch = WindowWatch::NONE;
        watch.look(1000, 0, &limits().response_rate_min(0), second(1));
        assert_eq!(watch.until(), Time::NEVER);
    }
}
