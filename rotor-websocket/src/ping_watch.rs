//! `PingWatch`: how long the peer may take to answer a ping.

use std::time::Duration;

use rotor_core::Time;

/// Watches the peer after our ping.
///
/// ```text
///   ping written ──▶ unsent ──▶ sent ──▶ (answered)
///                    │    ▲       │
///                    └────┘ some  └─ not answered in time: late
///                    └─ nothing of it taken in time: late
/// ```
///
/// While output before the ping is unsent, the peer cannot answer, so it only has to take some in
/// each period. How much it has to take is the concern of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PingWatch {
    since: Time,
    /// How many bytes were unsent at the end of the ping, less those that were taken since; 0 once
    /// it was sent.
    ahead: u32,
    /// How many bytes were unsent after the last call.
    unsent: u32,
}

impl PingWatch {
    /// Begins when a ping is written after this many unsent bytes, and before `after` are unsent.
    pub(crate) fn new(before: usize, after: usize, now: Time) -> PingWatch {
        // Without output before it, it is sent at once.
        let ahead = if before == 0 { 0 } else { clamp(after) };
        PingWatch { since: now, ahead, unsent: clamp(after) }
    }

    /// Returns when the peer is late.
    pub(crate) fn until(&self, within: Duration) -> Time {
        self.since + within
    }

    /// Gives the peer another period, because its answer would not be noticed.
    pub(crate) fn restart(&mut self, now: Time) {
        self.since = now;
    }

    /// Called before something is written: records how many bytes are unsent now.
    pub(crate) fn record_taken(&mut self, unsent: usize, now: Time) {
        let taken = self.unsent.saturating_sub(clamp(unsent));
        if self.ahead > 0 && taken > 0 {
            self.ahead = self.ahead.saturating_sub(taken);
            self.since = now;
        }
    }

    /// Called after something may have been written: records how many bytes are unsent then.
    pub(crate) fn record_unsent(&mut self, unsent: usize) {
        self.unsent = clamp(unsent);
    }
}

fn clamp(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Time {
        Time::ZERO + Duration::from_secs(number)
    }

    #[test]
    fn the_time_begins_when_the_output_before_the_ping_was_taken() {
        let within = Duration::from_secs(20);
        let mut watch = PingWatch::new(100, 102, second(30));
        assert_eq!(watch.until(within), second(50));
        for (unsent, written, until) in [
            // Nothing was taken, something, and again nothing.
            (102, 102, 50),
            (60, 1000, 53),
            (1000, 1000, 53),
            // All that was before the ping, and then more.
            (940, 940, 55),
            (0, 0, 55),
        ] {
            let now = second(if unsent == 60 { 33 } else { 35 });
            watch.record_taken(unsent, now);
            watch.record_unsent(written);
            assert_eq!(watch.until(within), second(until), "{unsent}");
        }
    }

    #[test]
    fn the_time_begins_at_once_if_nothing_is_unsent() {
        let mut watch = PingWatch::new(0, 2, second(30));
        watch.record_taken(0, second(31));
        assert_eq!(watch.until(Duration::from_secs(20)), second(50));
    }
}
