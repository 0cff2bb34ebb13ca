//! Limits for frames that no honest peer sends so often: token buckets that fill with time.

use std::time::Duration;

use rotor_core::Time;

use super::error::Violation;
use super::window::UPDATE_MIN;

/// How often something may happen: a burst, and a rate in the long run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// How many at once.
    pub burst: u32,
    /// How many in each second after that.
    pub per_second: u32,
}

/// A token bucket: counts how often something has happened recently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    left: u32,
    /// The time up to which it has been filled.
    filled_until: Time,
}

impl Bucket {
    /// Creates a full bucket.
    pub fn full(rate: Rate, now: Time) -> Bucket {
        Bucket { left: rate.burst, filled_until: now }
    }

    /// Takes tokens out; returns false if there are not enough, which means that the peer causes
    /// excessive load.
    #[inline]
    pub fn take(&mut self, count: u32, rate: Rate, now: Time) -> bool {
        if let Some(left) = self.left.checked_sub(count)
            && !self.is_refill_due(now)
        {
            self.left = left;
            return true;
        }
        self.refill(rate, now);
        match self.left.checked_sub(count) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// Puts tokens back in, up to a full bucket.
    #[inline]
    pub fn restore(&mut self, count: u32, rate: Rate) {
        self.left = self.left.saturating_add(count).min(rate.burst);
    }

    /// Returns whether the bucket was not filled for so long that it must be filled before it is
    /// empty. Tokens beyond a full bucket must be lost at that time: if they were kept until there
    /// is room for them, the peer would have a second burst.
    #[inline]
    fn is_refill_due(&self, now: Time) -> bool {
        now.duration_since(self.filled_until) >= REFILL_INTERVAL
    }

    /// Called rarely, so that a bucket with enough tokens costs next to nothing.
    #[cold]
    fn refill(&mut self, rate: Rate, now: Time) {
        let second = Duration::from_secs(1).as_nanos();
        let nanos = now.duration_since(self.filled_until).as_nanos();
        let more = nanos * u128::from(rate.per_second) / second;
        let left = u128::from(self.left) + more;
        if left >= rate.burst.into() {
            (self.left, self.filled_until) = (rate.burst, now);
        } else if more > 0 {
            // Less than a burst. The time of the filling advances only by what was added, so that
            // no fraction is lost between two fillings.
            let used = more * second / u128::from(rate.per_second);
            self.left = left as u32;
            self.filled_until += Duration::from_nanos(used as u64);
        }
    }
}

/// How long a bucket that is not empty stays without being filled. The tokens of that time may be
/// taken in addition to a burst.
const REFILL_INTERVAL: Duration = Duration::from_secs(1);

/// The limits of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloodLimits {
    /// Streams that a client resets before their response is complete (CVE-2023-44487).
    pub resets: Rate,
    /// Streams that the peer makes us reset (CVE-2025-8671).
    pub provoked_resets: Rate,
    /// Frames that belong neither to a request nor to a body: SETTINGS, PING, PRIORITY, small
    /// WINDOW_UPDATE, PRIORITY_UPDATE and unknown frames; also DATA without bytes.
    pub control_frames: Rate,
    /// DATA of few bytes; a frame that is shorter than the prefix of a gRPC message counts as five.
    pub small_data: Rate,
}

/// The buckets of one connection.
#[derive(Clone, Copy, Debug)]
pub struct FloodBuckets {
    resets: Bucket,
    provoked_resets: Bucket,
    control_frames: Bucket,
    small_data: Bucket,
}

/// What a peer may not do too often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nuisance {
    /// The peer reset a stream whose response was not complete.
    Reset,
    /// The peer made us reset a stream.
    ProvokedReset,
    /// A frame that belongs neither to a request nor to a body.
    ControlFrame,
    /// DATA without bytes that does not end its stream.
    EmptyData,
    /// DATA of fewer than 256 bytes that does not end its stream.
    SmallData,
    /// DATA of fewer than five bytes that does not end its stream.
    TinyData,
}

/// DATA of fewer bytes costs more for the frame than for its content.
const SMALL_DATA: usize = 256;

/// Streams of messages have no shorter DATA: a gRPC message starts with a prefix of this many
/// bytes, which contains its length.
const TINY_DATA: usize = 5;

impl Nuisance {
    /// Returns how a DATA frame of this many bytes counts, if it does. The last frame of a body may
    /// have any length.
    #[inline]
    pub fn from_data(bytes: usize, is_end: bool) -> Option<Nuisance> {
        match bytes {
            _ if is_end => None,
            0 => Some(Nuisance::EmptyData),
            1..TINY_DATA => Some(Nuisance::TinyData),
            TINY_DATA..SMALL_DATA => Some(Nuisance::SmallData),
            _ => None,
        }
    }

    /// Returns how a WINDOW_UPDATE by this many bytes counts, if it does: a peer that updates a
    /// window when half of it is used never sends small ones often.
    #[inline]
    pub(crate) fn from_window_update(bytes: u32) -> Option<Nuisance> {
        (bytes < UPDATE_MIN).then_some(Nuisance::ControlFrame)
    }

    /// Returns why a connection ends on which this has happened too often.
    const fn why(self) -> &'static str {
        match self {
            Nuisance::Reset => "too many requests are taken back",
            Nuisance::ProvokedReset => "too many streams had to be reset",
            Nuisance::ControlFrame => "too many frames of no use",
            Nuisance::EmptyData => "too much DATA of no octets",
            Nuisance::SmallData | Nuisance::TinyData => "too much DATA of few octets",
        }
    }

    /// Returns whether this ends a stream.
    pub(crate) const fn is_stream_reset(self) -> bool {
        matches!(self, Nuisance::Reset | Nuisance::ProvokedReset)
    }

    /// Returns whether this is about the frames of messages. These are not counted in a tunnel,
    /// where another protocol determines how data is split, as on a connection of its own.
    #[inline]
    pub fn is_message_frame(self) -> bool {
        matches!(self, Nuisance::SmallData | Nuisance::TinyData)
    }
}

/// How many control frames an honest peer may send in response to one frame of ours: a
/// WINDOW_UPDATE, and a PING to measure the round-trip time, as gRPC sends it.
const CONTROL_FRAMES_PER_SENT: u32 = 2;

/// How much a DATA frame without bytes counts: a hundred of them at once are too many.
const EMPTY_DATA_WEIGHT: u32 = 10;

/// How much a DATA frame of fewer than five bytes counts. With less, a peer that sends nothing else
/// could go on as long as the loop is too slow to handle more of them than the bucket allows.
const TINY_DATA_WEIGHT: u32 = 5;

impl FloodBuckets {
    /// Creates full buckets.
    pub fn new(limits: &FloodLimits, now: Time) -> FloodBuckets {
        FloodBuckets {
            resets: Bucket::full(limits.resets, now),
            provoked_resets: Bucket::full(limits.provoked_resets, now),
            control_frames: Bucket::full(limits.control_frames, now),
            small_data: Bucket::full(limits.small_data, now),
        }
    }

    /// Counts one more of these.
    ///
    /// # Errors
    ///
    /// The peer's fault, which ends the connection: this has happened too often.
    #[inline]
    pub fn count(
        &mut self,
        nuisance: Nuisance,
        limits: &FloodLimits,
        now: Time,
    ) -> Result<(), Violation> {
        let (bucket, count, rate) = match nuisance {
            Nuisance::Reset => (&mut self.resets, 1, limits.resets),
            Nuisance::ProvokedReset => (&mut self.provoked_resets, 1, limits.provoked_resets),
            Nuisance::ControlFrame => (&mut self.control_frames, 1, limits.control_frames),
            Nuisance::EmptyData => {
                (&mut self.control_frames, EMPTY_DATA_WEIGHT, limits.control_frames)
            }
            Nuisance::SmallData => (&mut self.small_data, 1, limits.small_data),
            Nuisance::TinyData => (&mut self.small_data, TINY_DATA_WEIGHT, limits.small_data),
        };
        if bucket.take(count, rate, now) { Ok(()) } else { Err(Violation::flood(nuisance.why())) }
    }

    /// Adds an allowance for response frames that were sent, other than those that are short only
    /// because of the peer's windows.
    #[inline]
    pub fn allow_for_sent(&mut self, frames: u32, limits: &FloodLimits) {
        self.control_frames.restore(frames * CONTROL_FRAMES_PER_SENT, limits.control_frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { burst: 10, per_second: 2 };

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_bucket_allows_a_burst_then_its_rate_and_saves_one_burst_at_most() {
        let mut bucket = Bucket::full(RATE, at(0));
        let taken = |bucket: &mut Bucket, millis| {
            (0..100).take_while(|_| bucket.take(1, RATE, at(millis))).count()
        };
        for (millis, count) in [
            (0, 10),
            (0, 0),
            (499, 0),
            (500, 1),
            (999, 0),
            (1000, 1),
            (4000, 6),
            (100_000, 10),
            (99_000, 0),
        ] {
            assert_eq!(taken(&mut bucket, millis), count, "at {millis}");
        }
    }

    #[test]
    fn surplus_tokens_are_not_saved_for_a_second_burst() {
        for (first, then) in [(0, 10), (1, 10), (9, 10), (10, 10)] {
            let mut bucket = Bucket::full(RATE, at(0));
            assert!(bucket.take(first, RATE, at(0)));
            let taken = (0..100).take_while(|_| bucket.take(1, RATE, at(60_000))).count();
            assert_eq!(taken, then, "a minute after {first}");
        }
    }

    #[test]
    fn frequent_attempts_do_not_slow_the_refill() {
        let mut bucket = Bucket::full(RATE, at(0));
        let taken = (0..10_000).filter(|millis| bucket.take(1, RATE, at(*millis))).count();
        assert!((28..=30).contains(&taken), "{taken} in ten seconds");
    }

    #[test]
    fn restored_tokens_never_exceed_a_burst() {
        let mut bucket = Bucket::full(RATE, at(0));
        for (back, count) in [(0, 10), (3, 3), (10, 10), (11, 10), (u32::MAX, 10)] {
            bucket.restore(back, RATE);
            let taken = (0..100).take_while(|_| bucket.take(1, RATE, at(0))).count();
            assert_eq!(taken, count, "{back}");
        }
    }

    #[test]
    fn final_and_large_data_frames_are_no_nuisance() {
        use Nuisance::{EmptyData, SmallData, TinyData};
        for (bytes, nuisance) in [
            (0, Some(EmptyData)),
            (1, Some(TinyData)),
            (4, Some(TinyData)),
            (5, Some(SmallData)),
            (255, Some(SmallData)),
            (256, None),
        ] {
            assert_eq!(Nuisance::from_data(bytes, false), nuisance, "{bytes}");
            assert_eq!(Nuisance::from_data(bytes, true), None, "{bytes}");
        }
    }

    #[test]
    fn a_small_window_update_is_a_nuisance() {
        for (bytes, nuisance) in [
            (1, Some(Nuisance::ControlFrame)),
            (1023, Some(Nuisance::ControlFrame)),
            (1024, None),
            (u32::MAX, None),
        ] {
            assert_eq!(Nuisance::from_window_update(bytes), nuisance, "{bytes}");
        }
    }

    #[test]
    fn each_nuisance_counts_in_its_own_bucket() {
        let rate = |burst| Rate { burst, per_second: 0 };
        let limits = FloodLimits {
            resets: rate(3),
            provoked_resets: rate(2),
            control_frames: rate(25),
            small_data: rate(17),
        };
        for (nuisance, count) in [
            (Nuisance::Reset, 3),
            (Nuisance::ProvokedReset, 2),
            (Nuisance::ControlFrame, 25),
            (Nuisance::EmptyData, 2),
            (Nuisance::SmallData, 17),
            (Nuisance::TinyData, 3),
        ] {
            let mut floods = FloodBuckets::new(&limits, at(0));
            let counted =
                (0..100).take_while(|_| floods.count(nuisance, &limits, at(0)).is_ok()).count();
            assert_eq!(counted, count, "{nuisance:?}");
            let refused = floods.count(nuisance, &limits, at(0));
            assert_eq!(refused, Err(Violation::flood(nuisance.why())));
        }
    }
}
