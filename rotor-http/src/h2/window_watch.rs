//! `WindowWatch` and `GrantWatch`: how fast a peer must open its windows for what waits.

use rotor_core::Time;
use rotor_stream::{LeastRate, RateWatch};

use crate::limits::Limits;

/// Times a peer whose windows hold up output of a stream. The time until the socket accepts output
/// is limited elsewhere; on a stream of HTTP/1.1 there is no other limit.
#[derive(Debug)]
pub(crate) struct WindowWatch(RateWatch);

impl WindowWatch {
    /// Watches nothing: nothing waits.
    pub(crate) const NONE: WindowWatch = WindowWatch(RateWatch::NONE);

    /// Looks at the `waiting` bytes of a stream, of which the windows allow `allowed` to be sent.
    /// If that is less than the next step, the peer is timed, starting now if it was not before.
    pub(crate) fn update(&mut self, waiting: usize, allowed: usize, limits: &Limits, now: Time) {
        let is_blocked = waiting > 0 && allowed < waiting.min(limits.response_step().max(1));
        if !is_blocked {
            self.0 = RateWatch::NONE;
        } else if self.0 == RateWatch::NONE {
            self.0 = RateWatch::new(rate(limits), now);
        }
    }

    /// Counts bytes that were sent.
    pub(crate) fn count_sent(&mut self, bytes: usize, limits: &Limits, now: Time) {
        self.0.pass(bytes as u64, rate(limits), now);
    }

    /// Gives the peer time until `until`, if it is timed, because other streams of its connection
    /// go first.
    pub(crate) fn extend_until(&mut self, until: Time) {
        if self.0.until() < until {
            self.0.put_off(until - self.0.until());
        }
    }

    /// Returns when the peer must have taken more; `NEVER` if it is not timed.
    #[inline]
    pub(crate) fn until(&self) -> Time {
        self.0.until()
    }
}

/// Watches how fast a peer opens the window of its connection, which all streams share.
///
/// This side decides which stream gets it first. So a stream whose own window is open, and which
/// only waits for others, is not late as long as the peer opens the shared window at the rate that
/// is required for one stream.
#[derive(Debug)]
pub(crate) struct GrantWatch(RateWatch);

impl GrantWatch {
    /// Starts to watch now.
    pub(crate) fn new(limits: &Limits, now: Time) -> GrantWatch {
        GrantWatch(RateWatch::new(rate(limits), now))
    }

    /// Counts bytes by which the window of the connection was opened.
    pub(crate) fn count_granted(&mut self, bytes: u32, limits: &Limits, now: Time) {
        self.0.pass(bytes.into(), rate(limits), now);
    }

    /// Returns the time until which a stream with this many bytes waits only for other streams: its
    /// own window allows a step, and that of the connection does so too, or is being opened.
    /// Returns `None` if it waits for the peer.
    pub(crate) fn exempt_until(
        &self,
        waiting: usize,
        own: usize,
        shared: usize,
        limits: &Limits,
        now: Time,
    ) -> Option<Time> {
        let step = waiting.min(limits.response_step().max(1));
        let latest = now + limits.response_grace;
        let until = if shared >= step { latest } else { self.0.until().min(latest) };
        (waiting > 0 && own >= step && until > now).then_some(until)
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

    /// A step of 100 bytes in ten seconds.
    fn limits() -> Limits {
        Limits::new().response_grace(Duration::from_secs(10)).response_rate_min(10)
    }

    #[test]
    fn a_peer_is_timed_while_its_windows_allow_less_than_a_step() {
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
            watch.update(waiting, allowed, &limits(), second(1));
            let until = if is_timed { second(11) } else { Time::NEVER };
            assert_eq!(watch.until(), until, "{allowed} of {waiting}");
        }
    }

    #[test]
    fn a_deadline_runs_on_while_blocked_and_starts_anew_after_that() {
        let mut watch = WindowWatch::NONE;
        watch.update(1000, 0, &limits(), second(1));
        watch.update(1000, 50, &limits(), second(5));
        assert_eq!(watch.until(), second(11));
        watch.count_sent(99, &limits(), second(6));
        assert_eq!(watch.until(), second(11), "not a step");
        watch.count_sent(1, &limits(), second(6));
        assert_eq!(watch.until(), second(16), "one more");
        watch.update(1000, 100, &limits(), second(7));
        assert_eq!(watch.until(), Time::NEVER);
        watch.update(1000, 0, &limits(), second(8));
        assert_eq!(watch.until(), second(18));
    }

    #[test]
    fn an_extension_only_moves_a_running_deadline_forward() {
        let mut watch = WindowWatch::NONE;
        watch.extend_until(second(9));
        assert_eq!(watch.until(), Time::NEVER, "nobody was timed");
        watch.update(1000, 0, &limits(), second(1));
        for (until, expected) in [(10, 11), (11, 11), (12, 12)] {
            watch.extend_until(second(until));
            assert_eq!(watch.until(), second(expected), "{until}");
        }
    }

    #[test]
    fn a_stream_with_an_open_window_is_exempt_while_the_shared_one_opens() {
        let mut granted = GrantWatch::new(&limits(), second(0));
        for piece in [50, 50, 99] {
            granted.count_granted(piece, &limits(), second(5));
        }
        // A step of 100 bytes in ten seconds, granted after five.
        for (waiting, own, shared, now, until) in [
            (0, 500, 0, 6, None),
            (500, 100, 0, 6, Some(15)),
            (500, 99, 0, 6, None),
            (50, 50, 0, 6, Some(15)),
            (50, 49, 0, 6, None),
            (500, 100, 99, 14, Some(15)),
            (500, 100, 99, 15, None),
            (500, 100, 100, 15, Some(25)),
            (500, 99, 100, 15, None),
        ] {
            let exempt_until = granted.exempt_until(waiting, own, shared, &limits(), second(now));
            assert_eq!(exempt_until, until.map(second), "{waiting}, {own}, {shared} at {now}");
        }
        // Without a minimum rate, no stream times out because of the shared window; but a protocol
        // may have its own rate.
        let free = limits().response_rate_min(0);
        let exempt_until =
            GrantWatch::new(&free, second(0)).exempt_until(9, 1, 0, &free, second(99));
        assert_eq!(exempt_until, Some(second(109)));
    }

    #[test]
    fn without_a_rate_no_peer_is_timed() {
        let mut watch = WindowWatch::NONE;
        watch.update(1000, 0, &limits().response_rate_min(0), second(1));
        assert_eq!(watch.until(), Time::NEVER);
    }
}
