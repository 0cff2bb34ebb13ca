//! What a loop does with its time: how long its turns take, how late its deadlines fire, whose its
//! handlers are. Written by the loop alone, and read from any thread.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::handler_times::{HandlerCells, HandlerTimes};
use crate::histogram::Histogram;
use crate::shared_histogram::SharedHistogram;
use crate::time::Time;

/// What a loop has done with its time since it was made:
/// [`StatsHandle::times`](crate::StatsHandle::times).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LoopTimes {
    /// Time within turns, without their waits, of all turns that have ended.
    #[doc(alias = "ELU")]
    pub busy: Duration,
    /// Time between turns: the loop waited for events, or, where it is
    /// [embedded](crate::LoopInstance::turn), for its caller.
    pub waited: Duration,
    /// Since when a turn has been under way; `None` between turns. One that began long ago is held
    /// up by a handler.
    pub in_turn_since: Option<Time>,
    /// When the last turn ended.
    pub last_turn_ended: Time,
    /// How long turns took, without their waits. What a handler does that goes on between two of
    /// them, after it was away, counts as one.
    #[doc(alias = "event loop delay")]
    pub turns: Histogram,
    /// How late deadlines were when they fired: up to a [`TICK`](crate::TICK) is the grain of the
    /// clock. Those that had passed when they were set are left out.
    #[doc(alias = "loop lag")]
    pub lag: Histogram,
    /// How long handlers took, by type of machine: of all turns under
    /// [`Config::time_handlers`](crate::Config::time_handlers), else of a sample
    /// ([`Config::sample_handlers`](crate::Config::sample_handlers)).
    pub handlers: Vec<HandlerTimes>,
}

impl LoopTimes {
    /// Returns the share of its time in which the loop was busy, 0 to 1, since `earlier` was read:
    /// of what is left to a hundredth the loop could serve a hundredth more. `None` if no turn has
    /// ended since then.
    #[doc(alias = "utilization")]
    pub fn utilisation(&self, earlier: &LoopTimes) -> Option<f64> {
        let busy = self.busy.saturating_sub(earlier.busy).as_secs_f64();
        let all = busy + self.waited.saturating_sub(earlier.waited).as_secs_f64();
        (all > 0.0).then(|| busy / all)
    }
}

/// The cells of one loop. Only the loop writes them, but for what a reader takes.
#[derive(Default)]
pub(crate) struct TimeCells {
    /// When the loop was made.
    made: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
    turns: SharedHistogram,
    lag: SharedHistogram,
    /// The longest turn since a reader took it.
    longest: AtomicU64,
    /// The longest that any reader took.
    longest_taken: AtomicU64,
    pub(crate) handlers: HandlerCells,
}

impl TimeCells {
    pub(crate) fn set_made(&self, now: Time) {
        self.made.store(now.as_nanos(), Relaxed);
        self.ended.store(now.as_nanos(), Relaxed);
    }

    /// A turn has waited, and begins.
    #[inline]
    pub(crate) fn turn_begins(&self, now: Time) {
        self.begun.store(now.as_nanos(), Relaxed);
    }

    /// A turn is over. In nanoseconds throughout: a `Duration` is a division.
    #[inline]
    pub(crate) fn turn_ends(&self, begun: Time, end: Time) {
        let took = end.as_nanos().saturating_sub(begun.as_nanos());
        self.turns.note_alone(took);
        self.ended.store(end.as_nanos(), Relaxed);
        // A reader may take it in between: then what it took comes once more, or a shorter one is
        // lost to the next period.
        if took > self.longest.load(Relaxed) {
            self.longest.store(took, Relaxed);
        }
    }

    /// A deadline fires.
    pub(crate) fn fires(&self, deadline: Time, now: Time) {
        self.lag.note_alone(now.as_nanos().saturating_sub(deadline.as_nanos()));
    }

    /// A handler took so long, in a turn whose handlers are timed.
    pub(crate) fn handler_took(&self, machine: &'static str, time: Duration) {
        self.handlers.note(machine, time);
    }

    /// The longest turn since the loop was made.
    pub(crate) fn longest(&self) -> Duration {
        let taken = self.longest_taken.load(Relaxed);
        Duration::from_nanos(taken.max(self.longest.load(Relaxed)))
    }

    /// Takes the longest turn since this was last called.
    pub(crate) fn take_longest(&self) -> Duration {
        // First: who reads the longest of all meanwhile finds it in one place or the other.
        self.longest_taken.fetch_max(self.longest.load(Relaxed), Relaxed);
        let taken = self.longest.swap(0, Relaxed);
        self.longest_taken.fetch_max(taken, Relaxed);
        Duration::from_nanos(taken)
    }

    pub(crate) fn read(&self) -> LoopTimes {
        let (made, ended) = (self.made.load(Relaxed), self.ended.load(Relaxed));
        let begun = self.begun.load(Relaxed);
        let turns = self.turns.read();
        let busy = turns.sum();
        LoopTimes {
            busy,
            waited: Duration::from_nanos(ended.saturating_sub(made)).saturating_sub(busy),
            in_turn_since: (begun > ended).then_some(Time::from_nanos(begun)),
            last_turn_ended: Time::from_nanos(ended),
            turns,
            lag: self.lag.read(),
            handlers: self.handlers.read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn what_is_not_busy_has_waited() {
        let cells = TimeCells::default();
        cells.set_made(at(100));
        let before = cells.read();
        assert_eq!((before.busy, before.waited), (Duration::ZERO, Duration::ZERO));
        assert_eq!(before.utilisation(&before), None);
        cells.turn_begins(at(130));
        assert_eq!(cells.read().in_turn_since, Some(at(130)));
        cells.turn_ends(at(130), at(140));
        let after = cells.read();
        assert_eq!((after.busy.as_millis(), after.waited.as_millis()), (10, 30));
        assert_eq!((after.in_turn_since, after.last_turn_ended), (None, at(140)));
        assert_eq!(after.utilisation(&before), Some(0.25));
        assert_eq!(after.turns.count(), 1);
    }

    #[test]
    fn the_longest_turn_is_taken_once_and_the_longest_of_all_stays() {
        let cells = TimeCells::default();
        cells.turn_ends(at(0), at(7));
        cells.turn_ends(at(10), at(13));
        assert_eq!(cells.longest(), Duration::from_millis(7));
        assert_eq!(cells.take_longest(), Duration::from_millis(7));
        cells.turn_ends(at(20), at(22));
        assert_eq!(cells.longest(), Duration::from_millis(7));
        assert_eq!(cells.take_longest(), Duration::from_millis(2));
        assert_eq!(cells.take_longest(), Duration::ZERO);
    }

    #[test]
    fn a_deadline_is_as_late_as_it_fires() {
        let cells = TimeCells::default();
        cells.fires(at(5), at(8));
        cells.fires(at(5), at(5));
        let lag = cells.read().lag;
        assert_eq!((lag.count(), lag.sum()), (2, Duration::from_millis(3)));
    }
}
