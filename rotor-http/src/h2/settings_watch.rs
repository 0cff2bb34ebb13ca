//! `SettingsWatch`: the time by which a peer must acknowledge our settings.

use std::time::Duration;

use rotor_core::Time;

/// How many bytes may arrive before an acknowledgement: the first window of a connection, which is
/// 64 KiB for a peer that has not received our settings, and the fields of a usual number of
/// requests.
const BYTES_BEFORE_ACK_MAX: u64 = 1 << 20;

/// Watches for the acknowledgement of our settings. RFC 9113 §6.5.3 requires it "immediately", but
/// it arrives behind what the peer has written before it read the settings. So on a slow network it
/// may be late although the peer does all it can: the time is extended while the peer sends.
#[derive(Debug)]
pub struct SettingsWatch {
    until: Time,
    has_stopped: bool,
    /// Bytes that were taken out of the input.
    taken: u64,
    /// Bytes that had arrived when the time was last over.
    counted: u64,
}

impl SettingsWatch {
    /// Starts to watch for an acknowledgement within `time`, when the settings are written.
    pub fn begin(time: Duration, now: Time) -> SettingsWatch {
        SettingsWatch { until: now + time, has_stopped: false, taken: 0, counted: 0 }
    }

    /// Returns the time by which the peer must have acknowledged them; `NEVER` once it has,
    /// or if it may take forever.
    pub fn until(&self) -> Time {
        self.until
    }

    /// Stops: the peer has acknowledged them, or never will.
    pub fn stop(&mut self) {
        (self.until, self.has_stopped) = (Time::NEVER, true);
    }

    /// Returns whether the peer has acknowledged them, or never will. That is not the same as no
    /// time limit, which may be how it was configured.
    pub(crate) fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    /// Postpones the time to `until`, if it is over.
    pub(crate) fn postpone(&mut self, now: Time, until: Time) {
        if self.until <= now {
            self.until = until;
        }
    }

    /// Counts bytes that were taken out of the input.
    #[inline]
    pub fn count(&mut self, bytes: usize) {
        self.taken += bytes as u64;
    }

    /// Returns whether the time is over and the peer has not used it: with `unread` bytes in the
    /// input, fewer than `least` have arrived in `time`. Otherwise extends the time by `time`.
    pub fn is_late(&mut self, unread: usize, least: u64, time: Duration, now: Time) -> bool {
        if self.until > now {
            return false;
        }
        let arrived = self.taken + unread as u64;
        if arrived - self.counted < least.max(1) || arrived > BYTES_BEFORE_ACK_MAX {
            return true;
        }
        self.counted = arrived;
        self.until = now + time;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(10);

    /// Whether the peer is late after each further period. Each pair has the totals by then: bytes
    /// taken, and bytes in the input.
    fn late(least: u64, arrived: &[(usize, usize)]) -> Vec<bool> {
        let mut watch = SettingsWatch::begin(TIME, Time::ZERO);
        let mut before = 0;
        let ends = (1..).map(|times| Time::ZERO + TIME * times);
        let checks = arrived.iter().zip(ends).map(|((taken, unread), now)| {
            watch.count(taken - before);
            before = *taken;
            let moment = Duration::from_nanos(1);
            assert!(!watch.is_late(*unread, least, TIME, now - moment), "before its time");
            watch.is_late(*unread, least, TIME, now)
        });
        checks.collect()
    }

    #[test]
    fn a_peer_that_sends_enough_gets_more_time_up_to_a_limit() {
        for (least, arrived, expected) in [
            (100, &[(99, 0)][..], &[true][..]),
            (100, &[(100, 0), (199, 0)], &[false, true]),
            (100, &[(0, 100), (0, 199)], &[false, true]),
            // Taken bytes are not counted twice: they were counted while they were unread.
            (100, &[(0, 100), (150, 49)], &[false, true]),
            (100, &[(0, 100), (150, 50), (300, 0)], &[false, false, false]),
            (0, &[(0, 1), (1, 0)], &[false, true]),
            (1, &[(1 << 20, 0)], &[false]),
            (1, &[(1 << 20, 1)], &[true]),
        ] {
            assert_eq!(late(least, arrived), expected, "{least} {arrived:?}");
        }
    }

    #[test]
    fn acknowledged_settings_have_no_deadline() {
        let mut watch = SettingsWatch::begin(TIME, Time::ZERO);
        assert_eq!(watch.until(), Time::ZERO + TIME);
        watch.stop();
        assert_eq!(watch.until(), Time::NEVER);
        assert!(!watch.is_late(0, 1, TIME, Time::ZERO + TIME * 100));
    }
}
