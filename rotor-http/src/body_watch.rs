//! `BodyWatch`: the time by which more of a body must have arrived, by its minimum rate while it is
//! read. For requests and responses.

use std::time::Duration;

use rotor_core::Time;
use rotor_stream::{LeastRate, RateWatch};

use crate::limits::Limits;

/// Watches the rate of a body that is being received.
#[derive(Debug)]
pub(crate) struct BodyWatch {
    watch: RateWatch,
    /// The bytes that the watch has been told of.
    counted: u64,
    /// Since when no input is taken, or `Time::NEVER` while it is taken.
    paused: Time,
}

impl BodyWatch {
    /// Watches nothing: nobody has requested the body yet.
    pub(crate) const NONE: BodyWatch =
        BodyWatch { watch: RateWatch::NONE, counted: 0, paused: Time::NEVER };

    /// Starts to watch: from now on the body must arrive.
    pub(crate) fn begin(limits: &Limits, now: Time) -> BodyWatch {
        BodyWatch { watch: RateWatch::new(rate(limits), now), ..BodyWatch::NONE }
    }

    /// Tells the watch how many bytes have arrived in all, and whether no input is taken from now
    /// on, which is not the peer's fault.
    pub(crate) fn update(&mut self, received: u64, is_paused: bool, limits: &Limits, now: Time) {
        if self.paused != Time::NEVER {
            // The deadline is extended and does not start anew: a peer must not gain time by taking
            // its output slowly.
            self.watch.put_off(now - self.paused);
        }
        self.paused = if is_paused { now } else { Time::NEVER };
        // Callers pass the total, so that bytes that arrive between two calls are counted once.
        let more = received.saturating_sub(self.counted);
        self.counted += more;
        self.watch.pass(more, rate(limits), now);
    }

    /// Gives the peer this much more time.
    pub(crate) fn extend_deadline(&mut self, time: Duration) {
        self.watch.put_off(time);
    }

    /// Returns the time by which more must have arrived.
    pub(crate) fn deadline(&self) -> Time {
        if self.paused != Time::NEVER { Time::NEVER } else { self.watch.until() }
    }
}

/// Returns the minimum rate of a body.
pub(crate) fn rate(limits: &Limits) -> LeastRate {
    let (octets, time) = limits.body_step();
    LeastRate::new(octets, time).slack(limits.body_grace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Time {
        Time::ZERO + Duration::from_secs(number)
    }

    #[test]
    fn time_in_which_no_input_is_taken_does_not_count() {
        let limits = Limits::new().body_grace(Duration::from_secs(5)).body_rate_min(1);
        let mut watch = BodyWatch::begin(&limits, second(0));
        assert_eq!(watch.deadline(), second(5));
        watch.update(3, false, &limits, second(4));
        assert_eq!(watch.deadline(), second(8), "a second for each octet");
        watch.update(3, true, &limits, second(6));
        assert_eq!(watch.deadline(), Time::NEVER);
        watch.update(4, true, &limits, second(16));
        assert_eq!(watch.deadline(), Time::NEVER, "nor does what was on its way");
        watch.update(4, false, &limits, second(1_000));
        assert_eq!(
            watch.deadline(),
            second(1_003),
            "two seconds were left, and one octet has come"
        );
    }

    #[test]
    fn each_byte_counts_once_and_gains_no_more_than_the_grace() {
        let limits = Limits::new().body_grace(Duration::from_secs(5)).body_rate_min(100);
        let mut watch = BodyWatch::begin(&limits, second(0));
        for now in 1..4 {
            watch.update(1_000_000, false, &limits, second(now));
            assert_eq!(watch.deadline(), second(6), "at {now}");
        }
        watch.update(1_000_100, false, &limits, second(5));
        assert_eq!(watch.deadline(), second(7));
    }

    #[test]
    fn a_body_without_a_rate_or_not_yet_requested_is_never_late() {
        let limits = Limits::new().body_rate_min(0);
        let mut watch = BodyWatch::begin(&limits, second(0));
        watch.update(1, false, &limits, second(1_000));
        assert_eq!(watch.deadline(), Time::NEVER);
        assert_eq!(BodyWatch::NONE.deadline(), Time::NEVER);
    }
}
